//! `sweep` of a suite that is about the host's time.
use anyhow::Result;
use lacuna_cases::exit::Outcome;

use super::sweep::{cases, create, limited, over, setup, write};
use crate::cli::SweepOptions;
use crate::host;
use crate::session::Session;

/// Products of a case at most on the simulator.
const SIMULATED_PRODUCTS: f64 = 1e6;

/// Measures the calls of a suite's problems.
///
/// # Errors
/// As `sweep`.
pub(super) fn sweep(options: &SweepOptions) -> Result<Outcome> {
    let mut session = Session::open(&options.measure)?;
    let setup = setup(&options.setup, &session)?;
    let cases = if session.device.is_simulator() {
        let mut cases = limited(&options.suite, &setup)?;
        let of = cases.len();
        cases.retain(|case| (case.op.simulated)(&case.spec.size()) <= SIMULATED_PRODUCTS);
        eprintln!("lacuna-bench: on the simulator {} of {of} cases run: those that are small", cases.len());
        cases
    } else {
        cases(&options.suite, &setup, &session, f64::INFINITY)?
    };
    let mut out = create(options.out.as_deref())?;
    let records = over(&options.suite, &cases, options.measure.seed, |task| {
        let measured = host::measure(&mut session, task)?;
        write(out.as_mut(), &measured)?;
        Ok(measured)
    })?;
    if options.measure.json {
        for record in &records {
            println!("{}", serde_json::to_string(record)?);
        }
    } else {
        println!("{}", host::table(&records));
        if session.device.is_simulator() {
            println!("\nTimes are the simulator's own, and say nothing of a GPU's host.");
        }
    }
    Ok(Outcome::Good)
}

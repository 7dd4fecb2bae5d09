//! `sweep`: a suite of problems.
use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

use super::run::{load_peers, outcome, print};
use crate::cli::SweepOptions;
use crate::exit::Outcome;
use crate::spmm::{self, Options, Problem};
use crate::{machine, suites};

/// Measures a suite.
///
/// # Errors
/// A suite or a device that is not there, or a file that cannot be written. Records of the cases before stay written.
pub fn sweep(options: &SweepOptions) -> Result<Outcome> {
    let cases = suites::find(&options.suite)?;
    let device = machine::device(&options.measure.device)?;
    let peers = load_peers(&options.measure);
    let how = Options {
        suite: &options.suite,
        samples: options.measure.samples,
        all_algorithms: options.measure.all_algorithms,
        peers: peers.as_ref(),
    };
    let mut out = match &options.out {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
            Some(BufWriter::new(file))
        }
        None => None,
    };
    // indicatif draws on stderr, and only where that is a terminal.
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?;
    let progress = ProgressBar::new(cases.len() as u64).with_style(style);
    let mut records = Vec::new();
    for case in &cases {
        progress.set_message(case.name.clone());
        let problem = Problem::generate(case, options.measure.seed)?;
        let measured = spmm::measure(&device, &problem, &how).with_context(|| case.name.clone())?;
        if let Some(out) = &mut out {
            for record in &measured {
                serde_json::to_writer(&mut *out, record)?;
                out.write_all(b"\n")?;
            }
            out.flush()?;
        }
        records.extend(measured);
        progress.inc(1);
    }
    progress.finish_and_clear();
    print(&records, options.measure.json)?;
    Ok(outcome(&records))
}

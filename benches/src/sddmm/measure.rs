//! One sampled product on one device: its kernels.
use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Index, Sddmm, sddmm};
use lacuna_cases::{Number, Problem};

use super::operands::Operands;
use super::peers;
use crate::measure::{Work, record, with_peers};
use crate::operation::Task;
use crate::record::Record;
use crate::session::{Session, others};

/// Measures a problem.
pub(super) fn measure<T: Number, I: Index>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let stream = session.device.stream()?;
    let operands = Operands::<T>::new(&session.device, problem)?;
    let unwritten = Csr::with_values(problem.sparse()?.pattern().clone(), unwritten_d::<T>(problem)?)?;
    let mut d = CsrMatrix::<T, I>::with_index(&session.device, &unwritten)?;
    let options = sddmm::Options::default();
    let plan = |algorithm| Sddmm::plan_with(&d, problem.width, options.algorithm(algorithm));
    let plans = session.plans(plan, |chosen| others(chosen.choice(), &chosen.legal()[0]))?;
    let mut records = Vec::new();
    for plan in &plans {
        let work = Work {
            algorithm: plan.choice().entry.name.into(),
            operands: &mut d,
            clear: &|d| Ok(d.values_mut()?.upload(&unwritten_d::<T>(problem)?)?),
            run: &|d, stream| plan.run(stream, operands.a.as_slice(), operands.b.as_slice(), d),
            check: &|d, stream| {
                let got = operands.checked.values(&d.values()?.download(stream)?);
                let checked = operands.reference.check(&got);
                Ok(checked.map(|report| report.worst_over_bound).map_err(|mismatch| mismatch.to_string()))
            },
        };
        records.push(record(session, task, &stream, work)?);
    }
    Ok(with_peers(session, task, &stream, records, |peers, context| {
        peers::measure(peers, context, &operands)
    }))
}

/// What D's values are before a product.
fn unwritten_d<T: Number>(problem: &Problem) -> Result<Vec<T>> {
    problem.unwritten("D", problem.matrix.elements())
}

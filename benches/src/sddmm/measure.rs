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
use crate::session::Session;

/// Measures a problem.
pub(super) fn measure<T: Number, I: Index>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let stream = session.device.stream()?;
    let operands = Operands::<T>::new(&session.device, problem)?;
    let unwritten = Csr::with_values(problem.sparse()?.pattern().clone(), unwritten_d::<T>(problem)?)?;
    let mut d = CsrMatrix::<T, I>::with_index(&session.device, &unwritten)?;
    let plan = Sddmm::plan(&d, problem.width)?;
    let [legal, ..] = plan.legal();
    let algorithms: Vec<sddmm::Algorithm> = if session.all_algorithms {
        legal.iter().map(|choice| choice.algorithm).collect()
    } else {
        vec![sddmm::Algorithm::Auto]
    };
    let mut records = Vec::new();
    for algorithm in algorithms {
        let options = sddmm::Options::default().algorithm(algorithm);
        let plan = Sddmm::plan_with(&d, problem.width, options)?;
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

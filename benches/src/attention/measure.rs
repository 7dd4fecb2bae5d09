//! One layer of attention on one device: its kernels.
use anyhow::Result;
use lacuna::{CsrMatrix, Index, SparseAttention, attention};
use lacuna_cases::Number;

use super::operands::{Host, Operands, unwritten_o};
use super::peers;
use crate::arithmetic;
use crate::measure::{Work, record, with_peers, worst};
use crate::operation::Task;
use crate::peers::data_type;
use crate::record::Record;
use crate::session::{self, Session};

/// Measures a problem.
pub(super) fn measure<T: Number, I: Index>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let stream = session.device.stream()?;
    let host = Host::<T>::new(problem)?;
    let mask = CsrMatrix::<T, I>::with_index(&session.device, &problem.sparse()?.map_values(T::from_f32))?;
    let options = attention::Options::default().batch(problem.batch);
    let plan = |algorithm| SparseAttention::plan_with(&mask, problem.width, options.algorithm(algorithm));
    let plans = session.plans(plan, others)?;
    let references = host.references(plans[0].scale())?;
    let mut operands = Operands::new(&session.device, problem, &host)?;
    let mut records = Vec::new();
    for plan in &plans {
        let work = Work {
            algorithm: plan.choice().map_or("three_steps", |choice| choice.entry.name).into(),
            operands: &mut operands,
            clear: &|operands| Ok(operands.o.upload(&unwritten_o::<T>(problem)?)?),
            run: &|Operands { q, k, v, o }, stream| {
                plan.run(stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut())
            },
            check: &|operands, stream| {
                let o = operands.o.download(stream)?;
                let (len, width) = (problem.rows() * problem.width, problem.width);
                let arithmetic = arithmetic::of_attention(data_type::<T>(), plan.choice().is_some());
                let heads = references.iter().enumerate().map(|(head, reference)| {
                    let got = host.checked.dense(&o[head * len..][..len], width);
                    Ok(reference.clone().arithmetic(arithmetic).check(&got))
                });
                worst("head", heads)
            },
        };
        records.push(record(session, task, &stream, work)?);
    }
    Ok(with_peers(session, task, &stream, records, |peers, context| {
        peers::measure(peers, context, &host, &operands)
    }))
}

/// The algorithms that can do the same, other than the one that the library chose.
fn others<T: Number, I: Index>(chosen: &SparseAttention<T, I>) -> Vec<attention::Algorithm> {
    let [legal, ..] = chosen.legal();
    let Some(choice) = chosen.choice() else { return Vec::new() };
    session::others(choice, &legal).into_iter().chain([attention::Algorithm::ThreeSteps]).collect()
}

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
use crate::session::Session;

/// Measures a problem.
pub(super) fn measure<T: Number, I: Index>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let stream = session.device.stream()?;
    let host = Host::<T>::new(problem)?;
    let mask = CsrMatrix::<T, I>::with_index(&session.device, &problem.sparse()?.map_values(T::from_f32))?;
    let options = attention::Options::default().batch(problem.batch);
    let mut plans = vec![SparseAttention::plan_with(&mask, problem.width, options)?];
    if session.all_algorithms {
        let shape = attention::Problem {
            nnz: problem.matrix.elements(),
            keys: problem.cols(),
            quad_entries: None,
            dim: problem.width,
            // What whole buffers allow to load at once: 16 bytes.
            vector: 16 / T::TYPE.bytes(),
            value: T::TYPE,
            index: I::TYPE,
        };
        for algorithm in others(&plans[0], &shape) {
            plans.push(SparseAttention::plan_with(&mask, problem.width, options.algorithm(algorithm))?);
        }
    }
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

/// The algorithms that can do a problem, other than the one that the library chose.
fn others<T: Number, I: Index>(
    chosen: &SparseAttention<T, I>,
    shape: &attention::Problem,
) -> Vec<attention::Algorithm> {
    let chosen = chosen.choice().map_or(attention::Algorithm::ThreeSteps, |choice| choice.algorithm);
    let fused = attention::choose(shape).into_iter().map(|choice| choice.algorithm);
    fused.chain([attention::Algorithm::ThreeSteps]).filter(|&algorithm| algorithm != chosen).collect()
}

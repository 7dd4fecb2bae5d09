//! Measuring attention under a sparse mask.
mod backward;
mod mask;
mod operands;
mod peers;

use anyhow::Result;
use lacuna::{CsrMatrix, Index, SparseAttention, attention};
use lacuna_cases::{Number, Values};

use self::operands::{Host, Operands, unwritten_o};
use crate::arithmetic;
use crate::measure::{Work, by_types, by_value, worst};
use crate::operation::{Columns, Operation, Rate, Takes, Task, Width};
use crate::peers::data_type;
use crate::record::Record;
use crate::session::{self, Session};

/// Attention, as it is measured.
pub(crate) static OPERATION: Operation = Operation {
    name: "attention",
    title: "Sparse attention",
    about: "O = softmax(Q·Kᵀ/√K under a sparse mask, M × N)·V; Q, K and V have K columns a head",
    values: Some(Values::Drawn),
    columns: Columns::N,
    width: Width::of_operands("d", "--d"),
    takes: Takes { heads: true, ..Takes::INDICES },
    rate: Rate::Flops,
    is_by_sparsity: true,
    // The dense way, less the part that no library does alone.
    peers: &[
        ("cublas_f32_products", "cuBLAS f32, both products, without its softmax"),
        ("cublas_tf32_products", "cuBLAS TF32, both products, without its softmax"),
        ("cublas_f16_products", "cuBLAS f16, both products, without its softmax"),
        ("cublas_bf16_products", "cuBLAS bf16, both products, without its softmax"),
    ],
    // A product and a sum for each nonzero and column, twice.
    flops: |size| 4.0 * size.elements * size.width * size.batch,
    // Q, K, V and O, and the mask.
    bytes: |size, value, index| {
        index * size.elements
            + 4.0 * size.rows
            + size.batch * value * 2.0 * (size.rows + size.cols) * size.width
    },
    // The mask, Q, K, V, O twice, and scores: sparse ones, twice, and dense ones.
    footprint: |size| {
        8.0 * size.elements * (1.0 + size.batch)
            + 4.0 * size.batch * (size.rows * size.cols + (3.0 * size.rows + 2.0 * size.cols) * size.width)
    },
    simulated: |size| 2.0 * size.width * size.elements * size.batch,
    measure: |session, task| by_types!(session, measure(session, task)),
};

fn measure<T: Number, I: Index>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let host = Host::<T>::new(problem)?;
    let mask = CsrMatrix::<T, I>::with_index(&session.device, &problem.sparse()?.map_values(T::from_f32))?;
    let options = attention::Options::default().batch(problem.batch);
    let plan = |algorithm| SparseAttention::plan_with(&mask, problem.width, options.algorithm(algorithm));
    let plans = session.plans(plan, others)?;
    let references = host.references(plans[0].scale())?;
    let mut operands = Operands::new(&session.device, problem, &host)?;
    let work = Work {
        plans: &plans,
        algorithm: &|plan| plan.choice().map_or("three_steps", |choice| choice.entry.name).into(),
        operands: &mut operands,
        clear: &|operands| Ok(operands.o.upload(&unwritten_o::<T>(problem)?)?),
        run: &|plan, Operands { q, k, v, o }, stream| {
            plan.run(stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut())
        },
        check: &|plan, operands, stream| {
            let o = operands.o.download(stream)?;
            let (len, width) = (problem.rows() * problem.width, problem.width);
            let arithmetic = arithmetic::of_attention(data_type::<T>(), plan.choice());
            let heads = references.iter().enumerate().map(|(head, reference)| {
                let got = host.checked.dense(&o[head * len..][..len], width);
                Ok(reference.clone().arithmetic(arithmetic).check(&got))
            });
            worst("head", heads)
        },
    };
    let mut records = work
        .measure(session, task, |peers, context, operands| peers::measure(peers, context, &host, operands))?;
    for (record, plan) in records.iter_mut().zip(&plans) {
        record.mask_us = mask::times(&session.device, problem, plan)?;
        if let Some(times) = backward::times(session, problem, (&mask, plan), &host, record.chosen)? {
            record.backward_us = Some(times.chosen);
            record.backward_kernels = times.kernels;
            record.other_backward_us = times.others;
        }
    }
    Ok(records)
}

/// The algorithms that can do the same, other than the one that the library chose.
fn others<T: Number, I: Index>(chosen: &SparseAttention<T, I>) -> Vec<attention::Algorithm> {
    let [legal, ..] = chosen.legal();
    let Some(choice) = chosen.choice() else { return Vec::new() };
    session::others(choice, &legal).into_iter().chain([attention::Algorithm::ThreeSteps]).collect()
}

//! Measuring the softmax over the rows of a sparse matrix. No vendor's library has one: it has no peers.
use std::collections::BTreeSet;

use anyhow::Result;
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Index, SparseSoftmax, softmax};
use lacuna_cases::{Number, Values};
use lacuna_reference::softmax;

use crate::checked::Checked;
use crate::measure::{Work, by_types, by_value, worst};
use crate::operation::{Columns, Operation, Rate, Takes, Task};
use crate::peers::Peered;
use crate::record::Record;
use crate::session::Session;

/// What multiplies the values.
const SCALE: f32 = 1.0;

/// The sparse softmax, as it is measured.
pub(crate) static OPERATION: Operation = Operation {
    name: "sparse-softmax",
    title: "Sparse softmax",
    about: "Softmax over the stored values of each row of a sparse matrix, M × N",
    values: Some(Values::Drawn),
    columns: Columns::N,
    width: None,
    takes: Takes { heads: true, ..Takes::INDICES },
    rate: Rate::Bytes,
    is_by_sparsity: true,
    peers: &[],
    // A difference, an exponential, a sum and a product for each nonzero.
    flops: |size| 4.0 * size.elements * size.batch,
    // Values, in and out, and the rows: where a value stands in its row does not matter.
    bytes: |size, value, _| 4.0 * size.rows + size.batch * 2.0 * value * size.elements,
    footprint: |size| 4.0 * size.elements * (1.0 + 2.0 * size.batch),
    simulated: |size| 16.0 * size.elements * size.batch,
    measure: |session, task| by_types!(session, measure(session, task)),
};

fn measure<T: Number, I: Index>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let checked = Checked::of(problem)?;
    let (nnz, batch) = (problem.matrix.elements(), problem.batch);
    let drawn = generate::random_values(nnz * batch, problem.seed ^ 0xa);
    let values: Vec<T> = drawn.into_iter().map(T::from_f32).collect();
    let references: Result<Vec<_>> = (0..batch)
        .map(|at| {
            let values = checked.values(&values[at * nnz..][..nnz]);
            let x = Csr::with_values(checked.pattern.clone(), values)?;
            Ok(softmax(&x, SCALE)?)
        })
        .collect();
    let references = references?;
    let pattern = CsrMatrix::<T, I>::with_index(&session.device, &problem.sparse()?.map_values(T::from_f32))?;
    let x = pattern.with_value_batch(batch, &values)?;
    let mut y = pattern.with_zeros::<T>(batch)?;

    // All that there is, the library's choice first: it may be several kernels, each for rows of some length.
    let options = softmax::Options::default().scale(SCALE).batch(batch);
    let plan = |algorithm| SparseSoftmax::plan_with(&x, options.algorithm(algorithm));
    let mut plans = session.plans(plan, SparseSoftmax::legal)?;
    let mut names = BTreeSet::new();
    plans.retain(|plan| names.insert(name(plan)));
    let work = Work {
        plans: &plans,
        algorithm: &name,
        operands: &mut y,
        clear: &|y| {
            let unwritten = problem.unwritten::<T>("y", nnz)?;
            (0..batch).try_for_each(|at| Ok(y.batch_values_mut(at)?.upload(&unwritten)?))
        },
        run: &|plan, y, stream| plan.run(stream, &x, y),
        check: &|_, y, stream| {
            let matrices = references.iter().enumerate().map(|(at, reference)| {
                let got = checked.values(&y.batch_values(at)?.download(stream)?);
                Ok(reference.check(&got))
            });
            worst("matrix", matrices)
        },
    };
    work.measure(session, task, |_, _, _| Peered::default())
}

/// The entry points of a plan.
fn name<T: Number, I: Index>(plan: &SparseSoftmax<T, I>) -> String {
    let entries: Vec<&str> = plan.parts().iter().map(|part| part.forward.name).collect();
    if entries.is_empty() { "none".into() } else { entries.join(" + ") }
}

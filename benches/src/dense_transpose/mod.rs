//! Measuring transposes of dense matrices. They are a matter of bytes alone: they are set against a copy.
use anyhow::Result;
use lacuna::DenseTranspose;
use lacuna::dense_transpose::Options;
use lacuna_cases::Number;
use lacuna_reference::dense_transpose;

use crate::copies::{self, PLAIN_COPY};
use crate::measure::{Work, by_value, judged};
use crate::operation::{Columns, Operation, Rate, Takes, Task};
use crate::record::Record;
use crate::session::{Session, others};

/// Transposes of dense matrices, as they are measured.
pub(crate) static OPERATION: Operation = Operation {
    name: "dense-transpose",
    title: "Transpose of dense matrices",
    about: "the transposes of a batch of dense matrices, M × N",
    values: None,
    columns: Columns::N,
    width: None,
    takes: Takes { indices: &[], ..Takes::INDICES },
    rate: Rate::Bytes,
    is_by_sparsity: false,
    peers: &[PLAIN_COPY],
    // Nothing is computed: an element moved counts as one.
    flops: |size| size.elements * size.batch,
    bytes: |size, value, _| 2.0 * value * size.elements * size.batch,
    footprint: |size| 8.0 * size.elements * size.batch,
    simulated: |size| 16.0 * size.elements * size.batch,
    measure: |session, task| by_value!(session, measure::<_>(session, task)),
};

fn measure<T: Number>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let device = &session.device;
    let (rows, columns, batch) = (problem.rows(), problem.cols(), problem.batch);
    let options = Options::default().batch(batch);
    let plan =
        |algorithm| DenseTranspose::<T>::plan_with(device, rows, columns, options.algorithm(algorithm));
    let plans = session.plans(plan, |chosen| others(chosen.choice(), &chosen.legal()[0]))?;

    let host: Vec<T> = problem.drawn_as("the matrices", [batch * rows, columns], 0xa, T::from_f32)?;
    // Rows of each matrix, which are columns of its transpose.
    let checked: Vec<usize> = problem.checked_rows().collect();
    let mut sampled: Vec<T> = Vec::new();
    for matrix in 0..batch {
        sampled.extend(checked.iter().flat_map(|row| &host[(matrix * rows + row) * columns..][..columns]));
    }
    let reference = dense_transpose(&sampled, batch, [checked.len(), columns])?;
    let input = device.upload(&host)?;
    let mut out = device.zeros::<T>(host.len())?;
    let work = Work {
        plans: &plans,
        algorithm: &|plan| plan.choice().entry.name.into(),
        operands: &mut out,
        clear: &|out| Ok(out.upload(&problem.unwritten("the result", out.len())?)?),
        run: &|plan, out, stream| plan.run(stream, input.as_slice(), out.as_slice_mut()),
        check: &|_, out, stream| {
            let out = out.download(stream)?;
            let of_row = |row: &[T]| checked.iter().map(|&at| row[at]).collect::<Vec<_>>();
            let got: Vec<T> = out.chunks_exact(rows.max(1)).flat_map(of_row).collect();
            Ok(judged(reference.check(&got)))
        },
    };
    work.measure(session, task, |peers, context, _| copies::measure(peers, context, None))
}

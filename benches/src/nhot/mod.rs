//! Measuring sums of a table's rows. The vendors' libraries multiply a matrix of ones with the table; beside them stand copies.
use anyhow::Result;
use lacuna::{Bags, NHot, nhot};
use lacuna_cases::{Number, Problem, Values};
use lacuna_reference::{NHotBags, NHotReference, nhot as reference_of};

use crate::checked::Checked;
use crate::copies::{self, PLAIN_COPY};
use crate::measure::{Work, by_value, judged};
use crate::operation::{Columns, Operation, Rate, Takes, Task, Width};
use crate::peers::{MOST_DENSE_BYTES, PRODUCTS};
use crate::record::Record;
use crate::session::{Session, others};
use crate::spmm;
use crate::types::Index;

/// Embedding-bag lookup, as it is measured.
pub(crate) static OPERATION: Operation = Operation {
    name: "nhot",
    title: "Embedding-bag lookup",
    about: "Y = X·W where X has a few ones a row, M × K; the table W has N columns",
    values: Some(Values::Ones),
    columns: Columns::K,
    width: Width::of_operands("N", "--n"),
    takes: Takes { indices: &[Index::U32, Index::U64], ..Takes::INDICES },
    rate: Rate::Bytes,
    is_by_sparsity: false,
    // A product with a matrix of ones, and a copy.
    peers: &[PLAIN_COPY, PRODUCTS[0], PRODUCTS[1], PRODUCTS[4], PRODUCTS[5], PRODUCTS[6], PRODUCTS[7]],
    // A sum for each nonzero and column.
    flops: |size| size.elements * size.width,
    // A row of the table for each nonzero, as often as it is asked for; the result; and the bags.
    bytes: |size, value, index| {
        index * size.elements + 4.0 * size.rows + value * (size.elements + size.rows) * size.width
    },
    // The bags twice, the table, Y three times. A dense X is left out where it is too large.
    footprint: |size| {
        12.0 * size.elements
            + 4.0 * (size.cols + 3.0 * size.rows) * size.width
            + (4.0 * size.rows * size.cols).min(MOST_DENSE_BYTES as f64)
    },
    simulated: |size| size.width * size.elements,
    measure: |session, task| match session.types.index {
        Index::U64 => by_value!(session, measure::<_, u64>(session, task)),
        _ => by_value!(session, measure::<_, u32>(session, task)),
    },
};

fn measure<T: Number, I: nhot::BagIndex + From<u32>>(
    session: &mut Session,
    task: &Task<'_>,
) -> Result<Vec<Record>> {
    let problem = task.problem;
    let pattern = problem.sparse()?.pattern();
    let offsets: Vec<usize> = pattern.row_offsets().iter().map(|&offset| offset as usize).collect();
    let indices: Vec<I> = pattern.col_indices().iter().map(|&row| row.into()).collect();
    let bags = Bags::new(&session.device, problem.cols(), &offsets, &indices)?;
    let host = problem.dense_as::<T>("the table", problem.cols(), 0xb)?;
    let checked = Checked::of(problem)?;
    let reference = reference(&checked, &host, problem.width)?;
    let table = session.device.upload(&host)?;
    let mut out = session.device.upload(&unwritten::<T>(problem)?)?;

    let options = nhot::Options::default();
    let plan = |algorithm| NHot::plan_with(&bags, problem.width, options.algorithm(algorithm));
    let plans = session.plans(plan, |chosen| others(chosen.choice(), &chosen.legal()[0]))?;
    let work = Work {
        plans: &plans,
        algorithm: &|plan| plan.choice().entry.name.into(),
        operands: &mut out,
        clear: &|out| Ok(out.upload(&unwritten::<T>(problem)?)?),
        run: &|plan, out, stream| plan.run(stream, &bags, table.as_slice(), out.as_slice_mut()),
        check: &|_, out, stream| {
            let got = checked.dense(&out.download(stream)?, problem.width);
            Ok(judged(reference.check(&got)))
        },
    };
    work.measure(session, task, |peers, context, _| {
        let mut peered = copies::measure(peers, context, None);
        let products = spmm::Operands::with_b(context.device, problem, &host)
            .map(|operands| spmm::measure_peers(peers, context, &operands));
        peered.add("products", products);
        peered
    })
}

/// What the checked bags should come to.
fn reference<T: Number>(checked: &Checked, table: &[T], columns: usize) -> Result<NHotReference<T>> {
    let whole = |numbers: &[u32]| numbers.iter().map(|&number| number as usize).collect::<Vec<_>>();
    let (offsets, indices) = (whole(checked.pattern.row_offsets()), whole(checked.pattern.col_indices()));
    let bags = NHotBags { offsets: &offsets, indices: &indices, weights: None, padding: None, mean: false };
    Ok(reference_of(&bags, table, columns)?)
}

/// What the result is before a lookup.
fn unwritten<T: Number>(problem: &Problem) -> Result<Vec<T>> {
    problem.unwritten("Y", problem.rows().saturating_mul(problem.width))
}

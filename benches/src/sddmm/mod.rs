//! Measuring D = A·Bᵀ where a sparse matrix has nonzeros.
pub(crate) mod fit;
mod peers;

use std::collections::HashSet;

use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::{Buffer, CsrMatrix, Device, Error, Index, Sddmm, sddmm};
use lacuna_cases::{Number, Problem, Values};
use lacuna_reference::{Precision, SddmmReference, sddmm as reference_of};

use crate::checked::Checked;
use crate::measure::{Work, by_types, by_value};
use crate::operation::{Columns, Operation, Rate, Takes, Task, Width};
use crate::peers::PRODUCTS;
use crate::record::Record;
use crate::session::{Session, others};

/// SDDMM, as it is measured.
pub(crate) static OPERATION: Operation = Operation {
    name: "sddmm",
    title: "SDDMM",
    about: "D = A·Bᵀ where a sparse matrix, M × N, has nonzeros; A and B have K columns",
    values: Some(Values::Drawn),
    columns: Columns::N,
    width: Width::of_operands("K", "--k"),
    takes: Takes::INDICES,
    rate: Rate::Flops,
    is_by_sparsity: true,
    peers: &PRODUCTS,
    // A product and a sum for each nonzero and column.
    flops: |size| 2.0 * size.elements * size.width,
    // A, B, D (values), and the pattern.
    bytes: |size, value, index| {
        index * size.elements
            + 4.0 * size.rows
            + value * (size.elements + (size.rows + size.cols) * size.width)
    },
    // A, B, D twice.
    footprint: |size| {
        16.0 * size.elements + 4.0 * (size.rows * size.cols + (size.rows + size.cols) * size.width)
    },
    simulated: |size| size.width * size.elements,
    measure: |session, task| by_types!(session, measure(session, task)),
};

fn measure<T: Number, I: Index>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let operands = Operands::<T>::new(&session.device, problem)?;
    let mut d = d_of::<T, I>(&session.device, problem)?;
    let plan = |(algorithm, splits): Way| {
        let options = sddmm::Options::default().algorithm(algorithm);
        let options = splits.map_or(options, |splits| options.splits(splits));
        Sddmm::plan_with(&d, problem.width, options)
    };
    let mut plans = session.plans(plan, |chosen| other_ways(chosen, &d, problem.width))?;
    let mut known = HashSet::new();
    plans.retain(|plan| known.insert(name_of(plan)));
    work_of(problem, &plans, &operands, &mut d, |work| {
        work.measure(session, task, |peers, context, _| peers::measure(peers, context, &operands))
    })
}

/// Plans a sampled product in some way.
pub(crate) type Prepare = fn(&CsrMatrix, usize) -> lacuna::Result<Sddmm>;

/// Measures a problem in several ways, each with the name of its suite, on the same operands: a record each, without peers, but none of a way
/// for which there is no kernel.
pub(crate) fn measure_variants(
    session: &Session,
    task: &Task<'_>,
    variants: &[(&str, Prepare)],
) -> Result<Vec<Record>> {
    let stream = session.device.stream()?;
    let problem = task.problem;
    let operands = Operands::<f32>::new(&session.device, problem)?;
    let mut d = d_of::<f32, u32>(&session.device, problem)?;
    let mut records = Vec::new();
    for (suite, prepare) in variants {
        let plan = match prepare(&d, problem.width) {
            Err(Error::Illegal { .. }) => {
                eprintln!("lacuna-bench: {}: left out of \"{suite}\": no such kernel takes it", problem.name);
                continue;
            }
            plan => plan?,
        };
        records.extend(work_of(problem, &[plan], &operands, &mut d, |mut work| {
            work.records(session, &Task { suite, ..*task }, &stream)
        })?);
    }
    Ok(records)
}

/// D, with the values that it has before a product.
fn d_of<T: Number, I: Index>(device: &Device, problem: &Problem) -> Result<CsrMatrix<T, I>> {
    let unwritten = Csr::with_values(problem.sparse()?.pattern().clone(), unwritten_d::<T>(problem)?)?;
    Ok(CsrMatrix::with_index(device, &unwritten)?)
}

/// Has the work of plans measured.
fn work_of<T: Number, I: Index>(
    problem: &Problem,
    plans: &[Sddmm<T, I>],
    operands: &Operands<T>,
    d: &mut CsrMatrix<T, I>,
    measure: impl FnOnce(Work<'_, Sddmm<T, I>, CsrMatrix<T, I>>) -> Result<Vec<Record>>,
) -> Result<Vec<Record>> {
    measure(Work {
        plans,
        algorithm: &|plan| name_of(plan),
        operands: d,
        clear: &|d| Ok(d.values_mut()?.upload(&unwritten_d::<T>(problem)?)?),
        run: &|plan, d, stream| plan.run(stream, operands.a.as_slice(), operands.b.as_slice(), d),
        check: &|_, d, stream| {
            let got = operands.checked.values(&d.values()?.download(stream)?);
            let checked = operands.reference.check(&got);
            Ok(checked.map(|report| report.worst_over_bound).map_err(|mismatch| mismatch.to_string()))
        },
    })
}

/// An algorithm, and into how many parts it splits K, if that is not the library's choice.
type Way = (sddmm::Algorithm, Option<usize>);

/// The kernel of a plan, and its splits, where K is split.
fn name_of<T: Number, I: Index>(plan: &Sddmm<T, I>) -> String {
    named(plan.choice().entry.name, plan.splits())
}

/// What records call a kernel with its splits.
fn named(kernel: &str, splits: usize) -> String {
    if splits == 1 { kernel.into() } else { format!("{kernel}, {splits} splits") }
}

/// The kernel and the splits of such a name; none of one of another form.
fn kernel_of(name: &str) -> Option<(&str, usize)> {
    match name.split_once(", ") {
        None => Some((name, 1)),
        Some((kernel, splits)) => Some((kernel, splits.strip_suffix(" splits")?.parse().ok()?)),
    }
}

/// Elements that whole buffers allow to load at once, where K does.
const VECTOR: u32 = 8;
/// How much longer than the best way another may take, by the cost model, for its splits to be measured.
const WORTH_MEASURING: f64 = 4.0;

/// The other legal kernels, with the splits that the library chooses for each, and with 1, 2, 4 and so on where that is not far from the best.
fn other_ways<T: Number, I: Index>(chosen: &Sddmm<T, I>, d: &CsrMatrix<T, I>, k: usize) -> Vec<Way> {
    let [legal, ..] = chosen.legal();
    let kernels = others(chosen.choice(), &legal).into_iter().map(|algorithm| (algorithm, None));
    let in_splits = measured_splits().flat_map(|splits| {
        let splits = Some(splits);
        let choices = sddmm::choose(&sddmm::Problem { splits, ..sddmm::Problem::of(d, k, VECTOR) });
        let is_near = |choice: &sddmm::Choice| choice.cost <= WORTH_MEASURING * chosen.choice().cost;
        choices.into_iter().filter(is_near).map(move |choice| (choice.algorithm, splits))
    });
    kernels.chain(in_splits.collect::<Vec<_>>()).collect()
}

/// The splits that a sweep measures of every kernel.
fn measured_splits() -> impl Iterator<Item = usize> {
    (0..7).map(|power| 1 << power)
}

/// What D's values are before a product.
fn unwritten_d<T: Number>(problem: &Problem) -> Result<Vec<T>> {
    problem.unwritten("D", problem.matrix.elements())
}

/// The operands of one sampled product on a device, but for D, and what it should come to.
struct Operands<T: Number> {
    a: Buffer<T>,
    b: Buffer<T>,
    checked: Checked,
    reference: SddmmReference<T>,
}

impl<T: Number> Operands<T> {
    fn new(device: &Device, problem: &Problem) -> Result<Self> {
        let k = problem.width;
        let a = problem.dense_as::<T>("A", problem.rows(), 0xc)?;
        let b = problem.dense_as::<T>("B", problem.cols(), 0xb)?;
        let checked = Checked::of(problem)?;
        let reference = reference_of(&checked.pattern, &checked.dense(&a, k), &b, k)?;
        Ok(Self { a: device.upload(&a)?, b: device.upload(&b)?, checked, reference })
    }

    /// The largest error of D's values in the checked rows over the bound of this arithmetic; none where it is out of it.
    fn error_over_bound(&self, arithmetic: Precision, values: &[T]) -> Result<Option<f64>> {
        let reference = self.reference.clone().precision(arithmetic)?;
        Ok(reference.check(values).ok().map(|report| report.worst_over_bound))
    }
}

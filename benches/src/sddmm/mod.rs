//! Measuring D = A·Bᵀ where a sparse matrix has nonzeros.
mod peers;

use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::{Buffer, CsrMatrix, Device, Index, Sddmm, sddmm};
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
    let unwritten = Csr::with_values(problem.sparse()?.pattern().clone(), unwritten_d::<T>(problem)?)?;
    let mut d = CsrMatrix::<T, I>::with_index(&session.device, &unwritten)?;
    let options = sddmm::Options::default();
    let plan = |algorithm| Sddmm::plan_with(&d, problem.width, options.algorithm(algorithm));
    let plans = session.plans(plan, |chosen| others(chosen.choice(), &chosen.legal()[0]))?;
    let work = Work {
        plans: &plans,
        algorithm: &|plan| plan.choice().entry.name.into(),
        operands: &mut d,
        clear: &|d| Ok(d.values_mut()?.upload(&unwritten_d::<T>(problem)?)?),
        run: &|plan, d, stream| plan.run(stream, operands.a.as_slice(), operands.b.as_slice(), d),
        check: &|_, d, stream| {
            let got = operands.checked.values(&d.values()?.download(stream)?);
            let checked = operands.reference.check(&got);
            Ok(checked.map(|report| report.worst_over_bound).map_err(|mismatch| mismatch.to_string()))
        },
    };
    work.measure(session, task, |peers, context, _| peers::measure(peers, context, &operands))
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

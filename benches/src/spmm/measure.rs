//! One problem on one device: checked, then timed or modelled.
use std::collections::BTreeMap;

use anyhow::Result;
use half::{bf16, f16};
use lacuna::matrix::Csr;
use lacuna::{Buffer, CsrMatrix, Device, Index, Spmm, SpmmAlgorithm, SpmmOptions, Stream, Value, choose};
use lacuna_peers::DataType;
use lacuna_reference::{ErrorReport, Mismatch, Precision, SpmmReference, spmm_rows};

use super::{Problem, arithmetic, model};
use crate::machine::MachineRecord;
use crate::record::Record;
use crate::session::Session;
use crate::timing::time;
use crate::types::{self, Dtype};

/// Products above which only some rows are checked, so that checking takes a second or two.
const MOST_CHECKED: usize = 400_000_000;

/// Puts A on a device in some way, and plans the product in some way.
pub type Prepare = fn(&Device, &Problem) -> lacuna::Result<(CsrMatrix, Spmm)>;

/// A value that the library, the reference and the vendor's libraries know.
pub(super) trait Measured: Value + lacuna_reference::Value {
    /// What the vendor's libraries call it.
    const DATA_TYPE: DataType;
}
impl Measured for f32 {
    const DATA_TYPE: DataType = DataType::F32;
}
impl Measured for f16 {
    const DATA_TYPE: DataType = DataType::F16;
}
impl Measured for bf16 {
    const DATA_TYPE: DataType = DataType::Bf16;
}

/// A problem on a device, but for A.
pub(super) struct Operands<T: Measured> {
    pub(super) stream: Stream,
    pub(super) a: Csr<T>,
    pub(super) b: Buffer<T>,
    pub(super) c: Buffer<T>,
    pub(super) reference: SpmmReference<T>,
}

/// Measures a problem: one record for the library's choice, or for every kernel, the choice first.
///
/// # Errors
/// What the library or the reference says. A result out of its bound is no error: the record tells it.
pub fn measure(session: &mut Session, suite: &str, problem: &Problem) -> Result<Vec<Record>> {
    match (session.types.dtype, session.types.index) {
        (Dtype::F32, types::Index::U32) => measure_as::<f32, u32>(session, suite, problem),
        (Dtype::F32, types::Index::U16) => measure_as::<f32, u16>(session, suite, problem),
        (Dtype::F16, types::Index::U32) => measure_as::<f16, u32>(session, suite, problem),
        (Dtype::F16, types::Index::U16) => measure_as::<f16, u16>(session, suite, problem),
        (Dtype::Bf16, types::Index::U32) => measure_as::<bf16, u32>(session, suite, problem),
        (Dtype::Bf16, types::Index::U16) => measure_as::<bf16, u16>(session, suite, problem),
    }
}

fn measure_as<T: Measured, I: Index>(
    session: &mut Session,
    suite: &str,
    problem: &Problem,
) -> Result<Vec<Record>> {
    let mut operands = Operands::<T>::new(&session.device, problem)?;
    let a = CsrMatrix::<T, I>::with_index(&session.device, &operands.a)?;
    let precision = session.types.precision();
    let algorithms = if session.all_algorithms {
        let legal = choose(&lacuna::Problem { precision, ..lacuna::Problem::of(&a, problem.n, WIDEST) });
        legal.iter().map(|choice| choice.algorithm).collect()
    } else {
        vec![SpmmAlgorithm::Auto]
    };
    let mut records = Vec::new();
    for (index, algorithm) in algorithms.into_iter().enumerate() {
        let options = SpmmOptions::default().precision(precision).algorithm(algorithm);
        let plan = Spmm::plan_with(&a, problem.n, options)?;
        let record = measure_plan(session, suite, problem, &mut operands, &a, &plan)?;
        records.push(Record { chosen: index == 0, ..record });
    }
    if let Some(peers) = &mut session.peers {
        let peers = peers.measure(&session.device, problem, &operands, session.samples);
        for record in &mut records {
            record.peers.clone_from(&peers.records);
            record.peer_failures.clone_from(&peers.failures);
        }
    }
    Ok(records)
}

/// Measures a problem in several ways, each with the name of its suite, on the same B: a record each, without peers.
///
/// # Errors
/// As [`measure`].
pub fn measure_variants(
    session: &Session,
    problem: &Problem,
    variants: &[(String, Prepare)],
) -> Result<Vec<Record>> {
    let mut operands = Operands::<f32>::new(&session.device, problem)?;
    let measure = |(suite, prepare): &(String, Prepare)| {
        let (a, plan) = prepare(&session.device, problem)?;
        measure_plan(session, suite, problem, &mut operands, &a, &plan)
    };
    variants.iter().map(measure).collect()
}

/// Columns that the addresses of whole buffers allow to load at once.
const WIDEST: u32 = 8;

impl<T: Measured> Operands<T> {
    fn new(device: &Device, problem: &Problem) -> Result<Self> {
        let (a, b) = (problem.values_as::<T>(), problem.b_as::<T>()?);
        let rows = problem.a.rows();
        let checked =
            (MOST_CHECKED * rows.max(1) / (problem.a.nnz() * problem.n).max(1)).clamp(1, rows.max(1));
        // Odd, so that all places in a tile's rows come.
        let step = rows.div_ceil(checked).max(1) | 1;
        let reference = spmm_rows(&a, &b, problem.n, (0..rows).step_by(step))?;
        Ok(Self {
            stream: device.stream()?,
            a,
            b: device.upload(&b)?,
            c: device.upload(&problem.unwritten_c::<T>()?)?,
            reference,
        })
    }

    /// Checks C against the reference, as computed by this arithmetic.
    fn check(&self, arithmetic: Precision, c: &[T]) -> Result<Result<ErrorReport, Mismatch>> {
        Ok(self.reference.clone().precision(arithmetic)?.check(c))
    }

    /// The largest error of C over the bound of this arithmetic; none where it is out of it.
    pub(super) fn error_over_bound(&self, arithmetic: Precision, c: &[T]) -> Result<Option<f64>> {
        Ok(self.check(arithmetic, c)?.ok().map(|report| report.worst_over_bound))
    }
}

fn measure_plan<T: Measured, I: Index>(
    session: &Session,
    suite: &str,
    problem: &Problem,
    operands: &mut Operands<T>,
    a: &CsrMatrix<T, I>,
    plan: &Spmm<T, I>,
) -> Result<Record> {
    let device = &session.device;
    operands.c.upload(&problem.unwritten_c::<T>()?)?;
    let Operands { stream, b, c, .. } = operands;
    let (_, launches) = device.record(|| plan.run(stream, a, b.as_slice(), c.as_slice_mut()))?;
    let got = operands.c.download(&operands.stream)?;
    let error_over_bound = match operands.check(arithmetic::of_kernel(plan.choice()), &got)? {
        Ok(report) => report.worst_over_bound,
        Err(mismatch) => {
            eprintln!("{}: {}: {mismatch}", problem.name, plan.choice().entry);
            f64::MAX
        }
    };
    let Operands { stream, b, c, .. } = operands;
    let time_us = if device.is_simulator() {
        None
    } else {
        let run = |stream: &Stream| Ok(plan.run(stream, a, b.as_slice(), c.as_slice_mut())?);
        Some(time(stream, session.samples, run)?)
    };
    let stats = a.stats();
    Ok(Record {
        suite: suite.into(),
        op: "spmm".into(),
        case: problem.name.clone(),
        group: problem.group.clone(),
        level: problem.level,
        cov: problem.cov,
        algorithm: plan.choice().entry.into(),
        chosen: true,
        dtype: session.types.dtype_name().into(),
        index: session.types.index_name().into(),
        precision: session.types.precision_name().into(),
        m: problem.a.rows(),
        k: problem.a.cols(),
        n: problem.n,
        nnz: problem.a.nnz(),
        sparsity: stats.sparsity,
        longest_row: Some(stats.max_row_length as usize),
        seed: problem.seed,
        time_us,
        model_us: model::times(&launches),
        counts: model::counts(&launches),
        flops: problem.flops(),
        bytes: problem.bytes(T::TYPE.bytes(), I::TYPE.bytes()),
        error_over_bound,
        checked_rows: operands.reference.rows().len(),
        peers: BTreeMap::new(),
        peer_failures: BTreeMap::new(),
        machine: MachineRecord::of(device),
    })
}

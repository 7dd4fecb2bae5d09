//! One problem on one device, whatever the operation: checked, then timed or modelled.
use std::collections::BTreeMap;

use anyhow::Result;
use half::{bf16, f16};
use lacuna::{Index, Stream, Value};
use lacuna_peers::DataType;

use crate::exit::Usage;
use crate::machine::MachineRecord;
use crate::op::Op;
use crate::peers::Peered;
use crate::problem::Problem;
use crate::record::Record;
use crate::session::Session;
use crate::timing::time;
use crate::types::{self, Dtype};
use crate::{attention, model, nhot, sddmm, softmax, spmm, topn};

/// A value that the library, the reference and the vendors' libraries know.
pub(crate) trait Measured: Value + lacuna_reference::Value {
    /// What the vendors' libraries call it.
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

/// An operation, as far as measuring it differs from measuring others.
pub(crate) trait Operation {
    /// Measures a problem: one record for the library's choice, or for every kernel, the choice first.
    fn measure<T: Measured, I: Index>(
        session: &mut Session,
        suite: &str,
        problem: &Problem,
    ) -> Result<Vec<Record>>;
}

/// A kernel with its operands on a device.
pub(crate) trait Work {
    /// The kernel's name in records: its entry point, or those of its steps.
    fn algorithm(&self) -> String;

    /// Writes NaN over the result.
    fn clear(&mut self) -> Result<()>;

    /// Gives the work to the stream, and does not wait for it.
    fn run(&mut self, stream: &Stream) -> lacuna::Result<()>;

    /// The largest error over its bound, after what was given to the stream; or in words what is wrong.
    fn check(&self, stream: &Stream) -> Result<Result<f64, String>>;
}

/// Measures a problem: one record for the library's choice, or for every kernel, the choice first.
///
/// # Errors
/// What the library or the reference says. A result out of its bound is no error: the record tells it.
pub fn measure(session: &mut Session, suite: &str, problem: &Problem) -> Result<Vec<Record>> {
    if problem.op != Op::Spmm && session.types.precision != types::Precision::default() {
        let (op, precision) = (problem.op.name(), session.types.precision_name());
        return Err(
            Usage(format!("`{op}` has one precision, and {precision} is not it; leave it out")).into()
        );
    }
    if problem.op != Op::Spmm && session.packed {
        return Err(
            Usage(format!("`{}` takes no packed matrix; leave --packed out", problem.op.name())).into()
        );
    }
    match problem.op {
        Op::Spmm => by_type::<spmm::Measurement>(session, suite, problem),
        Op::Sddmm => by_type::<sddmm::Measurement>(session, suite, problem),
        Op::SparseSoftmax => by_type::<softmax::Measurement>(session, suite, problem),
        Op::Attention => by_type::<attention::Measurement>(session, suite, problem),
        Op::NHot => nhot::measure(session, suite, problem),
        Op::TopN => topn::measure(session, suite, problem),
    }
}

fn by_type<O: Operation>(session: &mut Session, suite: &str, problem: &Problem) -> Result<Vec<Record>> {
    match (session.types.dtype, session.types.index) {
        (Dtype::F32, types::Index::U32) => O::measure::<f32, u32>(session, suite, problem),
        (Dtype::F32, types::Index::U16) => O::measure::<f32, u16>(session, suite, problem),
        (Dtype::F16, types::Index::U32) => O::measure::<f16, u32>(session, suite, problem),
        (Dtype::F16, types::Index::U16) => O::measure::<f16, u16>(session, suite, problem),
        (Dtype::Bf16, types::Index::U32) => O::measure::<bf16, u32>(session, suite, problem),
        (Dtype::Bf16, types::Index::U16) => O::measure::<bf16, u16>(session, suite, problem),
        (_, types::Index::U64) => Err(Usage(format!(
            "`{}` has column indices of u32 and u16, and u64 is neither; leave --index out",
            problem.op.name()
        ))
        .into()),
    }
}

/// Runs, checks and times or models one kernel: a record without peers. It is marked as the library's choice.
pub(crate) fn record(
    session: &Session,
    suite: &str,
    problem: &Problem,
    stream: &Stream,
    work: &mut impl Work,
) -> Result<Record> {
    let device = &session.device;
    work.clear()?;
    let (_, launches) = device.record(|| work.run(stream))?;
    let error_over_bound = work.check(stream)?.unwrap_or_else(|wrong| {
        eprintln!("{}: {}: {wrong}", problem.name, work.algorithm());
        f64::MAX
    });
    let time_us = if device.is_simulator() {
        None
    } else {
        Some(time(stream, session.samples, |stream| Ok(work.run(stream)?))?)
    };
    let (sparsity, longest_row) = problem.sparsity();
    let [m, k, n] = problem.sizes();
    let types = session.types;
    Ok(Record {
        suite: suite.into(),
        op: problem.op.name().into(),
        case: problem.name.clone(),
        group: problem.group.clone(),
        level: problem.level,
        cov: problem.cov,
        algorithm: work.algorithm(),
        chosen: true,
        dtype: types.dtype_name().into(),
        index: types.index_name().into(),
        precision: types.precision_name().into(),
        packed: session.packed && problem.op == Op::Spmm,
        m,
        k,
        n,
        batch: problem.batch,
        nnz: problem.elements(),
        sparsity,
        longest_row: Some(longest_row),
        seed: problem.seed,
        time_us,
        model_us: model::times(&launches),
        counts: model::counts(&launches),
        flops: problem.flops(),
        bytes: problem.bytes(types.value_bytes(), types.index_bytes()),
        error_over_bound,
        checked_rows: problem.checked_rows().count(),
        peers: BTreeMap::new(),
        peer_failures: BTreeMap::new(),
        machine: MachineRecord::of(device),
    })
}

/// The records of a problem: of them the first is of the library's choice, and all have its peers.
pub(crate) fn of_one_problem(mut records: Vec<Record>, peered: &Peered) -> Vec<Record> {
    for (index, record) in records.iter_mut().enumerate() {
        record.chosen = index == 0;
        record.peers.clone_from(&peered.records);
        record.peer_failures.clone_from(&peered.failures);
    }
    records
}

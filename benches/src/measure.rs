//! One problem on one device, whatever the operation: checked, then timed or modelled.
use std::collections::BTreeMap;

use anyhow::Result;
use lacuna::Stream;
use lacuna_cases::exit::Usage;
use lacuna_reference::ErrorReport;

use crate::machine::MachineRecord;
use crate::model;
use crate::operation::Task;
use crate::peers::{Context, PeerSession, Peered};
use crate::record::Record;
use crate::session::Session;
use crate::timing::time_with;
use crate::types::{self, Reduce};

/// The largest error over its bound; or in words what is wrong.
pub(crate) type Judgement = Result<f64, String>;

/// Plans, the library's choice first, with their operands, or their result alone, on a device.
pub(crate) struct Work<'a, P, O> {
    pub(crate) plans: &'a [P],
    /// A plan's name in records: its kernel's entry point, or those of its steps.
    pub(crate) algorithm: &'a dyn Fn(&P) -> String,
    pub(crate) operands: &'a mut O,
    /// Writes NaN over the result.
    pub(crate) clear: &'a dyn Fn(&mut O) -> Result<()>,
    /// Gives a plan's work to the stream, and does not wait for it.
    pub(crate) run: &'a dyn Fn(&P, &mut O, &Stream) -> lacuna::Result<()>,
    /// What a plan's result is like, after what was given to the stream.
    pub(crate) check: &'a dyn Fn(&P, &O, &Stream) -> Result<Judgement>,
}

/// Calls a function that is generic over the type of values, with the session's; `$index` is its other type, if it has one.
macro_rules! by_value {
    ($session:ident, $measure:ident::<_ $(, $index:ty)?>($($argument:expr),*)) => {
        match $session.types.dtype {
            crate::types::Dtype::F32 => $measure::<f32 $(, $index)?>($($argument),*),
            crate::types::Dtype::F16 => $measure::<half::f16 $(, $index)?>($($argument),*),
            crate::types::Dtype::Bf16 => $measure::<half::bf16 $(, $index)?>($($argument),*),
        }
    };
}

/// The same of a function that is generic over the type of column indices, too: u32 or u16.
macro_rules! by_types {
    ($session:ident, $measure:ident($($argument:expr),*)) => {
        match $session.types.index {
            crate::types::Index::U16 => by_value!($session, $measure::<_, u16>($($argument),*)),
            _ => by_value!($session, $measure::<_, u32>($($argument),*)),
        }
    };
}
pub(crate) use {by_types, by_value};

/// Measures a problem: one record for the library's choice, or for every kernel, the choice first.
///
/// # Errors
/// [`Usage`] for what the operation does not take; what the library or the reference says. A result out of its bound is no
/// error: the record tells it.
pub fn measure(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    check(session, task)?;
    (task.op.measure)(session, task)
}

/// Whether the operation takes what the session asks for.
///
/// # Errors
/// [`Usage`] where it does not.
pub(crate) fn check(session: &Session, task: &Task<'_>) -> Result<()> {
    let (op, types) = (task.op.name, session.types);
    let indices = task.op.takes.indices;
    let why = if types.precision != types::Precision::default() && !task.op.takes.precision {
        format!("has one precision, and {} is not it; leave it out", types::name(types.precision))
    } else if session.prepacked && !task.op.takes.precision {
        "takes no prepacked matrix; leave --prepacked out".into()
    } else if (session.reduce != Reduce::Sum || session.longest_piece.is_some()) && task.op.name != "spmm" {
        "has no reduction to choose; leave --reduce and --longest-piece to spmm".into()
    } else if indices.is_empty() && types.index != types::Index::default() {
        "has no column indices; leave --index out".into()
    } else if !indices.is_empty() && !indices.contains(&types.index) {
        let known: Vec<String> = indices.iter().map(|&index| types::name(index)).collect();
        let (known, index) = (known.join(" and "), types::name(types.index));
        format!("has column indices of {known}, and {index} is neither; leave --index out")
    } else {
        return Ok(());
    };
    Err(Usage(format!("`{op}` {why}")).into())
}

impl<P, O> Work<'_, P, O> {
    /// The records of the plans: all have the problem's peers, where these are wanted.
    pub(crate) fn measure(
        mut self,
        session: &mut Session,
        task: &Task<'_>,
        peers: impl FnOnce(&mut PeerSession, &Context<'_>, &O) -> Peered,
    ) -> Result<Vec<Record>> {
        let stream = &session.device.stream()?;
        let mut records = self.records(session, task, stream)?;
        let Session { device, samples, cold, peers: libraries, .. } = session;
        let (op, problem, bytes) = (task.op.name, task.problem, records[0].bytes);
        let context = Context { device, stream, op, problem, bytes, samples: *samples, cold: cold.as_ref() };
        let measure = |libraries| peers(libraries, &context, self.operands);
        let peered = libraries.as_mut().map(measure).unwrap_or_default();
        for (index, record) in records.iter_mut().enumerate() {
            record.chosen = index == 0;
            record.peers.clone_from(&peered.records);
            record.peer_failures.clone_from(&peered.failures);
        }
        Ok(records)
    }

    /// The records of the plans, each marked as the library's choice, without peers.
    pub(crate) fn records(
        &mut self,
        session: &Session,
        task: &Task<'_>,
        stream: &Stream,
    ) -> Result<Vec<Record>> {
        self.plans.iter().map(|plan| self.record(session, task, stream, plan)).collect()
    }

    /// Runs, checks and times or models one plan.
    fn record(&mut self, session: &Session, task: &Task<'_>, stream: &Stream, plan: &P) -> Result<Record> {
        let (device, Task { suite, op, problem }) = (&session.device, *task);
        let (operands, algorithm) = (&mut *self.operands, (self.algorithm)(plan));
        (self.clear)(operands)?;
        // On the simulator, where nothing is timed, this is all of it.
        session.cold.as_ref().map(|flush| flush.run(stream)).transpose()?;
        let (_, launches) = device.record(|| (self.run)(plan, operands, stream))?;
        let error_over_bound = (self.check)(plan, operands, stream)?.unwrap_or_else(|wrong| {
            eprintln!("{}: {algorithm}: {wrong}", problem.name);
            f64::MAX
        });
        let run = |stream: &Stream| Ok((self.run)(plan, operands, stream)?);
        let time = || time_with(session.cold.as_ref(), stream, session.samples, run);
        let time_us = (!device.is_simulator()).then(time).transpose()?;
        let (sparsity, longest_row) = problem.matrix.sparsity();
        let [m, k, n] = op.sizes(problem.rows(), problem.cols(), problem.width);
        let (types, size) = (session.types, problem.size());
        Ok(Record {
            suite: suite.into(),
            op: op.name.into(),
            case: problem.name.clone(),
            group: problem.group.clone(),
            level: problem.level,
            cov: problem.cov,
            algorithm,
            chosen: true,
            dtype: types::name(types.dtype),
            index: types::name(types.index),
            precision: types::name(types.precision),
            prepacked: session.prepacked,
            cold: session.cold.is_some(),
            reduce: types::name(session.reduce),
            m,
            k,
            n,
            batch: problem.batch,
            nnz: problem.matrix.elements(),
            sparsity,
            longest_row: Some(longest_row),
            row_lengths: problem
                .matrix
                .row_lengths()
                .map(|of| std::iter::once(of.nonempty()).chain(of.counts()).collect()),
            seed: problem.seed,
            time_us,
            mask_us: None,
            backward_us: None,
            backward_kernels: None,
            other_backward_us: BTreeMap::new(),
            model_us: model::times(&launches),
            counts: model::counts(&launches),
            flops: (op.flops)(&size) as u64,
            bytes: (op.bytes)(&size, types.value_bytes().into(), types.index_bytes().into()) as u64,
            error_over_bound,
            checked_rows: problem.checked_rows().count(),
            peers: BTreeMap::new(),
            peer_failures: BTreeMap::new(),
            machine: MachineRecord::of(device),
        })
    }
}

/// What a checked result is like.
pub(crate) fn judged<E: std::fmt::Display>(checked: Result<ErrorReport, E>) -> Judgement {
    checked.map(|report| report.worst_over_bound).map_err(|mismatch| mismatch.to_string())
}

/// What results are like that were checked by parts: the worst of them, or what is wrong in the first that is.
pub(crate) fn worst<E: std::fmt::Display>(
    part: &str,
    reports: impl IntoIterator<Item = Result<Result<ErrorReport, E>>>,
) -> Result<Judgement> {
    let mut worst = 0.0_f64;
    for (at, report) in reports.into_iter().enumerate() {
        match judged(report?) {
            Ok(over_bound) => worst = worst.max(over_bound),
            Err(mismatch) => return Ok(Err(format!("{part} {at}: {mismatch}"))),
        }
    }
    Ok(Ok(worst))
}

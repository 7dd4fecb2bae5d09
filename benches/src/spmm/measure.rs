//! One problem on one device: checked, then timed or modelled.
use std::collections::BTreeMap;

use anyhow::Result;
use lacuna::{Buffer, CsrMatrix, Device, Spmm, SpmmAlgorithm, SpmmOptions, Stream, choose};
use lacuna_reference::{ErrorReport, Mismatch, SpmmReference, spmm_rows};

use super::{Problem, model};
use crate::machine::MachineRecord;
use crate::record::Record;
use crate::session::Session;
use crate::timing::time;

/// Products above which only some rows are checked, so that checking takes a second or two.
const MOST_CHECKED: usize = 400_000_000;

/// Puts A on a device in some way, and plans the product in some way.
pub type Prepare = fn(&Device, &Problem) -> lacuna::Result<(CsrMatrix, Spmm)>;

/// A problem on a device, but for A.
pub(super) struct Operands {
    pub(super) stream: Stream,
    pub(super) b: Buffer<f32>,
    pub(super) c: Buffer<f32>,
    pub(super) reference: SpmmReference,
}

/// Measures a problem: one record for the library's choice, or for every kernel, the choice first.
///
/// # Errors
/// What the library or the reference says. A result out of its bound is no error: the record tells it.
pub fn measure(session: &mut Session, suite: &str, problem: &Problem) -> Result<Vec<Record>> {
    let mut operands = Operands::new(&session.device, problem)?;
    let a = CsrMatrix::new(&session.device, &problem.a)?;
    let algorithms = if session.all_algorithms {
        choose(&lacuna::Problem::of(&a, problem.n, 4)).iter().map(|choice| choice.algorithm).collect()
    } else {
        vec![SpmmAlgorithm::Auto]
    };
    let mut records = Vec::new();
    for (index, algorithm) in algorithms.into_iter().enumerate() {
        let plan = Spmm::plan_with(&a, problem.n, SpmmOptions::default().algorithm(algorithm))?;
        let record = measure_plan(session, suite, problem, &mut operands, &a, &plan)?;
        records.push(Record { chosen: index == 0, ..record });
    }
    if let Some(peers) = &mut session.peers {
        let peers = peers.measure(&session.device, problem, &operands, session.samples);
        for record in &mut records {
            record.peers.clone_from(&peers);
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
    let mut operands = Operands::new(&session.device, problem)?;
    let measure = |(suite, prepare): &(String, Prepare)| {
        let (a, plan) = prepare(&session.device, problem)?;
        measure_plan(session, suite, problem, &mut operands, &a, &plan)
    };
    variants.iter().map(measure).collect()
}

impl Operands {
    fn new(device: &Device, problem: &Problem) -> Result<Self> {
        let b = problem.b()?;
        let rows = problem.a.rows();
        let checked =
            (MOST_CHECKED * rows.max(1) / (problem.a.nnz() * problem.n).max(1)).clamp(1, rows.max(1));
        let step = rows.div_ceil(checked).max(1);
        let reference = spmm_rows(&problem.a, &b, problem.n, (0..rows).step_by(step))?;
        Ok(Self {
            stream: device.stream()?,
            b: device.upload(&b)?,
            c: device.upload(&problem.unwritten_c()?)?,
            reference,
        })
    }

    /// Checks C against the reference.
    pub(super) fn check(&self) -> Result<Result<ErrorReport, Mismatch>> {
        Ok(self.reference.check(&self.c.download(&self.stream)?))
    }
}

fn measure_plan(
    session: &Session,
    suite: &str,
    problem: &Problem,
    operands: &mut Operands,
    a: &CsrMatrix,
    plan: &Spmm,
) -> Result<Record> {
    let device = &session.device;
    operands.c.upload(&problem.unwritten_c()?)?;
    let Operands { stream, b, c, .. } = operands;
    let (_, launches) = device.record(|| plan.run(stream, a, b.as_slice(), c.as_slice_mut()))?;
    let error_over_bound = match operands.check()? {
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
        algorithm: plan.choice().entry.into(),
        chosen: true,
        dtype: session.types.dtype_name().into(),
        index: session.types.index_name().into(),
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
        bytes: problem.bytes(),
        error_over_bound,
        checked_rows: operands.reference.rows().len(),
        peers: BTreeMap::new(),
        machine: MachineRecord::of(device),
    })
}

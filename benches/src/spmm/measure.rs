//! One problem on one device: checked, then timed or modelled.
use std::collections::BTreeMap;

use anyhow::Result;
use lacuna::{Buffer, CsrMatrix, Device, Spmm, SpmmAlgorithm, SpmmOptions, Stream, choose};
use lacuna_peers::Peers;
use lacuna_reference::{ErrorReport, Mismatch, SpmmReference, spmm_rows};

use super::{Problem, model, peers};
use crate::machine::MachineRecord;
use crate::record::Record;
use crate::timing::time;

/// How to measure.
#[derive(Debug)]
pub struct Options<'a> {
    /// The suite's name, for the records.
    pub suite: &'a str,
    /// Samples of each timing.
    pub samples: u32,
    /// Measure every legal kernel.
    pub all_algorithms: bool,
    /// The vendor's libraries, where they are to be measured.
    pub peers: Option<&'a Peers>,
}

/// Products above which only some rows are checked, so that checking takes a second or two.
const MOST_CHECKED: usize = 400_000_000;

/// A problem on a device.
pub(super) struct Operands {
    pub(super) stream: Stream,
    pub(super) a: CsrMatrix,
    pub(super) b: Buffer<f32>,
    pub(super) c: Buffer<f32>,
    pub(super) reference: SpmmReference,
}

/// Measures a problem: one record for the library's choice, or for every kernel.
///
/// # Errors
/// What the library or the reference says. A result out of its bound is no error: the record tells it.
pub fn measure(device: &Device, problem: &Problem, options: &Options<'_>) -> Result<Vec<Record>> {
    let mut operands = Operands::new(device, problem)?;
    let algorithms = if options.all_algorithms {
        choose(&lacuna::Problem::of(&operands.a, problem.n, 4))
            .iter()
            .map(|choice| choice.algorithm)
            .collect()
    } else {
        vec![SpmmAlgorithm::Auto]
    };
    let mut records = Vec::new();
    for algorithm in algorithms {
        let plan = Spmm::plan_with(&operands.a, problem.n, SpmmOptions::default().algorithm(algorithm))?;
        records.push(measure_plan(device, problem, options, &mut operands, &plan)?);
    }
    if let Some(libraries) = options.peers {
        let peers = peers::measure(libraries, device, problem, &operands, options.samples);
        for record in &mut records {
            record.peers.clone_from(&peers);
        }
    }
    Ok(records)
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
            a: CsrMatrix::new(device, &problem.a)?,
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
    device: &Device,
    problem: &Problem,
    options: &Options<'_>,
    operands: &mut Operands,
    plan: &Spmm,
) -> Result<Record> {
    operands.c.upload(&problem.unwritten_c()?)?;
    let Operands { stream, a, b, c, .. } = operands;
    let (_, launches) = device.record(|| plan.run(stream, a, b.as_slice(), c.as_slice_mut()))?;
    let error_over_bound = match operands.check()? {
        Ok(report) => report.worst_over_bound,
        Err(mismatch) => {
            eprintln!("{}: {}: {mismatch}", problem.name, plan.choice().entry);
            f64::MAX
        }
    };
    let Operands { stream, a, b, c, .. } = operands;
    let time_us = if device.is_simulator() {
        None
    } else {
        let run = |stream: &Stream| Ok(plan.run(stream, a, b.as_slice(), c.as_slice_mut())?);
        Some(time(stream, options.samples, run)?)
    };
    let stats = operands.a.stats();
    Ok(Record {
        suite: options.suite.into(),
        op: "spmm".into(),
        case: problem.name.clone(),
        algorithm: plan.choice().entry.into(),
        dtype: "f32".into(),
        index: "u32".into(),
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

//! Timing the calls of a problem one by one.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use lacuna::matrix::Pattern;
use lacuna::{Device, Stream};
use lacuna_vendor::driver::Driver;

use super::Record;
use crate::allocations;
use crate::machine::MachineRecord;
use crate::operation::Task;
use crate::timing::Timing;
use crate::types::{self, Types};

/// Calls of a sample of a run: fewer than a stream takes before a launch waits.
const CALLS: u32 = 32;

/// The calls of a problem.
pub(super) struct Steps<'a> {
    pub(super) device: &'a Device,
    pub(super) stream: &'a Stream,
    pub(super) task: &'a Task<'a>,
    types: Types,
    pub(super) samples: u32,
    pub(super) records: Vec<Record>,
}

/// What is held and was allocated.
struct Held {
    allocations: u64,
    host_bytes: u64,
    device_bytes: u64,
}

impl Held {
    fn now(device: &Device) -> Self {
        Self {
            allocations: allocations::count_so_far(),
            host_bytes: allocations::live_bytes(),
            device_bytes: device.buffer_bytes(),
        }
    }
}

impl<'a> Steps<'a> {
    pub(super) fn new(
        device: &'a Device,
        stream: &'a Stream,
        task: &'a Task<'a>,
        (types, samples): (Types, u32),
    ) -> Self {
        Self { device, stream, task, types, samples, records: Vec::new() }
    }

    /// Times a call on what is prepared for it each time, and gives the last result.
    pub(super) fn call<P, R>(
        &mut self,
        call: &'static str,
        mut prepare: impl FnMut() -> Result<P>,
        mut work: impl FnMut(&mut P) -> Result<R>,
    ) -> Result<R> {
        let mut samples = Vec::with_capacity(self.samples as usize + 1);
        loop {
            let mut prepared = prepare()?;
            self.stream.synchronize()?;
            let before = Held::now(self.device);
            let start = Instant::now();
            let result = work(&mut prepared)?;
            let us = start.elapsed().as_secs_f64() * 1e6;
            let after = Held::now(self.device);
            // The first warms up.
            if samples.len() == self.samples as usize {
                samples.push(us);
                self.add(call, Timing::of(samples.split_off(1)), &before, &after);
                return Ok(result);
            }
            samples.push(us);
        }
    }

    /// Times the check of a pattern's arrays, as a program does it that has them.
    pub(super) fn check(&mut self, pattern: &Arc<Pattern>) -> Result<()> {
        let (rows, cols) = (pattern.rows(), pattern.cols());
        let arrays = || Ok((pattern.row_offsets().to_vec(), pattern.col_indices().to_vec()));
        self.call("check", arrays, |(offsets, columns)| {
            Ok(Pattern::new(rows, cols, std::mem::take(offsets), std::mem::take(columns))?)
        })?;
        Ok(())
    }

    /// Times a run, and beside it the launches that it makes, by the driver alone.
    pub(super) fn run(
        &mut self,
        kernel: &str,
        mut run: impl FnMut(&Stream) -> lacuna::Result<()>,
    ) -> Result<()> {
        let stream = self.stream;
        // Kernels are loaded.
        run(stream)?;
        stream.synchronize()?;
        let before = Held::now(self.device);
        run(stream)?;
        let after = Held::now(self.device);
        let (mut bare, mut failure) = (None, None);
        if !self.device.is_simulator() {
            let recorded = Driver::open().and_then(|driver| {
                // SAFETY: the stream and the run's operands outlive the launches; the run has made the context current.
                unsafe { driver.record(stream.as_raw(), || run(stream)) }
            });
            match recorded {
                Ok(launches) => bare = Some(launches),
                Err(error) => failure = Some(error.to_string()),
            }
        }
        let (mut ours, mut drivers) = (Vec::new(), Vec::new());
        for sample in 0..=self.samples {
            let us = self.of_calls(|| Ok(run(stream)?))?;
            let bare_us = bare.as_ref().map(|bare| self.of_calls(|| Ok(bare.launch()?))).transpose()?;
            // The first warms up.
            if sample > 0 {
                ours.push(us);
                drivers.extend(bare_us);
            }
        }
        self.add("run", Timing::of(ours), &before, &after);
        self.of_kernel(kernel);
        if !drivers.is_empty() {
            self.peer("launch", Timing::of(drivers));
        }
        if let Some(why) = failure {
            self.fail("launch", why);
        }
        Ok(())
    }

    /// Microseconds of a call that does not wait for the device, of several in a row.
    fn of_calls(&self, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
        let calls = if self.device.is_simulator() { 1 } else { CALLS };
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        let us = start.elapsed().as_secs_f64() * 1e6 / f64::from(calls);
        self.stream.synchronize()?;
        Ok(us)
    }

    /// Microseconds of a vendor's calls that do not wait for the device.
    pub(super) fn timed_calls(&self, mut call: impl FnMut() -> Result<()>) -> Result<Timing> {
        call()?;
        self.stream.synchronize()?;
        Ok(Timing::of((0..self.samples).map(|_| self.of_calls(&mut call)).collect::<Result<_>>()?))
    }

    /// The kernel of the last call.
    pub(super) fn of_kernel(&mut self, kernel: &str) {
        if let Some(record) = self.records.last_mut() {
            record.algorithm = kernel.into();
        }
    }

    /// What another takes for the like of the last call.
    pub(super) fn peer(&mut self, name: &str, time: Timing) {
        if let Some(record) = self.records.last_mut() {
            record.peers.insert(name.into(), time);
        }
    }

    /// Why another has no time for the like of the last call.
    pub(super) fn fail(&mut self, name: &str, why: String) {
        eprintln!("{}: {name}: {why}", self.task.problem.name);
        if let Some(record) = self.records.last_mut() {
            record.peer_failures.insert(name.into(), why);
        }
    }

    fn add(&mut self, call: &'static str, host_us: Timing, before: &Held, after: &Held) {
        let Task { suite, op, problem } = *self.task;
        let [m, k, n] = op.sizes(problem.rows(), problem.cols(), problem.width);
        self.records.push(Record {
            suite: suite.into(),
            op: op.name.into(),
            case: problem.name.clone(),
            call,
            algorithm: String::new(),
            dtype: types::name(self.types.dtype),
            index: types::name(self.types.index),
            m,
            k,
            n,
            nnz: problem.matrix.elements(),
            seed: problem.seed,
            host_us,
            allocations: after.allocations - before.allocations,
            host_bytes: after.host_bytes.saturating_sub(before.host_bytes),
            device_bytes: after.device_bytes.saturating_sub(before.device_bytes),
            peers: BTreeMap::new(),
            peer_failures: BTreeMap::new(),
            machine: MachineRecord::of(self.device),
        });
    }
}

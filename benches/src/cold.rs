//! Times with cold caches: L2 holds nothing of the operands when a repetition begins.
use std::cell::RefCell;

use anyhow::{Result, ensure};
use lacuna::pool::{Operands, Options, Shape};
use lacuna::{Buffer, Device, Graph, Pool, Stream};

use crate::timing::{self, Timing};

/// Reads twice as many bytes as L2 holds. Nothing is left to be written back but a few results, as of a write of so much would be.
///
/// It is a kernel, not a copy of the driver's, so that the work begins after a kernel, as it does with warm caches.
#[derive(Debug)]
pub(crate) struct Flush {
    plan: Pool,
    map: Buffer<f32>,
    out: RefCell<Buffer<f32>>,
}

/// Pixels of a plane: a thread block's work, which is long beside its start.
const PLANE: [usize; 2] = [64, 64];
/// What is read on the simulator, which has no caches to flush: a few planes, so that the same calls are made.
const LEAST_BYTES: u64 = 64 << 10;

/// What a replay should take, in microseconds: far longer than clocks take to change, far shorter than they stay.
const REPLAY_US: f64 = 2000.0;
/// The fewest and the most repetitions in one graph.
const REPEATS: [u32; 2] = [4, 32];

impl Flush {
    /// For the caches of this device.
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let bytes = (2 * device.info().l2_bytes).max(LEAST_BYTES);
        let planes = bytes.div_ceil((PLANE[0] * PLANE[1] * size_of::<f32>()) as u64);
        let shape = Shape::global(planes as usize, PLANE);
        Ok(Self {
            plan: Pool::plan(device, shape, Options::default())?,
            map: device.zeros(shape.input_len())?,
            out: RefCell::new(device.zeros(shape.output_len())?),
        })
    }

    /// Gives the flush to the stream.
    pub(crate) fn run(&self, stream: &Stream) -> Result<()> {
        let mut out = self.out.borrow_mut();
        Ok(self.plan.run(stream, Operands { input: self.map.as_slice(), out: out.as_slice_mut() })?)
    }

    /// Times `work` as [`timing::time`] does, but with a flush before each repetition, which does not count: a sample is a replay of a
    /// graph of flushes and work, less one of a graph of the flushes alone, right after.
    pub(crate) fn time(
        &self,
        stream: &Stream,
        samples: u32,
        mut work: impl FnMut(&Stream) -> Result<()>,
    ) -> Result<Timing> {
        let mut both = |stream: &Stream| {
            self.run(stream)?;
            work(stream)
        };
        let rough = timing::replays(stream, 1, REPEATS[0], &mut both, || {})?[0] / f64::from(REPEATS[0]);
        let repeats = ((REPLAY_US / rough.max(1.0)).ceil() as u32).clamp(REPEATS[0], REPEATS[1]);
        let mut with_work = timing::recorded(stream, repeats, both)?;
        let mut flushes = timing::recorded(stream, repeats, |stream| self.run(stream))?;
        let mut difference = || -> Result<f64> {
            let us = |graph: &mut Graph| timing::replay(stream, graph);
            Ok((us(&mut with_work)? - us(&mut flushes)?) / f64::from(repeats))
        };
        difference()?;
        let timing = Timing::of((0..samples).map(|_| difference()).collect::<Result<_>>()?);
        let what = "the work is too short to be told from the flushes before it; take more --samples";
        ensure!(timing.median > 0.0, "with cold caches {what}");
        Ok(timing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_reads_all_of_its_map() {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let flush = Flush::new(&device).unwrap();
        let (done, launches) = device.record(|| Ok(flush.run(&stream))).unwrap();
        done.unwrap();
        let sectors: u64 = launches.iter().map(|launch| launch.report.sectors_read).sum();
        assert_eq!((launches.len(), 32 * sectors), (1, LEAST_BYTES));
    }
}

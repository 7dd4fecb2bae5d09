//! A network on several devices, or in parts that fit into one: samples are dealt to workers.
mod deal;
mod fit;

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use deal::{Blocks, deal, number};
pub use fit::Fit;
use lacuna_kernels::spdnn::TILE_ROWS;

use super::{DeviceFeatures, Features, Inference, OPERATION, PackedNetwork, PinnedFeatures, Workspace};
use crate::{Device, Error, Result, SparseNetwork, Stream};

/// How fast a share follows what was measured.
const FOLLOW: f64 = 0.5;

/// A network on several devices, one worker each; the same device may be there more than once. The results are the same bits, however
/// many there are.
///
/// Samples are dealt in small blocks, so that those of each worker are alike: pruning leaves all about the same work. What is
/// left of a difference, also that between devices, changes the shares of the next batch, by the times of the last.
///
/// ```
/// # use lacuna::matrix::{Csr, Pattern};
/// use lacuna::Device;
/// use lacuna::spdnn::{Activation, Bias, Features, Layer, Options, PackedNetwork, Workers};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let weights = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 1.0, 2.0])?;
/// # let layers = [Layer::new(weights, Bias::Scalar(-1.5), Activation::Relu)?];
/// # let samples = Features::binary(&Pattern::new(3, 2, vec![0, 1, 3, 4], vec![0, 0, 1, 1])?);
/// let devices = [Device::simulator(), Device::simulator()];       // or of Device::cuda
/// let packed = PackedNetwork::new(&devices[0], &layers, samples.rows(), Options::default())?;
/// let fit = packed.fit(&samples, 1 << 30)?;                       // at most 1 GiB of each device
/// let mut workers = Workers::new(&devices, &packed, fit)?;
/// assert_eq!(workers.infer(&samples)?.categories(), [1, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Workers {
    workers: Vec<Worker>,
    /// Samples of a worker at once.
    rows: usize,
    /// The part of all samples that each gets.
    shares: Vec<f64>,
}

#[derive(Debug)]
struct Worker {
    network: SparseNetwork,
    stream: Stream,
}

/// Samples that were dealt to workers, and room on their devices: for any number of runs.
#[derive(Debug)]
pub struct Dealt {
    hands: Vec<Hand>,
}

/// What one worker has.
#[derive(Debug)]
struct Hand {
    blocks: Blocks,
    /// The samples; those of each part but the last are equally many.
    parts: Vec<Part>,
    /// Room for page-locked parts: as large as the first, and as the last if that has another size.
    on_device: Vec<DeviceFeatures>,
    workspace: Workspace,
    /// Microseconds of the last run.
    us: f64,
}

#[derive(Debug)]
enum Part {
    /// Binary samples, page-locked, and which of the rooms they are sent to.
    Pinned(PinnedFeatures, usize),
    Other(Features),
}

/// What a worker did in the last run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Share {
    /// Its samples.
    pub rows: usize,
    /// Microseconds, by the host's clock.
    pub us: f64,
}

impl Workers {
    /// Puts a network on each of these devices.
    ///
    /// # Errors
    /// [`Error::Parameter`] where there is no device, or `fit` has no samples; [`Error::OutOfMemory`], or what the driver says.
    pub fn new(devices: &[Device], packed: &PackedNetwork, fit: Fit) -> Result<Self> {
        Error::expect(!devices.is_empty(), OPERATION, "the number of devices", || "at least 1", 0)?;
        let make = |device: &Device| {
            let network = match fit.part_bytes {
                Some(bytes) => SparseNetwork::streamed(device, packed, bytes)?,
                None => SparseNetwork::from_packed(device, packed)?,
            };
            Ok(Worker { network, stream: device.stream()? })
        };
        let workers = on_threads(devices, make)?;
        let shares = vec![1.0 / workers.len() as f64; workers.len()];
        Ok(Self { workers, rows: fit.rows.max(1), shares })
    }

    /// The part of the samples that each worker will get.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Deals samples to the workers, and makes room for them on the devices. Binary ones are put into page-locked memory.
    ///
    /// # Errors
    /// As [`SparseNetwork::upload`] and [`workspace`](SparseNetwork::workspace).
    pub fn deal(&self, features: &Features) -> Result<Dealt> {
        let dealt: Vec<(&Worker, Blocks)> =
            self.workers.iter().zip(deal(features.rows(), &self.shares)).collect();
        let hands = on_threads(&dealt, |(worker, blocks)| worker.take(features, blocks, self.rows))?;
        Ok(Dealt { hands })
    }

    /// The categories of samples that were dealt: each worker sends its own, runs the network, and fetches the result.
    ///
    /// # Errors
    /// As [`SparseNetwork::infer`]; of several workers that fail, that of the first.
    pub fn run(&mut self, dealt: &mut Dealt) -> Result<Inference> {
        let (have, got, what) =
            (self.workers.len(), dealt.hands.len(), "the workers that samples were dealt to");
        Error::expect(have == got, OPERATION, what, || have.to_string(), got)?;
        let both: Vec<_> = self.workers.iter().zip(dealt.hands.iter_mut().map(Mutex::new)).collect();
        let found = on_threads(&both, |(worker, hand)| {
            worker.run(&mut hand.lock().unwrap_or_else(PoisonError::into_inner))
        })?;
        drop(both);
        self.follow(&dealt.shares());
        let mut all = Inference::default();
        found.into_iter().for_each(|found| all.add(found));
        Ok(all)
    }

    /// Deals samples, and runs them.
    ///
    /// # Errors
    /// Those of [`deal`](Self::deal) and [`run`](Self::run).
    pub fn infer(&mut self, features: &Features) -> Result<Inference> {
        let mut dealt = self.deal(features)?;
        self.run(&mut dealt)
    }

    /// Moves the shares to those by which all would have taken the same time.
    fn follow(&mut self, last: &[Share]) {
        let rates: Vec<f64> = last.iter().map(|share| share.rows as f64 / share.us).collect();
        let sum: f64 = rates.iter().sum();
        if rates.iter().all(|&rate| rate > 0.0) && sum.is_finite() {
            for (share, rate) in self.shares.iter_mut().zip(rates) {
                *share += FOLLOW * (rate / sum - *share);
            }
        }
    }
}

impl Dealt {
    /// Bytes of the devices' memory for what is between the layers.
    pub fn workspace_bytes(&self) -> usize {
        self.hands.iter().map(|hand| hand.workspace.bytes()).sum()
    }

    /// What each worker has, and how long it took in the last run.
    pub fn shares(&self) -> Vec<Share> {
        let rows = |hand: &Hand| hand.blocks.iter().map(ExactSizeIterator::len).sum();
        self.hands.iter().map(|hand| Share { rows: rows(hand), us: hand.us }).collect()
    }
}

impl Worker {
    /// Takes the samples of these blocks, at most `most` at once.
    fn take(&self, features: &Features, blocks: &Blocks, most: usize) -> Result<Hand> {
        let own = features.blocks(blocks)?;
        let rows = own.rows();
        let size = rows.div_ceil(rows.div_ceil(most).max(1)).next_multiple_of(TILE_ROWS as usize).max(1);
        // Where there are no samples, a part without any tells which layers list them.
        let starts = (0..rows.max(1)).step_by(size);
        let workspace = self.network.workspace(size.min(rows))?;
        let (mut parts, mut on_device) = (Vec::new(), Vec::<DeviceFeatures>::new());
        for first in starts {
            let part = own.part(first..(first + size).min(rows))?;
            // The paper's kernels read numbers: bits are expanded when they are uploaded.
            if !(part.is_binary() && self.network.is_tiled()) {
                parts.push(Part::Other(part));
                continue;
            }
            if on_device.last().is_none_or(|room| room.rows() != part.rows()) {
                on_device.push(self.network.upload(&self.stream, &part)?);
            }
            parts.push(Part::Pinned(part.pin(self.network.device())?, on_device.len() - 1));
        }
        Ok(Hand { blocks: blocks.clone(), parts, on_device, workspace, us: 0.0 })
    }

    fn run(&self, hand: &mut Hand) -> Result<Inference> {
        let start = Instant::now();
        let Hand { blocks, parts, on_device, workspace, .. } = hand;
        let mut all = Inference::default();
        let mut first = 0;
        for part in parts {
            let uploaded;
            let samples = match part {
                Part::Pinned(part, room) => {
                    on_device[*room].send(&self.stream, part)?;
                    &on_device[*room]
                }
                Part::Other(part) => {
                    uploaded = self.network.upload(&self.stream, part)?;
                    &uploaded
                }
            };
            self.network.run(&self.stream, samples, workspace)?;
            all.append(first, workspace.inference(&self.stream)?);
            first += samples.rows();
        }
        hand.us = start.elapsed().as_secs_f64() * 1e6;
        all.renumber(|row| number(blocks, row));
        Ok(all)
    }
}

/// Does something with each, each on a thread of its own.
fn on_threads<T: Sync, R: Send>(each: &[T], work: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    thread::scope(|scope| {
        let threads: Vec<_> = each.iter().map(|one| scope.spawn(|| work(one))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        // All are waited for, whatever the first says.
        threads.into_iter().map(join).collect::<Vec<_>>().into_iter().collect()
    })
}

//! What is between the layers, and the inference itself.
use std::sync::Arc;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::entries;
use lacuna_kernels::spdnn::{Compact, CompactArgs, Rows, Scores, ScoresArgs, TILE_ROWS};

use super::features::MAX_ROWS;
use super::fused::{Table, end_of_launch};
use super::network::Layers;
use super::prepared::{Operands, Prepared};
use super::weights::Feed;
use super::{DeviceFeatures, OPERATION};
use crate::op::launch_kernel;
use crate::{Buffer, Device, Error, Result, SliceMut, Stream};

const TILE: usize = TILE_ROWS as usize;

/// Room for the features between the layers of a network, and the result of its last run.
#[derive(Debug)]
pub struct Workspace {
    layers: Arc<Layers>,
    capacity: usize,
    /// The results of launches in turn: of the layers with even and with odd numbers, where each is a launch.
    features: [Buffer<f32>; 2],
    /// Which of them has the result of the last run.
    result: usize,
    /// A bit a row: whether it is alive. Zeros between runs.
    alive: Buffer<u32>,
    /// Of the rows listed last, which row of the features each is.
    source: Buffer<u32>,
    /// Of the rows listed, which sample each is: those of one list, and of the next.
    ids: [Buffer<u32>; 2],
    /// How many rows each list has.
    counts: Buffer<u32>,
    /// The samples of the last run.
    rows: usize,
    /// Whether a run was begun and not given to the stream as a whole: marks may be left.
    is_broken: bool,
}

/// The result of a network for a batch of samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inference {
    categories: Vec<u32>,
    live: Vec<(usize, usize)>,
}

impl Inference {
    /// The samples, from 0 and ascending, whose result is not all zero.
    pub fn categories(&self) -> &[u32] {
        &self.categories
    }

    /// The course of pruning: for each layer after which samples were listed, from 0, how many were not all zero.
    pub fn live(&self) -> &[(usize, usize)] {
        &self.live
    }

    /// Appends the result of later samples, of which the first has this number.
    pub(super) fn append(&mut self, first: usize, mut part: Self) {
        part.renumber(|id| id + first);
        self.add_live(&part.live);
        self.categories.extend(part.categories);
    }

    /// Adds the result of other samples.
    pub(super) fn add(&mut self, part: Self) {
        self.add_live(&part.live);
        self.categories.extend(part.categories);
        self.categories.sort_unstable();
    }

    /// Gives samples other numbers, in the same order.
    pub(super) fn renumber(&mut self, number: impl Fn(usize) -> usize) {
        self.categories.iter_mut().for_each(|id| *id = number(*id as usize) as u32);
    }

    fn add_live(&mut self, live: &[(usize, usize)]) {
        if self.live.is_empty() {
            self.live = live.to_vec();
        } else {
            for (own, other) in self.live.iter_mut().zip(live) {
                own.1 += other.1;
            }
        }
    }
}

/// The most outputs of the layers with even numbers, and of those with odd ones; of all, where some are launched together.
pub(super) fn widths(layers: &Layers) -> [usize; 2] {
    if layers.layers.iter().any(Prepared::is_fused) {
        return [layers.layers.iter().map(|layer| layer.outputs).max().unwrap_or(0); 2];
    }
    [0, 1].map(|parity| {
        let outputs = layers.layers.iter().skip(parity).step_by(2).map(|layer| layer.outputs);
        outputs.max().unwrap_or(0)
    })
}

impl Workspace {
    pub(super) fn new(device: &Device, layers: &Arc<Layers>, rows: usize) -> Result<Self> {
        Error::expect_at_most("the number of samples", MAX_ROWS, rows)?;
        let tiles = rows.div_ceil(TILE);
        let buffer = |widest| device.uninitialized((tiles * TILE).saturating_mul(widest));
        let [even, odd] = widths(layers);
        let lists = layers.lists.iter().filter(|&&lists| lists).count();
        Ok(Self {
            layers: Arc::clone(layers),
            capacity: rows,
            features: [buffer(even)?, buffer(odd)?],
            result: 0,
            alive: device.zeros(tiles)?,
            source: device.uninitialized(rows)?,
            ids: [device.uninitialized(rows)?, device.uninitialized(rows)?],
            counts: device.zeros(lists)?,
            rows: 0,
            is_broken: false,
        })
    }

    /// Bytes of the device's memory.
    pub fn bytes(&self) -> usize {
        let words =
            self.features.iter().map(Buffer::len).sum::<usize>() + self.alive.len() + 3 * self.source.len();
        4 * words
    }

    /// Runs all layers, with weights from `feed`; calls `after` when a layer has been given to the stream.
    pub(super) fn run(
        &mut self,
        stream: &Stream,
        layers: &Arc<Layers>,
        mut feed: Feed<'_>,
        fused: Option<&Table>,
        features: &DeviceFeatures,
        mut after: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let is_own = Arc::ptr_eq(layers, &self.layers);
        Error::expect(is_own, OPERATION, "the workspace", || "one of this network", "another network's")?;
        let (what, expected) =
            ("the number of samples", || format!("at most {}, those of the workspace", self.capacity));
        Error::expect(features.rows <= self.capacity, OPERATION, what, expected, features.rows)?;
        self.rows = features.rows;
        if std::mem::replace(&mut self.is_broken, true) {
            self.alive = self.alive.device().zeros(self.alive.len())?;
        }
        let none = GlobalPtr::from_address(0);
        let mut rows = Rows {
            count: features.count.as_slice().pointer(),
            source: none,
            alive: GlobalMut::from_address(0),
        };
        let (mut input, mut input_bits) = features.address();
        let (mut ids, mut lists) = (none, 0);
        let (mut end, mut into) = (0, 1);
        while end < layers.layers.len() {
            let at = end;
            let base = feed.base(stream, at)?;
            end = end_of_launch(layers, at, feed.end());
            into = 1 - into;
            let out = self.features[into].as_slice().address();
            let is_listed = layers.lists[end - 1];
            let alive = if is_listed { self.alive.as_slice().address() } else { 0 };
            rows.alive = GlobalMut::from_address(alive);
            let bounded = input_bits || layers.is_bounded(at);
            let operands = Operands { rows, capacity: features.rows, input, input_bits, bounded, out };
            match fused.filter(|_| layers.layers[at].is_fused()) {
                Some(fused) => fused.launch(stream, layers, at..end, base, &operands)?,
                None => layers.layers[at].launch(stream, base, &operands)?,
            }
            (input, input_bits, rows.source) = (out, false, none);
            if is_listed {
                let args = CompactArgs {
                    alive: rows.alive,
                    count: rows.count,
                    ids,
                    count_out: self.counts.slice_mut(lists..)?.pointer(),
                    source_out: self.source.as_slice_mut().pointer(),
                    ids_out: self.ids[lists % 2].as_slice_mut().pointer(),
                };
                launch_kernel::<Compact>(stream, entries::spdnn(), |_| [1, 1, 1], &args)?;
                rows.count = self.counts.slice(lists..)?.pointer();
                rows.source = self.source.as_slice().pointer();
                ids = self.ids[lists % 2].as_slice().pointer();
                lists += 1;
            }
            for layer in at..end {
                feed.done(stream, layer)?;
                after()?;
            }
        }
        self.result = into;
        self.is_broken = false;
        Ok(())
    }

    /// Waits for the last run, and gives its result.
    ///
    /// # Errors
    /// What the run failed with, and what the driver says.
    pub fn inference(&self, stream: &Stream) -> Result<Inference> {
        let counts = self.counts.download(stream)?;
        let listed = counts.last().map_or(0, |&count| count as usize);
        let categories = self.last_ids().slice(..listed)?.download(stream)?;
        let layers = (0..self.layers.lists.len()).filter(|&layer| self.layers.lists[layer]);
        let live = layers.zip(counts.iter().map(|&count| count as usize)).collect();
        Ok(Inference { categories, live })
    }

    /// Writes the results of all samples of the last run to `out`, row by row: samples × outputs of the network. Returns at once.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OtherDevice`] where `out` does not fit; what the device says.
    pub fn scores_into(&self, stream: &Stream, mut out: SliceMut<'_, f32>) -> Result<()> {
        let (rows, width) = (self.rows, self.layers.outputs());
        let device = self.alive.device();
        device.expect_same(OPERATION, "the stream", stream.device())?;
        let shape = || format!("{rows}×{width}");
        device.expect_operand(OPERATION, "the results", out.as_slice(), shape, rows * width)?;
        if out.is_empty() {
            return Ok(());
        }
        let args = ScoresArgs {
            rows: Rows {
                count: self.counts.slice(self.counts.len() - 1..)?.pointer(),
                source: self.source.as_slice().pointer(),
                alive: GlobalMut::from_address(0),
            },
            ids: self.last_ids().as_slice().pointer(),
            features: self.features[self.result].as_slice().pointer(),
            out: out.reborrow().pointer(),
            samples: rows as u32,
            width: width as u32,
        };
        let blocks = rows.div_ceil(TILE / 4).min(stream.device().info().multiprocessors as usize * 8) as u32;
        if self.layers.tiled {
            launch_kernel::<Scores<true>>(stream, entries::spdnn(), |_| [blocks, 1, 1], &args)
        } else {
            launch_kernel::<Scores<false>>(stream, entries::spdnn(), |_| [blocks, 1, 1], &args)
        }
    }

    /// Waits for the last run, and gives the results of all its samples, row by row.
    ///
    /// # Errors
    /// As [`scores_into`](Self::scores_into).
    pub fn scores(&self, stream: &Stream) -> Result<Vec<f32>> {
        let mut out = self.alive.device().uninitialized(self.rows * self.layers.outputs())?;
        self.scores_into(stream, out.as_slice_mut())?;
        out.download(stream)
    }

    /// Of the rows listed last, which sample each is.
    fn last_ids(&self) -> &Buffer<u32> {
        &self.ids[(self.counts.len() + 1) % 2]
    }
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::Csr;

    use crate::spdnn::{Activation, Bias, Features, Layer, Options};
    use crate::{Device, SparseNetwork};

    #[test]
    fn what_a_broken_run_has_marked_is_forgotten() {
        let weights = Csr::new(1, 1, vec![0, 1], vec![0], vec![1.0]).unwrap();
        let layer = Layer::new(weights, Bias::Scalar(0.0), Activation::Relu).unwrap();
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let network = SparseNetwork::new(&device, &[layer], 3, Options::default()).unwrap();
        let samples = Features::dense(3, 1, vec![0.0, 2.0, -1.0]).unwrap();
        let samples = network.upload(&stream, &samples).unwrap();
        let mut workspace = network.workspace(3).unwrap();
        workspace.alive.upload(&[0b101]).unwrap();
        workspace.is_broken = true;
        network.run(&stream, &samples, &mut workspace).unwrap();
        assert_eq!(workspace.inference(&stream).unwrap().categories(), [1]);
        assert!(!workspace.is_broken);
    }
}

//! Which kernel suits a convolution, and over how many blocks its channels are split: pure functions of the problem shape.
use lacuna_kernels::conv::{DIRECT_PIXELS, FEW_CHANNELS, FEW_COLUMNS, MMA_SIDE, MMA_TAPS, Scheme, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::model::CostModel;
use super::{Algorithm, MapLayout, OPERATION, Shape, cudnn};
use crate::{Precision, op};
pub(super) use tensor_cores::MMA_CHANNELS;

mod few_channels;
mod panels;
mod tensor_cores;

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Problem {
    /// The sizes.
    pub shape: Shape,
    /// The part of the input that is likely to be zero, 0 to 1.
    pub zeros: f64,
    /// How sums are computed.
    pub precision: Precision,
    /// Splits of the channels, where they are given.
    pub splits: Option<usize>,
    /// How maps lie.
    pub layout: MapLayout,
    /// Whether there are gaps between channels.
    pub has_gaps: bool,
    /// Elements side by side that addresses allow to load at once (1, 2, 4 or 8), where sizes do.
    pub vector: u32,
    /// Type of the values.
    pub value: ValueType,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a thread block may have.
    pub block_shared_bytes: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// A convolution of `f32` on an H200, with seven of ten inputs zero.
    pub fn new(shape: Shape) -> Self {
        let (value, multiprocessors, block_shared_bytes) = (ValueType::F32, 132, 227 * 1024);
        Self {
            shape,
            zeros: 0.7,
            precision: Precision::Single,
            splits: None,
            layout: MapLayout::Nhwc,
            has_gaps: false,
            vector: 8,
            value,
            multiprocessors,
            block_shared_bytes,
            sm: 90,
        }
    }
}

/// A kernel, and what the heuristic thinks of it.
pub type Choice = op::Choice<Algorithm, Tile>;

/// How a launch is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Tiles along a row of an image.
    pub(super) tiles_x: usize,
    /// Tiles of an image.
    pub(super) tiles: usize,
    /// Groups of filters.
    pub(super) groups: usize,
    /// Splits of the channels.
    pub(super) splits: usize,
    /// Images, or 1 where the pixels of all are one after another.
    pub(super) images: usize,
}

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::conv;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let is_able = entry.tile.value == self.value
            && entry.runs_on(self.sm)
            && entry.shared_bytes <= self.block_shared_bytes;
        let is_depthwise = self.shape.is_depthwise();
        let fits = |taps: u32, stride: u32| {
            let is_of = |numbers: [usize; 2], number: u32| numbers == [number as usize; 2];
            is_of(self.shape.taps, taps) && is_of(self.shape.strides, stride)
        };
        let algorithm = match entry.tile.scheme {
            Scheme::SparseTile { taps, stride, tile, filters, .. } => {
                (!is_depthwise && fits(taps, stride)).then_some(Algorithm::SparseTile { tile, filters })
            }
            Scheme::MmaTile { positions, filters } => {
                let is_able = !is_depthwise
                    && self.allows_mma()
                    && self.shape.filter_taps() <= MMA_TAPS as usize
                    && self.is_tightest(entry, self.mma_positions(), positions);
                is_able.then_some(Algorithm::MmaTile { filters })
            }
            Scheme::WgmmaTile { tiles, positions, filters } => {
                let is_able = !is_depthwise
                    && self.allows_mma()
                    && self.shape.taps[1] <= MMA_TAPS as usize
                    && self.is_tightest(entry, self.wgmma_positions(), positions);
                is_able.then_some(Algorithm::WgmmaTile { tiles, filters })
            }
            Scheme::PointwiseTile { pixels, filters, .. } => {
                let is_able = self.shape.is_pointwise() && self.allows_mma();
                is_able.then_some(Algorithm::PointwiseTile { pixels, filters })
            }
            Scheme::WgmmaPointwise { tiles, filters } => {
                let is_able = self.shape.is_pointwise() && self.allows_mma();
                is_able.then_some(Algorithm::WgmmaPointwise { pixels: tiles * MMA_SIDE * MMA_SIDE, filters })
            }
            Scheme::WgmmaPanels { pixels, filters } => {
                self.suits_panels().then_some(Algorithm::WgmmaPanels { pixels, filters })
            }
            Scheme::FewChannels { taps, stride, rows, filters, .. } => {
                let are_few = self.shape.channels <= FEW_CHANNELS as usize;
                (!is_depthwise && are_few && fits(taps, stride))
                    .then_some(Algorithm::FewChannels { rows, filters })
            }
            Scheme::FewChannelsMma { taps, stride, rows, filters } => (self.suits_few_channels_mma()
                && fits(taps, stride))
            .then_some(Algorithm::FewChannelsMma { rows, filters }),
            Scheme::Direct => (!is_depthwise).then_some(Algorithm::Direct),
            Scheme::Finish => {
                let is_aligned = self.vector * self.value.bytes() >= cudnn::ALIGNED;
                (is_aligned && !self.has_gaps).then_some(Algorithm::CuDnn)
            }
            scheme if is_depthwise && is_able => return self.depthwise_algorithms(scheme),
            _ => None,
        };
        algorithm.filter(|_| is_able).into_iter().collect()
    }

    fn cost(&self, entry: &'static Entry<Tile>, _: Algorithm) -> f64 {
        match entry.tile.scheme {
            Scheme::MmaTile { .. } | Scheme::WgmmaTile { .. }
                if self.shape.channels <= FEW_CHANNELS as usize =>
            {
                PADDED * CostModel::hopper().cost(self, entry)
            }
            Scheme::SparseTile { .. }
            | Scheme::MmaTile { .. }
            | Scheme::WgmmaTile { .. }
            | Scheme::PointwiseTile { .. }
            | Scheme::WgmmaPointwise { .. }
            | Scheme::WgmmaPanels { .. } => CostModel::hopper().cost(self, entry),
            Scheme::FewChannels { thread, .. } => self.few_channels_cost(entry, thread),
            Scheme::FewChannelsMma { .. } => self.few_channels_mma_cost(entry),
            // What cuDNN takes is not modelled.
            Scheme::Finish => f64::INFINITY,
            scheme if self.shape.is_depthwise() => self.depthwise_cost(scheme),
            _ => {
                let Shape { batch, channels, filters, taps, .. } = self.shape;
                let [rows, columns] = self.shape.out_size();
                let runs = (batch * rows) as f64 * (columns as f64 / f64::from(DIRECT_PIXELS)).ceil();
                let steps = (channels * taps[0] * taps[1]) as f64 * DIRECT_STEP;
                let work = runs * (filters as f64 / 32.0).ceil() * steps;
                START + steps + work / (f64::from(self.multiprocessors) * SCHEDULERS)
            }
        }
    }

    fn is_offered(algorithm: Algorithm) -> bool {
        algorithm != Algorithm::CuDnn
    }
}

impl Problem {
    /// How a kernel's work is cut. Splits do not depend on how maps lie, so that results of one kernel do not.
    pub(super) fn cut(&self, model: &CostModel, entry: &Entry<Tile>) -> Cut {
        let (tile, filters, least) = match entry.tile.scheme {
            // Each block has at least a channel a warp.
            Scheme::SparseTile { tile, filters, warps, .. } => (tile, 32 * filters, Some(warps as usize)),
            Scheme::MmaTile { filters, .. } | Scheme::WgmmaTile { filters, .. } => {
                ([MMA_SIDE; 2], filters, Some(MMA_CHANNELS))
            }
            Scheme::PointwiseTile { pixels, filters, .. } => ([1, pixels], filters, Some(MMA_CHANNELS)),
            Scheme::WgmmaPointwise { filters, .. } => ([1, MMA_SIDE * MMA_SIDE], filters, Some(MMA_CHANNELS)),
            Scheme::WgmmaPanels { pixels, filters } => {
                return self.panel_cut(model, entry, [pixels, filters]);
            }
            Scheme::FewChannels { rows, filters, .. } | Scheme::FewChannelsMma { rows, filters, .. } => {
                ([rows, FEW_COLUMNS], filters, None)
            }
            // cuDNN cuts its own.
            Scheme::Finish => {
                return Cut { tiles_x: 1, tiles: 1, groups: 1, splits: 1, images: self.shape.batch };
            }
            _ => ([1, DIRECT_PIXELS], 32, None),
        };
        let is_pointwise = entry.tile.scheme.is_pointwise();
        let cut_of = |shape: Shape| {
            let [rows, columns] = shape.out_size();
            // Runs of pixels are counted through the rows.
            let [rows, columns] = if is_pointwise { [1, rows * columns] } else { [rows, columns] };
            let (tiles_y, tiles_x) = (rows.div_ceil(tile[0] as usize), columns.div_ceil(tile[1] as usize));
            let groups = shape.filters.div_ceil(filters as usize);
            let (tiles, tiles_x) = (tiles_y * tiles_x, if is_pointwise { 0 } else { tiles_x });
            Cut { tiles_x, tiles, groups, splits: 1, images: shape.batch }
        };
        let cut = if is_pointwise { cut_of(self.joined()) } else { cut_of(self.shape) };
        let Some(least) = least else { return cut };
        // Partial sums are counted in 32 bits.
        let single = cut_of(self.shape);
        let pixels = (single.images * single.tiles) as u64 * u64::from(tile[0] * tile[1]);
        let elements = pixels * single.groups as u64 * u64::from(filters);
        let most = self.shape.channels.div_ceil(least).clamp(1, MAX_SPLITS);
        let most = most.min((MAX_PARTIAL / elements.max(1)).max(1) as usize);
        let cost = |splits: usize| self.split_cost(model, entry, splits);
        let splits = match self.splits {
            Some(splits) => splits.clamp(1, most),
            None => (1..=most).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(1),
        };
        // Splits without channels are left out.
        let each = match entry.tile.scheme {
            Scheme::SparseTile { .. } => self.split_channels(splits),
            _ => self.split_chunks(splits) * MMA_CHANNELS,
        };
        Cut { splits: self.shape.channels.div_ceil(each).max(1), ..cut }
    }

    /// The shape, of one tap, with the pixels of all images one after another, where they lie so.
    pub(super) fn joined(&self) -> Shape {
        let Shape { batch, size: [rows, columns], strides, .. } = self.shape;
        let bytes =
            self.shape.input_len().max(self.shape.output_len()).saturating_mul(self.value.bytes() as usize);
        if self.layout != MapLayout::Nhwc || strides != [1, 1] || bytes > MAX_JOINED {
            return self.shape;
        }
        Shape { batch: batch.min(1), size: [1, batch * rows * columns], ..self.shape }
    }

    /// Cycles of a kernel with so many splits; infinite for those without.
    fn split_cost(&self, model: &CostModel, entry: &Entry<Tile>, splits: usize) -> f64 {
        match entry.tile.scheme {
            Scheme::SparseTile { .. } => self.sparse_cost(model, entry, splits),
            Scheme::MmaTile { .. } => self.mma_cost(model, entry, splits),
            Scheme::WgmmaTile { .. } => self.wgmma_cost(model, entry, splits),
            Scheme::PointwiseTile { .. } => self.pointwise_cost(model, entry, splits),
            Scheme::WgmmaPointwise { .. } => self.wgmma_pointwise_cost(model, entry, splits),
            Scheme::WgmmaPanels { .. } => self.panel_cost(model, entry, splits),
            _ => f64::INFINITY,
        }
    }

    /// Channels of a split.
    pub(super) fn split_channels(&self, splits: usize) -> usize {
        self.shape.channels.div_ceil(splits).max(1)
    }

    /// Cycles of a kernel by tiles with so many splits: the warps of a multiprocessor issue instructions in turns, and blocks come in
    /// waves (paper section 3.5, with the splits that its model leaves to atomics).
    fn sparse_cost(&self, model: &CostModel, entry: &Entry<Tile>, splits: usize) -> f64 {
        let Scheme::SparseTile { taps, stride, tile, filters, warps } = entry.tile.scheme else {
            return f64::INFINITY;
        };
        let [rows, columns] = self.shape.out_size();
        let tiles = rows.div_ceil(tile[0] as usize) * columns.div_ceil(tile[1] as usize);
        let groups = self.shape.filters.div_ceil(32 * filters as usize);
        let splits = self.shape.channels.div_ceil(self.split_channels(splits)).max(1);
        let blocks = (self.shape.batch * tiles * groups * splits) as f64;
        // Pixels of a tile's input that are in the map: all of them inside, fewer at the border.
        let inputs = |d: usize| {
            let halo = (f64::from(tile[d]) - 1.0) * f64::from(stride) + f64::from(taps);
            halo.min(self.shape.size[d] as f64)
        };
        let nonzeros = inputs(0) * inputs(1) * (1.0 - self.zeros);
        let pixels = f64::from(tile[0] * tile[1]);
        let positions = ((f64::from(tile[0]) - 1.0) * f64::from(stride) + f64::from(taps))
            * ((f64::from(tile[1]) - 1.0) * f64::from(stride) + f64::from(taps));
        let products = pixels * f64::from(taps * taps * filters) / positions;
        let channel = positions * POSITION + nonzeros * (PER_NONZERO + PRODUCT * products);
        let of_warp = (self.split_channels(splits) as f64 / f64::from(warps)).ceil();
        // Blocks that are there together hide each other's waits.
        let in_memory = MULTIPROCESSOR_SHARED / entry.shared_bytes.max(1);
        let resident = f64::from(entry.bounds.min_blocks.min(in_memory).max(1));
        let waves = (blocks / (f64::from(self.multiprocessors) * resident)).ceil();
        let together = resident.min((blocks / f64::from(self.multiprocessors)).ceil());
        let join = JOIN * pixels * f64::from(filters * warps) * together;
        let reduce = reduce_cost(model, splits, blocks * pixels * f64::from(32 * filters));
        START + waves * (of_warp * channel + join) + reduce
    }
}

/// Cycles of the launch that adds splits, and of so many partial sums through the L2 cache: written and read, four bytes each.
fn reduce_cost(model: &CostModel, splits: usize, elements: f64) -> f64 {
    if splits > 1 { model.common.reduce + elements * 8.0 / model.common.bytes_a_cycle } else { 0.0 }
}

impl CostModel {
    /// About the time of a kernel that splits channels, in cycles of a multiprocessor: with the problem's splits, or those with which it is least.
    /// Infinite for other kernels.
    pub fn cost(&self, problem: &Problem, entry: &Entry<Tile>) -> f64 {
        problem.split_cost(self, entry, self.splits(problem, entry))
    }

    /// Those splits.
    pub fn splits(&self, problem: &Problem, entry: &Entry<Tile>) -> usize {
        problem.cut(self, entry).splits
    }
}

/// The kernels that can do this problem, the best first. Never empty: one is for filters of any shape.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

/// Splits at most.
const MAX_SPLITS: usize = 64;
/// Bytes at most that an offset into an image can reach.
const MAX_JOINED: usize = 1 << 31;
/// Partial sums at most.
const MAX_PARTIAL: u64 = 1 << 28;
/// Bytes of shared memory of a multiprocessor.
const MULTIPROCESSOR_SHARED: u32 = 227 * 1024;
/// Schedulers of a multiprocessor.
const SCHEDULERS: f64 = 4.0;
/// Cycles in which a warp tests a position and goes round its code. These constants are set by hand from times on an H200.
const POSITION: f64 = 45.0;
/// Cycles of a nonzero beside its products.
const PER_NONZERO: f64 = 8.0;
/// Cycles of a warp's product.
const PRODUCT: f64 = 2.0;
/// Cycles of a multiprocessor to join a sum of a warp's lanes: written and read.
const JOIN: f64 = 2.0;
/// Cycles from the launch to the first products.
const START: f64 = 5000.0;
/// How much longer tiles on tensor cores take with so few channels than the model, fitted to 32 and more, says: a stage has sixteen. 1.1 to 2.3 in 16 bits.
const PADDED: f64 = 1.4;
/// Cycles of a step of the direct kernel: a tap of a run of pixels.
const DIRECT_STEP: f64 = 60.0;

#[cfg(test)]
mod tests;

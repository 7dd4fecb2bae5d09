//! What the kernels on tensor cores can do, and what they cost.
use lacuna_kernels::conv::{MMA_SIDE, POINTWISE_PIXELS, Scheme, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::{Problem, reduce_cost};
use crate::ops::conv::model::CostModel;
use crate::{LONG_ROWS, Precision};

/// The blocks of a kernel on tensor cores.
struct Blocks {
    /// Blocks of a multiprocessor.
    of_multiprocessor: f64,
    /// Sixteens of channels of a block.
    chunks: f64,
    /// Cycles of the launch that adds splits, and of partial sums through the L2 cache.
    reduce: f64,
}

impl Problem {
    /// Whether products on tensor cores are exact enough.
    pub(super) fn allows_mma(&self) -> bool {
        let channels = self.shape.channels;
        let count = self.shape.filter_taps();
        match self.precision {
            Precision::Fma => false,
            // Products of 16 bits are exact.
            Precision::Single => self.value != ValueType::F32 || count.saturating_mul(channels) >= LONG_ROWS,
            Precision::Tf32 => true,
        }
    }

    /// Positions of the input of a tile of [`MmaTile`](super::Algorithm::MmaTile).
    pub(super) fn mma_positions(&self) -> u64 {
        let extent =
            |d: usize| (MMA_SIDE - 1) as u64 * self.shape.strides[d] as u64 + self.shape.taps[d] as u64;
        extent(0).saturating_mul(extent(1))
    }

    /// The same of [`WgmmaTile`](super::Algorithm::WgmmaTile), which has as many columns of each remainder by the stride.
    pub(super) fn wgmma_positions(&self) -> u64 {
        let stride = self.shape.strides[1] as u64;
        let rows = (MMA_SIDE - 1) as u64 * self.shape.strides[0] as u64 + self.shape.taps[0] as u64;
        let columns = (MMA_SIDE - 1) as u64 * stride + self.shape.taps[1] as u64;
        rows.saturating_mul(columns.div_ceil(stride) * stride)
    }

    /// Whether a kernel of so many positions has room for a tile of so many, and none of its kind with less room has.
    pub(super) fn is_tightest(&self, entry: &Entry<Tile>, needed: u64, positions: u32) -> bool {
        let is_better = |other: &Entry<Tile>| {
            let room = match (entry.tile.scheme, other.tile.scheme) {
                (Scheme::MmaTile { filters, .. }, Scheme::MmaTile { filters: same, positions }) => {
                    (filters == same).then_some(positions)
                }
                (
                    Scheme::WgmmaTile { tiles, filters, .. },
                    Scheme::WgmmaTile { tiles: too, filters: same, positions },
                ) => (tiles == too && filters == same).then_some(positions),
                _ => None,
            };
            let room = room.filter(|_| other.tile.value == entry.tile.value);
            room.is_some_and(|room| needed <= u64::from(room) && room < positions)
        };
        needed <= u64::from(positions) && !entries::conv().iter().any(is_better)
    }

    /// Products of tensor cores for one.
    const fn products(&self) -> f64 {
        if matches!(self.value, ValueType::F32) { 3.0 } else { 1.0 }
    }

    /// Sixteens of channels of a split.
    pub(in crate::ops::conv) fn split_chunks(&self, splits: usize) -> usize {
        self.shape.channels.div_ceil(MMA_CHANNELS).div_ceil(splits).max(1)
    }

    /// What holds for this type of values: `f32`, or those of 16 bits, which are copied as they are where channels lie last.
    const fn by_value(&self, single: f64, half: f64) -> f64 {
        if matches!(self.value, ValueType::F32) { single } else { half }
    }

    /// Runs of so many pixels. Those of 16 bits are counted as if the pixels of all images lay one after another, as they do with channels last, which
    /// suits them best: splits may not depend on how maps lie.
    fn pixel_runs(&self, pixels: u32) -> usize {
        let [rows, columns] = self.shape.out_size();
        let of_image = rows * columns;
        if self.value != ValueType::F32 && self.shape.strides == [1, 1] {
            return (self.shape.batch * of_image).div_ceil(pixels as usize);
        }
        self.shape.batch * of_image.div_ceil(pixels as usize)
    }

    /// The blocks of a kernel by tiles of 8 × 8 pixels, of so many tiles and filters each.
    fn mma_blocks(&self, model: &CostModel, tiles: u32, filters: u32, splits: usize) -> Blocks {
        let [rows, columns] = self.shape.out_size().map(|extent| extent.div_ceil(MMA_SIDE as usize));
        let runs = (self.shape.batch * rows * columns).div_ceil(tiles as usize);
        self.blocks(model, runs, filters, MMA_SIDE * MMA_SIDE * tiles * filters, splits)
    }

    /// The blocks of a kernel, of so many runs of tiles, filters, and partial sums each.
    fn blocks(&self, model: &CostModel, runs: usize, filters: u32, elements: u32, splits: usize) -> Blocks {
        let chunks = self.split_chunks(splits);
        let splits = self.shape.channels.div_ceil(chunks * MMA_CHANNELS).max(1);
        let blocks = (runs * self.shape.filters.div_ceil(filters as usize) * splits) as f64;
        Blocks {
            of_multiprocessor: (blocks / f64::from(self.multiprocessors)).ceil(),
            chunks: chunks as f64,
            reduce: reduce_cost(model, splits, blocks * f64::from(elements)),
        }
    }

    /// Cycles on tensor cores with so many splits: blocks of a multiprocessor come one after another, and each fills and multiplies by turns. A block
    /// that is there alone waits a little longer.
    pub(super) fn mma_cost(&self, model: &CostModel, entry: &Entry<Tile>, splits: usize) -> f64 {
        let Scheme::MmaTile { filters, .. } = entry.tile.scheme else { return f64::INFINITY };
        let Blocks { of_multiprocessor, chunks, reduce } = self.mma_blocks(model, 1, filters, splits);
        let (taps, of) = (self.shape.filter_taps() as f64, &model.mma);
        let products = taps * f64::from(filters) / 8.0 * of.eight * self.products() / 3.0;
        let fill = self.mma_positions() as f64 * self.by_value(of.slot, of.slot_16);
        let waves = (of_multiprocessor / f64::from(entry.bounds.min_blocks)).ceil();
        let stages = chunks * of_multiprocessor.max(waves * of.alone);
        model.common.launch + of.block + stages * (products + fill) + reduce
    }

    /// Cycles by warpgroups with so many splits: those of the products of a multiprocessor's blocks, which take what tensor cores need or what B and
    /// A take from shared memory; or those that a warpgroup's products take alone, or in which stages are filled, where blocks that are there together
    /// do so at once. The larger of the two does not hide all of the smaller.
    pub(super) fn wgmma_cost(&self, model: &CostModel, entry: &Entry<Tile>, splits: usize) -> f64 {
        let Scheme::WgmmaTile { tiles, filters, .. } = entry.tile.scheme else { return f64::INFINITY };
        let Blocks { of_multiprocessor, chunks, reduce } = self.mma_blocks(model, tiles, filters, splits);
        let [tiles, filters, resident] = [tiles, filters, entry.bounds.min_blocks].map(f64::from);
        let of = &model.wgmma;
        let waves = (of_multiprocessor / resident).ceil();
        let product = (filters / 2.0).max(16.0 + filters / 4.0);
        let products = self.products() * self.shape.filter_taps() as f64;
        let chunk = tiles * products * (product * of.product + of.start_product);
        let alone = products * (product + of.alone);
        let slots = (tiles * self.wgmma_positions() as f64 / PRODUCERS).ceil();
        let fill = self.by_value(of.fill + slots * of.slot, of.fill_16 + slots * of.slot_16);
        let [together, each] = [of_multiprocessor * chunk, waves * alone.max(fill)];
        let stage = together.max(each) + of.not_hidden * together.min(each);
        let write = of_multiprocessor * tiles * filters * of.write;
        model.common.launch + chunks * stage + waves * of.block + write + reduce
    }

    /// Cycles of [`WgmmaPointwise`](super::Algorithm::WgmmaPointwise) with so many splits: a multiprocessor has one block after another, whose
    /// sixteens of channels take what tensor cores need, or what filling a stage takes.
    pub(super) fn wgmma_pointwise_cost(&self, model: &CostModel, entry: &Entry<Tile>, splits: usize) -> f64 {
        let Scheme::WgmmaPointwise { tiles, filters } = entry.tile.scheme else { return f64::INFINITY };
        let runs = self.pixel_runs(MMA_SIDE * MMA_SIDE).div_ceil(tiles as usize);
        let elements = tiles * MMA_SIDE * MMA_SIDE * filters;
        let Blocks { of_multiprocessor, chunks, reduce } =
            self.blocks(model, runs, filters, elements, splits);
        let [tiles, filters] = [tiles, filters].map(f64::from);
        let of = &model.wgmma_pointwise;
        let products = tiles * self.products() * filters / 2.0 * of.product;
        let fill = self.by_value(of.fill + 2.0 * filters * of.filter, of.fill_16 + filters * of.filter);
        let fill = fill + if self.shape.strides == [1, 1] { 0.0 } else { of.strided };
        let block = of.block + chunks * products.max(fill) + f64::from(elements) * of.write;
        model.common.launch + of_multiprocessor * block + reduce
    }

    /// Cycles of [`PointwiseTile`](super::Algorithm::PointwiseTile) with so many splits: warps of a multiprocessor share tensor cores and the L1 cache;
    /// a step of blocks that are there together takes no less than its loads, which are a step ahead.
    pub(super) fn pointwise_cost(&self, model: &CostModel, entry: &Entry<Tile>, splits: usize) -> f64 {
        let Scheme::PointwiseTile { pixels, filters, warps } = entry.tile.scheme else {
            return f64::INFINITY;
        };
        let elements = pixels * filters;
        let Blocks { of_multiprocessor, chunks, reduce } =
            self.blocks(model, self.pixel_runs(pixels), filters, elements, splits);
        let of = &model.pointwise;
        let waves = (of_multiprocessor / f64::from(entry.bounds.min_blocks)).ceil();
        let strided = if self.shape.strides == [1, 1] { 0.0 } else { of.strided };
        let input = self.by_value(of.input, of.input_16) + strided;
        let of_block = f64::from(pixels / POINTWISE_PIXELS * warps);
        let step = of_block * (f64::from(filters) * self.products() * of.product + input);
        let steps = (chunks / f64::from(warps)).ceil();
        let of_steps = steps * (of_multiprocessor * step).max(waves * self.by_value(of.wait, of.wait_16));
        let write = of_multiprocessor * f64::from(elements) * of.write;
        model.common.launch + waves * of.block + of_steps + write + reduce
    }
}

/// Channels of a step on tensor cores.
pub(in crate::ops::conv) const MMA_CHANNELS: usize = 16;
/// Threads that fill stages.
const PRODUCERS: f64 = 128.0;

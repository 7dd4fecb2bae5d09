//! What the kernels on tensor cores can do, and what they cost.
use lacuna_kernels::conv::{MMA_SIDE, POINTWISE_PIXELS, Scheme, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::{MULTIPROCESSOR_SHARED, Problem, reduce_cost};
use crate::{LONG_ROWS, Precision};

/// The blocks of a kernel on tensor cores.
struct MmaBlocks {
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

    /// The blocks of a tensor-core kernel, of so many tiles and filters each.
    fn mma_blocks(&self, tiles: u32, filters: u32, splits: usize) -> MmaBlocks {
        let [rows, columns] = self.shape.out_size().map(|extent| extent.div_ceil(MMA_SIDE as usize));
        let groups = self.shape.filters.div_ceil(filters as usize);
        let chunks = self.split_chunks(splits);
        let splits = self.shape.channels.div_ceil(chunks * MMA_CHANNELS).max(1);
        let blocks = ((self.shape.batch * rows * columns).div_ceil(tiles as usize) * groups * splits) as f64;
        let elements = blocks * f64::from(MMA_SIDE * MMA_SIDE * tiles * filters);
        MmaBlocks {
            of_multiprocessor: (blocks / f64::from(self.multiprocessors)).ceil(),
            chunks: chunks as f64,
            reduce: reduce_cost(splits, elements),
        }
    }

    /// Cycles on tensor cores with so many splits: blocks come in waves. Those that are there together share the
    /// tensor cores, and hide each other's waits.
    pub(super) fn mma_cost(&self, entry: &Entry<Tile>, splits: usize) -> f64 {
        let Scheme::MmaTile { filters, .. } = entry.tile.scheme else { return f64::INFINITY };
        let MmaBlocks { of_multiprocessor, chunks, reduce } = self.mma_blocks(1, filters, splits);
        let taps = (self.shape.taps[0] * self.shape.taps[1]) as f64;
        let products = taps * f64::from(filters) / 8.0 * MMA_EIGHT * self.products() / 3.0;
        let resident = f64::from(MULTIPROCESSOR_SHARED / entry.shared_bytes).clamp(1.0, MMA_RESIDENT);
        let (together, waves) = (of_multiprocessor.min(resident), (of_multiprocessor / resident).ceil());
        let chunk = together * products + MMA_CHUNK;
        MMA_START + waves * chunks * chunk + reduce
    }

    /// Cycles by warpgroups with so many splits: those of the products of a multiprocessor's blocks, which take what tensor cores need or what B and
    /// A take from shared memory; or those that a warpgroup's products take alone, or in which stages are filled, where blocks that are there together do so at once.
    pub(super) fn wgmma_cost(&self, entry: &Entry<Tile>, splits: usize) -> f64 {
        let Scheme::WgmmaTile { tiles, filters, .. } = entry.tile.scheme else { return f64::INFINITY };
        let MmaBlocks { of_multiprocessor, chunks, reduce } = self.mma_blocks(tiles, filters, splits);
        let [tiles, filters, resident] = [tiles, filters, entry.bounds.min_blocks].map(f64::from);
        let waves = (of_multiprocessor / resident).ceil();
        let product = (filters / 2.0).max(16.0 + filters / 4.0);
        let products = self.products() * self.shape.filter_taps() as f64;
        let chunk = tiles * products * (product * WGMMA_PRODUCT + WGMMA_START_PRODUCT);
        let alone = products * (product + WGMMA_ALONE);
        let slots = (tiles * self.wgmma_positions() as f64 / PRODUCERS).ceil();
        let fill = if self.products() > 1.0 { WGMMA_FILL } else { WGMMA_FILL_16 } + slots * WGMMA_SLOT;
        let stage = (of_multiprocessor * chunk).max(waves * alone.max(fill));
        let write = tiles * filters * WGMMA_WRITE;
        WGMMA_START + chunks * stage + of_multiprocessor * write + reduce
    }

    /// Cycles of [`WgmmaPointwise`](super::Algorithm::WgmmaPointwise) with so many splits: a multiprocessor has one block after another, whose
    /// sixteens of channels take what tensor cores need, or what filling a stage takes.
    pub(super) fn wgmma_pointwise_cost(&self, entry: &Entry<Tile>, splits: usize) -> f64 {
        let Scheme::WgmmaPointwise { tiles, filters } = entry.tile.scheme else { return f64::INFINITY };
        let pixels = tiles * MMA_SIDE * MMA_SIDE;
        let [rows, columns] = self.shape.out_size();
        let runs = self.shape.batch * (rows * columns).div_ceil(pixels as usize);
        let groups = self.shape.filters.div_ceil(filters as usize);
        let chunks = self.split_chunks(splits);
        let splits = self.shape.channels.div_ceil(chunks * MMA_CHANNELS).max(1);
        let blocks = (runs * groups * splits) as f64;
        let waves = (blocks / f64::from(self.multiprocessors)).ceil();
        let products =
            f64::from(tiles) * self.products() * f64::from(filters) / 2.0 * WGMMA_POINTWISE_PRODUCT;
        let fill =
            WGMMA_POINTWISE_FILL + if self.shape.strides == [1, 1] { 0.0 } else { WGMMA_POINTWISE_STRIDED };
        let elements = blocks * f64::from(pixels * filters);
        let reduce = reduce_cost(splits, elements);
        let write = f64::from(pixels * filters) * WGMMA_POINTWISE_WRITE;
        WGMMA_POINTWISE_START
            + waves * (WGMMA_POINTWISE_BLOCK + chunks as f64 * products.max(fill) + write)
            + reduce
    }

    /// Cycles of [`PointwiseTile`](super::Algorithm::PointwiseTile) with so many splits: warps that are there together share tensor cores and the L1 cache;
    /// a step takes no less than its loads, which are a step ahead.
    pub(super) fn pointwise_cost(&self, entry: &Entry<Tile>, splits: usize) -> f64 {
        let Scheme::PointwiseTile { pixels, filters, warps } = entry.tile.scheme else {
            return f64::INFINITY;
        };
        let [rows, columns] = self.shape.out_size();
        let tiles = self.shape.batch * (rows * columns).div_ceil(pixels as usize);
        let groups = self.shape.filters.div_ceil(filters as usize);
        let chunks = self.split_chunks(splits);
        let splits = self.shape.channels.div_ceil(chunks * MMA_CHANNELS).max(1);
        let blocks = (tiles * groups * splits) as f64;
        let of_multiprocessor = (blocks / f64::from(self.multiprocessors)).ceil();
        let resident = f64::from(entry.bounds.min_blocks);
        let (together, waves) = (of_multiprocessor.min(resident), (of_multiprocessor / resident).ceil());
        let of_block = f64::from(pixels / POINTWISE_PIXELS * warps);
        let input = POINTWISE_INPUT + if self.shape.strides == [1, 1] { 0.0 } else { POINTWISE_STRIDED };
        let step = of_block * (f64::from(filters) * self.products() * POINTWISE_PRODUCT + input);
        let steps = (chunks as f64 / f64::from(warps)).ceil();
        let of_steps = steps * (together * step).max(POINTWISE_WAIT);
        let write = together * f64::from(pixels * filters) * POINTWISE_WRITE;
        let elements = blocks * f64::from(pixels * filters);
        let reduce = reduce_cost(splits, elements);
        POINTWISE_START + waves * (POINTWISE_BLOCK + of_steps + write) + reduce
    }
}

// All cycles are fitted to times of an H100, and scored on others: docs/conv-times.md.

/// Channels of a step on tensor cores.
pub(super) const MMA_CHANNELS: usize = 16;
/// Cycles of a multiprocessor for the products of 64 pixels, 16 channels and eight filters at a tap, in `f32`.
const MMA_EIGHT: f64 = 34.0;
/// Blocks of a multiprocessor at most that gain by being there together.
const MMA_RESIDENT: f64 = 2.0;
/// Cycles that a block takes for 16 channels beside products.
const MMA_CHUNK: f64 = 2540.0;
/// Cycles from the launch of a tensor-core kernel to its end, without what follows below.
const MMA_START: f64 = 4420.0;
/// The same by warpgroups.
const WGMMA_START: f64 = 4760.0;
/// How much longer products of warpgroups take than at their peak, and cycles that each takes besides.
const WGMMA_PRODUCT: f64 = 1.54;
const WGMMA_START_PRODUCT: f64 = 30.0;
/// Cycles in which a tile's results of a filter are written.
const WGMMA_WRITE: f64 = 15.0;
/// Cycles that each product of a warpgroup takes besides where it has the tensor cores alone.
const WGMMA_ALONE: f64 = 92.0;
/// Cycles in which a stage is filled, of `f32` and of 16 bits, and for each position of a producer.
const WGMMA_FILL: f64 = 2240.0;
const WGMMA_FILL_16: f64 = 1465.0;
const WGMMA_SLOT: f64 = 172.0;
/// Threads that fill stages.
const PRODUCERS: f64 = 128.0;
/// Cycles from the launch of a kernel of one tap to its end, without what follows.
const POINTWISE_START: f64 = 3340.0;
/// Cycles of a multiprocessor for a warp's products of 16 channels with a filter.
const POINTWISE_PRODUCT: f64 = 0.8;
/// Cycles of a multiprocessor in which a warp loads and splits its input of 16 channels.
const POINTWISE_INPUT: f64 = 74.0;
/// How many more where its pixels have strides.
const POINTWISE_STRIDED: f64 = 69.0;
/// Cycles of a block beside its steps.
const POINTWISE_BLOCK: f64 = 100.0;
/// Cycles at least of a step.
const POINTWISE_WAIT: f64 = 1413.0;
/// Cycles of a multiprocessor in which a result is written.
const POINTWISE_WRITE: f64 = 0.196;
/// Cycles from the launch of a kernel of one tap by warpgroups to its end, without what follows; those in which a block's stages begin to flow; and those in which
/// a result is written.
const WGMMA_POINTWISE_START: f64 = 2660.0;
const WGMMA_POINTWISE_BLOCK: f64 = 1100.0;
const WGMMA_POINTWISE_WRITE: f64 = 0.356;
/// How much longer its products take than at their peak, and cycles in which producers fill 16 channels.
const WGMMA_POINTWISE_PRODUCT: f64 = 1.06;
const WGMMA_POINTWISE_FILL: f64 = 410.0;
/// How many more where pixels have strides.
const WGMMA_POINTWISE_STRIDED: f64 = 479.0;

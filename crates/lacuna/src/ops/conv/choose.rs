//! Which kernel suits a convolution, and over how many blocks its channels are split: pure functions of the problem shape.
use lacuna_kernels::conv::{DIRECT_PIXELS, Scheme, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::{OPERATION, Shape};
use crate::op;

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Problem {
    /// The sizes.
    pub shape: Shape,
    /// The part of the input that is likely to be zero, 0 to 1.
    pub zeros: f64,
    /// Channels that layout and addresses allow to load at once (1, 2, 4 or 8).
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
        Self { shape, zeros: 0.7, vector: 8, value, multiprocessors, block_shared_bytes, sm: 90 }
    }
}

/// How a convolution is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Zeros are left out; tiles of the result are in registers. Compute capability 8.0 and later.
    SparseTile {
        /// Rows and columns of a tile.
        tile: [u32; 2],
        /// Filters of a thread.
        filters: u32,
    },
    /// For filters of any shape: zeros are left out, and each product loads its input.
    Direct,
    /// For a depthwise convolution: a thread has a column of results, one below another.
    Depthwise {
        /// Rows of a thread.
        rows: u32,
        /// Channels of a thread.
        vector: u32,
    },
    /// For a depthwise convolution with filters of any shape.
    AnyDepthwise,
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
            Scheme::Direct => (!is_depthwise).then_some(Algorithm::Direct),
            Scheme::Depthwise { taps, stride, rows, vector } => {
                let is_whole = vector <= self.vector && self.shape.channels.is_multiple_of(vector as usize);
                (is_depthwise && is_whole && fits(taps, stride))
                    .then_some(Algorithm::Depthwise { rows, vector })
            }
            Scheme::AnyDepthwise => is_depthwise.then_some(Algorithm::AnyDepthwise),
            Scheme::Reduce | Scheme::Pack => None,
        };
        algorithm.filter(|_| is_able)
    }

    fn cost(&self, entry: &'static Entry<Tile>, _algorithm: Algorithm) -> f64 {
        match entry.tile.scheme {
            Scheme::SparseTile { .. } => self.sparse_cost(entry, self.cut(entry).splits),
            // Instructions of a thread, idle ones too: a vector costs as much as a number.
            Scheme::Depthwise { rows, vector, .. } => {
                let strips = self.shape.out_size()[0].div_ceil(rows as usize) as f64;
                strips * f64::from(rows) / f64::from(vector)
            }
            Scheme::AnyDepthwise => ANY_DEPTHWISE * self.shape.out_size()[0] as f64,
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
}

impl Problem {
    /// How a kernel's work is cut.
    pub(super) fn cut(&self, entry: &Entry<Tile>) -> Cut {
        let [rows, columns] = self.shape.out_size();
        let (tile, filters) = match entry.tile.scheme {
            Scheme::SparseTile { tile, filters, .. } => (tile, 32 * filters),
            // Strips of rows.
            Scheme::Depthwise { rows, .. } => ([rows, columns.max(1) as u32], 32),
            Scheme::AnyDepthwise => ([1, columns.max(1) as u32], 32),
            _ => ([1, DIRECT_PIXELS], 32),
        };
        let (tiles_y, tiles_x) = (rows.div_ceil(tile[0] as usize), columns.div_ceil(tile[1] as usize));
        let groups = self.shape.filters.div_ceil(filters as usize);
        let cut = Cut { tiles_x, tiles: tiles_y * tiles_x, groups, splits: 1 };
        let Scheme::SparseTile { warps, .. } = entry.tile.scheme else { return cut };
        // Each block has at least a channel a warp; partial sums are counted in 32 bits.
        let pixels = (self.shape.batch * cut.tiles) as u64 * u64::from(tile[0] * tile[1]);
        let elements = pixels * groups as u64 * u64::from(filters);
        let most = self.shape.channels.div_ceil(warps as usize).clamp(1, MAX_SPLITS);
        let most = most.min((MAX_PARTIAL / elements.max(1)).max(1) as usize);
        let cost = |splits: usize| self.sparse_cost(entry, splits);
        let splits = (1..=most).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(1);
        Cut { splits: self.whole_splits(splits), ..cut }
    }

    /// Channels of a split.
    pub(super) fn split_channels(&self, splits: usize) -> usize {
        self.shape.channels.div_ceil(splits).max(1)
    }

    /// How many splits of this size have channels.
    fn whole_splits(&self, splits: usize) -> usize {
        self.shape.channels.div_ceil(self.split_channels(splits)).max(1)
    }

    /// Cycles of a kernel by tiles with so many splits: the warps of a multiprocessor issue instructions in turns, and blocks come in
    /// waves (paper section 3.5, with the splits that its model leaves to atomics).
    fn sparse_cost(&self, entry: &Entry<Tile>, splits: usize) -> f64 {
        let Scheme::SparseTile { taps, stride, tile, filters, warps } = entry.tile.scheme else {
            return f64::INFINITY;
        };
        let [rows, columns] = self.shape.out_size();
        let tiles = rows.div_ceil(tile[0] as usize) * columns.div_ceil(tile[1] as usize);
        let groups = self.shape.filters.div_ceil(32 * filters as usize);
        let splits = self.whole_splits(splits);
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
        let channel = nonzeros * (products + PER_NONZERO) + PER_CHANNEL + f64::from(taps * taps * filters);
        let of_warp = (self.split_channels(splits) as f64 / f64::from(warps)).ceil();
        let resident = f64::from(entry.bounds.min_blocks.max(1));
        let waves = (blocks / (f64::from(self.multiprocessors) * resident)).ceil();
        // A warp alone waits for its own instructions; several fill each other's gaps.
        let warps_each = f64::from(warps) * resident.min((blocks / f64::from(self.multiprocessors)).ceil());
        let of_scheduler = (warps_each / SCHEDULERS).max(ALONE);
        let join = JOIN * pixels * f64::from(filters) * warps_each;
        let reduce = if splits > 1 {
            let elements =
                (self.shape.batch * tiles * groups * splits) as f64 * pixels * f64::from(32 * filters);
            REDUCE + elements * 8.0 / BYTES_A_CYCLE
        } else {
            0.0
        };
        START + waves * (of_warp * channel * of_scheduler + join) + reduce
    }
}

/// The kernels that can do this problem, the best first. Never empty: one is for filters of any shape.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

/// Splits at most.
const MAX_SPLITS: usize = 64;
/// Partial sums at most.
const MAX_PARTIAL: u64 = 1 << 28;
/// Schedulers of a multiprocessor.
const SCHEDULERS: f64 = 4.0;
/// Instructions of a nonzero beside its products.
const PER_NONZERO: f64 = 12.0;
/// Instructions of a channel beside its nonzeros and taps.
const PER_CHANNEL: f64 = 150.0;
/// What a warp waits for itself, as instructions of so many warps.
const ALONE: f64 = 2.5;
/// Cycles of a multiprocessor to join a sum of a warp's lanes: written and read.
const JOIN: f64 = 2.0;
/// Cycles of the launch that adds splits.
const REDUCE: f64 = 2500.0;
/// Bytes that the L2 cache moves in a cycle.
const BYTES_A_CYCLE: f64 = 3000.0;
/// Cycles from the launch to the first products.
const START: f64 = 3000.0;
/// How much longer the depthwise kernel for any filters takes.
const ANY_DEPTHWISE: f64 = 100.0;
/// Cycles of a step of the direct kernel: a tap of a run of pixels.
const DIRECT_STEP: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(channels: usize, side: usize, filters: usize) -> Problem {
        Problem::new(Shape::new(channels, [side; 2], filters, [3, 3]).padding([1, 1]))
    }

    #[test]
    fn small_maps_are_split_over_channels() {
        for (channels, side) in [(64, 56), (128, 28), (256, 14), (512, 7)] {
            let problem = layer(channels, side, channels);
            let choice = choose(&problem)[0];
            assert!(matches!(choice.algorithm, Algorithm::SparseTile { .. }), "{choice:?}");
            let cut = problem.cut(choice.entry);
            let blocks = cut.tiles * cut.groups * cut.splits;
            assert!(blocks >= 60, "{side}: {cut:?}");
        }
        let many = Problem::new(layer(64, 224, 64).shape.batch(16));
        assert_eq!(many.cut(choose(&many)[0].entry).splits, 1);
    }

    #[test]
    fn splits_have_channels_each() {
        for channels in [1, 7, 8, 9, 100, 129, 1000] {
            let problem = layer(channels, 7, 32);
            for choice in choose(&problem) {
                let splits = problem.cut(choice.entry).splits;
                assert!((splits - 1) * problem.split_channels(splits) < channels, "{channels}: {splits}");
                assert!(splits * problem.split_channels(splits) >= channels);
            }
        }
    }

    #[test]
    fn depthwise_layers_take_vectors_where_they_may() {
        let of = |channels, vector| {
            let shape = Shape::depthwise(channels, [14, 14], [3, 3]).padding([1, 1]);
            choose(&Problem { vector, ..Problem::new(shape) })[0].algorithm
        };
        assert_eq!(of(64, 8), Algorithm::Depthwise { rows: 4, vector: 4 });
        assert_eq!(of(64, 1), Algorithm::Depthwise { rows: 4, vector: 1 });
        assert_eq!(of(63, 8), Algorithm::Depthwise { rows: 4, vector: 1 });
        let odd = Problem::new(Shape::depthwise(8, [9, 9], [2, 3]));
        assert_eq!(choose(&odd)[0].algorithm, Algorithm::AnyDepthwise);
    }

    #[test]
    fn any_shape_has_a_kernel() {
        for taps in [[1, 1], [3, 3], [2, 5], [7, 7]] {
            for (sm, strides) in [(70, [1, 1]), (90, [2, 2]), (90, [1, 3])] {
                let problem = Problem { sm, ..Problem::new(Shape::new(3, [9, 8], 5, taps).strides(strides)) };
                let choices = choose(&problem);
                assert!(!choices.is_empty());
                for choice in choices {
                    assert_eq!(op::find(&problem, choice.algorithm), Some(choice));
                    assert!(choice.cost.is_finite());
                }
            }
        }
    }
}

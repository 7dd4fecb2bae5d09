//! Depthwise convolution: which kernels can do it, what they cost, and how it is launched.
use lacuna_kernels::Divisor;
use lacuna_kernels::conv::{DepthwiseArgs, PLANES_OF_BLOCK, Scheme, Source, Target};

use super::{Algorithm, Choice, Conv, MapLayout, Problem, Shape};
use crate::op::{MAX_GRID_X, launch};
use crate::{Error, Result, Stream, Value};

impl Problem {
    /// The algorithms of an entry, if it can do this depthwise convolution.
    pub(super) fn depthwise_algorithms(&self, scheme: Scheme) -> Vec<Algorithm> {
        let Shape { size, channels, taps, strides, padding, .. } = self.shape;
        let out = self.shape.out_size();
        let fits =
            |of_taps: u32, stride: u32| taps == [of_taps as usize; 2] && strides == [stride as usize; 2];
        // A tile reaches over edges of the map by half of the taps, and the last one begins where it ends with the map.
        let is_tiled = |of_taps: u32, stride: u32, rows: u32| {
            fits(of_taps, stride) && padding[0] <= of_taps as usize / 2 && out[0] >= rows as usize
        };
        let algorithm = match scheme {
            Scheme::DepthwiseNchw { taps: of_taps, stride, tile } => {
                let (width, columns) = (size[1], tile[1] as usize);
                // Loads are of whole vectors, of which each thread has as many; what is beside them is of its neighbours.
                let is_whole = tile[1] <= self.vector && width.is_multiple_of(columns);
                let is_covered =
                    columns == 1 || (out[1].is_multiple_of(columns) && width == out[1] * stride as usize);
                let is_half = padding[1] == of_taps as usize / 2;
                let is_able = is_tiled(of_taps, stride, tile[0]) && is_whole && is_covered && is_half;
                (is_able && self.layout == MapLayout::Nchw).then_some(Algorithm::DepthwiseNchw { tile })
            }
            Scheme::DepthwiseNhwc { taps: of_taps, stride, tile, vector } => {
                let is_whole = vector <= self.vector && channels.is_multiple_of(vector as usize);
                let is_wide = padding[1] <= of_taps as usize / 2 && out[1] >= tile[1] as usize;
                let is_able = is_tiled(of_taps, stride, tile[0]) && is_wide && is_whole;
                (is_able && self.layout == MapLayout::Nhwc).then_some(Algorithm::DepthwiseNhwc { tile })
            }
            Scheme::DepthwisePlanes { taps, stride, side } => {
                // Planes lie one after another, at a multiple of 16 bytes.
                let is_aligned = self.vector * self.value.bytes() >= 16 && !self.has_gaps;
                let is_half = padding == [taps as usize / 2; 2];
                let is_able = fits(taps, stride) && size == [side as usize; 2] && is_half && is_aligned;
                (is_able && self.layout == MapLayout::Nchw).then_some(Algorithm::DepthwisePlanes)
            }
            Scheme::DepthwiseColumn { taps, stride, rows } => {
                fits(taps, stride).then_some(Algorithm::DepthwiseColumn { rows })
            }
            Scheme::AnyDepthwise => Some(Algorithm::AnyDepthwise),
            _ => None,
        };
        algorithm.into_iter().collect()
    }

    /// Cost of a depthwise kernel: what a warp executes, one of a multiprocessor's after another; and what it waits for takes as long as
    /// some more warps.
    pub(super) fn depthwise_cost(&self, scheme: Scheme) -> f64 {
        let Shape { batch, channels, taps, strides, .. } = self.shape;
        let [rows, columns] = self.shape.out_size();
        let tiles = |tile: [u32; 2]| rows.div_ceil(tile[0] as usize) * columns.div_ceil(tile[1] as usize);
        let warps = |threads: usize| (batch * threads) as f64 / 32.0;
        let taps = (taps[0] * taps[1]) as f64;
        let products = |results: u32| PRODUCT * taps * f64::from(results);
        let lines = |outputs: u32, of_taps: u32, stride: u32| f64::from((outputs - 1) * stride + of_taps);
        let (of_warp, warps, waits) = match scheme {
            Scheme::DepthwiseNchw { taps: of_taps, stride, tile } => {
                let lines = lines(tile[0], of_taps, stride);
                let beside = BESIDE * lines * f64::from(of_taps - stride);
                let moved = LOAD * lines * f64::from(stride) + STORE * f64::from(tile[0]) + beside + taps;
                let warps = warps(tiles(tile) * channels);
                (START + moved + products(tile[0] * tile[1]), warps, WAITS)
            }
            Scheme::DepthwiseNhwc { taps: of_taps, stride, tile, vector } => {
                let loaded = lines(tile[0], of_taps, stride) * lines(tile[1], of_taps, stride);
                let moved = LOAD * loaded + STORE * f64::from(tile[0] * tile[1]) + taps * f64::from(vector);
                let warps = warps(tiles(tile) * (channels / vector as usize));
                (START + moved + products(tile[0] * tile[1] * vector), warps, WAITS_OF_CHANNELS)
            }
            Scheme::DepthwisePlanes { side, .. } => {
                let numbers = f64::from(side * side) + (rows * columns) as f64 * taps;
                let blocks = (batch * channels) as f64 / f64::from(PLANES_OF_BLOCK);
                (START_OF_PLANES + PLANE * numbers, blocks, WAITS_OF_PLANES)
            }
            Scheme::DepthwiseColumn { taps: of_taps, stride, rows } => {
                let loaded = lines(rows, of_taps, stride) * f64::from(of_taps);
                let moved = LOAD_OF_COLUMNS * loaded + STORE * f64::from(rows) + taps;
                (START + moved + products(rows), warps(tiles([rows, 1]) * channels), WAITS_OF_COLUMNS)
            }
            // Its loop waits at each tap.
            _ => {
                let of_taps = taps * ANY_TAP * strides[1].min(2) as f64;
                (START + of_taps, warps(tiles([1, 1]) * channels), WAITS_OF_COLUMNS)
            }
        };
        of_warp * (warps / f64::from(self.multiprocessors) + waits)
    }
}

impl<T: Value> Conv<T> {
    pub(super) fn launch_depthwise(
        &self,
        stream: &Stream,
        &Choice { entry, .. }: &Choice,
        source: Source<T::Device>,
        target: Target<T::Device>,
    ) -> Result<()> {
        let &Shape { batch, channels, .. } = self.shape();
        let [rows, columns] = self.shape().out_size();
        let strips = |of_tile: u32| rows.div_ceil(of_tile as usize);
        let divisors = match entry.tile.scheme {
            Scheme::DepthwiseNchw { tile, .. } => [columns / tile[1] as usize, strips(tile[0]), channels],
            Scheme::DepthwiseNhwc { tile, vector, .. } => {
                [channels / vector as usize, columns.div_ceil(tile[1] as usize), strips(tile[0])]
            }
            Scheme::DepthwisePlanes { .. } => [channels, 1, 1],
            Scheme::DepthwiseColumn { rows, .. } => self.columns(strips(rows)),
            _ => self.columns(rows),
        };
        // Threads; for planes those.
        let count = divisors.into_iter().fold(batch, usize::saturating_mul);
        Error::expect_at_most("the threads of a depthwise convolution", MAX_GRID_X, count)?;
        let is_by_planes = matches!(entry.tile.scheme, Scheme::DepthwisePlanes { .. });
        let blocks = (count as u32).div_ceil(if is_by_planes { PLANES_OF_BLOCK } else { entry.threads });
        let divisors = divisors.map(|divisor| Divisor::new(divisor as u32));
        let args = DepthwiseArgs { source, count: count as u32, divisors, target };
        launch(stream, entry, [blocks, 1, 1], &args)
    }

    /// What the threads of kernels for any layout are divided by, of so many strips of rows.
    fn columns(&self, strips: usize) -> [usize; 3] {
        let (channels, columns) = (self.shape().channels, self.shape().out_size()[1]);
        match self.selection().problem().layout {
            MapLayout::Nchw => [columns, strips, channels],
            MapLayout::Nhwc => [channels, columns, strips],
        }
    }
}

/// What a warp executes beside what follows. These constants are fitted to times on an H200 (docs/log/conv.md), but for a common factor: only their
/// ratios count.
const START: f64 = 55.0;
/// A load of the input.
const LOAD: f64 = 1.6;
/// The same for columns, with tests; set by hand, as they are never near the fastest.
const LOAD_OF_COLUMNS: f64 = 6.0;
/// A result, or a vector of such.
const STORE: f64 = 0.2;
/// A product of each lane.
const PRODUCT: f64 = 0.5;
/// A column of a row that comes from a lane beside.
const BESIDE: f64 = 4.0;
/// A tap of the kernel for any filters, waits included; set by hand.
const ANY_TAP: f64 = 45.0;
/// Warps that take as long as a thread's own chain of waits.
const WAITS: f64 = 20.0;
/// The same where lanes have channels side by side.
const WAITS_OF_CHANNELS: f64 = 2.0;
/// The same for columns.
const WAITS_OF_COLUMNS: f64 = 30.0;
/// A block of planes, beside its numbers.
const START_OF_PLANES: f64 = 400.0;
/// A number of a plane that a block loads or adds up, for all of its planes.
const PLANE: f64 = 0.035;
/// Blocks that take as long as the chain of waits of a block of planes.
const WAITS_OF_PLANES: f64 = 9.0;

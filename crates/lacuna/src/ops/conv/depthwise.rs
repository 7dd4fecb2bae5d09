//! Depthwise convolution: which kernels can do it, what they cost, and how it is launched.
use lacuna_gpu::WARP;
use lacuna_kernels::Divisor;
use lacuna_kernels::conv::{DepthwiseArgs, Scheme, Source, Target};

use super::{Algorithm, Choice, Conv, MapLayout, Problem, Shape};
use crate::op::{MAX_GRID_X, launch};
use crate::{Error, Result, Stream, Value};

impl Problem {
    /// The algorithms of an entry, if it can do this depthwise convolution.
    pub(super) fn depthwise_algorithms(&self, scheme: Scheme) -> Vec<Algorithm> {
        let Shape { size, taps, strides, padding, .. } = self.shape;
        let fits =
            |of_taps: u32, stride: u32| taps == [of_taps as usize; 2] && strides == [stride as usize; 2];
        let algorithm = match scheme {
            Scheme::DepthwiseNchw { taps: of_taps, stride, tile } => {
                let [width, columns, out] = [size[1], tile[1] as usize, self.shape.out_size()[1]];
                // Loads are of whole vectors, of which each thread has as many; what is beside them is of its neighbours.
                let is_whole = tile[1] <= self.vector && width.is_multiple_of(columns);
                let is_covered =
                    columns == 1 || (out.is_multiple_of(columns) && width == out * stride as usize);
                let is_half = padding[1] == of_taps as usize / 2;
                let is_able = fits(of_taps, stride) && is_whole && is_covered && is_half;
                (is_able && self.layout == MapLayout::Nchw).then_some(Algorithm::DepthwiseNchw { tile })
            }
            Scheme::DepthwiseNhwc { taps, stride, tile, vector } => {
                self.has_vectors(taps, stride, vector).then_some(Algorithm::DepthwiseNhwc { tile })
            }
            Scheme::DepthwiseStrips { taps, stride, columns, vector } => {
                // A strip longer than the map is that of the map.
                let is_new = |&i: &usize| i == 0 || (STRIPS[i - 1] as usize) < self.shape.out_size()[0];
                let is_able = self.has_vectors(taps, stride, vector);
                let strips = (0..STRIPS.len()).filter(|i| is_able && is_new(i));
                return strips.map(|i| Algorithm::DepthwiseStrips { tile: [STRIPS[i], columns] }).collect();
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

    /// Cycles of a depthwise kernel: each warp of a multiprocessor takes a start, and its passes through the L1 cache, one after another;
    /// and what it waits for takes as long as some more warps.
    pub(super) fn depthwise_cost(&self, scheme: Scheme, algorithm: Algorithm) -> f64 {
        let Shape { batch, channels, taps, strides, .. } = self.shape;
        let [rows, columns] = self.shape.out_size();
        let taps = (taps[0] * taps[1]) as f64;
        let lines = |outputs: u32, of_taps: u32, stride: u32| f64::from((outputs - 1) * stride + of_taps);
        let (tile, vector, passes, waits) = match scheme {
            Scheme::DepthwiseNchw { taps: of_taps, stride, tile } => {
                let loaded = lines(tile[0], of_taps, stride) * f64::from(stride * stride.max(tile[1]));
                (tile, 1, loaded + taps + f64::from(tile[0] * tile[1]), WAITS)
            }
            Scheme::DepthwiseNhwc { taps: of_taps, stride, tile, vector } => {
                let loaded = lines(tile[0], of_taps, stride) * lines(tile[1], of_taps, stride);
                let vectors = loaded + f64::from(tile[0] * tile[1]);
                (tile, vector, f64::from(vector) * vectors + taps, WAITS_OF_VECTORS)
            }
            Scheme::DepthwiseStrips { taps: of_taps, stride, columns, vector } => {
                let strip = strip(algorithm);
                let loaded = lines(strip, of_taps, stride) * lines(columns, of_taps, stride);
                let vectors = loaded + f64::from(strip * columns) + taps;
                ([strip, columns], vector, f64::from(vector) * vectors, WAITS_OF_STRIPS)
            }
            Scheme::DepthwisePlanes { side, .. } => {
                let warps = rows.div_ceil(2) as f64;
                let whole = f64::from(side * side) + (rows * columns) as f64;
                // The taps of 32 channels lie in as many lines as there are taps.
                let passes = PASSES_OF_PIXEL * whole / warps + taps * taps;
                ([2, columns as u32], 1, passes, WAITS_OF_PLANES * warps)
            }
            Scheme::DepthwiseColumn { taps: of_taps, stride, rows } => {
                let loaded = lines(rows, of_taps, stride) * f64::from(of_taps * stride);
                ([rows, 1], 1, loaded + taps + f64::from(rows), WAITS)
            }
            // Its loop waits at each tap.
            _ => ([1, 1], 1, taps * ANY_TAP * strides[1].min(2) as f64, WAITS),
        };
        let tiles = rows.div_ceil(tile[0] as usize) * columns.div_ceil(tile[1] as usize);
        let warps = (batch * tiles * channels.div_ceil(vector as usize)) as f64 / 32.0;
        (START + PASS * passes) * (warps / f64::from(self.multiprocessors) + waits)
    }
}

impl Problem {
    /// Whether a kernel for vectors of channels, and for so many taps, can do this.
    fn has_vectors(&self, taps: u32, stride: u32, vector: u32) -> bool {
        let Shape { channels, taps: of_shape, strides, .. } = self.shape;
        let is_whole = vector <= self.vector && channels.is_multiple_of(vector as usize);
        let fits = of_shape == [taps as usize; 2] && strides == [stride as usize; 2];
        fits && is_whole && self.layout == MapLayout::Nhwc
    }
}

/// Rows of results of a thread that goes through a strip of them.
const fn strip(algorithm: Algorithm) -> u32 {
    if let Algorithm::DepthwiseStrips { tile: [strip, _] } = algorithm { strip } else { 1 }
}

impl<T: Value> Conv<T> {
    pub(super) fn launch_depthwise(
        &self,
        stream: &Stream,
        &Choice { entry, algorithm, .. }: &Choice,
        source: Source<T::Device>,
        target: Target<T::Device>,
    ) -> Result<()> {
        let &Shape { batch, channels, .. } = self.shape();
        let [rows, columns] = self.shape().out_size();
        let strips = |of_tile: u32| rows.div_ceil(of_tile as usize);
        let (mut lanes, strip) = ([1; 2], strip(algorithm));
        let mut vectors = |vector: u32, of_thread: u32, most: usize, strips: usize| {
            let (vectors, across) = (channels / vector as usize, columns.div_ceil(of_thread as usize));
            let side_by_side = vectors.next_power_of_two().min(8);
            lanes = [side_by_side, across.next_power_of_two().min(most)];
            let down = entry.threads as usize / (lanes[0] * lanes[1]);
            [vectors.div_ceil(lanes[0]), across.div_ceil(lanes[1]), strips.div_ceil(down)]
        };
        let divisors = match entry.tile.scheme {
            Scheme::DepthwiseNchw { tile, .. } => [columns / tile[1] as usize, strips(tile[0]), channels],
            Scheme::DepthwiseNhwc { tile, vector, .. } => vectors(vector, tile[1], 4, strips(tile[0])),
            Scheme::DepthwiseStrips { columns, vector, .. } => vectors(vector, columns, 16, strips(strip)),
            Scheme::DepthwisePlanes { .. } => [channels, 1, 1],
            Scheme::DepthwiseColumn { rows, .. } => self.columns(strips(rows)),
            _ => self.columns(rows),
        };
        // Threads; for vectors of channels blocks; for planes those.
        let count = divisors.into_iter().fold(batch, usize::saturating_mul);
        Error::expect_at_most("the threads of a depthwise convolution", MAX_GRID_X, count)?;
        let of_block = match entry.tile.scheme {
            Scheme::DepthwiseNhwc { .. } | Scheme::DepthwiseStrips { .. } => 1,
            Scheme::DepthwisePlanes { .. } => WARP,
            _ => entry.threads,
        };
        let blocks = (count as u32).div_ceil(of_block);
        let divisors = divisors.map(|divisor| Divisor::new(divisor as u32));
        let lanes = lanes.map(|lanes: usize| lanes.trailing_zeros());
        let args = DepthwiseArgs { source, count: count as u32, divisors, lanes, strip, target };
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

/// Cycles of a warp beside its passes. These constants are fitted to times on an H100 (docs/log/conv.md).
const START: f64 = 80.0;
/// Cycles of a pass: 128 bytes that a warp loads or writes.
const PASS: f64 = 2.7;
/// Passes that the kernel for any filters takes for a tap, waits included.
const ANY_TAP: f64 = 20.0;
/// Passes for a pixel of a warp's planes, in and out.
const PASSES_OF_PIXEL: f64 = 0.3;
/// Warps that take as long as a thread's own chain of waits.
const WAITS: f64 = 12.8;
/// The same where a thread has vectors of channels.
const WAITS_OF_VECTORS: f64 = 7.5;
/// The same where it goes down a strip.
const WAITS_OF_STRIPS: f64 = 7.0;
/// Blocks that take as long as the chain of waits of a block of planes.
const WAITS_OF_PLANES: f64 = 2.5;
/// Rows of a strip of vectors of channels.
const STRIPS: [u32; 4] = [1, 2, 4, 7];

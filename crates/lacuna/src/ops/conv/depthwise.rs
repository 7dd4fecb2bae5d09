//! Depthwise convolution: which kernels can do it, what they cost, and how it is launched.
use lacuna_kernels::conv::{DepthwiseArgs, Scheme, Source, Target, Tile};
use lacuna_kernels::{Divisor, Entry};

use super::{Algorithm, Conv, MapLayout, Problem, Shape};
use crate::op::{MAX_GRID_X, launch};
use crate::{Error, Result, Stream, Value};

impl Problem {
    /// The algorithm of an entry, if it can do this depthwise convolution.
    pub(super) fn depthwise_algorithm(&self, scheme: Scheme) -> Option<Algorithm> {
        let Shape { channels, size, taps, strides, padding, .. } = self.shape;
        let fits =
            |of_taps: u32, stride: u32| taps == [of_taps as usize; 2] && strides == [stride as usize; 2];
        match scheme {
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
                let is_whole = vector <= self.vector && channels.is_multiple_of(vector as usize);
                let is_able = fits(taps, stride) && is_whole && self.layout == MapLayout::Nhwc;
                is_able.then_some(Algorithm::DepthwiseNhwc { tile })
            }
            Scheme::DepthwiseColumn { taps, stride, rows } => {
                fits(taps, stride).then_some(Algorithm::DepthwiseColumn { rows })
            }
            Scheme::AnyDepthwise => Some(Algorithm::AnyDepthwise),
            _ => None,
        }
    }

    /// Cycles of a depthwise kernel: each warp of a multiprocessor takes a start, and its passes through the L1 cache, one after another;
    /// and what it waits for takes as long as some more warps.
    pub(super) fn depthwise_cost(&self, scheme: Scheme) -> f64 {
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

impl<T: Value> Conv<T> {
    pub(super) fn launch_depthwise(
        &self,
        stream: &Stream,
        entry: &Entry<Tile>,
        source: Source<T::Device>,
        target: Target<T::Device>,
    ) -> Result<()> {
        let &Shape { batch, channels, .. } = self.shape();
        let [rows, columns] = self.shape().out_size();
        let strips = |of_tile: u32| rows.div_ceil(of_tile as usize);
        let mut lanes = [0; 2];
        let divisors = match entry.tile.scheme {
            Scheme::DepthwiseNchw { tile, .. } => [columns / tile[1] as usize, strips(tile[0]), channels],
            Scheme::DepthwiseNhwc { tile, vector, .. } => {
                let (vectors, across) = (channels / vector as usize, columns.div_ceil(tile[1] as usize));
                // As many as there are, up to 128 bytes of channels, and four columns.
                lanes = [vectors.next_power_of_two().min(8), across.next_power_of_two().min(4)];
                let down = entry.threads as usize / (lanes[0] * lanes[1]);
                [vectors.div_ceil(lanes[0]), across.div_ceil(lanes[1]), strips(tile[0]).div_ceil(down)]
            }
            Scheme::DepthwiseColumn { rows, .. } => self.columns(strips(rows)),
            _ => self.columns(rows),
        };
        // Threads, but for vectors of channels, where they are blocks.
        let count = divisors.into_iter().fold(batch, usize::saturating_mul);
        Error::expect_at_most("the threads of a depthwise convolution", MAX_GRID_X, count)?;
        let is_of_blocks = matches!(entry.tile.scheme, Scheme::DepthwiseNhwc { .. });
        let blocks = if is_of_blocks { count as u32 } else { (count as u32).div_ceil(entry.threads) };
        let divisors = divisors.map(|divisor| Divisor::new(divisor as u32));
        let lanes = lanes.map(|lanes: usize| lanes.trailing_zeros());
        let args = DepthwiseArgs { source, count: count as u32, divisors, lanes, target };
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

/// Cycles of a warp beside its passes. These constants are set by hand from times on an H200.
const START: f64 = 20.0;
/// Cycles of a pass: 128 bytes that a warp loads or writes.
const PASS: f64 = 3.3;
/// Passes that the kernel for any filters takes for a tap, waits included.
const ANY_TAP: f64 = 20.0;
/// Warps that take as long as a thread's own chain of waits.
const WAITS: f64 = 6.0;
/// The same where a thread has vectors of channels.
const WAITS_OF_VECTORS: f64 = 2.0;

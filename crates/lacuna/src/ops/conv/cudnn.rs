//! Convolution by cuDNN, on request: its run, what follows, and its filters.
use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::conv::{FinishMaps, FinishMapsArgs, Target};
use lacuna_kernels::{DeviceValue, Map, entries};

use super::plan::THREADS;
use super::{Conv, Filters, MapLayout};
use crate::backend::BackendConv;
use crate::op::launch_kernel;
use crate::{Buffer, Result, Slice, Stream, Value};

/// Bytes to which cuDNN's kernels may ask maps to be aligned.
pub(super) const ALIGNED: u32 = 16;

impl<T: Value> Conv<T> {
    /// cuDNN's sums, in the place of the result; and one launch that makes results of them, where anything follows.
    pub(super) fn run_cudnn(
        &self,
        stream: &Stream,
        conv: &dyn BackendConv,
        input: Slice<'_, T>,
        filters: &Filters<T>,
        target: Target<T::Device>,
    ) -> Result<()> {
        // Refuses maps that are not aligned.
        self.selection().at(input.address() | target.out.address(), "the maps are")?;
        let (filters, out) = (filters.values.as_slice().address(), target.out.address());
        conv.run(stream.backend(), input.address(), filters, out, self.workspace().address())?;
        let is_added_to = target.residual.address() != 0 || target.bias.address() != 0;
        let is_limited = target.lo > f32::NEG_INFINITY || target.hi < f32::INFINITY;
        if is_added_to || is_limited || target.nonzeros.address() != 0 {
            finish(stream, target.out, target.map, self.shape().output_len(), target)?;
        }
        Ok(())
    }
}

/// Filters with their channels last: N × R × S × C.
pub(super) fn channels_last<T: Value>(
    stream: &Stream,
    filters: Slice<'_, T>,
    channels: usize,
    taps: [usize; 2],
) -> Result<Buffer<T>> {
    let map = |layout: MapLayout| layout.map(channels, taps, size_of::<T>());
    let mut values = stream.device().uninitialized(filters.len())?;
    let target = Target::<T::Device> {
        out: values.as_slice_mut().pointer(),
        residual: GlobalPtr::from_address(0),
        bias: GlobalPtr::from_address(0),
        nonzeros: GlobalMut::from_address(0),
        map: map(MapLayout::Nhwc),
        lo: f32::NEG_INFINITY,
        hi: f32::INFINITY,
        tiles_x: 1,
        tiles: 1,
        channels_last: 1,
    };
    let from = GlobalMut::from_address(filters.address());
    finish(stream, from, map(MapLayout::Nchw), filters.len(), target)?;
    Ok(values)
}

/// Makes `count` results of as many sums.
fn finish<T: DeviceValue>(
    stream: &Stream,
    from: GlobalMut<T>,
    map: Map,
    count: usize,
    target: Target<T>,
) -> Result<()> {
    let args = FinishMapsArgs { from, map, count: count as u32, target };
    let grid = [count.div_ceil(THREADS) as u32, 1, 1];
    launch_kernel::<FinishMaps<T>>(stream, entries::conv(), |_| grid, &args)
}

#[cfg(test)]
mod tests;

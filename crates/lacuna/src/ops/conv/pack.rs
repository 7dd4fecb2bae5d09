//! Filters in the order in which the kernel of a plan reads them.
use lacuna_kernels::conv::{
    MmaValue, PANEL_CHANNELS, PackFewChannels, PackFilters, PackFiltersArgs, PackMma, PackMmaArgs,
    PackPanels, PackPointwise, Tile, few_channels_pieces,
};
use lacuna_kernels::{Kernel, entries};

use super::choose::MMA_CHANNELS;
use super::cudnn::channels_last;
use super::filters::Packing;
use super::plan::{Conv, THREADS};
use super::{Filters, OPERATION, Shape};
use crate::op::launch_kernel;
use crate::{Buffer, Result, Slice, Stream, Value};

/// How filters are grouped.
#[derive(Clone, Copy)]
struct Groups {
    /// Eights of filters in a group.
    eights: u32,
    /// Pieces of 16 bytes of a group, and those that a thread packs.
    pieces: usize,
    pieces_of_thread: usize,
}

impl Groups {
    /// Pieces are eight channels of a filter at a tap, in one part; up to whole chunks of channels there are zeros.
    fn of_chunks(eights: u32, [channels, taps]: [usize; 2], chunk: usize, parts: usize) -> Self {
        let pieces = 8 * eights as usize * channels.div_ceil(chunk) * (chunk / 8) * taps * parts;
        Self { eights, pieces, pieces_of_thread: 1 }
    }
}

impl<T: Value> Conv<T> {
    /// Packs filters, N × C × R × S (PyTorch's order), for this plan and others that pack alike. They may be dropped or changed after that.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) and [`Error::OtherDevice`](crate::Error::OtherDevice) for filters that do not fit; what the device says.
    pub fn pack(&self, stream: &Stream, filters: Slice<'_, T>) -> Result<Filters<T>> {
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        let Shape { filters: count, taps: [rows, columns], .. } = self.shape;
        let channels = self.shape.filter_channels();
        let what = || format!("{count}×{channels}×{rows}×{columns}");
        self.device.expect_operand(OPERATION, "the filters", filters, what, self.shape.filters_len())?;
        let sizes = [count, channels, rows * columns];
        let packing = self.packing;
        let (values, words) = match packing {
            Packing::Lanes(of_lane) => (self.pack_lanes(stream, filters, sizes, of_lane)?, None),
            Packing::ChannelsLast => (channels_last(stream, filters, channels, self.shape.taps)?, None),
            Packing::AsGiven
            | Packing::Mma(_)
            | Packing::Panels(_)
            | Packing::Pointwise(_)
            | Packing::FewChannels(_) => {
                let mut values = self.device.uninitialized(filters.len())?;
                stream.copy(filters, values.as_slice_mut())?;
                let parts = <T::Device as MmaValue>::PARTS as usize;
                let of_chunks =
                    |eights, chunk| Groups::of_chunks(eights, [channels, rows * columns], chunk, parts);
                let words = match packing {
                    Packing::Mma(eights) => {
                        let of = Groups { pieces_of_thread: parts, ..of_chunks(eights, MMA_CHANNELS) };
                        Some(self.pack_mma::<PackMma<T::Device>>(stream, &values, sizes, of)?)
                    }
                    Packing::Panels(eights) => {
                        let of = of_chunks(eights, PANEL_CHANNELS as usize);
                        Some(self.pack_mma::<PackPanels<T::Device>>(stream, &values, sizes, of)?)
                    }
                    Packing::Pointwise(eights) => {
                        let of = of_chunks(eights, MMA_CHANNELS);
                        Some(self.pack_mma::<PackPointwise<T::Device>>(stream, &values, sizes, of)?)
                    }
                    Packing::FewChannels(eights) => {
                        let pieces = few_channels_pieces(eights as usize, rows);
                        let of = Groups { eights, pieces, pieces_of_thread: 1 };
                        Some(self.pack_mma::<PackFewChannels<T::Device>>(stream, &values, sizes, of)?)
                    }
                    _ => None,
                };
                (values, words)
            }
        };
        Ok(Filters { values, words, sizes, packing })
    }

    /// Packs filters for kernels by lanes, so many a lane.
    fn pack_lanes(
        &self,
        stream: &Stream,
        filters: Slice<'_, T>,
        [count, channels, taps]: [usize; 3],
        of_lane: u32,
    ) -> Result<Buffer<T>> {
        let group = 32 * of_lane as usize;
        let len = count.div_ceil(group) * group * channels * taps;
        let mut values = self.device.uninitialized(len)?;
        if len > 0 {
            let args = PackFiltersArgs::<T::Device> {
                from: filters.pointer(),
                to: values.as_slice_mut().pointer(),
                filters: count as u32,
                channels: channels as u32,
                taps: taps as u32,
                of_lane,
                count: len as u32,
            };
            let grid = [len.div_ceil(THREADS) as u32, 1, 1];
            launch_kernel::<PackFilters<T::Device>>(stream, entries::conv(), |_| grid, &args)?;
        }
        Ok(values)
    }

    /// Packs filters for tensor cores, in their parts.
    fn pack_mma<K>(
        &self,
        stream: &Stream,
        values: &Buffer<T>,
        [filters, channels, taps]: [usize; 3],
        Groups { eights, pieces, pieces_of_thread }: Groups,
    ) -> Result<Buffer<u32>>
    where
        K: Kernel<Args = PackMmaArgs<T::Device>, Tile = Tile>,
    {
        let groups = filters.div_ceil(8 * eights as usize);
        let pieces = groups * pieces;
        let mut words = self.device.uninitialized(4 * pieces)?;
        let count = pieces / pieces_of_thread;
        if count > 0 {
            let args = PackMmaArgs::<T::Device> {
                from: values.as_slice().pointer(),
                to: words.as_slice_mut().pointer(),
                filters: filters as u32,
                channels: channels as u32,
                taps: taps as u32,
                eights,
                count: count as u32,
            };
            let grid = [count.div_ceil(THREADS) as u32, 1, 1];
            launch_kernel::<K>(stream, entries::conv(), |_| grid, &args)?;
        }
        Ok(words)
    }
}

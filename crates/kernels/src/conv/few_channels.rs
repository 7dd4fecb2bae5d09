//! Convolution of few channels, as the first layer of a network has them: red, green and blue.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

use super::direct::DirectConvArgs;
use super::target::Place;
use super::{Scheme, Tile};
use crate::common::{are_finite, strided};
use crate::{Bounds, DeviceValue, Kernel};

/// Tiles of 16 columns by four warps, for `R` × `R` taps and a stride of `STRIDE`, and up to [`FEW_CHANNELS`] channels. A thread has `ROWS` rows of a column, and
/// 4·`FOURS` filters. `WF` warps have other filters, and the others the rows below.
///
/// ```text
///   lanes of a warp: 16 columns, twice     a thread: ROWS rows of a column, 4·FOURS filters
///   ┌────────────────┐                     column s of the taps: a column of (ROWS - 1)·STRIDE + R inputs (from shared memory, lanes side by
///   │ 0  1  …     15 │ filters             side) serves R rows of taps: R × ROWS × 4·FOURS products for as many loads, and R·FOURS vectors of
///   ├────────────────┤                     taps, which half of the lanes read alike
///   │ 16 17 …     31 │ the next filters
///   └────────────────┘
/// ```
/// Input and filters are in shared memory at once, in `f32`. Columns of equal remainder by the stride lie side by side, so that lanes read neighbours. Zeros are
/// multiplied; a sum that is not finite is made again, of nonzeros alone.
///
/// Lower bounds: 128 products a cycle and multiprocessor; the bytes of the result. Loads from shared memory add an eighth to the instructions with 4 × 16
/// results a thread, a fifth with 2 × 8; but of these there are four times as many threads, for single images.
#[derive(Debug)]
pub struct FewChannelsConv<
    T,
    const R: usize,
    const STRIDE: usize,
    const ROWS: usize,
    const FOURS: usize,
    const WF: u32,
>(PhantomData<T>);

/// Channels at most.
pub const FEW_CHANNELS: u32 = 4;
/// Output columns of a tile.
pub const FEW_COLUMNS: u32 = 16;

/// Warps of a block.
const WARPS: u32 = 4;
/// Inputs of a thread at most: those of a column.
const INPUTS: usize = 16;
/// Filters side by side as [`PackFilters`](super::PackFilters) has them.
const PACKED: u32 = 32;

/// Sums of a thread: fours of filters, rows, filters.
type Sums<const ROWS: usize, const FOURS: usize> = [[[f32; 4]; ROWS]; FOURS];

impl<
    T: DeviceValue,
    const R: usize,
    const STRIDE: usize,
    const ROWS: usize,
    const FOURS: usize,
    const WF: u32,
> Kernel for FewChannelsConv<T, R, STRIDE, ROWS, FOURS, WF>
{
    type Args = DirectConvArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(
            R <= 7 && (ROWS - 1) * STRIDE + R <= INPUTS,
            "rows of taps are written out, and a column of inputs has room"
        );
        assert!(WARPS.is_multiple_of(WF), "other warps have rows below");
        let (taps, stride) = (R as u32, STRIDE as u32);
        Tile {
            scheme: Scheme::FewChannels {
                taps,
                stride,
                rows: Self::TILE_ROWS,
                filters: Self::WIDTH,
                thread: [ROWS as u32, 4 * FOURS as u32],
            },
            value: T::TYPE,
        }
    };
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = {
        let (operands, sums) =
            (4 * FEW_CHANNELS * (Self::PLANE + Self::TAPS * Self::WIDTH), 16 * Self::VECTORS * WARPS * WARP);
        if operands > sums { operands } else { sums }
    };
    const BOUNDS: Bounds =
        Bounds { max_threads: Self::THREADS, min_blocks: if ROWS * FOURS < 16 { 6 } else { 3 } };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let (tile, group) = (gpu.block_idx_x(), gpu.block_idx_y());
        let (warp, lane) = (gpu.thread_idx_x() / WARP, gpu.lane_id());
        let place = args.target.place(tile, [Self::TILE_ROWS, FEW_COLUMNS], group * Self::WIDTH);
        let work = Work {
            gpu,
            args: &args,
            place,
            row: warp / WF * ROWS as u32,
            column: lane % FEW_COLUMNS,
            filter: (warp % WF * 2 + lane / FEW_COLUMNS) * 4 * FOURS as u32,
        };
        let mut sums: Sums<ROWS, FOURS> = [[[0.0; 4]; ROWS]; FOURS];
        // SAFETY: the arguments describe maps and filters; shared memory is read after the barrier. A thread alone has its results.
        unsafe {
            Self::bring_input(&work);
            Self::bring_filters(&work);
            gpu.copy_async_commit();
            gpu.copy_async_wait::<0>();
            gpu.sync_threads();
            Self::multiply(&work, &mut sums);
            // Sums take the place of input and filters.
            gpu.sync_threads();
            let nonzeros = work.write(&sums);
            args.target.count(gpu, nonzeros);
        }
    }
}

/// What a thread knows.
struct Work<'a, G, T> {
    gpu: G,
    args: &'a DirectConvArgs<T>,
    place: Place,
    /// The thread's first row, column and filter in the tile.
    row: u32,
    column: u32,
    filter: u32,
}

impl<
    T: DeviceValue,
    const R: usize,
    const STRIDE: usize,
    const ROWS: usize,
    const FOURS: usize,
    const WF: u32,
> FewChannelsConv<T, R, STRIDE, ROWS, FOURS, WF>
{
    /// Taps of a channel.
    const TAPS: u32 = (R * R) as u32;
    /// Filters of a block.
    const WIDTH: u32 = WF * 8 * FOURS as u32;
    /// Vectors of four sums of a thread.
    const VECTORS: u32 = (ROWS * FOURS) as u32;
    /// Output rows of a tile.
    const TILE_ROWS: u32 = WARPS / WF * ROWS as u32;
    /// Rows and columns of its input.
    const EXTENT: [u32; 2] =
        [(Self::TILE_ROWS - 1) * STRIDE as u32 + R as u32, (FEW_COLUMNS - 1) * STRIDE as u32 + R as u32];
    /// Columns of equal remainder by the stride.
    const HALF: u32 = Self::EXTENT[1].div_ceil(STRIDE as u32);
    /// Floats from one row to the next.
    const PITCH: u32 = Self::HALF * STRIDE as u32;
    /// Floats of a channel.
    const PLANE: u32 = Self::EXTENT[0] * Self::PITCH;

    /// Brings the tile's input to shared memory. Zeros stand for pixels outside of the map.
    ///
    /// # Safety
    /// The map is there.
    #[inline(always)]
    unsafe fn bring_input<G: Gpu>(work: &Work<'_, G, T>) {
        let (gpu, source, place) = (work.gpu, &work.args.source, work.place);
        let [rows, columns] = Self::EXTENT;
        strided(gpu.thread_idx_x(), source.map.channels * rows * columns, Self::THREADS, |at| {
            let (channel, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
            let y = (place.row * STRIDE as u32 + row).wrapping_sub(source.padding[0]);
            let x = (place.column * STRIDE as u32 + column).wrapping_sub(source.padding[1]);
            let (offset, stride) = (source.map.offset(y, x), STRIDE as u32);
            let plane = source.map.plane(source.input, place.image, channel);
            let from = plane.add_bytes(offset.unwrap_or(0).into());
            let to =
                channel * Self::PLANE + row * Self::PITCH + column % stride * Self::HALF + column / stride;
            let to = SharedPtr::<f32>::from_offset(0).add(to);
            // SAFETY: as promised by the caller; a pixel outside is not read.
            unsafe {
                if size_of::<T>() == 4 {
                    let from = GlobalPtr::<f32>::from_address(from.address());
                    gpu.copy_async_or_zero::<f32, 1>(to, from, offset.is_some());
                } else {
                    // Too little for an asynchronous copy.
                    let [x] = if offset.is_some() { gpu.load_readonly(from) } else { [T::default()] };
                    gpu.shared_store(to, [x.to_f32(gpu)]);
                }
            }
        });
    }

    /// The same of the filters: channels, taps, and the tile's filters side by side.
    ///
    /// # Safety
    /// They are there, in whole groups of [`PACKED`].
    #[inline(always)]
    unsafe fn bring_filters<G: Gpu>(work: &Work<'_, G, T>) {
        let (gpu, args) = (work.gpu, work.args);
        let rows = args.source.map.channels * Self::TAPS;
        let fours = Self::WIDTH / 4;
        strided(gpu.thread_idx_x(), rows * fours, Self::THREADS, |at| {
            let (row, filter) = (at / fours, at % fours * 4);
            let group = (work.place.filter + filter) / PACKED;
            let is_there = group * PACKED < args.target.map.channels;
            let group = if is_there { group } else { 0 };
            let from = args.filters.add_rows(group * rows + row, PACKED * size_of::<T>() as u32);
            let from = from.add((filter % PACKED) as usize);
            let to = SharedPtr::<f32>::from_offset(4 * FEW_CHANNELS * Self::PLANE).add(4 * at);
            // SAFETY: as promised by the caller.
            unsafe {
                if size_of::<T>() == 4 {
                    let from = GlobalPtr::<f32>::from_address(from.address());
                    gpu.copy_async_or_zero::<f32, 4>(to, from, is_there);
                } else {
                    let four: [T; 4] = gpu.load_readonly(from);
                    gpu.shared_store(to, four.map(|weight| weight.to_f32(gpu)));
                }
            }
        });
    }

    /// Adds all products of the thread, channel by channel and column by column of the taps.
    ///
    /// # Safety
    /// Input and filters are in shared memory.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(work: &Work<'_, G, T>, sums: &mut Sums<ROWS, FOURS>) {
        let input =
            SharedPtr::<f32>::from_offset(0).add(work.row * STRIDE as u32 * Self::PITCH + work.column);
        let filters = SharedPtr::<f32>::from_offset(4 * FEW_CHANNELS * Self::PLANE).add(work.filter);
        let mut channel = 0;
        while channel < work.args.source.map.channels {
            // As many as R, in a way that LLVM does not know: all columns written out would be longer than the instruction cache.
            let (mut s, columns) = (0, work.args.source.taps[1]);
            while s < columns {
                let (half, x) = (s % STRIDE as u32, s / STRIDE as u32);
                let input = input.add(channel * Self::PLANE + half * Self::HALF + x);
                let mut column = [0.0; INPUTS];
                for (row, x) in column.iter_mut().enumerate() {
                    if row < (ROWS - 1) * STRIDE + R {
                        // SAFETY: as promised by the caller.
                        [*x] = unsafe { work.gpu.shared_load(input.add(row as u32 * Self::PITCH)) };
                    }
                }
                let filters = filters.add((channel * Self::TAPS + s) * Self::WIDTH);
                // A row of taps, written out: a loop over all of them would leave the column in local memory.
                let mut row_of_taps = |r: usize| {
                    if r >= R {
                        return;
                    }
                    let filters = filters.add((r * R) as u32 * Self::WIDTH);
                    for (four, sums) in sums.iter_mut().enumerate() {
                        // SAFETY: as promised by the caller.
                        let taps: [f32; 4] = unsafe { work.gpu.shared_load(filters.add(4 * four as u32)) };
                        for (row, sums) in sums.iter_mut().enumerate() {
                            let x = column[row * STRIDE + r];
                            for (f, sum) in sums.iter_mut().enumerate() {
                                *sum = work.gpu.fma(x, taps[f], *sum);
                            }
                        }
                    }
                };
                row_of_taps(0);
                row_of_taps(1);
                row_of_taps(2);
                row_of_taps(3);
                row_of_taps(4);
                row_of_taps(5);
                row_of_taps(6);
                s += 1;
            }
            channel += 1;
        }
    }
}

impl<G: Gpu, T: DeviceValue> Work<'_, G, T> {
    /// Finishes and writes the thread's sums, where they are there. How many results are not zero.
    ///
    /// # Safety
    /// A thread alone has its results, and nobody reads shared memory.
    #[inline(always)]
    unsafe fn write<const ROWS: usize, const FOURS: usize>(&self, sums: &Sums<ROWS, FOURS>) -> u32 {
        let vectors = (ROWS * FOURS) as u32;
        let (gpu, target) = (self.gpu, &self.args.target);
        let addresses = (target.out.address() | target.residual.address()) as u32;
        let is_wide = target.map.has_wide_channels::<T>(addresses);
        // Sums go through places of the thread's own, so that a loop can take them one after another.
        let own = SharedPtr::<f32>::from_offset(0).add(4 * gpu.thread_idx_x());
        for (at, &four) in sums.as_flattened().iter().enumerate() {
            // SAFETY: as promised by the caller.
            unsafe { gpu.shared_store(own.add(at as u32 * 4 * WARPS * WARP), four) };
        }
        // As many as `vectors`, in a way that LLVM does not know: unrolled, the loop would be longer than the instruction cache.
        let end = gpu.block_dim_x() * vectors / (WARPS * WARP);
        let (mut at, mut nonzeros) = (0, 0);
        while at < end {
            let (row, filter) = (self.row + at % ROWS as u32, self.filter + at / ROWS as u32 * 4);
            let place = [self.place.row + row, self.place.column + self.column];
            let channel = self.place.filter + filter;
            let offset = target.map.offset(place[0], place[1]).filter(|_| channel < target.map.channels);
            if let Some(offset) = offset {
                let own = own.add(at * 4 * WARPS * WARP);
                let image = self.place.image;
                // SAFETY: as promised by the caller; the pixel and the first channel are there.
                unsafe {
                    let four: [f32; 4] = gpu.shared_load(own);
                    nonzeros += if !are_finite(&four) {
                        self.repair(channel, place, offset, own)
                    } else if is_wide {
                        target.finish(gpu, [image, channel], offset, four)
                    } else {
                        target.finish_planes(gpu, [image, channel], offset, four)
                    };
                }
            }
            at += 1;
        }
        nonzeros
    }

    /// Writes the sums of up to four channels of a pixel, one by one; one that is not finite is made again.
    ///
    /// # Safety
    /// Pixel and first channel are there, the sums are at `own`, and nobody else writes the results.
    #[inline(always)]
    unsafe fn repair(&self, channel: u32, pixel: [u32; 2], offset: u32, own: SharedPtr<f32>) -> u32 {
        let (gpu, target) = (self.gpu, &self.args.target);
        let left = target.map.channels - channel;
        let end = if left < 4 { left } else { 4 };
        let (mut f, mut nonzeros) = (0, 0);
        while f < end {
            // SAFETY: as promised by the caller.
            unsafe {
                let [sum]: [f32; 1] = gpu.shared_load(own.add(f));
                let sum = if sum.is_finite() { sum } else { self.of_nonzeros(channel + f, pixel) };
                nonzeros += target.finish(gpu, [self.place.image, channel + f], offset, [sum]);
            }
            f += 1;
        }
        nonzeros
    }

    /// The sum of a filter and an output pixel without what is zero.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    unsafe fn of_nonzeros(&self, filter: u32, [row, column]: [u32; 2]) -> f32 {
        let (gpu, source) = (self.gpu, &self.args.source);
        let [rows, columns] = source.taps;
        let taps = rows * columns;
        let packed = self
            .args
            .filters
            .add_rows(filter / PACKED * source.map.channels * taps, PACKED * size_of::<T>() as u32);
        let packed = packed.add((filter % PACKED) as usize);
        let (mut sum, mut term) = (0.0, 0);
        while term < source.map.channels * taps {
            let (channel, tap) = (term / taps, term % taps);
            let y = (row * source.strides[0] + tap / columns).wrapping_sub(source.padding[0]);
            let x = (column * source.strides[1] + tap % columns).wrapping_sub(source.padding[1]);
            if let Some(offset) = source.map.offset(y, x) {
                let plane = source.map.plane(source.input, self.place.image, channel);
                // SAFETY: as promised by the caller.
                let ([x], [weight]) = unsafe {
                    (
                        gpu.load_readonly(plane.add_bytes(offset.into())),
                        gpu.load_readonly(packed.add((term * PACKED) as usize)),
                    )
                };
                let (x, weight) = (x.to_f32(gpu), weight.to_f32(gpu));
                sum = if x != 0.0 { gpu.fma(x, weight, sum) } else { sum };
            }
            term += 1;
        }
        sum
    }
}

//! Convolution by tiles on tensor cores, zeros multiplied: an implicit matrix product, of `f32` in split precision.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::split::MmaValue;
use super::target::Place;
use super::{Scheme, Source, Target, Tile};
use crate::common::strided;
use crate::{Bounds, Kernel};

/// A tile of 8 × 8 output pixels and 8·`N` filters by four warps, of two rows of pixels each; up to nine taps, and an input tile of up to `P`
/// positions.
///
/// ```text
///   16 channels of the input tile        a position: 16 bfloat16, and 16 of what     a step: 16 pixels × 16 channels at one tap
///   ┌──────────────┐                     these leave, and 16 bytes between           (A) times 16 channels × 8·N filters (B)
///   │ with halo    │  ── split ──►       ┌────────┬────────┬────┐                    A is read where the tap shifts it to;
///   │ (f32)        │                     │ upper  │ lower  │    │                    B lies as PackMma says
///   └──────────────┘                     └────────┴────────┴────┘
/// ```
/// x = upper + lower + at most 2⁻¹⁷ of x, and three products for one: lower · upper, upper · lower, upper · upper. Values of 16 bits have one part. Input and filters
/// of the next 16 channels are on their way while these are multiplied. A sum that is not finite is made again, without tensor cores.
#[derive(Debug)]
pub struct MmaConv<T, const N: usize, const P: u32>(PhantomData<T>);

/// What [`MmaConv`], and the other kernels on tensor cores, take. The grid: tiles of all images (of kernels by warpgroups, twos or more of them), groups of filters,
/// splits of the channels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MmaConvArgs<T> {
    /// The input, and the filters for the exact fallback.
    pub source: Source<T>,
    /// The filters by [`PackMma`](super::PackMma): for each group, 16 channels and tap, both parts of 16 channels × the group's filters; by
    /// [`PackPointwise`](super::PackPointwise) for [`PointwiseConv`](super::PointwiseConv); by
    /// [`PackPanels`](super::PackPanels) for [`WgmmaPanelConv`](super::WgmmaPanelConv).
    pub filters: GlobalPtr<u32>,
    /// Sixteens of channels; of [`WgmmaPanelConv`](super::WgmmaPanelConv) steps, 64 channels at a tap each.
    pub chunks: u32,
    /// As many of a split: at least 1.
    pub split_chunks: u32,
    /// Partial sums, where there are several splits: for each split, group of filters and tile its elements.
    pub partial: GlobalMut<f32>,
    /// Tiles of all images.
    pub tiles: u32,
    /// Where results go, where there is one.
    pub target: Target<T>,
}

impl<T> MmaConvArgs<T> {
    /// The block's first sixteen of channels, or step, and how many it has.
    #[inline(always)]
    pub(super) fn of_block<G: Gpu>(&self, gpu: G) -> (u32, u32) {
        let first = gpu.block_idx_z() * self.split_chunks;
        let left = self.chunks - first;
        (first, if left < self.split_chunks { left } else { self.split_chunks })
    }
}

/// Output pixels of a tile along a side.
pub const MMA_SIDE: u32 = 8;
/// Taps at most; by warpgroups columns of taps, and taps of a step.
pub const MMA_TAPS: u32 = 9;
/// Channels of a step.
pub(super) const CHANNELS: u32 = 16;
/// Warps of a block.
const WARPS: u32 = 4;
/// Positions of a thread at most.
const SLOTS: usize = 3;
/// Stands for a pixel outside of the map.
const OUTSIDE: u32 = u32::MAX;
/// Floats between the sums of two filters.
const PLANE: u32 = MMA_SIDE * MMA_SIDE + 1;
/// Bytes of eight channels of a filter.
const ROW: u32 = 16;

/// Sums of a lane: of eight filters each.
type Sums<const N: usize> = [[f32; 4]; N];

impl<T: MmaValue, const N: usize, const P: u32> Kernel for MmaConv<T, N, P> {
    type Args = MmaConvArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(N == 4 || N == 8, "steps are written out for eight");
        assert!(P <= SLOTS as u32 * Self::THREADS, "positions are written out below");
        assert!(Self::FILTERS * PLANE * 4 <= Self::SHARED_BYTES, "sums have room");
        Tile { scheme: Scheme::MmaTile { positions: P, filters: 8 * N as u32 }, value: T::TYPE }
    };
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = Self::TILE_BYTES + 2 * Self::STAGE_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 2 };
    const HOLDS_SHARED_ADDRESS: bool = true;
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let group = gpu.block_idx_y();
        let place = args.target.place(gpu.block_idx_x(), [MMA_SIDE; 2], group * Self::FILTERS);
        let (first, count) = args.of_block(gpu);
        let end = first + count;
        let [rows, columns] = args.source.taps;
        let extent = |d: usize| (MMA_SIDE - 1) * args.source.strides[d] + args.source.taps[d];
        let (warp, lane) = (gpu.thread_idx_x() / WARP, gpu.lane_id());
        let width = extent(1);
        // The lane's row of A: pixels 0 to 7 of one row, then of the next, by the lower eight channels, then the upper.
        let pixel = [warp * 2 + lane / 8 % 2, lane % 8];
        let position = pixel[0] * args.source.strides[0] * width + pixel[1] * args.source.strides[1];
        let offset = |slot: u32| {
            let position = gpu.thread_idx_x() + slot * Self::THREADS;
            let at = |d: usize, first: u32, position: u32| {
                (first * args.source.strides[d] + position).wrapping_sub(args.source.padding[d])
            };
            let row = at(0, place.row, position / width);
            args.source.map.offset(row, at(1, place.column, position % width)).unwrap_or(OUTSIDE)
        };
        let work = Work {
            gpu,
            args: &args,
            place,
            positions: extent(0) * width,
            offsets: [offset(0), offset(1), offset(2)],
            a: position * Self::POSITION_BYTES + lane / 16 * 16,
        };
        let mut sums: Sums<N> = [[0.0; 4]; N];
        // SAFETY: the arguments describe maps and filters; a stage is read between barriers, and filled between others.
        unsafe {
            if first < end {
                Self::bring(&work, first, 0);
            }
            let mut chunk = first;
            while chunk < end {
                let stage = (chunk - first) % 2;
                if chunk + 1 < end {
                    Self::bring(&work, chunk + 1, 1 - stage);
                    gpu.copy_async_wait::<1>();
                } else {
                    gpu.copy_async_wait::<0>();
                }
                gpu.sync_threads();
                let stage = Self::TILE_BYTES + stage * Self::STAGE_BYTES;
                Self::split_tile(&work, stage);
                gpu.sync_threads();
                // The lane's row of B: of eight filters, the upper part of eight channels, of the next eight, and their lower parts.
                let row = lane / 8 % (2 * T::PARTS) * Self::FILTERS + lane % 8;
                let mut filters = stage + Self::RAW_BYTES + row * ROW;
                if rows == 3 && columns == 3 {
                    Self::three_by_three(gpu, work.a, width * Self::POSITION_BYTES, filters, &mut sums);
                } else {
                    let mut row = 0;
                    while row < rows {
                        let mut a = work.a + row * width * Self::POSITION_BYTES;
                        let mut column = 0;
                        while column < columns {
                            Self::step(gpu, a, filters, &mut sums);
                            a += Self::POSITION_BYTES;
                            filters += Self::STEP_BYTES;
                            column += 1;
                        }
                        row += 1;
                    }
                }
                gpu.sync_threads();
                chunk += 1;
            }
            Self::write(&work, &sums, warp, lane);
        }
    }
}

/// What a thread knows.
struct Work<'a, G, T> {
    gpu: G,
    args: &'a MmaConvArgs<T>,
    place: Place,
    /// Positions of the input tile.
    positions: u32,
    /// Where the thread's are in a channel, in bytes.
    offsets: [u32; SLOTS],
    /// Where the lane's row of A is at the first tap, in bytes.
    a: u32,
}

impl<T: MmaValue, const N: usize, const P: u32> MmaConv<T, N, P> {
    /// Filters of a tile.
    const FILTERS: u32 = 8 * N as u32;
    /// Bytes of a position: the parts of 16 channels, and room that puts neighbours into different banks.
    const POSITION_BYTES: u32 = T::PARTS * 2 * CHANNELS + 16;
    /// Bytes of the input tile in parts.
    const TILE_BYTES: u32 = P * Self::POSITION_BYTES;
    /// Bytes of the same as it comes.
    const RAW_BYTES: u32 = P * CHANNELS * 4;
    /// Bytes of the filters of a step.
    const STEP_BYTES: u32 = 2 * T::PARTS * Self::FILTERS * ROW;
    /// Bytes of a stage: input and filters of 16 channels.
    const STAGE_BYTES: u32 = Self::RAW_BYTES + MMA_TAPS * Self::STEP_BYTES;

    /// Starts the copies of input and filters of 16 channels, as a group. Zeros stand for pixels and channels that are not there.
    ///
    /// # Safety
    /// The channels are there, and nobody reads the stage.
    #[inline(always)]
    unsafe fn bring<G: Gpu>(work: &Work<'_, G, T>, chunk: u32, stage: u32) {
        let (gpu, source) = (work.gpu, &work.args.source);
        let stage = Self::TILE_BYTES + stage * Self::STAGE_BYTES;
        let raw = SharedPtr::<f32>::from_offset(stage);
        let image = source.map.plane(source.input, work.place.image, chunk * CHANNELS);
        let left = source.map.channels - chunk * CHANNELS;
        let bring = |slot: u32| {
            let (position, offset) = (gpu.thread_idx_x() + slot * Self::THREADS, work.offsets[slot as usize]);
            if position >= work.positions {
                return;
            }
            let mut from = image.add_bytes(if offset == OUTSIDE { 0 } else { offset.into() });
            let mut channel = 0;
            while channel < CHANNELS {
                let is_there = offset != OUTSIDE && channel < left;
                let place = raw.add(channel * P + position);
                let pixel = if is_there { from } else { source.input };
                // SAFETY: as promised by the caller; the pixel is in the map, or is not read.
                unsafe {
                    if size_of::<T>() == 4 {
                        let pixel = GlobalPtr::from_address(pixel.address());
                        gpu.copy_async_or_zero::<f32, 1>(place, pixel, is_there);
                    } else {
                        // Too little for an asynchronous copy.
                        let [x] = if is_there { gpu.load_readonly(pixel) } else { [T::default()] };
                        gpu.shared_store(place, [x.to_f32(gpu)]);
                    }
                }
                from = from.add_rows(1, source.map.channel_bytes);
                channel += 1;
            }
        };
        bring(0);
        if P > Self::THREADS {
            bring(1);
            bring(2);
        }
        let taps = source.taps[0] * source.taps[1];
        let bytes = taps * Self::STEP_BYTES;
        let from = work.args.filters.add_rows(gpu.block_idx_y() * work.args.chunks + chunk, bytes);
        let to = SharedPtr::<u32>::from_offset(stage + Self::RAW_BYTES);
        strided(gpu.thread_idx_x(), bytes / 16, Self::THREADS, |at| {
            // SAFETY: as promised by the caller.
            unsafe { gpu.copy_async::<u32, 4>(to.add(4 * at), from.add(4 * at as usize)) };
        });
        gpu.copy_async_commit();
    }

    /// Splits the input into its parts.
    ///
    /// # Safety
    /// It is there, and nobody reads the parts.
    #[inline(always)]
    unsafe fn split_tile<G: Gpu>(work: &Work<'_, G, T>, stage: u32) {
        let gpu = work.gpu;
        let raw = SharedPtr::<f32>::from_offset(stage);
        strided(gpu.thread_idx_x(), work.positions, Self::THREADS, |position| {
            let four = |first: u32| {
                let from = raw.add(first * P + position);
                let to = SharedPtr::<u32>::from_offset(position * Self::POSITION_BYTES + first * 2);
                // SAFETY: as promised by the caller.
                unsafe {
                    let [a]: [f32; 1] = gpu.shared_load(from);
                    let [b]: [f32; 1] = gpu.shared_load(from.add(P));
                    let [c]: [f32; 1] = gpu.shared_load(from.add(2 * P));
                    let [d]: [f32; 1] = gpu.shared_load(from.add(3 * P));
                    let (first, second) = (T::split(gpu, a, b), T::split(gpu, c, d));
                    gpu.shared_store(to, [first.upper, second.upper]);
                    if T::PARTS > 1 {
                        gpu.shared_store(to.add(CHANNELS / 2), [first.lower, second.lower]);
                    }
                }
            };
            four(0);
            four(4);
            four(8);
            four(12);
        });
    }

    /// Adds the products of 16 channels at nine taps: straight code, in which loads run ahead of products.
    ///
    /// # Safety
    /// Input and filters are there.
    #[inline(always)]
    unsafe fn three_by_three<G: Gpu>(gpu: G, a: u32, row_bytes: u32, filters: u32, sums: &mut Sums<N>) {
        let rows = [a, a + row_bytes, a + 2 * row_bytes];
        // SAFETY: as promised by the caller.
        unsafe {
            Self::step(gpu, rows[0], filters, sums);
            Self::step(gpu, rows[0] + Self::POSITION_BYTES, filters + Self::STEP_BYTES, sums);
            Self::step(gpu, rows[0] + 2 * Self::POSITION_BYTES, filters + 2 * Self::STEP_BYTES, sums);
            Self::step(gpu, rows[1], filters + 3 * Self::STEP_BYTES, sums);
            Self::step(gpu, rows[1] + Self::POSITION_BYTES, filters + 4 * Self::STEP_BYTES, sums);
            Self::step(gpu, rows[1] + 2 * Self::POSITION_BYTES, filters + 5 * Self::STEP_BYTES, sums);
            Self::step(gpu, rows[2], filters + 6 * Self::STEP_BYTES, sums);
            Self::step(gpu, rows[2] + Self::POSITION_BYTES, filters + 7 * Self::STEP_BYTES, sums);
            Self::step(gpu, rows[2] + 2 * Self::POSITION_BYTES, filters + 8 * Self::STEP_BYTES, sums);
        }
    }

    /// Adds the products of 16 channels at a tap.
    ///
    /// # Safety
    /// Input and filters are there.
    #[inline(always)]
    unsafe fn step<G: Gpu>(gpu: G, a: u32, filters: u32, sums: &mut Sums<N>) {
        // SAFETY: as promised by the caller.
        let upper = unsafe { gpu.shared_load_matrices::<false>(SharedPtr::from_offset(a)) };
        let lower = if T::PARTS > 1 {
            // SAFETY: as promised by the caller.
            unsafe { gpu.shared_load_matrices::<false>(SharedPtr::from_offset(a + 2 * CHANNELS)) }
        } else {
            [0; 4]
        };
        let parts = [upper, lower];
        // SAFETY: as promised by the caller.
        unsafe {
            sums[0] = Self::multiply::<G, 0>(gpu, parts, filters, sums[0]);
            sums[1] = Self::multiply::<G, 1>(gpu, parts, filters, sums[1]);
            sums[2] = Self::multiply::<G, 2>(gpu, parts, filters, sums[2]);
            sums[3] = Self::multiply::<G, 3>(gpu, parts, filters, sums[3]);
            if N > 4 {
                sums[N - 4] = Self::multiply::<G, 4>(gpu, parts, filters, sums[N - 4]);
                sums[N - 3] = Self::multiply::<G, 5>(gpu, parts, filters, sums[N - 3]);
                sums[N - 2] = Self::multiply::<G, 6>(gpu, parts, filters, sums[N - 2]);
                sums[N - 1] = Self::multiply::<G, 7>(gpu, parts, filters, sums[N - 1]);
            }
        }
    }

    /// Adds the products with eight filters, the least first.
    ///
    /// # Safety
    /// The filters are there.
    #[inline(always)]
    unsafe fn multiply<G: Gpu, const EIGHT: u32>(
        gpu: G,
        [upper, lower]: [[u32; 4]; 2],
        filters: u32,
        sum: [f32; 4],
    ) -> [f32; 4] {
        let row = SharedPtr::from_offset(filters + EIGHT * 8 * ROW);
        // SAFETY: as promised by the caller.
        let [b, more_b, rest, more_rest] = unsafe { gpu.shared_load_matrices::<false>(row) };
        let mut sum = sum;
        if T::PARTS > 1 {
            sum = T::mma(gpu, lower, [b, more_b], sum);
            sum = T::mma(gpu, upper, [rest, more_rest], sum);
        }
        T::mma(gpu, upper, [b, more_b], sum)
    }

    /// Writes the results, or partial sums, by way of shared memory.
    ///
    /// # Safety
    /// The tile is the block's, and nobody reads shared memory any more.
    #[inline(always)]
    unsafe fn write<G: Gpu>(work: &Work<'_, G, T>, sums: &Sums<N>, warp: u32, lane: u32) {
        let (gpu, target, pixels) = (work.gpu, &work.args.target, MMA_SIDE * MMA_SIDE);
        let own = lane % 4 * 2 * PLANE + warp * 16 + lane / 4;
        let own = SharedPtr::<f32>::from_offset(0).add(own);
        let elements = Self::FILTERS * pixels;
        let block = (gpu.block_idx_z() * gpu.grid_dim_y() + gpu.block_idx_y()) * work.args.tiles;
        let partial = work.args.partial.add_rows(block + gpu.block_idx_x(), elements * 4);
        let mut nonzeros = 0;
        // SAFETY: as promised by the caller. All threads come to the count.
        unsafe {
            for (n, &[a, b, c, d]) in sums.iter().enumerate() {
                let place = own.add(n as u32 * 8 * PLANE);
                gpu.shared_store(place, [a]);
                gpu.shared_store(place.add(PLANE), [b]);
                gpu.shared_store(place.add(8), [c]);
                gpu.shared_store(place.add(PLANE + 8), [d]);
            }
            gpu.sync_threads();
            strided(gpu.thread_idx_x(), elements, Self::THREADS, |at| {
                let [filter, pixel] = target.element(at, Self::FILTERS, pixels);
                let [sum]: [f32; 1] =
                    gpu.shared_load(SharedPtr::<f32>::from_offset(0).add(filter * PLANE + pixel));
                if gpu.grid_dim_z() > 1 {
                    gpu.store(partial.add(at as usize), [sum]);
                } else {
                    let (source, element) = (Some(&work.args.source), [filter, pixel]);
                    nonzeros += target.finish_element(gpu, source, work.place, element, MMA_SIDE, sum);
                }
            });
            if gpu.grid_dim_z() == 1 {
                target.count(gpu, nonzeros);
            }
        }
    }
}

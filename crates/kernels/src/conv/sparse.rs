//! Convolution by tiles, zeros left out; mod.rs draws it.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::positions::{MAX_POSITIONS, Sums, Taps, add_tile};
use super::target::Place;
use super::{Scheme, Source, Target, Tile};
use crate::common::strided;
use crate::{Bounds, DeviceValue, Kernel};

/// A tile of `TH` × `TW` output pixels and 32·`F` filters, of `R` × `R` taps, by `WARPS` warps, which share the channels.
///
/// Input and taps of a warp's next four channels are on their way to shared memory by asynchronous copies, with zeros outside of the map. All
/// lanes of a warp read the same input, four pixels at a time, and go round the code of a pixel that is zero, or of four: lane
/// `l` has filters `l`, `l + 32`, …, so that the lanes of a warp always do the same.
#[derive(Debug)]
pub struct SparseConv<
    T,
    const R: usize,
    const STRIDE: usize,
    const TH: usize,
    const TW: usize,
    const F: usize,
    const WARPS: u32,
>(PhantomData<T>);

/// What [`SparseConv`] takes. The grid: tiles of all images, groups of filters, splits of the channels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SparseConvArgs<T> {
    /// The input. Filters are not read from here.
    pub source: Source<T>,
    /// The filters, by [`PackFilters`](super::PackFilters), at a multiple of 16 bytes.
    pub filters: GlobalPtr<T>,
    /// Channels of a split: at least 1.
    pub split_channels: u32,
    /// Partial sums, where there are several splits: for each split, group of filters and tile its elements.
    pub partial: GlobalMut<f32>,
    /// Where results go, where there is one.
    pub target: Target<T>,
}

/// What a thread knows.
struct Work<'a, G, T> {
    gpu: G,
    args: &'a SparseConvArgs<T>,
    warp: u32,
    lane: u32,
    group: u32,
    place: Place,
}

/// Positions of a lane at most.
const LOADS: usize = MAX_POSITIONS / WARP as usize;
/// Channels of a warp that are on their way, or there.
const STAGES: u32 = 4;
/// Stands for a pixel outside of the map.
const OUTSIDE: u32 = u32::MAX;

impl<
    T: DeviceValue,
    const R: usize,
    const STRIDE: usize,
    const TH: usize,
    const TW: usize,
    const F: usize,
    const WARPS: u32,
> Kernel for SparseConv<T, R, STRIDE, TH, TW, F, WARPS>
{
    type Args = SparseConvArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(Self::POSITIONS as usize <= MAX_POSITIONS, "there is code for each position");
        assert!(
            WARPS.is_power_of_two() && Self::TAP_BYTES.is_multiple_of(16),
            "halves of warps; whole copies"
        );
        let tile = [TH as u32, TW as u32];
        let scheme = Scheme::SparseTile {
            taps: R as u32,
            stride: STRIDE as u32,
            tile,
            filters: F as u32,
            warps: WARPS,
        };
        Tile { scheme, value: T::TYPE }
    };
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = {
        let (work, sums) = (WARPS * STAGES * Self::STAGE_BYTES, Self::PARTS * Self::SUM_BYTES);
        if work > sums { work } else { sums }
    };
    /// As many blocks as the registers of sums allow: 64 beside them are enough.
    const BOUNDS: Bounds =
        Bounds { max_threads: Self::THREADS, min_blocks: if TH * TW * F <= 64 { 2 } else { 1 } };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let (tile, group, split) = (gpu.block_idx_x(), gpu.block_idx_y(), gpu.block_idx_z());
        let (warp, lane) = (gpu.thread_idx_x() / WARP, gpu.lane_id());
        let place = args.target.place(tile, [TH as u32, TW as u32], group * Self::FILTERS);
        let work = Work { gpu, args: &args, warp, lane, group, place };
        let first = split * args.split_channels;
        let left = args.source.map.channels - first;
        let end = first + if left < args.split_channels { left } else { args.split_channels };
        let mut sums: Sums<TH, TW, F> = [[[0.0; F]; TW]; TH];
        // SAFETY: the arguments describe maps and filters; each warp has its own part of shared memory, until all have come to
        // a barrier; a block alone has its tile.
        unsafe {
            Self::add_channels(&work, first, end, &mut sums);
            Self::join(&work, &mut sums);
            Self::write(&work);
        }
    }
}

impl<
    T: DeviceValue,
    const R: usize,
    const STRIDE: usize,
    const TH: usize,
    const TW: usize,
    const F: usize,
    const WARPS: u32,
> SparseConv<T, R, STRIDE, TH, TW, F, WARPS>
{
    /// Columns of a tile's input.
    const COLUMNS: u32 = ((TW - 1) * STRIDE + R) as u32;
    /// Positions of a tile's input.
    const POSITIONS: u32 = ((TH - 1) * STRIDE + R) as u32 * Self::COLUMNS;
    /// Filters of a tile.
    const FILTERS: u32 = F as u32 * WARP;
    /// Pixels of a tile.
    const PIXELS: u32 = (TH * TW) as u32;
    /// Positions that lie in shared memory: whole vectors.
    const PLACES: u32 = Self::POSITIONS.next_multiple_of(4);
    /// Bytes of the taps of a channel and a group of filters.
    const TAP_BYTES: u32 = (R * R) as u32 * Self::FILTERS * size_of::<T>() as u32;
    /// Bytes of a channel's input.
    const TILE_BYTES: u32 = (Self::PLACES * size_of::<T>() as u32).next_multiple_of(16);
    /// Bytes of a stage: a channel's input and taps.
    const STAGE_BYTES: u32 = Self::TILE_BYTES + Self::TAP_BYTES;
    /// Floats between the sums of two filters: odd, so that lanes meet different banks.
    const PLANE: u32 = Self::PIXELS | 1;
    /// Warps whose sums are in shared memory at once.
    const PARTS: u32 = if WARPS > 1 { WARPS / 2 } else { 1 };
    /// Bytes of a warp's sums.
    const SUM_BYTES: u32 = Self::FILTERS * Self::PLANE * 4;

    /// Goes through the warp's channels.
    ///
    /// # Safety
    /// The channels are there; nobody else uses the warp's part of shared memory.
    #[inline(always)]
    unsafe fn add_channels<G: Gpu>(work: &Work<'_, G, T>, first: u32, end: u32, sums: &mut Sums<TH, TW, F>) {
        let gpu = work.gpu;
        let own = work.warp * STAGES * Self::STAGE_BYTES;
        let offsets: [u32; LOADS] =
            [Self::offset(work, 0), Self::offset(work, 1), Self::offset(work, 2), Self::offset(work, 3)];
        let mut channel = first + work.warp;
        // SAFETY: as promised by the caller. A stage is filled again after all lanes have read it.
        unsafe {
            let fill = |stage: u32, channel: u32| {
                if channel < end {
                    Self::bring(work, channel, &offsets, own + stage * Self::STAGE_BYTES);
                }
                gpu.copy_async_commit();
            };
            fill(0, channel);
            fill(1, channel + WARPS);
            fill(2, channel + 2 * WARPS);
            fill(3, channel + 3 * WARPS);
            let mut stage = 0;
            while channel < end {
                gpu.copy_async_wait::<3>();
                gpu.sync_warp(FULL_WARP);
                let place = own + stage * Self::STAGE_BYTES;
                let taps = Self::taps(work, place + Self::TILE_BYTES);
                add_tile::<G, T, R, STRIDE, TH, TW, F>(gpu, SharedPtr::from_offset(place), &taps, sums);
                gpu.sync_warp(FULL_WARP);
                fill(stage, channel + STAGES * WARPS);
                channel += WARPS;
                stage = (stage + 1) % STAGES;
            }
        }
    }

    /// Where the lane's pixel number `k` is in a channel.
    #[inline(always)]
    fn offset<G: Gpu>(work: &Work<'_, G, T>, k: u32) -> u32 {
        let position = work.lane + k * WARP;
        let at = |first: u32, pad: u32, position: u32| (first * STRIDE as u32 + position).wrapping_sub(pad);
        let row = at(work.place.row, work.args.source.padding[0], position / Self::COLUMNS);
        let column = at(work.place.column, work.args.source.padding[1], position % Self::COLUMNS);
        let offset = work.args.source.map.offset(row, column).unwrap_or(OUTSIDE);
        if position < Self::POSITIONS { offset } else { OUTSIDE }
    }

    /// Starts the copies of a channel's input, with zeros outside of the map, and of its taps.
    ///
    /// # Safety
    /// The channel is there, and nobody reads the stage.
    #[inline(always)]
    unsafe fn bring<G: Gpu>(work: &Work<'_, G, T>, channel: u32, offsets: &[u32; LOADS], stage: u32) {
        let gpu = work.gpu;
        let plane = work.args.source.map.plane(work.args.source.input, work.place.image, channel);
        let pixel = |k: u32| {
            let position = work.lane + k * WARP;
            let offset = offsets[k as usize];
            if position >= Self::PLACES {
                return;
            }
            let is_inside = offset != OUTSIDE;
            let from = if is_inside { plane.add_bytes(offset.into()) } else { plane };
            let to = SharedPtr::<T>::from_offset(stage).add(position);
            // SAFETY: as promised by the caller; the pixel is in the map, or is not read.
            unsafe {
                if size_of::<T>() == 4 {
                    let (to, from) =
                        (SharedPtr::from_offset(to.offset()), GlobalPtr::from_address(from.address()));
                    gpu.copy_async_or_zero::<u32, 1>(to, from, is_inside);
                } else {
                    // Too little for an asynchronous copy.
                    let x = if is_inside { gpu.load_readonly(from) } else { [T::default()] };
                    gpu.shared_store(to, x);
                }
            }
        };
        pixel(0);
        pixel(1);
        pixel(2);
        pixel(3);
        let number = work.group * work.args.source.map.channels + channel;
        let from = work.args.filters.add_rows(number, Self::TAP_BYTES).address();
        // Each lane copies 16 bytes at a time.
        strided(work.lane, Self::TAP_BYTES / 16, WARP, |at| {
            let from = GlobalPtr::<u32>::from_address(from).add(4 * at as usize);
            let to = SharedPtr::from_offset(stage + Self::TILE_BYTES).add(4 * at);
            // SAFETY: as promised by the caller.
            unsafe { gpu.copy_async::<u32, 4>(to, from) };
        });
    }

    /// The lane's taps.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    unsafe fn taps<G: Gpu>(work: &Work<'_, G, T>, stage: u32) -> Taps<R, F> {
        let lane = SharedPtr::<T>::from_offset(stage).add(work.lane * F as u32);
        let mut taps: Taps<R, F> = [[[0.0; F]; R]; R];
        for (r, row) in taps.iter_mut().enumerate() {
            for (s, tap) in row.iter_mut().enumerate() {
                // SAFETY: as promised by the caller.
                let of_lane: [T; F] =
                    unsafe { work.gpu.shared_load(lane.add((r * R + s) as u32 * Self::FILTERS)) };
                *tap = of_lane.map(|tap| tap.to_f32(work.gpu));
            }
        }
        taps
    }

    /// Brings the sums of all warps to shared memory, as those of [`PARTS`](Self::PARTS) warps.
    ///
    /// # Safety
    /// All threads of the block come here.
    #[inline(always)]
    unsafe fn join<G: Gpu>(work: &Work<'_, G, T>, sums: &mut Sums<TH, TW, F>) {
        let part = work.warp % Self::PARTS * Self::SUM_BYTES;
        let own = SharedPtr::<f32>::from_offset(part).add(work.lane * Self::PLANE);
        let place =
            |y: usize, x: usize, f: usize| own.add(f as u32 * WARP * Self::PLANE + (y * TW + x) as u32);
        work.gpu.sync_threads();
        // SAFETY: nobody else has these sums; of two warps the second waits.
        unsafe {
            if WARPS > 1 {
                if work.warp >= Self::PARTS {
                    each::<TH, TW, F>(|y, x, f| work.gpu.shared_store(place(y, x, f), [sums[y][x][f]]));
                }
                work.gpu.sync_threads();
            }
            if work.warp < Self::PARTS {
                each::<TH, TW, F>(|y, x, f| {
                    if WARPS > 1 {
                        let [other]: [f32; 1] = work.gpu.shared_load(place(y, x, f));
                        sums[y][x][f] += other;
                    }
                    work.gpu.shared_store(place(y, x, f), [sums[y][x][f]]);
                });
            }
        }
        work.gpu.sync_threads();
    }

    /// Writes the results, or partial sums.
    ///
    /// # Safety
    /// The sums are in shared memory; the tile is the block's.
    #[inline(always)]
    unsafe fn write<G: Gpu>(work: &Work<'_, G, T>) {
        let (gpu, target) = (work.gpu, &work.args.target);
        let elements = Self::FILTERS * Self::PIXELS;
        let block =
            (gpu.block_idx_z() * gpu.grid_dim_y() + work.group) * gpu.grid_dim_x() + gpu.block_idx_x();
        let partial = work.args.partial.add_rows(block, elements * 4);
        let mut nonzeros = 0;
        // SAFETY: as promised by the caller.
        unsafe {
            strided(gpu.thread_idx_x(), elements, Self::THREADS, |at| {
                let [filter, pixel] = target.element(at, Self::FILTERS, Self::PIXELS);
                let place = SharedPtr::<f32>::from_offset(0).add(filter * Self::PLANE + pixel);
                let mut sum = 0.0;
                let mut part = 0;
                while part < Self::PARTS {
                    let [of_part]: [f32; 1] = gpu.shared_load(place.add(part * Self::SUM_BYTES / 4));
                    sum += of_part;
                    part += 1;
                }
                if gpu.grid_dim_z() > 1 {
                    gpu.store(partial.add(at as usize), [sum]);
                } else {
                    let element = [filter, pixel];
                    nonzeros += target.finish_element(gpu, None, work.place, element, TW as u32, sum);
                }
            });
            if gpu.grid_dim_z() == 1 {
                target.count(gpu, nonzeros);
            }
        }
    }
}

/// Goes through the sums of a thread.
#[inline(always)]
fn each<const TH: usize, const TW: usize, const F: usize>(mut work: impl FnMut(usize, usize, usize)) {
    for y in 0..TH {
        for x in 0..TW {
            for f in 0..F {
                work(y, x, f);
            }
        }
    }
}

//! Convolution by tiles, zeros left out; mod.rs draws it.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::positions::{MAX_POSITIONS, Sums, Taps, add_at};
use super::target::Place;
use super::{Map, Scheme, Target, Tile};
use crate::common::strided;
use crate::{Bounds, DeviceValue, Kernel};

/// A tile of `TH` × `TW` output pixels and 32·`F` filters, of `R` × `R` taps, by `WARPS` warps, which share the channels.
///
/// Of each of its channels a warp brings the tile's input to registers, a channel ahead, and puts the nonzeros into a list in shared
/// memory, with an end behind. The taps of the channel come to shared memory by asynchronous copies, a channel ahead likewise. Then
/// each nonzero is read by all lanes at once, and the code of its position adds it to the sums: lane `l` has filters `l`,
/// `l + 32`, …. So the lanes of a warp always do the same.
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
    /// The input.
    pub input: GlobalPtr<T>,
    /// How it lies.
    pub map: Map,
    /// Rows of zeros above the first.
    pub pad_top: u32,
    /// Columns of zeros before the first.
    pub pad_left: u32,
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
/// Stands for a pixel outside of the map.
const OUTSIDE: u32 = u32::MAX;
/// Ends a list.
const END: u32 = u32::MAX;

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
        let (work, sums) = (WARPS * Self::WARP_BYTES, Self::PARTS * Self::SUM_BYTES);
        if work > sums { work } else { sums }
    };
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let (tile, group, split) = (gpu.block_idx_x(), gpu.block_idx_y(), gpu.block_idx_z());
        let (warp, lane) = (gpu.thread_idx_x() / WARP, gpu.lane_id());
        let place = args.target.place(tile, [TH as u32, TW as u32], group * Self::FILTERS);
        let work = Work { gpu, args: &args, warp, lane, group, place };
        let first = split * args.split_channels;
        let left = args.map.channels - first;
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
    /// Bytes of a warp's list, with two ends, as an item is read ahead.
    const LIST_BYTES: u32 = ((Self::POSITIONS + 2) * 8).next_multiple_of(16);
    /// Bytes of the taps of a channel and a group of filters.
    const TAP_BYTES: u32 = (R * R) as u32 * Self::FILTERS * size_of::<T>() as u32;
    /// Bytes of a warp's list and two stages of taps.
    const WARP_BYTES: u32 = Self::LIST_BYTES + 2 * Self::TAP_BYTES;
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
        let own = work.warp * Self::WARP_BYTES;
        let list = SharedPtr::<u32>::from_offset(own);
        let stages = own + Self::LIST_BYTES;
        let offsets: [u32; LOADS] =
            [Self::offset(work, 0), Self::offset(work, 1), Self::offset(work, 2), Self::offset(work, 3)];
        let mut channel = first + work.warp;
        if channel >= end {
            return;
        }
        let mut stage = stages;
        // SAFETY: as promised by the caller. Taps are overwritten after all lanes have read them.
        unsafe {
            let mut x = Self::load(work, channel, &offsets);
            Self::bring_taps(work, channel, stage);
            loop {
                Self::make_list(work, list, &x);
                let next = channel + WARPS;
                let other = 2 * stages + Self::TAP_BYTES - stage;
                if next < end {
                    x = Self::load(work, next, &offsets);
                    Self::bring_taps(work, next, other);
                    gpu.copy_async_wait::<1>();
                } else {
                    gpu.copy_async_wait::<0>();
                }
                gpu.sync_warp(FULL_WARP);
                let taps = Self::taps(work, stage);
                Self::add_list(work, list, &taps, sums);
                gpu.sync_warp(FULL_WARP);
                if next >= end {
                    return;
                }
                (channel, stage) = (next, other);
            }
        }
    }

    /// Where the lane's pixel number `k` is in a channel.
    #[inline(always)]
    fn offset<G: Gpu>(work: &Work<'_, G, T>, k: u32) -> u32 {
        let position = work.lane + k * WARP;
        let at = |first: u32, pad: u32, position: u32| (first * STRIDE as u32 + position).wrapping_sub(pad);
        let row = at(work.place.row, work.args.pad_top, position / Self::COLUMNS);
        let column = at(work.place.column, work.args.pad_left, position % Self::COLUMNS);
        let offset = work.args.map.offset(row, column).unwrap_or(OUTSIDE);
        if position < Self::POSITIONS { offset } else { OUTSIDE }
    }

    /// Loads the lane's pixels of a channel.
    ///
    /// # Safety
    /// The channel is there.
    #[inline(always)]
    unsafe fn load<G: Gpu>(work: &Work<'_, G, T>, channel: u32, offsets: &[u32; LOADS]) -> [T; LOADS] {
        let plane = work.args.map.plane(work.args.input, work.place.image, channel);
        let load = |offset: u32| {
            if offset == OUTSIDE {
                return T::default();
            }
            // SAFETY: as promised by the caller; the pixel is in the map.
            let [x] = unsafe { work.gpu.load_readonly(plane.add_bytes(offset.into())) };
            x
        };
        offsets.map(load)
    }

    /// Starts the copies of a channel's taps, as a group.
    ///
    /// # Safety
    /// The channel is there, and nobody reads the stage.
    #[inline(always)]
    unsafe fn bring_taps<G: Gpu>(work: &Work<'_, G, T>, channel: u32, stage: u32) {
        let number = work.group * work.args.map.channels + channel;
        let from = work.args.filters.add_rows(number, Self::TAP_BYTES).address();
        // Each lane copies 16 bytes at a time.
        strided(work.lane, Self::TAP_BYTES / 16, WARP, |at| {
            let from = GlobalPtr::<u32>::from_address(from).add(4 * at as usize);
            // SAFETY: as promised by the caller.
            unsafe { work.gpu.copy_async::<u32, 4>(SharedPtr::from_offset(stage).add(4 * at), from) };
        });
        work.gpu.copy_async_commit();
    }

    /// Puts what is not zero into the list, in the order of positions.
    ///
    /// # Safety
    /// Nobody reads the list.
    #[inline(always)]
    unsafe fn make_list<G: Gpu>(work: &Work<'_, G, T>, list: SharedPtr<u32>, x: &[T; LOADS]) {
        let (gpu, lane) = (work.gpu, work.lane);
        let mut count = 0;
        // SAFETY: there are as many places as positions, and two more.
        unsafe {
            let mut put = |k: u32, x: T| {
                let x = x.to_f32(gpu);
                // NaN is not zero.
                let found = gpu.warp_ballot(FULL_WARP, x != 0.0);
                let at = count + (found & ((1 << lane) - 1)).count_ones();
                if x != 0.0 {
                    gpu.shared_store(list.add(2 * at), [lane + k * WARP, x.to_bits()]);
                }
                count += found.count_ones();
            };
            put(0, x[0]);
            if Self::POSITIONS > WARP {
                put(1, x[1]);
            }
            if Self::POSITIONS > 2 * WARP {
                put(2, x[2]);
            }
            if Self::POSITIONS > 3 * WARP {
                put(3, x[3]);
            }
            if lane < 2 {
                gpu.shared_store(list.add(2 * (count + lane)), [END, 0]);
            }
        }
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

    /// Adds the products of a list.
    ///
    /// # Safety
    /// It is there, with its ends.
    #[inline(always)]
    unsafe fn add_list<G: Gpu>(
        work: &Work<'_, G, T>,
        mut list: SharedPtr<u32>,
        taps: &Taps<R, F>,
        sums: &mut Sums<TH, TW, F>,
    ) {
        // SAFETY: as promised by the caller: one past the end is read.
        unsafe {
            let [mut position, mut x]: [u32; 2] = work.gpu.shared_load(list);
            loop {
                list = list.add(2);
                let [next, next_x]: [u32; 2] = work.gpu.shared_load(list);
                if !add_at::<G, R, STRIDE, TH, TW, F>(work.gpu, position, f32::from_bits(x), taps, sums) {
                    return;
                }
                (position, x) = (next, next_x);
            }
        }
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
                    nonzeros += u32::from(target.finish(gpu, work.place, element, TW as u32, sum));
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

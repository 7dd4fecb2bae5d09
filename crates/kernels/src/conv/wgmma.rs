//! Convolution by warpgroups (wgmma of sm_90a), zeros multiplied: an implicit matrix product, of `f32` in split precision.
use core::marker::PhantomData;

use lacuna_gpu::{CoreMatrices, FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::mma::{CHANNELS, MMA_SIDE, MMA_TAPS, MmaConvArgs};
use super::split::{MmaValue, multiply_parts};
use super::{Scheme, Tile, accumulators};
use crate::common::strided;
use crate::{Bounds, Kernel};

/// `TILES` tiles of 8 × 8 output pixels, by a warpgroup each, of the same 2·`L` filters; up to nine columns of taps, and an input tile of up to `P` positions.
///
/// ```text
///   16 channels of the input tile         core matrices: 8 positions side by side,       a step: 64 pixels × 16 channels
///   ┌──────────────┐                      8 channels of 16 bits each                     at one tap (A, shifted by the tap)
///   │ with halo    │  ── split ──►        ┌──┐┌──┐┌──┐  upper, channels 0..8             times 16 channels × 2·L filters (B)
///   │ (f32)        │                      └──┘└──┘└──┘  upper, channels 8..16, lower, …
///   └──────────────┘
/// ```
/// Core matrices lie so that a tap's pixels begin 16 bytes further for each column: the tensor cores read them where they are, for all taps. Where
/// columns are strided, positions of equal remainder by the stride lie side by side. Values of 16 bits have one part. Four producer warps load, split and copy a stage while the
/// consumers multiply the other one. A stage of filters has as many rows of taps as nine taps have, and one of the input serves all rows. Products and their order are those of [`MmaConv`](super::MmaConv).
#[derive(Debug)]
pub struct WgmmaConv<T, const L: usize, const TILES: u32, const P: u32>(PhantomData<T>);

/// Stages of shared memory.
const STAGES: u32 = 2;
/// Threads of a warpgroup.
const WARPGROUP: u32 = 4 * WARP;
/// 16 channels of a position.
type Channels = [f32; CHANNELS as usize];
/// Bytes of eight channels of a position, or of a filter: a row of a core matrix.
const ROW: u32 = 16;
/// Barrier of a stage that is full, and of one that is empty.
const FULL: u32 = 1;
const EMPTY: u32 = FULL + STAGES;

impl<T: MmaValue, const L: usize, const TILES: u32, const P: u32> Kernel for WgmmaConv<T, L, TILES, P> {
    type Args = MmaConvArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        assert!(Self::SLOTS <= 5, "positions of a thread are written out below");
        Tile {
            scheme: Scheme::WgmmaTile { tiles: TILES, positions: P, filters: Self::FILTERS },
            value: T::TYPE,
        }
    };
    const THREADS: u32 = (TILES + 1) * WARPGROUP;
    const SHARED_BYTES: u32 = STAGES * (Self::A_BYTES + Self::B_BYTES);
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: Self::BLOCKS };
    const HOLDS_SHARED_ADDRESS: bool = true;
    const MIN_SM: u32 = 90;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        // By way of a shuffle the compiler sees that a warp has one trade.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        let (first, chunks) = args.of_block(gpu);
        let [rows, columns] = args.source.taps;
        let tap_rows = if rows * columns > MMA_TAPS { MMA_TAPS / columns } else { rows };
        let parts = rows.div_ceil(tap_rows);
        let columns = (MMA_SIDE - 1) * args.source.strides[1] + columns;
        let of_remainder = columns.div_ceil(args.source.strides[1]);
        let pitch = of_remainder * args.source.strides[1];
        let work = Work { gpu, args: &args, first, chunks, tap_rows, parts, of_remainder, pitch };
        // SAFETY: the arguments describe maps and filters; stages are filled and read in turns.
        unsafe {
            if warp >= 4 * TILES {
                Self::produce(&work);
            } else {
                let mut sums = [0.0; L];
                let tile = warp / 4;
                Self::consume(&work, tile, &mut sums);
                let tile = gpu.block_idx_x() * TILES + tile;
                if tile < args.tiles {
                    accumulators::write(gpu, &args, tile, warp % 4, &mut sums);
                }
            }
        }
    }
}

/// What a thread knows.
struct Work<'a, G, T> {
    gpu: G,
    args: &'a MmaConvArgs<T>,
    /// The block's first 16 channels, and how many sixteens.
    first: u32,
    chunks: u32,
    /// Rows of taps of a step, and steps of 16 channels.
    tap_rows: u32,
    parts: u32,
    /// Positions of a row of the input tile whose columns have the same remainder by the stride, and those of all remainders.
    of_remainder: u32,
    pitch: u32,
}

/// A position of a producer thread: where its first channel is, 0 for none, and where it goes, from the beginning of a stage's input.
#[derive(Clone, Copy)]
struct Slot {
    from: u64,
    to: u32,
}

impl<T: MmaValue, const L: usize, const TILES: u32, const P: u32> WgmmaConv<T, L, TILES, P> {
    /// Filters of a tile.
    const FILTERS: u32 = 2 * L as u32;
    /// Bytes from 8 channels of a tile to the next 8, and from the upper parts to the lower.
    const EIGHT_BYTES: u32 = P * ROW;
    const PART_BYTES: u32 = 2 * Self::EIGHT_BYTES;
    /// Bytes of a tile's input.
    const TILE_BYTES: u32 = T::PARTS * Self::PART_BYTES;
    /// The same of the filters of a tap.
    const B_EIGHT_BYTES: u32 = Self::FILTERS * ROW;
    const B_PART_BYTES: u32 = 2 * Self::B_EIGHT_BYTES;
    const TAP_BYTES: u32 = T::PARTS * Self::B_PART_BYTES;
    /// Bytes of the input of a stage, and of its filters, which lie behind the input of all stages.
    const A_BYTES: u32 = TILES * Self::TILE_BYTES;
    const B_BYTES: u32 = MMA_TAPS * Self::TAP_BYTES;
    /// Blocks of a multiprocessor at least: as many of two as have room in shared memory and registers.
    const BLOCKS: u32 = if Self::SHARED_BYTES > 113 * 1024 || L > 32 || Self::SLOTS > 2 { 1 } else { 2 };
    /// Positions of a producer thread at most.
    const SLOTS: u32 = (TILES * P).div_ceil(WARPGROUP);

    /// Fills stages.
    ///
    /// # Safety
    /// The arguments describe maps and filters; all producers are here.
    #[inline(always)]
    unsafe fn produce<G: Gpu>(work: &Work<'_, G, T>) {
        let (gpu, source) = (work.gpu, &work.args.source);
        let thread = gpu.thread_idx_x() - TILES * WARPGROUP;
        let slots = [
            Self::slot::<G, 0>(work, thread),
            Self::slot::<G, 1>(work, thread),
            Self::slot::<G, 2>(work, thread),
            Self::slot::<G, 3>(work, thread),
            Self::slot::<G, 4>(work, thread),
        ];
        // Whether four channels can be loaded at once.
        let map = &source.map;
        let steps = source.input.address() as u32 | map.image_bytes | map.row_bytes | map.column_bytes;
        let is_wide = map.channel_bytes == size_of::<T>() as u32 && steps.is_multiple_of(16);
        // Eight channels of 16 bits are a row of a core matrix as they are.
        let is_direct = T::PARTS == 1 && is_wide && map.channels.is_multiple_of(8);
        let [rows, columns] = source.taps;
        let [row_bytes, bytes] = [columns * Self::TAP_BYTES, rows * columns * Self::TAP_BYTES];
        let filters = work.args.filters.add_rows(gpu.block_idx_y() * work.args.chunks, bytes);
        // SAFETY: maps and filters are there. A stage is filled while it is empty, and its first channels are loaded ahead.
        unsafe {
            let load = |slot: Slot, chunk: u32| Self::load(work, slot, work.first + chunk, is_wide);
            let mut ahead = [[0.0; CHANNELS as usize]; 2];
            if !is_direct {
                ahead = [load(slots[0], 0), load(slots[1], 0)];
            }
            let (mut step, mut chunk, mut row) = (0, 0, 0);
            while chunk < work.chunks {
                let stage = step % STAGES;
                if step >= STAGES {
                    gpu.barrier_sync(EMPTY + stage, Self::THREADS);
                }
                let from = filters.add_rows(work.first + chunk, bytes).add_rows(row, row_bytes);
                let to = SharedPtr::<u32>::from_offset(STAGES * Self::A_BYTES + stage * Self::B_BYTES);
                let left = rows - row;
                let of_step = if left < work.tap_rows { left } else { work.tap_rows };
                strided(thread, of_step * row_bytes / 16, WARPGROUP, |at| {
                    gpu.copy_async::<u32, 4>(to.add(4 * at), from.add(4 * at as usize));
                });
                let place = chunk % STAGES * Self::A_BYTES;
                if row == 0 && is_direct {
                    let copy = |slot: Slot| Self::copy(work, slot, place, work.first + chunk);
                    copy(slots[0]);
                    copy(slots[1]);
                    copy(slots[2]);
                    copy(slots[3]);
                    copy(slots[4]);
                } else if row == 0 {
                    Self::fill(work, slots[0], place, &ahead[0]);
                    Self::fill(work, slots[1], place, &ahead[1]);
                    if Self::SLOTS > 2 {
                        Self::fill(work, slots[2], place, &load(slots[2], chunk));
                    }
                    if Self::SLOTS > 3 {
                        Self::fill(work, slots[3], place, &load(slots[3], chunk));
                    }
                    if Self::SLOTS > 4 {
                        Self::fill(work, slots[4], place, &load(slots[4], chunk));
                    }
                    if chunk + 1 < work.chunks {
                        ahead = [load(slots[0], chunk + 1), load(slots[1], chunk + 1)];
                    }
                }
                gpu.copy_async_commit();
                (step, row) = (step + 1, row + work.tap_rows);
                if row >= rows {
                    (chunk, row) = (chunk + 1, 0);
                }
                gpu.copy_async_wait::<0>();
                gpu.fence_async_proxy();
                gpu.barrier_arrive(FULL + stage, Self::THREADS);
            }
        }
    }

    /// Position `I` of a producer thread; one that is not there goes nowhere.
    #[inline(always)]
    fn slot<G: Gpu, const I: u32>(work: &Work<'_, G, T>, thread: u32) -> Slot {
        const NOWHERE: Slot = Slot { from: 0, to: u32::MAX };
        if I >= Self::SLOTS {
            return NOWHERE;
        }
        let (source, target) = (&work.args.source, &work.args.target);
        let rows = (MMA_SIDE - 1) * source.strides[0] + source.taps[0];
        let (at, positions) = (thread + I * WARPGROUP, rows * work.pitch);
        let (tile, position) = (at / positions, at % positions);
        if tile >= TILES {
            return NOWHERE;
        }
        let to = tile * Self::TILE_BYTES + position * ROW;
        let place = target.place(work.gpu.block_idx_x() * TILES + tile, [MMA_SIDE; 2], 0);
        let (row, column) = (position / work.pitch, position % work.pitch);
        let column = column % work.of_remainder * source.strides[1] + column / work.of_remainder;
        let first = [place.row * source.strides[0], place.column * source.strides[1]];
        let [row, column] = [(first[0] + row, source.padding[0]), (first[1] + column, source.padding[1])]
            .map(|(at, padding)| at.wrapping_sub(padding));
        let is_there = work.gpu.block_idx_x() * TILES + tile < work.args.tiles;
        let from = match source.map.offset(row, column) {
            Some(offset) if is_there => {
                source.map.plane(source.input, place.image, 0).add_bytes(offset.into()).address()
            }
            _ => 0,
        };
        Slot { from, to }
    }

    /// Loads 16 channels of a position. Zeros stand for what is not there.
    ///
    /// # Safety
    /// The map is there.
    #[inline(always)]
    unsafe fn load<G: Gpu>(work: &Work<'_, G, T>, slot: Slot, chunk: u32, is_wide: bool) -> Channels {
        let (gpu, map) = (work.gpu, &work.args.source.map);
        let mut x = [0.0; CHANNELS as usize];
        if slot.from == 0 {
            return x;
        }
        let first = chunk * CHANNELS;
        let from = GlobalPtr::<T>::from_address(slot.from).add_rows(first, map.channel_bytes);
        let left = map.channels - first;
        // SAFETY: as promised by the caller; so many channels are left.
        unsafe {
            if is_wide && left >= CHANNELS {
                for four in 0..4 {
                    let loaded: [T; 4] = gpu.load_readonly(from.add(4 * four));
                    for i in 0..4 {
                        x[4 * four + i] = loaded[i].to_f32(gpu);
                    }
                }
            } else if left >= CHANNELS {
                for (channel, x) in x.iter_mut().enumerate() {
                    let [loaded] = gpu.load_readonly(from.add_rows(channel as u32, map.channel_bytes));
                    *x = loaded.to_f32(gpu);
                }
            } else {
                for (channel, x) in x.iter_mut().enumerate() {
                    if (channel as u32) < left {
                        let [loaded] = gpu.load_readonly(from.add_rows(channel as u32, map.channel_bytes));
                        *x = loaded.to_f32(gpu);
                    }
                }
            }
        }
        x
    }

    /// Starts copying 16 channels of a position, of 16 bits each, into the stage. Zeros stand for what is not there.
    ///
    /// # Safety
    /// The map is there, its channels lie so that eight are loaded at once, and the stage is empty.
    #[inline(always)]
    unsafe fn copy<G: Gpu>(work: &Work<'_, G, T>, slot: Slot, place: u32, chunk: u32) {
        if slot.to == u32::MAX {
            return;
        }
        let (gpu, source) = (work.gpu, &work.args.source);
        for eight in 0..2 {
            let channel = chunk * CHANNELS + 8 * eight;
            let is_there = slot.from != 0 && channel < source.map.channels;
            let from = if is_there { slot.from } else { source.input.address() };
            let from = GlobalPtr::<u16>::from_address(from).add(if is_there { channel as usize } else { 0 });
            let to = SharedPtr::from_offset(place + slot.to + eight * Self::EIGHT_BYTES);
            // SAFETY: as promised by the caller; what is not there is not read.
            unsafe { gpu.copy_async_or_zero::<u16, 8>(to, from, is_there) };
        }
    }

    /// Splits 16 channels of a position, and writes them into the stage.
    ///
    /// # Safety
    /// The stage is empty.
    #[inline(always)]
    unsafe fn fill<G: Gpu>(work: &Work<'_, G, T>, slot: Slot, place: u32, x: &Channels) {
        if slot.to == u32::MAX {
            return;
        }
        let gpu = work.gpu;
        let to = SharedPtr::<u32>::from_offset(place + slot.to);
        for eight in 0..2 {
            let pair = |i: usize| T::split(gpu, x[8 * eight + 2 * i], x[8 * eight + 2 * i + 1]);
            let (a, b, c, d) = (pair(0), pair(1), pair(2), pair(3));
            let to = to.add(eight as u32 * Self::EIGHT_BYTES / 4);
            // SAFETY: as promised by the caller.
            unsafe {
                gpu.shared_store(to, [a.upper, b.upper, c.upper, d.upper]);
                if T::PARTS > 1 {
                    gpu.shared_store(to.add(Self::PART_BYTES / 4), [a.lower, b.lower, c.lower, d.lower]);
                }
            }
        }
    }

    /// Multiplies stages: a warpgroup's tile of the block.
    ///
    /// # Safety
    /// The whole warpgroup is here.
    #[inline(always)]
    unsafe fn consume<G: Gpu>(work: &Work<'_, G, T>, tile: u32, sums: &mut [f32; L]) {
        let (gpu, source) = (work.gpu, &work.args.source);
        let [rows, columns] = source.taps;
        let stride = source.strides[0] * work.pitch * ROW;
        let steps = work.chunks * work.parts;
        let (mut step, mut chunk, mut row) = (0, 0, 0);
        while step < steps {
            let stage = step % STAGES;
            gpu.barrier_sync(FULL + stage, Self::THREADS);
            gpu.warpgroup_arrive();
            let a = chunk % STAGES * Self::A_BYTES + tile * Self::TILE_BYTES;
            let mut b = STAGES * Self::A_BYTES + stage * Self::B_BYTES;
            let end = if row + work.tap_rows < rows { row + work.tap_rows } else { rows };
            while row < end {
                let (mut column, mut remainder, mut shift) = (0, 0, 0);
                while column < columns {
                    let place = row * work.pitch + remainder * work.of_remainder + shift;
                    // SAFETY: the stage is full; a tap's pixels are in the tile.
                    unsafe { Self::multiply(gpu, a + place * ROW, stride, b, sums) };
                    b += Self::TAP_BYTES;
                    (column, remainder) = (column + 1, remainder + 1);
                    if remainder == source.strides[1] {
                        (remainder, shift) = (0, shift + 1);
                    }
                }
                row += 1;
            }
            if row == rows {
                (chunk, row) = (chunk + 1, 0);
            }
            gpu.warpgroup_commit();
            gpu.warpgroup_wait::<0, L>(sums);
            if step + STAGES < steps {
                gpu.barrier_arrive(EMPTY + stage, Self::THREADS);
            }
            step += 1;
        }
    }

    /// Starts the products of a tap, the least first.
    ///
    /// # Safety
    /// A and B are there.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(gpu: G, a: u32, stride: u32, b: u32, sums: &mut [f32; L]) {
        let a = CoreMatrices { first: SharedPtr::from_offset(a), leading: Self::EIGHT_BYTES, stride };
        let first = SharedPtr::from_offset(b);
        let b = CoreMatrices { first, leading: Self::B_EIGHT_BYTES, stride: 8 * ROW };
        // SAFETY: as promised by the caller.
        unsafe { multiply_parts::<G, T, L>(gpu, sums, (a, Self::PART_BYTES), (b, Self::B_PART_BYTES)) };
    }
}

//! SDDMM by nonzeros (nonzero split): each group of lanes has as many, whatever the rows are.
//!
//! ```text
//!   nonzeros of C, row after row            A group of LANES lanes owns a tile of 32 neighbouring nonzeros, whatever
//!  ┌──────┬──────┬──────┬──────┬───         their rows: no group is without work. N of them at a time, it goes along
//!  │ tile │ tile │ tile │ tile │ …          K by chunks, and lane i has vectors i, i + LANES, … of each:
//!  └──────┴──────┴──────┴──────┴───           1. the rows of B of the N nonzeros are loaded together;
//!      A row   ┌─0─┬─1─┬─2─┬─3─┬─0─┬─         2. A's row stays in registers as long as it is the same;
//!      B row   ├───┼───┼───┼───┼───┼─         3. each lane adds its products to N sums in registers.
//!      B row   ├───┼───┼───┼───┼───┼─       Then the lanes exchange and add the parts of these sums (common/reduce.rs). When each
//!              └───┴───┴───┴───┴───┴─       lane has one, the group writes LANES neighbours of D at once.
//! ```
//! Indices come from memory one load ahead of the rows that they name. Tiles may come in an order (schedule.rs) in which those
//! of a block are near each other in B.
use lacuna_gpu::Gpu;

use super::operands::{Indices, add_products};
use super::{Args, NonzeroSplit, Operands, TILE, Tile};
use crate::common::{subwarp_mask, transpose_sums, widened};
use crate::{Bounds, DeviceIndex, DeviceValue, Kernel};

/// No row: matrices have fewer.
const NONE: u32 = u32::MAX;

/// A lane's share of the row of A that was last used.
struct Held<const V: usize, const C: usize> {
    row: u32,
    share: [[f32; V]; C],
}

impl<T, I, const V: usize, const C: usize, const N: usize, const LANES: usize, const WARPS: u32> Kernel
    for NonzeroSplit<T, I, V, C, N, LANES, WARPS>
where
    T: DeviceValue,
    I: DeviceIndex,
{
    type Args = Args<T, I>;
    type Tile = Tile;

    const TILE: Tile = Self::NUMBERS;
    const THREADS: u32 = Self::BLOCK_THREADS;
    const BOUNDS: Bounds = Self::REGISTER_BOUNDS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Args<T, I>) {
        let group = gpu.thread_idx_x() / Self::GROUP;
        let lane = gpu.thread_idx_x() % Self::GROUP;
        let mut tile = gpu.block_idx_x() * Self::BLOCK_GROUPS + group;
        if tile * TILE >= args.operands.items {
            return;
        }
        if args.order.address() != 0 {
            // SAFETY: each tile has its place in the order.
            [tile] = unsafe { gpu.load_readonly(args.order.add(tile as usize)) };
        }
        let mut at = tile * TILE;
        let left = args.operands.items - at;
        let end = at + if left < TILE { left } else { TILE };
        let batch = u64::from(gpu.block_idx_z());
        let args = Args { operands: args.operands.from(batch, lane * V as u32), ..args };
        let mut held = Held { row: NONE, share: [[0.0; V]; C] };
        let mut result = 0.0;
        // SAFETY: `at` is a nonzero.
        let mut ahead = unsafe { Indices::<N>::load(gpu, &args, at) };
        while at < end {
            let next = at + N as u32;
            let sums = Self::sum(gpu, &args, Quad { at, next, lane }, &mut ahead, &mut held);
            let mask = subwarp_mask(group % Self::WARP_GROUPS * Self::GROUP, Self::GROUP);
            let sum = transpose_sums(gpu, mask, lane, Self::GROUP, sums);
            if lane / N as u32 == at % Self::GROUP / N as u32 {
                result = sum;
            }
            let own = at / Self::GROUP * Self::GROUP + lane;
            if (next.is_multiple_of(Self::GROUP) || next >= end) && own < end {
                // SAFETY: the nonzero is this lane's alone.
                unsafe { args.operands.store(gpu, own, batch, result) };
            }
            at = next;
        }
    }
}

/// What a group is at: `N` nonzeros from `at` on, then those from `next` on.
#[derive(Clone, Copy)]
struct Quad {
    at: u32,
    next: u32,
    lane: u32,
}

impl<T, I, const V: usize, const C: usize, const N: usize, const LANES: usize, const WARPS: u32>
    NonzeroSplit<T, I, V, C, N, LANES, WARPS>
where
    T: DeviceValue,
    I: DeviceIndex,
{
    /// A lane's part of the sums of `N` nonzeros, whose indices are `ahead`.
    #[inline(always)]
    fn sum<G: Gpu>(
        gpu: G,
        args: &Args<T, I>,
        quad: Quad,
        ahead: &mut Indices<N>,
        held: &mut Held<V, C>,
    ) -> [f32; N] {
        let operands = &args.operands;
        let mut sums = [0.0; N];
        let mut k = 0;
        loop {
            let is_last = k + Self::CHUNK >= operands.k;
            let indices = *ahead;
            let after = if is_last { quad.next } else { quad.at };
            if operands.k > Self::CHUNK {
                held.row = NONE;
            }
            // SAFETY: as the kernel's caller promises of A and B; a whole chunk ends within K.
            unsafe {
                if after < args.operands.items {
                    *ahead = Indices::load(gpu, args, after);
                }
                if k + Self::CHUNK <= operands.k {
                    Self::add_chunk(gpu, operands, k, [true; C], &indices, held, &mut sums);
                } else {
                    let mut inside = [false; C];
                    for (c, inside) in inside.iter_mut().enumerate() {
                        *inside = k + quad.lane * V as u32 + c as u32 * Self::STEP < operands.k;
                    }
                    Self::add_chunk(gpu, operands, k, inside, &indices, held, &mut sums);
                }
            }
            k += Self::CHUNK;
            if is_last {
                return sums;
            }
        }
    }

    /// Adds the chunk from `k` on, of which the lane has the vectors `inside`.
    ///
    /// # Safety
    /// `operands` has A and B from the lane's first element on, and they are live; `indices` are rows of theirs.
    #[inline(always)]
    unsafe fn add_chunk<G: Gpu>(
        gpu: G,
        operands: &Operands<T>,
        k: u32,
        inside: [bool; C],
        indices: &Indices<N>,
        held: &mut Held<V, C>,
        sums: &mut [f32; N],
    ) {
        let [a, b] = operands.shares(k, inside);
        let Indices { rows, columns } = *indices;
        let mut of_b = [[[T::default(); V]; C]; N];
        for (share, &column) in of_b.iter_mut().zip(&columns) {
            // SAFETY: as promised by the caller.
            *share = unsafe { b.load(gpu, column, Self::STEP) };
        }
        // Rows rise. Nearly always all are one, and the one that is held.
        let mut row = rows[0];
        loop {
            if row != held.row {
                // SAFETY: as promised by the caller.
                let share = unsafe { a.load(gpu, row, Self::STEP) };
                *held = Held { row, share: widened(gpu, &share) };
            }
            for i in 0..N {
                if rows[i] == row {
                    add_products(gpu, &held.share, &of_b[i], &mut sums[i]);
                }
            }
            if row == rows[N - 1] {
                return;
            }
            let mut higher = rows[N - 1];
            for i in (1..N - 1).rev() {
                if rows[i] > row {
                    higher = rows[i];
                }
            }
            row = higher;
        }
    }
}

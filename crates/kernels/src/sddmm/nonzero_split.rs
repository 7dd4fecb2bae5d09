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
use core::marker::PhantomData;

use lacuna_gpu::{Gpu, WARP};

use super::operands::{Indices, add_products};
use super::{Args, Operands, Scheme, Tile};
use crate::common::{subwarp_mask, transpose_sums, widened};
use crate::{Bounds, DeviceIndex, DeviceValue, Kernel, PADDING};

/// SDDMM by nonzeros: a group of `LANES` lanes computes [`TILE`] neighbouring nonzeros of D, `N` at a time.
///
/// - `T`, `I`: types of all values, and of C's column indices. Sums are `f32`.
/// - `V`: elements of K that a lane loads at once (1, 2, 4 or 8; 16 bytes at most).
/// - `C`: such vectors of a lane in a chunk of K, which is `LANES · V · C` elements. Where it has all of K, a row of A is
///   loaded once for all its nonzeros of the tile.
/// - `N`: nonzeros whose rows of B are under way together (2 or 4).
/// - `LANES`: lanes of a group (4, 8, 16 or 32). A whole warp serves long K, and few nonzeros.
/// - `WARPS`: warps of a block. They never wait for each other, but share what L1 holds of B.
///
/// Constants that do not fit together are refused when the kernel is named, not when it runs:
///
/// ```
/// use lacuna_kernels::Kernel;
/// use lacuna_kernels::sddmm::NonzeroSplit;
/// assert_eq!(<NonzeroSplit<f32, u32, 4, 1, 4, 8, 8> as Kernel>::TILE.block_items, 1024);
/// ```
/// ```compile_fail,E0080
/// # use lacuna_kernels::Kernel;
/// # use lacuna_kernels::sddmm::NonzeroSplit;
/// let _ = <NonzeroSplit<f32, u32, 4, 1, 4, 64, 8> as Kernel>::TILE; // a group of more lanes than a warp has
/// ```
#[derive(Debug)]
pub struct NonzeroSplit<
    T,
    I,
    const V: usize,
    const C: usize,
    const N: usize,
    const LANES: usize,
    const WARPS: u32,
>(PhantomData<(T, I)>);

/// Nonzeros of a tile.
pub const TILE: u32 = 32;

/// No row: matrices have fewer.
const NONE: u32 = u32::MAX;

/// A lane's fragment of the row of A that was last used.
struct CachedRow<const V: usize, const C: usize> {
    row: u32,
    fragment: [[f32; V]; C],
}

impl<T, I, const V: usize, const C: usize, const N: usize, const LANES: usize, const WARPS: u32> Kernel
    for NonzeroSplit<T, I, V, C, N, LANES, WARPS>
where
    T: DeviceValue,
    I: DeviceIndex,
{
    type Args = Args<T, I>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(
            V.is_power_of_two() && V * size_of::<T>() <= 16,
            "a lane loads 1, 2, 4 or 8 elements in 16 bytes"
        );
        assert!(C >= 1, "a lane has a part of K");
        assert!(N == 2 || N == 4, "the indices of 2 or 4 nonzeros are one load");
        assert!(
            LANES.is_power_of_two() && LANES >= 4 && LANES <= WARP as usize,
            "lanes of one warp pair up in shuffles"
        );
        assert!(WARPS >= 1 && Self::THREADS <= 1024, "a block has at most 1024 threads");
        assert!(N <= PADDING, "the indices of the last nonzeros are loaded with their neighbours");
        Tile {
            value: T::TYPE,
            index: I::TYPE,
            vector: V as u32,
            block_items: Self::BLOCK_GROUPS * TILE,
            scheme: Scheme::NonzeroSplit { lanes: LANES as u32, vectors: C as u32, at_once: N as u32 },
        }
    };
    const THREADS: u32 = WARPS * WARP;
    /// 24 warps of an SM leave a thread 80 registers, which do for `f32`. Conversions from 16 bits want a few more; told of
    /// fewer warps, ptxas mostly stays below 80 all the same, and spills nothing.
    const BOUNDS: Bounds =
        Bounds { max_threads: Self::THREADS, min_blocks: if size_of::<T>() == 4 { 24 / WARPS } else { 2 } };

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
        let z = gpu.block_idx_z();
        let args = Args { operands: args.operands.for_z(z, lane * V as u32), ..args };
        let mut cached = CachedRow { row: NONE, fragment: [[0.0; V]; C] };
        let mut result = 0.0;
        // SAFETY: `at` is a nonzero.
        let mut ahead = unsafe { Indices::<N>::load(gpu, &args, at) };
        while at < end {
            let next = at + N as u32;
            let sums = Self::sum(gpu, &args, [at, next], lane, &mut ahead, &mut cached);
            let mask = subwarp_mask(group % Self::WARP_GROUPS * Self::GROUP, Self::GROUP);
            let sum = transpose_sums(gpu, mask, lane, Self::GROUP, sums);
            if lane / N as u32 == at % Self::GROUP / N as u32 {
                result = sum;
            }
            let own = at / Self::GROUP * Self::GROUP + lane;
            if (next.is_multiple_of(Self::GROUP) || next >= end) && own < end {
                // SAFETY: the nonzero is this lane's alone.
                unsafe { args.operands.store(gpu, own, z, result) };
            }
            at = next;
        }
    }
}

impl<T, I, const V: usize, const C: usize, const N: usize, const LANES: usize, const WARPS: u32>
    NonzeroSplit<T, I, V, C, N, LANES, WARPS>
where
    T: DeviceValue,
    I: DeviceIndex,
{
    /// Lanes of a group.
    const GROUP: u32 = LANES as u32;
    /// Groups of a warp.
    const WARP_GROUPS: u32 = WARP / Self::GROUP;
    /// Groups of a block.
    const BLOCK_GROUPS: u32 = WARPS * Self::WARP_GROUPS;
    /// Elements from one vector of a lane to its next: all lanes' vectors side by side.
    const STEP: u32 = Self::GROUP * V as u32;
    /// Elements of a chunk of K.
    const CHUNK: u32 = Self::STEP * C as u32;

    /// A lane's part of the sums of `N` nonzeros from `at` on, whose indices are `ahead`; those from `next` on come then.
    #[inline(always)]
    fn sum<G: Gpu>(
        gpu: G,
        args: &Args<T, I>,
        [at, next]: [u32; 2],
        lane: u32,
        ahead: &mut Indices<N>,
        cached: &mut CachedRow<V, C>,
    ) -> [f32; N] {
        let operands = &args.operands;
        let mut sums = [0.0; N];
        let mut k = 0;
        loop {
            let is_last = k + Self::CHUNK >= operands.k;
            let indices = *ahead;
            let after = if is_last { next } else { at };
            if operands.k > Self::CHUNK {
                cached.row = NONE;
            }
            // SAFETY: as the kernel's caller promises of A and B; a whole chunk ends within K.
            unsafe {
                if after < args.operands.items {
                    *ahead = Indices::load(gpu, args, after);
                }
                if k + Self::CHUNK <= operands.k {
                    Self::add_chunk(gpu, operands, k, [true; C], &indices, cached, &mut sums);
                } else {
                    let mut inside = [false; C];
                    for (c, inside) in inside.iter_mut().enumerate() {
                        *inside = k + lane * V as u32 + c as u32 * Self::STEP < operands.k;
                    }
                    Self::add_chunk(gpu, operands, k, inside, &indices, cached, &mut sums);
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
        cached: &mut CachedRow<V, C>,
        sums: &mut [f32; N],
    ) {
        let [a, b] = operands.fragments(k, inside);
        let Indices { rows, columns } = *indices;
        let mut of_b = [[[T::default(); V]; C]; N];
        for (fragment, &column) in of_b.iter_mut().zip(&columns) {
            // SAFETY: as promised by the caller.
            *fragment = unsafe { b.load(gpu, column, Self::STEP) };
        }
        // Rows rise. Nearly always all are one, and the one that is cached.
        let mut row = rows[0];
        loop {
            if row != cached.row {
                // SAFETY: as promised by the caller.
                let fragment = unsafe { a.load(gpu, row, Self::STEP) };
                *cached = CachedRow { row, fragment: widened(gpu, &fragment) };
            }
            for i in 0..N {
                if rows[i] == row {
                    add_products(gpu, &cached.fragment, &of_b[i], &mut sums[i]);
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

//! The kernel.
//!
//! ```text
//!   nonzeros of C, row after row            A group of LANES lanes owns a tile of 32 neighbouring nonzeros, whatever
//!  ┌──────┬──────┬──────┬──────┬───         their rows: no group is without work. LANES of them at a time, it goes along
//!  │ tile │ tile │ tile │ tile │ …          K by chunks, and lane i has vectors i, i + LANES, … of each:
//!  └──────┴──────┴──────┴──────┴───           1. the rows of B of N nonzeros are loaded together;
//!      A row   ┌─0─┬─1─┬─2─┬─3─┬─0─┬─         2. A's row stays in registers as long as it is the same;
//!      B row   ├───┼───┼───┼───┼───┼─         3. each lane adds its products to LANES sums in registers.
//!      B row   ├───┼───┼───┼───┼───┼─       Then the lanes exchange the parts of these sums (sums.rs), after which lane i
//!              └───┴───┴───┴───┴───┴─       has the i-th whole, and the group writes LANES neighbours of D at once.
//! ```
//! Indices come from memory one load ahead of the rows that they name. Tiles may come in an order (order.rs) in which those
//! of a block are near each other in B.
use lacuna_gpu::Gpu;

use super::operands::{Indices, Share, add_products, widened};
use super::sums::transpose_add;
use super::{Args, Nonzeros, TILE, Tile};
use crate::{DeviceIndex, DeviceValue, Kernel};

/// No row: matrices have fewer.
const NONE: u32 = u32::MAX;

/// A lane's share of the row of A that was last used.
struct Held<const V: usize, const C: usize> {
    row: u32,
    share: [[f32; V]; C],
}

impl<T, I, const V: usize, const C: usize, const N: usize, const LANES: usize, const WARPS: u32> Kernel
    for Nonzeros<T, I, V, C, N, LANES, WARPS>
where
    T: DeviceValue,
    I: DeviceIndex,
{
    type Args = Args<T, I>;
    type Tile = Tile;

    const TILE: Tile = Self::NUMBERS;
    const THREADS: u32 = Self::BLOCK_THREADS;
    const SHARED_BYTES: u32 = 0;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Args<T, I>) {
        let group = gpu.thread_idx_x() / Self::GROUP;
        let lane = gpu.thread_idx_x() % Self::GROUP;
        let mut tile = gpu.block_idx_x() * Self::BLOCK_GROUPS + group;
        if tile * TILE >= args.nnz {
            return;
        }
        if args.order.address() != 0 {
            // SAFETY: each tile has its place in the order.
            [tile] = unsafe { gpu.load_readonly(args.order.add(tile as usize)) };
        }
        let mut base = tile * TILE;
        let left = args.nnz - base;
        let end = base + if left < TILE { left } else { TILE };
        let batch = u64::from(gpu.block_idx_z());
        let own = (lane * V as u32) as usize;
        let args = Args {
            a: args.a.add((batch * args.a_batch) as usize + own),
            b: args.b.add((batch * args.b_batch) as usize + own),
            ..args
        };

        let mut held = Held { row: NONE, share: [[0.0; V]; C] };
        // SAFETY: `base` is a nonzero.
        let mut ahead = unsafe { Indices::<N>::load(gpu, &args, base) };
        while base < end {
            let mut sums = [0.0; LANES];
            let mut k = 0;
            loop {
                let is_last = k + Self::CHUNK >= args.k;
                let turn = Turn { base, after: if is_last { base + Self::GROUP } else { base }, k, lane };
                if args.k > Self::CHUNK {
                    held.row = NONE;
                }
                // SAFETY: as the caller promises of A and B; a whole chunk ends within K.
                unsafe {
                    if k + Self::CHUNK <= args.k {
                        Self::add_chunk::<G, true>(gpu, &args, turn, &mut ahead, &mut held, &mut sums);
                    } else {
                        Self::add_chunk::<G, false>(gpu, &args, turn, &mut ahead, &mut held, &mut sums);
                    }
                }
                k += Self::CHUNK;
                if is_last {
                    break;
                }
            }
            let sum = transpose_add(gpu, Self::group_mask(group), lane, sums);
            if base + lane < end {
                // SAFETY: the nonzero is this lane's alone.
                unsafe { store(gpu, &args, base + lane, batch, sum) };
            }
            base += Self::GROUP;
        }
    }
}

/// What a group is at.
#[derive(Clone, Copy)]
struct Turn {
    /// The first of its `LANES` nonzeros.
    base: u32,
    /// The first nonzero of what it does next: the same in another chunk, or the next turn's.
    after: u32,
    /// The chunk's first element of K.
    k: u32,
    lane: u32,
}

impl<T, I, const V: usize, const C: usize, const N: usize, const LANES: usize, const WARPS: u32>
    Nonzeros<T, I, V, C, N, LANES, WARPS>
where
    T: DeviceValue,
    I: DeviceIndex,
{
    #[inline(always)]
    fn group_mask(group: u32) -> u32 {
        if Self::WARP_GROUPS == 1 {
            u32::MAX
        } else {
            ((1 << Self::GROUP) - 1) << (group % Self::WARP_GROUPS * Self::GROUP)
        }
    }

    /// Adds a chunk of K to the sums of `LANES` nonzeros. `WHOLE`: K does not end in it.
    ///
    /// Past the last nonzero the indices stay what they were: such sums are of no use, and are not stored.
    ///
    /// # Safety
    /// `args` has A and B from the lane's first element on, and they are live; `ahead` has the first indices.
    #[inline(always)]
    unsafe fn add_chunk<G: Gpu, const WHOLE: bool>(
        gpu: G,
        args: &Args<T, I>,
        turn: Turn,
        ahead: &mut Indices<N>,
        held: &mut Held<V, C>,
        sums: &mut [f32; LANES],
    ) {
        let mut inside = [true; C];
        if !WHOLE {
            let own = turn.k + turn.lane * V as u32;
            for (c, inside) in inside.iter_mut().enumerate() {
                *inside = own + c as u32 * Self::STEP < args.k;
            }
        }
        let a = Share::new(args.a.add(turn.k as usize), args.a_stride_bytes, inside);
        let b = Share::new(args.b.add(turn.k as usize), args.b_stride_bytes, inside);
        for step in 0..LANES / N {
            let Indices { rows, columns } = *ahead;
            let next = (step + 1) * N;
            let next = if next < LANES { turn.base + next as u32 } else { turn.after };
            // SAFETY: indices are loaded of nonzeros, and are rows of A and of B.
            unsafe {
                let mut of_b = [[[T::default(); V]; C]; N];
                for (share, &column) in of_b.iter_mut().zip(&columns) {
                    *share = b.load(gpu, column, Self::STEP);
                }
                if next < args.nnz {
                    *ahead = Indices::load(gpu, args, next);
                }
                let sums = &mut sums[step * N..][..N];
                // Rows rise: with the last all are the one held.
                if rows[N - 1] != held.row && rows[0] != rows[N - 1] {
                    let mut of_a = [[[T::default(); V]; C]; N];
                    for (share, &row) in of_a.iter_mut().zip(&rows) {
                        *share = a.load(gpu, row, Self::STEP);
                    }
                    for (sum, (of_a, of_b)) in sums.iter_mut().zip(of_a.iter().zip(&of_b)) {
                        add_products(gpu, &widened(gpu, of_a), of_b, sum);
                    }
                    *held = Held { row: rows[N - 1], share: widened(gpu, &of_a[N - 1]) };
                } else {
                    if rows[0] != held.row {
                        let share = widened(gpu, &a.load(gpu, rows[0], Self::STEP));
                        *held = Held { row: rows[0], share };
                    }
                    for (sum, of_b) in sums.iter_mut().zip(&of_b) {
                        add_products(gpu, &held.share, of_b, sum);
                    }
                }
            }
        }
    }
}

/// Writes a result, scaled where there is a scale.
///
/// # Safety
/// The nonzero `at` exists, and no other lane writes it.
#[inline(always)]
unsafe fn store<G: Gpu, T: DeviceValue, I>(gpu: G, args: &Args<T, I>, at: u32, batch: u64, sum: f32) {
    let mut sum = sum;
    if args.scale.address() != 0 {
        let scale = args.scale.add((batch * args.scale_batch) as usize + at as usize);
        // SAFETY: each nonzero has a scale.
        let [scale] = unsafe { gpu.load_streaming::<T, 1>(scale) };
        sum *= scale.to_f32(gpu);
    }
    let d = args.d.add((batch * args.d_batch) as usize + at as usize);
    // SAFETY: as promised by the caller.
    unsafe { gpu.store(d, [T::from_f32(gpu, sum)]) };
}

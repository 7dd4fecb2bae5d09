//! The greatest or the least product of each row, in place of the sum.
//!
//! ```text
//!             B  K×N                 A group of LANES·SPLIT lanes computes one row of C, as in row_split.rs: it stages the
//!            ┌────┬──────┬────┐      row's nonzeros, and each lane loads its V columns of four rows of B at a time.
//!   A  M×K   └────┴──────┴────┘        1. a product is an fma with +0, so that no product is -0;
//!  ┌───────┐ ┌────┬──────┬────┐        2. the greater of it and the greatest so far stays, NaN before all;
//!  │ x  x x│ │    │██████│    │        3. where that changed a bit, the product's nonzero is the winner: of equal
//!  └───────┘ └────┴──────┴────┘           products the first stays, and the first NaN;
//!                C  M×N                4. SPLIT subwarps join what they have by shuffles, of equals the first nonzero.
//! ```
//!
//! The least product is the greatest of -A·B, negated: values change their sign when they are staged. A stage holds columns in
//! 32 bits, for any K.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, Gpu, Real, WARP};

use super::form::Wide;
use super::products::{Columns, Reduction};
use super::stage::{self, RowNonzeros, Stage};
use super::tile::Scheme;
use super::traverse::GroupRow;
use super::{Args, QUAD, Tile};
use crate::common::store_words;
use crate::{Bounds, DeviceIndex, DeviceValue, Kernel, RowRecord};

/// The winner of a row without nonzeros.
pub const NO_WINNER: u32 = u32::MAX;

/// The sign of an `f32`.
const SIGN: u32 = 1 << 31;

/// C, and with `WINNERS` for each of its elements the index of the nonzero whose product it is. The constants are those of
/// [`RowSplit`](super::RowSplit).
#[derive(Debug)]
pub struct Extremum<
    T,
    I,
    const V: usize,
    const LANES: u32,
    const SPLIT: u32,
    const WARPS: u32,
    const WINNERS: bool,
>(PhantomData<(T, I)>);

/// What [`Extremum`] takes. The grid is that of [`RowSplit`](super::RowSplit).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExtremumArgs<T, I> {
    /// The product. Rows all run by themselves: `long_rows` and `ahead_rows` are not read.
    pub product: Args<T, I>,
    /// With `WINNERS`, the index of the nonzero for each element of C, [`NO_WINNER`] in rows that have none; M×N, row by row,
    /// aligned to a lane's columns.
    pub winners: GlobalMut<u32>,
    /// Elements from the winners of one product of the batch to the next.
    pub winners_batch: u64,
    /// Elements from one row of winners to the next.
    pub winners_stride: u32,
    /// Not 0 for the least product.
    pub is_least: u32,
}

/// The bit by which values change their sign.
#[inline(always)]
fn sign_of(is_least: u32) -> u32 {
    if is_least != 0 { SIGN } else { 0 }
}

/// The product that the greatest one stands for: with its own sign, which a zero has not.
#[inline(always)]
pub(super) fn signed(greatest: f32, is_least: u32) -> f32 {
    f32::from_bits(greatest.to_bits() ^ sign_of(is_least)) + 0.0
}

/// The greatest product so far of each column, and its nonzero.
struct Greatest<const V: usize, const WINNERS: bool> {
    products: [f32; V],
    winners: [u32; V],
}

impl<const V: usize, const WINNERS: bool> Greatest<V, WINNERS> {
    /// Of a row from nonzero `first` on. Where all products are -∞, that one wins, which never is greater.
    #[inline(always)]
    fn of_row(first: u32) -> Self {
        Self { products: [f32::NEG_INFINITY; V], winners: [first; V] }
    }

    /// Joins what the subwarps of a group have. All of them get the result.
    #[inline(always)]
    fn join<G: Gpu>(&mut self, gpu: G, [lanes, group]: [u32; 2]) {
        let mut distance = lanes;
        while distance < group {
            for v in 0..V {
                let own = self.products[v];
                let other = gpu.warp_shuffle_xor(FULL_WARP, own, distance, WARP);
                self.products[v] = gpu.max_nan(own, other);
                if WINNERS {
                    let winner = gpu.warp_shuffle_xor(FULL_WARP, self.winners[v], distance, WARP);
                    // Equal numbers have equal bits here: there is no -0, and one NaN.
                    let is_others = other.to_bits() == self.products[v].to_bits();
                    let is_own = own.to_bits() == self.products[v].to_bits();
                    if is_others & (!is_own | (winner < self.winners[v])) {
                        self.winners[v] = winner;
                    }
                }
            }
            distance *= 2;
        }
    }
}

impl<const V: usize, const WINNERS: bool> Reduction<V> for Greatest<V, WINNERS> {
    #[inline(always)]
    fn take<G: Gpu, T: Real>(&mut self, gpu: G, value: f32, index: u32, row: &[T; V]) {
        for (v, x) in row.iter().enumerate() {
            let product = gpu.fma(value, x.to_f32(gpu), 0.0);
            let greatest = gpu.max_nan(self.products[v], product);
            if WINNERS && greatest.to_bits() != self.products[v].to_bits() {
                self.winners[v] = index;
            }
            self.products[v] = greatest;
        }
    }
}

impl<T, I, const V: usize, const LANES: u32, const SPLIT: u32, const WARPS: u32, const WINNERS: bool> Kernel
    for Extremum<T, I, V, LANES, SPLIT, WARPS, WINNERS>
where
    T: DeviceValue,
    I: DeviceIndex,
{
    type Args = ExtremumArgs<T, I>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(
            V == 1 || V * size_of::<T>() == 16,
            "C and winners are stored as vectors of 16 bytes, or one by one"
        );
        assert!(LANES.is_power_of_two() && SPLIT.is_power_of_two(), "lanes pair up in shuffles");
        assert!(Self::GROUP <= WARP, "a row's lanes lie in one warp");
        assert!(Self::SHARED_BYTES <= 48 * 1024, "shared memory without opting in");
        Tile {
            value: T::TYPE,
            index: I::TYPE,
            vector: V as u32,
            block_rows: Self::WARP_ROWS * WARPS,
            block_columns: Self::BLOCK_COLUMNS,
            scheme: Scheme::Extremum { lanes: LANES, split: SPLIT, winners: WINNERS },
        }
    };
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = Self::STAGE_BYTES * Self::WARP_ROWS * WARPS;
    /// 64 registers a thread, or 80 where winners take some of them.
    const BOUNDS: Bounds =
        Bounds { max_threads: Self::THREADS, min_blocks: if WINNERS { 24 / WARPS } else { 32 / WARPS } };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ExtremumArgs<T, I>) {
        let group = gpu.thread_idx_x() / Self::GROUP;
        let index = gpu.block_idx_x() * Self::TILE.block_rows + group;
        let warp_has_rows = index - group % Self::WARP_ROWS < args.product.rows;
        if warp_has_rows {
            let row = (index < args.product.rows).then_some(index);
            // SAFETY: as promised by the caller; each group has a row and a stage of its own.
            unsafe { Self::compute_row(gpu, &args, group * Self::STAGE_BYTES, row) };
        }
    }
}

impl<T, I, const V: usize, const LANES: u32, const SPLIT: u32, const WARPS: u32, const WINNERS: bool>
    Extremum<T, I, V, LANES, SPLIT, WARPS, WINNERS>
where
    T: DeviceValue,
    I: DeviceIndex,
{
    /// Lanes that work on one row.
    const GROUP: u32 = LANES * SPLIT;
    /// Rows of a warp.
    const WARP_ROWS: u32 = WARP / Self::GROUP;
    /// Columns of a block.
    const BLOCK_COLUMNS: u32 = LANES * V as u32;
    /// Bytes of shared memory from one group to the next; 16 beside the stage put neighbours into different banks.
    const STAGE_BYTES: u32 =
        stage::bytes::<Wide>(Self::GROUP * QUAD) + if Self::GROUP < WARP { 16 } else { 0 };

    /// Computes row `index` of the table over the block's tile of columns, with the group's stage at `stage`; without a row the
    /// group goes along with the others of its warp.
    ///
    /// # Safety
    /// The arguments describe live memory; the table has the row, and no other group has it and this tile. All groups of the
    /// warp are here.
    #[inline(always)]
    unsafe fn compute_row<G: Gpu>(gpu: G, args: &ExtremumArgs<T, I>, stage: u32, index: Option<u32>) {
        let ExtremumArgs { ref product, winners, winners_batch, winners_stride, is_least } = *args;
        let (lane, batch) = (gpu.thread_idx_x() % Self::GROUP, gpu.block_idx_z());
        let mut record = RowRecord { row: 0, start: 0, end: 0 };
        if let Some(index) = index {
            // SAFETY: the table has a record for each of `rows`.
            record = unsafe { RowRecord::load(gpu, product.row_table, index as usize) };
        }
        // Lanes past the last column load the last one again: that costs no traffic, and no test in the loop.
        let column = gpu.block_idx_y() * Self::BLOCK_COLUMNS + lane % LANES * V as u32;
        let loaded = if column < product.n { column } else { product.n - V as u32 };
        let b = product.b.add((u64::from(batch) * product.b_batch) as usize);
        let sign = sign_of(is_least);
        let row = GroupRow::<T, I, Wide, LANES, SPLIT> {
            nonzeros: RowNonzeros {
                values: product.values,
                columns: product.columns,
                values_skip: batch * product.values_batch,
                column_scale: 1,
                sign,
            },
            stage: Stage::at(stage, Self::GROUP * QUAD),
            b: Columns {
                first: b.add_rows(loaded, size_of::<T>() as u32),
                stride_bytes: product.b_stride_bytes,
            },
            lane,
            subwarp: lane / LANES,
        };
        let mut greatest = Greatest::<V, WINNERS>::of_row(record.start);
        // SAFETY: the arguments describe the matrices; the stage is this group's own.
        unsafe { row.reduce(gpu, [record.start, record.end], &mut greatest) };
        greatest.join(gpu, [LANES, Self::GROUP]);

        if index.is_none() || row.subwarp != 0 || column >= product.n {
            return;
        }
        if let Some(slot) = product.partial.slot(record.row) {
            let at = product.partial.index([slot, column]);
            // SAFETY: the lane's columns lie in the piece's slot, and no other lane has them.
            unsafe {
                store_words(gpu, product.partial.values.add(at), &greatest.products);
                if WINNERS {
                    store_words(gpu, product.partial.winners.add(at), &greatest.winners);
                }
            }
            return;
        }
        let is_empty = record.start == record.end;
        for v in 0..V {
            let product = signed(greatest.products[v], is_least);
            greatest.products[v] = if is_empty { 0.0 } else { product };
            greatest.winners[v] = if is_empty { NO_WINNER } else { greatest.winners[v] };
        }
        // SAFETY: the lane's columns lie in C and in the winners, and no other lane has them.
        unsafe {
            if WINNERS {
                let first =
                    u64::from(batch) * winners_batch + u64::from(record.row) * u64::from(winners_stride);
                store_words(gpu, winners.add(first as usize + column as usize), &greatest.winners);
            }
            product.output.store(gpu, record.row, column, batch, greatest.products);
        }
    }
}

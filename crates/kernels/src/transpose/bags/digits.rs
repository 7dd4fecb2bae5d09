//! One digit of the sort: counted, and put in order.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::{TILE, Tile, chunk_end, lanes_below};
use crate::Kernel;
use crate::nhot::TableIndex;

/// Bits of a digit at most: so many counters fit shared memory, for many warps of a multiprocessor.
pub const MAX_DIGIT_BITS: u32 = 11;

/// A digit of the rows that nonzeros name; what [`CountDigits`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Digits<I> {
    /// The row that each nonzero names: `nnz` elements, below `end`.
    pub rows: GlobalPtr<I>,
    /// A counter for each chunk and digit: chunks × 2^`bits`, row by row.
    pub counters: GlobalMut<u32>,
    /// Nonzeros.
    pub nnz: u32,
    /// Nonzeros of a chunk (not 0), a multiple of 32; the last chunk may have fewer.
    pub chunk: u32,
    /// Bits below the digit.
    pub shift: u32,
    /// Bits of the digit: at most [`MAX_DIGIT_BITS`].
    pub bits: u32,
    /// Nonzeros of this row count as if they named `end`.
    pub padding: I,
    /// Rows of the table.
    pub end: I,
}

/// Counts each chunk's digits: a warp a chunk.
#[derive(Debug)]
pub struct CountDigits<I>(PhantomData<I>);

/// Puts each nonzero into its place by this digit: a warp a chunk.
#[derive(Debug)]
pub struct ScatterDigits<I>(PhantomData<I>);

/// What [`ScatterDigits`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScatterDigitsArgs<I> {
    /// As for [`CountDigits`]; a counter holds how many of its digit are in chunks before.
    pub digits: Digits<I>,
    /// Where each digit's nonzeros start: 2^`bits` elements.
    pub offsets: GlobalPtr<u32>,
    /// The place among the indices of each nonzero; of address 0 where that is its number.
    pub places: GlobalPtr<u32>,
    /// The rows in their new order, to write; that of the padding is `end`.
    pub sorted_rows: GlobalMut<I>,
    /// The places in their new order, to write.
    pub sorted_places: GlobalMut<u32>,
}

/// One nonzero, as a lane meets it. Not there in lanes past the chunk's end.
struct Nonzero<I> {
    is_there: bool,
    /// Its number in the order so far.
    index: u32,
    row: I,
    /// The counter of its digit, in shared memory.
    counter: SharedPtr<u32>,
    /// The lanes whose nonzeros have this digit.
    alike: u32,
}

impl<I: TableIndex> Digits<I> {
    /// The counter in memory of a digit of the warp's chunk, and that in shared memory.
    #[inline(always)]
    fn counters<G: Gpu>(self, gpu: G, digit: u32) -> (GlobalMut<u32>, SharedPtr<u32>) {
        let place = ((gpu.block_idx_x() as usize) << self.bits) + digit as usize;
        (self.counters.add(place), SharedPtr::from_offset(0).add(digit))
    }

    /// Calls `work` with each digit of this lane's share.
    #[inline(always)]
    fn for_each_digit<G: Gpu>(self, gpu: G, mut work: impl FnMut(u32)) {
        let mut digit = gpu.lane_id();
        while digit >> self.bits == 0 {
            work(digit);
            digit += WARP;
        }
        gpu.sync_warp(FULL_WARP);
    }

    /// Goes through the nonzeros of the warp's chunk, 32 together; all lanes visit, and wait for each other after it.
    ///
    /// # Safety
    /// The arguments describe nonzeros that are there.
    #[inline(always)]
    unsafe fn for_each<G: Gpu>(self, gpu: G, mut visit: impl FnMut(&Nonzero<I>)) {
        let mut first = gpu.block_idx_x() * self.chunk;
        let end = chunk_end(first, self.chunk, self.nnz);
        while first < end {
            let index = first + gpu.lane_id();
            let is_there = index < end;
            let mut row = self.end;
            if is_there {
                // SAFETY: the nonzero is one of `nnz`.
                let [found] = unsafe { gpu.load_readonly(self.rows.add(index as usize)) };
                row = if found == self.padding { self.end } else { found };
            }
            let digit = (row.into() >> self.shift) as u32 & ((1 << self.bits) - 1);
            let mut alike = gpu.warp_ballot(FULL_WARP, is_there);
            for bit in 0..self.bits {
                let is_set = digit >> bit & 1 == 1;
                let set = gpu.warp_ballot(FULL_WARP, is_set);
                alike &= if is_set { set } else { !set };
            }
            let (_, counter) = self.counters(gpu, digit);
            visit(&Nonzero { is_there, index, row, counter, alike });
            gpu.sync_warp(FULL_WARP);
            first += WARP;
        }
    }
}

impl<I: TableIndex> Kernel for CountDigits<I> {
    type Args = Digits<I>;
    type Tile = Tile;

    const TILE: Tile = TILE;
    const THREADS: u32 = WARP;
    const SHARED_BYTES: u32 = 4 << MAX_DIGIT_BITS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Digits<I>) {
        // SAFETY: shared memory has a counter for each digit, which one lane touches at a time; the chunk's counters in memory
        // are this warp's alone.
        unsafe {
            args.for_each_digit(gpu, |digit| gpu.shared_store(args.counters(gpu, digit).1, [0]));
            args.for_each(gpu, |nonzero| {
                if nonzero.is_there && nonzero.alike & lanes_below(gpu.lane_id()) == 0 {
                    let [count] = gpu.shared_load(nonzero.counter);
                    gpu.shared_store(nonzero.counter, [count + nonzero.alike.count_ones()]);
                }
            });
            args.for_each_digit(gpu, |digit| {
                let (counter, own) = args.counters(gpu, digit);
                gpu.store(counter, gpu.shared_load::<u32, 1>(own));
            });
        }
    }
}

impl<I: TableIndex> Kernel for ScatterDigits<I> {
    type Args = ScatterDigitsArgs<I>;
    type Tile = Tile;

    const TILE: Tile = TILE;
    const THREADS: u32 = WARP;
    const SHARED_BYTES: u32 = 4 << MAX_DIGIT_BITS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ScatterDigitsArgs<I>) {
        let digits = args.digits;
        // SAFETY: shared memory has a counter for each digit, which one lane writes at a time, after all have read it; the place
        // that it gives is no other nonzero's.
        unsafe {
            digits.for_each_digit(gpu, |digit| {
                let (counter, own) = digits.counters(gpu, digit);
                let ([before], [offset]) =
                    (gpu.load(counter), gpu.load_readonly(args.offsets.add(digit as usize)));
                gpu.shared_store(own, [offset + before]);
            });
            digits.for_each(gpu, |nonzero| {
                let mut to = 0;
                if nonzero.is_there {
                    [to] = gpu.shared_load(nonzero.counter);
                }
                gpu.sync_warp(FULL_WARP);
                if !nonzero.is_there {
                    return;
                }
                let before = (nonzero.alike & lanes_below(gpu.lane_id())).count_ones();
                if before == 0 {
                    gpu.shared_store(nonzero.counter, [to + nonzero.alike.count_ones()]);
                }
                let mut place = nonzero.index;
                if args.places.address() != 0 {
                    [place] = gpu.load_readonly(args.places.add(place as usize));
                }
                let to = (to + before) as usize;
                gpu.store(args.sorted_rows.add(to), [nonzero.row]);
                gpu.store(args.sorted_places.add(to), [place]);
            });
        }
    }
}

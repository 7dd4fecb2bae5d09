//! Makes mask blocks of a CSR mask: which 64 keys 64 queries see, and the bits of those that they see in part.
//!
//! ```text
//!               a window: 2,048 keys, 32 key blocks
//!              ┌────────┬────────┬─ … ─┬────────┐
//!   a strip:   │ .x.x.. │        │     │ xxxxxx │   a bit a query and key, in shared memory
//!   64 queries │ ...xxx │        │     │ xxxxxx │
//!              └────────┴────────┴─ … ─┴────────┘
//!        seen      1        0     …        1        a bit a key block: whether a query sees a key of it,
//!        whole     0        0     …        1        and whether all queries see all of its keys
//! ```
//! A thread block takes a strip and a window. A warp takes eight queries: its lanes find by bisection where their columns enter and
//! leave the window, and set the bits of 32 columns together. A first launch writes the two words, and counts the entries of query
//! tiles. The host numbers the blocks that are seen in part; a second launch sets the bits anew, and writes their bitmaps.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::wgmma::{BITMAP_WORDS, BLOCK, bits_of_pairs};
use super::{QUERIES, Scheme, Tile};
use crate::{DeviceIndex, Kernel, ValueType};

/// Key blocks of a window: a bit each in a word.
pub const WINDOW_BLOCKS: u32 = WARP;
/// Keys of a window.
const WINDOW: u32 = WINDOW_BLOCKS * BLOCK;
const THREADS: u32 = 256;
const WARPS: u32 = THREADS / WARP;
/// Queries of a warp.
const WARP_QUERIES: u32 = BLOCK / WARPS;
/// Words of a window's keys.
const WINDOW_WORDS: u32 = WINDOW / 32;
/// Words of a query's bits; two more put neighbouring queries into different banks.
const STRIDE: u32 = WINDOW_WORDS + 2;
const WORDS: u32 = BLOCK * STRIDE;
/// Words in which a warp says what it found.
const FOUND: u32 = 4;

/// Finds the blocks that strips see.
#[derive(Debug)]
pub struct FindBlocks<I>(PhantomData<I>);

/// What [`FindBlocks`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FindBlocksArgs<I> {
    /// The mask.
    pub mask: CsrMask<I>,
    /// Two words for each window of each strip, strip by strip, to write: the key blocks of which a query sees a key, and those that
    /// all queries see whole.
    pub seen: GlobalMut<u32>,
    /// For each of these windows how many keys four neighbouring queries see together, summed over the strip, to write: entries of
    /// [`QueryTiles`](super::QueryTiles).
    pub entries: GlobalMut<u32>,
}

/// Writes the bitmaps of blocks that are seen in part.
#[derive(Debug)]
pub struct WriteBitmaps<I>(PhantomData<I>);

/// What [`WriteBitmaps`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WriteBitmapsArgs<I> {
    /// The mask.
    pub mask: CsrMask<I>,
    /// As [`FindBlocks`] wrote it.
    pub seen: GlobalPtr<u32>,
    /// For each window of each strip the number of its first bitmap.
    pub first: GlobalPtr<u32>,
    /// Bitmaps of [`BITMAP_WORDS`] words, to write: window by window, by rising keys.
    pub bitmaps: GlobalMut<u32>,
}

/// A mask in CSR. The grid is its strips by its windows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CsrMask<I> {
    /// Where each query's columns start, and the end of the last.
    pub row_offsets: GlobalPtr<u32>,
    /// The keys of each query, rising.
    pub columns: GlobalPtr<I>,
    /// Queries.
    pub rows: u32,
}

const fn tile<I: DeviceIndex>() -> Tile {
    Tile {
        value: ValueType::F32,
        vector: 1,
        lanes: 1,
        dimension: WINDOW,
        block_rows: BLOCK,
        scheme: Scheme::MaskBlocks { index: I::TYPE },
    }
}

impl<I: DeviceIndex> Kernel for FindBlocks<I> {
    type Args = FindBlocksArgs<I>;
    type Tile = Tile;

    const TILE: Tile = tile::<I>();
    const THREADS: u32 = THREADS;
    /// Bits, and a few words a warp.
    const SHARED_BYTES: u32 = (WORDS + FOUND * WARPS) * 4;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: FindBlocksArgs<I>) {
        let (thread, lane) = (gpu.thread_idx_x(), gpu.lane_id());
        let warp = thread / WARP;
        let queries = args.mask.queries_left(gpu);
        let bits = SharedPtr::<u32>::from_offset(0);
        let words = bits.add(WORDS);
        // SAFETY: the bits are there after a barrier, and so are the words of all warps; the window's words are this block's alone.
        unsafe {
            args.mask.set_bits(gpu);
            // A lane a key block. Queries that are not there see nothing, and miss nothing.
            let (mut seen, mut whole) = (false, true);
            for i in 0..WARP_QUERIES {
                let query = warp * WARP_QUERIES + i;
                if query < queries {
                    let [low, high] = gpu.shared_load(bits.add(query * STRIDE + 2 * lane));
                    seen |= low | high != 0;
                    whole &= low & high == u32::MAX;
                }
            }
            let [seen, whole] = [gpu.warp_ballot(FULL_WARP, seen), gpu.warp_ballot(FULL_WARP, whole)];
            let entries = entries_of_warp(gpu);
            if lane == 0 {
                gpu.shared_store(words.add(FOUND * warp), [seen, whole, entries, 0]);
            }
            gpu.sync_threads();
            if thread == 0 {
                let [mut seen, mut whole, mut entries] = [0, u32::MAX, 0];
                for warp in 0..WARPS {
                    let [seen_by_warp, whole_of_warp, entries_of_warp, _]: [u32; 4] =
                        gpu.shared_load(words.add(FOUND * warp));
                    seen |= seen_by_warp;
                    whole &= whole_of_warp;
                    entries += entries_of_warp;
                }
                gpu.store(args.seen.add(2 * window_index(gpu)), [seen, whole]);
                gpu.store(args.entries.add(window_index(gpu)), [entries]);
            }
        }
    }
}

impl<I: DeviceIndex> Kernel for WriteBitmaps<I> {
    type Args = WriteBitmapsArgs<I>;
    type Tile = Tile;

    const TILE: Tile = tile::<I>();
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = WORDS * 4;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: WriteBitmapsArgs<I>) {
        let window = window_index(gpu);
        // SAFETY: there are two words, and a number, for each window; bitmaps have a word for each thread of half a block, and each is
        // written by one half of this block alone; the bits are there after a barrier.
        unsafe {
            let [seen, whole] = gpu.load_readonly(args.seen.add(2 * window));
            let mut left = seen & !whole;
            if left == 0 {
                return;
            }
            let [mut number] = gpu.load_readonly(args.first.add(window));
            args.mask.set_bits(gpu);
            let (half, word) = (gpu.thread_idx_x() / BITMAP_WORDS, gpu.thread_idx_x() % BITMAP_WORDS);
            while left != 0 {
                if number % 2 == half {
                    let to = args.bitmaps.add(number as usize * BITMAP_WORDS as usize + word as usize);
                    gpu.store(to, [bitmap_word(gpu, left.trailing_zeros(), word)]);
                }
                left &= left - 1;
                number += 1;
            }
        }
    }
}

/// How many keys four neighbouring queries see together, summed over this warp's words; each lane has the sum.
///
/// # Safety
/// The bits are set. All lanes of the warp are here.
#[inline(always)]
unsafe fn entries_of_warp<G: Gpu>(gpu: G) -> u32 {
    let mut entries = 0;
    let mut at = gpu.thread_idx_x();
    while at < BLOCK / QUERIES as u32 * WINDOW_WORDS {
        let four = at / WINDOW_WORDS * QUERIES as u32;
        let mut keys = 0;
        for query in four..four + QUERIES as u32 {
            let word = SharedPtr::<u32>::from_offset(0).add(query * STRIDE + at % WINDOW_WORDS);
            // SAFETY: as promised by the caller.
            let [word]: [u32; 1] = unsafe { gpu.shared_load(word) };
            keys |= word;
        }
        entries += keys.count_ones();
        at += THREADS;
    }
    let mut lanes = WARP / 2;
    while lanes > 0 {
        entries += gpu.warp_shuffle_xor(FULL_WARP, entries, lanes, WARP);
        lanes /= 2;
    }
    entries
}

/// The number of this block's window, among those of all strips.
#[inline(always)]
fn window_index<G: Gpu>(gpu: G) -> usize {
    gpu.block_idx_x() as usize * gpu.grid_dim_y() as usize + gpu.block_idx_y() as usize
}

/// A word of the bitmap of a key block of the window: the bits that [`place_of_bit`](super::place_of_bit) puts there.
///
/// # Safety
/// The bits are set.
#[inline(always)]
unsafe fn bitmap_word<G: Gpu>(gpu: G, key_block: u32, word: u32) -> u32 {
    let (lane, mut found) = (word % WARP, 0);
    for eight in 0..2 {
        let query = word / WARP * 16 + eight * 8 + lane / 4;
        let at = SharedPtr::<u32>::from_offset(0).add(query * STRIDE + 2 * key_block);
        // SAFETY: as promised by the caller.
        let [low, high] = unsafe { gpu.shared_load(at) };
        found |= bits_of_pairs([low, high], lane % 4) << (2 * eight);
    }
    found
}

impl<I: DeviceIndex> CsrMask<I> {
    /// Queries from the first of this block's strip on.
    #[inline(always)]
    fn queries_left<G: Gpu>(&self, gpu: G) -> u32 {
        self.rows - gpu.block_idx_x() * BLOCK
    }

    /// Sets the bits of this block's strip and window, and waits for all threads.
    ///
    /// # Safety
    /// The mask is live, and has the strip; the first [`WORDS`] words of shared memory are nobody else's.
    #[inline(always)]
    unsafe fn set_bits<G: Gpu>(&self, gpu: G) {
        let (thread, lane) = (gpu.thread_idx_x(), gpu.lane_id());
        let bits = SharedPtr::<u32>::from_offset(0);
        let window = gpu.block_idx_y();
        let (first, queries) = (gpu.block_idx_x() * BLOCK, self.queries_left(gpu));
        let warp_query = thread / WARP * WARP_QUERIES;
        // SAFETY: a query that is there has offsets, and its columns lie between them; barriers stand between zeros, bits and their
        // use; the bits of a window lie in its words.
        unsafe {
            let mut at = 4 * thread;
            while at < WORDS {
                gpu.shared_store(bits.add(at), [0; 4]);
                at += 4 * THREADS;
            }
            // Lanes 0 to 7 look for where the queries enter the window, the next eight for where they leave it.
            let (query, side) = (warp_query + lane % WARP_QUERIES, lane / WARP_QUERIES % 2);
            let [mut low, mut high] = [0, 0];
            if query < queries {
                let offset = self.row_offsets.add((first + query) as usize);
                [low] = gpu.load_readonly(offset);
                [high] = gpu.load_readonly(offset.add(1));
            }
            while low < high {
                let middle = low + (high - low) / 2;
                if self.column(gpu, middle) / WINDOW < window + side {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            gpu.sync_threads();
            for i in 0..WARP_QUERIES {
                let of_query = bits.add((warp_query + i) * STRIDE);
                let mut at = gpu.warp_shuffle_idx(FULL_WARP, low, i, WARP) + lane;
                let end = gpu.warp_shuffle_idx(FULL_WARP, low, WARP_QUERIES + i, WARP);
                while at < end {
                    let key = self.column(gpu, at) % WINDOW;
                    // No column comes twice, so that a sum sets its bit.
                    gpu.shared_atomic_add(of_query.add(key / 32), 1 << (key % 32));
                    at += WARP;
                }
            }
            gpu.sync_threads();
        }
    }

    /// # Safety
    /// The mask has this element.
    #[inline(always)]
    unsafe fn column<G: Gpu>(&self, gpu: G, index: u32) -> u32 {
        // SAFETY: as promised by the caller.
        let [column] = unsafe { gpu.load_readonly::<I, 1>(self.columns.add(index as usize)) };
        column.widen()
    }
}

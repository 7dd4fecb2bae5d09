//! Tiles of queries and keys by warps (mma.sync of sm_80), for values of 16 bits.
//!
//! ```text
//!                keys: a block of 64 a step               warps 0–3   S = Q₀·Kᵀ ─ mask ─ softmax ─► O₀ += P·V
//!             ┌────┐      ┌────┐                          warps 4–7   S = Q₁·Kᵀ ─ mask ─ softmax ─► O₁ += P·V
//!  64 queries │ Q₀ │      │ ▓▓ │  ▓ full
//!             ├────┤      ├────┤  ▒ partial               each warp: 16 queries, Q and O in registers
//!  64 queries │ Q₁ │      │ ▒▒ │                          all warps copy K and V some steps ahead
//!             └────┘      └────┘
//! ```
//! A thread block owns `GROUPS` × 64 queries of a head, and goes along the key blocks that any of them sees, as
//! [`WgmmaTiles`](super::WgmmaTiles) do, by the same lists: bits of a bitmap lie as a warp's product leaves scores, too. So does everything from scores to
//! weights ([`tile_rows`](super::tile_rows)). K and V lie in swizzled panels, from which matrices are loaded without conflicts. A lane loads its word of
//! a bitmap a step ahead. A row that comes out not finite is worked out anew, key by key.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::lanes::Fragment;
use super::row::Head;
use super::score::Score;
use super::tile_rows::{LANES, SCORES_OF_BLOCK, Softmax, modify, seen};
use super::wgmma::{BITMAP_WORDS, BLOCK, BlockArgs, BlockEntry, BlockKeys, BlockMask, BlockTile, WgmmaValue};
use super::{Operands, Scheme, Tile};
use crate::common::strided;
use crate::{Bounds, HalfValue, Kernel};

/// Bytes of eight elements of a row, and of a panel of 64 rows of 64 elements.
const PIECE: u32 = 16;
const PANEL: u32 = BLOCK * 8 * PIECE;
/// Queries of a warp.
const WARP_ROWS: u32 = 16;

/// Attention by tiles of `GROUPS` × 64 queries, for rows of up to 2·`L` elements; `PIECES` is the number of eight elements of a row, `SLICES` of
/// sixteen. Scores may be within a soft cap, and lessened by distance, if it `MODIFIES`.
#[derive(Debug)]
pub struct MmaTiles<
    T,
    const L: usize,
    const PIECES: usize,
    const SLICES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
>(PhantomData<T>);

/// What a warp works on.
struct Work<T, G> {
    gpu: G,
    head: Head<T>,
    tile: BlockTile,
    bitmaps: GlobalPtr<u32>,
    /// The warp's 64 queries among the tile's.
    group: u32,
}

/// What a warp's group sees of a step's keys, and the lane's word of it.
#[derive(Clone, Copy)]
struct Seen {
    mask: u32,
    word: u32,
}

impl<
    T: HalfValue + WgmmaValue<Part = T>,
    const L: usize,
    const PIECES: usize,
    const SLICES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> Kernel for MmaTiles<T, L, PIECES, SLICES, GROUPS, STAGES, MODIFIES>
{
    type Args = BlockArgs<Operands<T>>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(4 * PIECES == L && 2 * SLICES == PIECES && GROUPS <= 3 && (STAGES == 2 || STAGES == 3));
        // Some GPUs of sm_8x have no more.
        assert!(Self::SHARED_BYTES <= 99 * 1024, "a block of sm_86 has 99 KiB");
        Tile {
            value: T::TYPE,
            vector: 8,
            lanes: PIECES as u32,
            dimension: 2 * L as u32,
            block_rows: GROUPS * BLOCK,
            scheme: if MODIFIES { Scheme::ModifiedMmaTile } else { Scheme::MmaTile },
        }
    };
    const THREADS: u32 = GROUPS * 4 * WARP;
    const SHARED_BYTES: u32 = STAGES * Self::STAGE;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 0 };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        // SAFETY: the table has a record for each tile of the grid, and describes live memory.
        unsafe {
            let tile = args.tile(gpu);
            let head = Head::of::<G, MODIFIES>(gpu, &args.operands, gpu.block_idx_x());
            let work = Work { gpu, head, tile, bitmaps: args.bitmaps, group: warp / 4 };
            let mut again = Self::attend(&work, &args.operands, warp);
            while again != 0 {
                let query = warp % 4 * WARP_ROWS + again.trailing_zeros();
                again &= again - 1;
                let (entries, end, group) = (tile.entries, tile.count * BLOCK, work.group);
                let keys = BlockKeys { entries, bitmaps: args.bitmaps, end, group, query };
                let row = tile.first + group * BLOCK + query;
                Fragment::<4, PIECES, 2>::attend::<_, _, 1, MODIFIES>(gpu, &work.head, row, keys, [0, end]);
            }
        }
    }
}

impl<
    T: HalfValue + WgmmaValue<Part = T>,
    const L: usize,
    const PIECES: usize,
    const SLICES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> MmaTiles<T, L, PIECES, SLICES, GROUPS, STAGES, MODIFIES>
{
    /// Bytes of V in a stage, of K, which lies behind it, and of both.
    const MATRIX: u32 = BLOCK * 2 * L as u32 * 2;
    const STAGE: u32 = 2 * Self::MATRIX;

    /// Works out the warp's 16 queries, and writes the rows of O that are finite. Gives a bit for each row that is not.
    ///
    /// # Safety
    /// The whole thread block is here; head and entries are live.
    #[inline(always)]
    unsafe fn attend<G: Gpu>(work: &Work<T, G>, operands: &Operands<T>, warp: u32) -> u32 {
        let (gpu, count) = (work.gpu, work.tile.count);
        let first = work.tile.first + warp * WARP_ROWS;
        let mut o = [[0.0; L]; 1];
        let mut softmax = Softmax::NEW;
        let scale = if MODIFIES { 1.0 } else { operands.shape.scale };
        // SAFETY: as promised by the caller; a stage is read when all copies of it have landed, and written when all warps have left it.
        unsafe {
            for step in 0..STAGES - 1 {
                Self::copy(work, step, step);
            }
            let q = Self::load_queries(work, first, operands.shape.rows);
            let mut next = Self::load_seen(work, 0);
            let (mut step, mut stage) = (0, 0);
            while step < count {
                let now = next;
                if STAGES == 3 {
                    gpu.copy_async_wait::<1>();
                } else {
                    gpu.copy_async_wait::<0>();
                }
                gpu.sync_threads();
                let ahead = step + STAGES - 1;
                Self::copy(work, ahead, if stage == 0 { STAGES - 1 } else { stage - 1 });
                next = Self::load_seen(work, step + 1);
                if now.mask != BlockMask::EMPTY {
                    let words = [now.word, 0];
                    let mut s = [0.0; SCORES_OF_BLOCK];
                    if now.mask != BlockMask::FULL {
                        s = seen(words);
                    }
                    Self::multiply_keys(gpu, stage, &q, &mut s);
                    if MODIFIES {
                        let block = BlockEntry::load_key_block(gpu, work.tile.entries, step, count);
                        let slopes = operands.slopes;
                        let score = Score::of::<G, true>(gpu, &operands.shape, slopes, gpu.block_idx_x());
                        let (query, key) = (first + gpu.lane_id() / LANES, gpu.lane_id() % LANES * 2);
                        let distances = score.ahead_of_key(query, block * BLOCK + key);
                        modify(gpu, score, words, [distances; 2], &mut s);
                    }
                    let weights = softmax.weigh::<_, T, SCORES_OF_BLOCK, L, 1>(gpu, scale, &s, &mut o);
                    Self::multiply_values(gpu, stage, &weights, &mut o[0]);
                }
                (step, stage) = (step + 1, if stage + 1 == STAGES { 0 } else { stage + 1 });
            }
            // Nothing is under way when the thread block ends.
            gpu.copy_async_wait::<0>();
            softmax.write(gpu, &work.head, [first, operands.shape.rows], &o)
        }
    }

    /// The lane's part of the warp's queries, as products take them. Zeros stand for what is not there.
    ///
    /// # Safety
    /// The head is live.
    #[inline(always)]
    unsafe fn load_queries<G: Gpu>(work: &Work<T, G>, first: u32, rows: u32) -> [[u32; 4]; SLICES] {
        let (gpu, head) = (work.gpu, &work.head);
        let (row, pair) = (first + gpu.lane_id() / LANES, gpu.lane_id() % LANES * 2);
        let mut q = [[0; 4]; SLICES];
        for (slice, q) in q.iter_mut().enumerate() {
            for (i, q) in q.iter_mut().enumerate() {
                let (row, column) = (row + i as u32 % 2 * 8, slice as u32 * 16 + i as u32 / 2 * 8 + pair);
                if row < rows && column < head.dim {
                    let from = head.q.add_rows(row, head.q_stride).add(column as usize).address();
                    // SAFETY: as promised by the caller; the dimension is a multiple of 8.
                    [*q] = unsafe { gpu.load_readonly(GlobalPtr::<u32>::from_address(from)) };
                }
            }
        }
        q
    }

    /// What the warp's group sees of step `step`.
    ///
    /// # Safety
    /// The entries are live.
    #[inline(always)]
    unsafe fn load_seen<G: Gpu>(work: &Work<T, G>, step: u32) -> Seen {
        let gpu = work.gpu;
        // SAFETY: as promised by the caller; a bitmap has a word for each lane of a group.
        unsafe {
            let mask = BlockEntry::load_mask(gpu, work.tile.entries, step, work.tile.count, work.group);
            // It is the same for all lanes, which the compiler sees by way of a shuffle.
            let mask = gpu.warp_shuffle_idx(FULL_WARP, mask, 0, WARP);
            let mut word = u32::MAX;
            if mask < BlockMask::FULL {
                let thread = gpu.thread_idx_x() % BITMAP_WORDS;
                let at = mask as usize * BITMAP_WORDS as usize + thread as usize;
                [word] = gpu.load_readonly(work.bitmaps.add(at));
            }
            Seen { mask, word }
        }
    }

    /// Starts copying the keys of step `step` to a stage, by all warps, and ends a group of copies in any case. Zeros stand for keys that are not
    /// there.
    ///
    /// # Safety
    /// Nobody uses the stage; head and entries are live.
    #[inline(always)]
    unsafe fn copy<G: Gpu>(work: &Work<T, G>, step: u32, stage: u32) {
        let (gpu, head) = (work.gpu, &work.head);
        let pieces = PIECES as u32;
        let (piece, row, rows) =
            (gpu.thread_idx_x() % pieces, gpu.thread_idx_x() / pieces, Self::THREADS / pieces);
        // SAFETY: as promised by the caller; nothing is read of keys that are not there.
        unsafe {
            if step < work.tile.count {
                let block = BlockEntry::load_key_block(gpu, work.tile.entries, step, work.tile.count);
                let has_piece = piece * 8 < head.dim;
                let column = if has_piece { piece as usize * 8 } else { 0 };
                let place = stage * Self::STAGE + piece / 8 * PANEL;
                strided(row, BLOCK, rows, |at| {
                    let key = block * BLOCK + at;
                    let is_key = has_piece && key < head.cols;
                    let to = place + (at * 8 + ((piece % 8) ^ (at % 8))) * PIECE;
                    for (matrix, to) in [(head.k, to + Self::MATRIX), (head.v, to)] {
                        let from = matrix.add_rows(key, head.kv_stride).address();
                        let from = GlobalPtr::<u16>::from_address(from).add(column);
                        gpu.copy_async_or_zero::<u16, 8>(SharedPtr::from_offset(to), from, is_key);
                    }
                });
            }
        }
        gpu.copy_async_commit();
    }

    /// Where a lane's row of four matrices lies that are loaded together, of a matrix at `base`: of a key, and of eight elements.
    #[inline(always)]
    fn place(base: u32, key: u32, piece: u32) -> SharedPtr<u16> {
        SharedPtr::from_offset(base + piece / 8 * PANEL + (key * 8 + ((piece % 8) ^ (key % 8))) * PIECE)
    }

    /// Adds Q·Kᵀ to scores.
    ///
    /// # Safety
    /// The stage is full; the whole warp is here.
    #[inline(always)]
    unsafe fn multiply_keys<G: Gpu>(
        gpu: G,
        stage: u32,
        q: &[[u32; 4]; SLICES],
        s: &mut [f32; SCORES_OF_BLOCK],
    ) {
        let (base, lane) = (stage * Self::STAGE + Self::MATRIX, gpu.lane_id());
        // Of 16 keys and 16 elements: keys 0–7 and eight elements, the next eight; then keys 8–15.
        let (key, eight) = (lane % 8 + lane / 16 * 8, lane / 8 % 2);
        for (slice, q) in q.iter().enumerate() {
            for keys in 0..4 {
                let row = Self::place(base, 16 * keys as u32 + key, 2 * slice as u32 + eight);
                // SAFETY: as promised by the caller.
                let [a, b, c, d] = unsafe { gpu.shared_load_matrices::<false>(row) };
                add_product::<G, T, SCORES_OF_BLOCK>(gpu, s, 8 * keys, *q, [a, b]);
                add_product::<G, T, SCORES_OF_BLOCK>(gpu, s, 8 * keys + 4, *q, [c, d]);
            }
        }
    }

    /// Adds the weights times V to O.
    ///
    /// # Safety
    /// The stage is full; the whole warp is here.
    #[inline(always)]
    unsafe fn multiply_values<G: Gpu>(
        gpu: G,
        stage: u32,
        weights: &[[u32; 2]; SCORES_OF_BLOCK],
        o: &mut [f32; L],
    ) {
        let (base, lane) = (stage * Self::STAGE, gpu.lane_id());
        // Of 16 keys and 16 elements: eight elements of keys 0–7, of keys 8–15; then the next eight elements.
        let (key, eight) = (lane % 16, lane / 16);
        for keys in 0..4 {
            let p = [0, 1, 2, 3].map(|i: usize| weights[4 * keys + i][0]);
            for slice in 0..SLICES {
                let row = Self::place(base, 16 * keys as u32 + key, 2 * slice as u32 + eight);
                // SAFETY: as promised by the caller.
                let [a, b, c, d] = unsafe { gpu.shared_load_matrices::<true>(row) };
                add_product::<G, T, L>(gpu, o, 8 * slice, p, [a, b]);
                add_product::<G, T, L>(gpu, o, 8 * slice + 4, p, [c, d]);
            }
        }
    }
}

/// Adds a product of 16 rows and eight columns to the four sums from `at` on.
#[inline(always)]
fn add_product<G: Gpu, T: HalfValue, const N: usize>(
    gpu: G,
    sums: &mut [f32; N],
    at: usize,
    a: [u32; 4],
    b: [u32; 2],
) {
    let c = [sums[at], sums[at + 1], sums[at + 2], sums[at + 3]];
    [sums[at], sums[at + 1], sums[at + 2], sums[at + 3]] = T::mma(gpu, a, b, c);
}

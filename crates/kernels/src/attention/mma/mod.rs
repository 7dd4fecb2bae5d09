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
mod panels;

use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::lanes::Fragment;
use super::row::Head;
use super::score::Score;
use super::tile_rows::{LANES, SCORES_OF_BLOCK, Softmax, modify, seen};
use super::warp_mask::Seen;
use super::warp_products::{WARP_ROWS, load_rows, multiply_columns, multiply_rows, place};
use super::wgmma::{BLOCK, BlockArgs, BlockEntry, BlockKeys, BlockMask, BlockTile, WgmmaValue};
use super::{Operands, Scheme, Tile};
use crate::common::{Rows, strided};
use crate::{Bounds, HalfValue, Kernel};

pub use panels::MmaPanelTiles;

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

impl<T: WgmmaValue, G: Gpu> Work<T, G> {
    /// Makes scores of products, for 16 queries from `query` on and as many keys as there are scores from `key` on: within the soft cap, and lessened
    /// by distance.
    ///
    /// # Safety
    /// The whole warp is here; slopes are live.
    #[inline(always)]
    unsafe fn modify<const SCORES: usize>(
        &self,
        operands: &Operands<T>,
        (query, key): (u32, u32),
        words: [u32; 2],
        s: &mut [f32; SCORES],
    ) {
        let gpu = self.gpu;
        // SAFETY: as promised by the caller.
        let score = unsafe { Score::of::<G, true>(gpu, &operands.shape, operands.slopes, gpu.block_idx_x()) };
        let (query, key) = (query + gpu.lane_id() / LANES, key + gpu.lane_id() % LANES * 2);
        let distances = score.ahead_of_key(query, key);
        modify(gpu, score, words, [distances; 2], s);
    }

    /// Calls `attend` with each of the warp's queries of which `again` has a bit, to be worked out anew, and the places of its keys.
    #[inline(always)]
    fn each_again(&self, warp: u32, mut again: u32, attend: impl Fn(u32, BlockKeys, [u32; 2])) {
        while again != 0 {
            let query = warp % 4 * WARP_ROWS + again.trailing_zeros();
            again &= again - 1;
            let (entries, end, group) = (self.tile.entries, self.tile.count * BLOCK, self.group);
            let keys = BlockKeys { entries, bitmaps: self.bitmaps, end, group, query };
            attend(self.tile.first + group * BLOCK + query, keys, [0, end]);
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
            let again = Self::attend(&work, &args.operands, warp);
            work.each_again(warp, again, |row, keys, places| {
                Fragment::<4, PIECES, 2>::attend::<_, _, 1, MODIFIES>(gpu, &work.head, row, keys, places);
            });
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
            let (matrix, end, stride_bytes) = (work.head.q, operands.shape.rows, work.head.q_stride);
            let queries = Rows { matrix, first, end, stride_bytes };
            let q: [[u32; 4]; SLICES] = load_rows(gpu, &queries, work.head.dim);
            let masks = (work.tile.entries, work.bitmaps);
            let mut next = Seen::load(gpu, masks, (0, count), work.group);
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
                next = Seen::load(gpu, masks, (step + 1, count), work.group);
                if now.mask != BlockMask::EMPTY {
                    let words = [now.word, 0];
                    let mut s = [0.0; SCORES_OF_BLOCK];
                    if now.mask != BlockMask::FULL {
                        s = seen(words);
                    }
                    let base = stage * Self::STAGE;
                    multiply_rows::<G, T, SCORES_OF_BLOCK>(
                        gpu,
                        gpu.lane_id(),
                        SLICES,
                        |slice| [q[slice], [0; 4]],
                        (base + Self::MATRIX, 0),
                        &mut s,
                    );
                    if MODIFIES {
                        let block = BlockEntry::load_key_block(gpu, work.tile.entries, step, count);
                        work.modify(operands, (first, block * BLOCK), words, &mut s);
                    }
                    let weights = softmax.weigh::<_, T, SCORES_OF_BLOCK, L, 1>(gpu, scale, &s, &mut o);
                    multiply_columns::<G, T, L>(
                        gpu,
                        gpu.lane_id(),
                        &weights[..SCORES_OF_BLOCK / 2],
                        (base, 0),
                        &mut o[0],
                    );
                }
                (step, stage) = (step + 1, if stage + 1 == STAGES { 0 } else { stage + 1 });
            }
            // Nothing is under way when the thread block ends.
            gpu.copy_async_wait::<0>();
            softmax.write(gpu, &work.head, [first, operands.shape.rows], &o)
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
                strided(row, BLOCK, rows, |at| {
                    let key = block * BLOCK + at;
                    let is_key = has_piece && key < head.cols;
                    let to = place(stage * Self::STAGE, at, piece);
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
}

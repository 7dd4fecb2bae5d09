//! Tiles of queries and keys by warpgroups (wgmma of sm_90a).
//!
//! ```text
//!                keys: two blocks of 64 a step            warps 0–3   S = Q₀·Kᵀ ─ mask ─ softmax ─► O₀ += P·V
//!             ┌────┐      ┌────┬────┐                     warps 4–7   S = Q₁·Kᵀ ─ mask ─ softmax ─► O₁ += P·V
//!  64 queries │ Q₀ │      │ ▓▓ │ ▒▒ │  ▓ full             …
//!             ├────┤      ├────┼────┤  ▒ partial          last warps  copy K, V and bitmaps, a stage each
//!  64 queries │ Q₁ │      │ ▒▒ │    │  empty
//!             └────┘      └────┴────┘
//! ```
//! A thread block owns `GROUPS` × 64 queries of a head, a warpgroup each, and goes along the key blocks that any of them sees (one a step, where
//! rows have 256 elements).
//! Empty blocks are left out; full ones have no bitmap. A score begins as 0 where its key is seen, and as −∞ elsewhere, and the
//! product is added to it. Scores that are capped or
//! lessened by distance take another step. Weights are rounded to `T`, in registers. Q, K and V lie in swizzled panels. A row that comes
//! out not finite is worked out anew, key by key, as [`Rows`](super::Rows) do it. The scale is above 0, or there is a soft cap.
//!
//! A number of `f32` becomes two of bfloat16, and so does a weight: a product is three. The last warps split K and V, all in each stage.
mod block;
mod consume;
mod produce;
mod split;
mod value;

use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, WARP};

use super::lanes::Fragment;
use super::row::Head;
use super::{Operands, Scheme, Tile};
use crate::{Bounds, Kernel};

pub use block::{BITMAP_WORDS, BLOCK, BlockArgs, BlockEntry, BlockMask, bits_of_pairs, place_of_bit};
pub(super) use block::{BlockKeys, BlockTile};
pub use value::WgmmaValue;

/// Threads of a warpgroup.
const WARPGROUP: u32 = 4 * WARP;
/// Bytes of a panel, 64 columns of Q, K or V, for a key block of the step.
const PANEL: u32 = BLOCK * 8 * PIECE;
/// Key blocks of a step at most.
const MAX_UNITS: usize = 2;
/// Bytes of eight elements of a row.
const PIECE: u32 = 16;

/// Attention by tiles of `GROUPS` × 64 queries, for rows of `PARTS` parts, of up to 2·`L` elements each; `PIECES` is the number of eight
/// elements of a row. A thread has `SCORES` scores of a step, of 64 keys each 32. They may be within a soft cap, and lessened by distance, if it
/// `MODIFIES`: a kernel of its own, as that takes registers.
#[derive(Debug)]
pub struct WgmmaTiles<
    T,
    const L: usize,
    const PARTS: usize,
    const PIECES: usize,
    const SCORES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
>(PhantomData<T>);

/// What a thread works on.
struct Work<T, G> {
    gpu: G,
    head: Head<T>,
    operands: Operands<T>,
    bitmaps: GlobalPtr<u32>,
    /// The tile's first entry, and how many there are.
    entries: GlobalPtr<u32>,
    count: u32,
    /// The tile's first query.
    first: u32,
    /// Queries of the head.
    rows: u32,
}

impl<
    T: WgmmaValue,
    const L: usize,
    const PARTS: usize,
    const PIECES: usize,
    const SCORES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> Kernel for WgmmaTiles<T, L, PARTS, PIECES, SCORES, GROUPS, STAGES, MODIFIES>
{
    type Args = BlockArgs<Operands<T>>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(4 * PIECES == L * PARTS && GROUPS <= 3);
        assert!(SCORES == 32 || SCORES == 64, "a step is of one block of keys or two");
        assert!(Self::QUERIES_COPIED + GROUPS <= 16, "a block has 16 barriers");
        assert!(
            !Self::HALVES || T::PARTS > 1 && GROUPS == 1 && Self::UNITS == 1,
            "one stage is of rows that leave no room for two"
        );
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        Tile {
            value: T::TYPE,
            vector: 16 / size_of::<T>() as u32,
            lanes: PIECES as u32,
            dimension: Self::DIM,
            block_rows: GROUPS * BLOCK,
            scheme: if MODIFIES { Scheme::ModifiedWgmmaTile } else { Scheme::WgmmaTile },
        }
    };
    const THREADS: u32 = GROUPS * WARPGROUP
        + if Self::EXCHANGES_REGISTERS || T::PARTS > 1 { WARPGROUP } else { STAGES * WARP };
    const SHARED_BYTES: u32 = Self::BITMAPS + Self::BITMAP_STAGES * GROUPS * Self::UNITS * BITMAP_WORDS * 4;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: Self::BLOCKS };
    const MIN_SM: u32 = 90;
    const LAUNCHES_DEPENDENTS: bool = Self::BLOCKS == 1;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        // By way of a shuffle the compiler sees that a warp has one trade.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        // SAFETY: the table has a record for each tile of the grid; warps 4·GROUPS and on are the producers.
        unsafe {
            let BlockTile { first, entries, count } = args.tile(gpu);
            let work = Work {
                gpu,
                head: Head::of::<G, MODIFIES>(gpu, &args.operands, gpu.block_idx_x()),
                operands: args.operands,
                bitmaps: args.bitmaps,
                entries,
                count,
                first,
                rows: args.operands.shape.rows,
            };
            if warp >= 4 * GROUPS {
                if Self::EXCHANGES_REGISTERS && T::PARTS > 1 {
                    gpu.warpgroup_give_registers::<104>();
                } else if Self::EXCHANGES_REGISTERS {
                    gpu.warpgroup_give_registers::<56>();
                }
                let producer = warp - 4 * GROUPS;
                if Self::HALVES {
                    Self::produce_halves(&work, producer);
                } else if T::PARTS > 1 {
                    Self::produce_parts(&work, producer);
                } else if producer < STAGES {
                    Self::produce(&work, producer);
                }
            } else {
                if Self::EXCHANGES_REGISTERS && T::PARTS > 1 && GROUPS == 2 {
                    gpu.warpgroup_take_registers::<200>();
                } else if Self::EXCHANGES_REGISTERS && T::PARTS > 1 {
                    gpu.warpgroup_take_registers::<136>();
                } else if Self::EXCHANGES_REGISTERS && GROUPS == 2 {
                    gpu.warpgroup_take_registers::<224>();
                } else if Self::EXCHANGES_REGISTERS {
                    gpu.warpgroup_take_registers::<152>();
                }
                let mut again = Self::consume(&work, warp);
                let group = warp / 4;
                while again != 0 {
                    let query = warp % 4 * 16 + again.trailing_zeros();
                    again &= again - 1;
                    let end = work.count * BLOCK;
                    let keys = BlockKeys { entries: work.entries, bitmaps: args.bitmaps, end, group, query };
                    // By way of a shuffle, so that no register holds it through all steps.
                    let head = if MODIFIES || PARTS > 1 {
                        gpu.warp_shuffle_idx(FULL_WARP, gpu.block_idx_x(), 0, WARP)
                    } else {
                        gpu.block_idx_x()
                    };
                    let head = Head::of::<G, MODIFIES>(gpu, &args.operands, head);
                    let row = first + group * BLOCK + query;
                    // Sums of the products keep their registers here, too: a lane has little at a time.
                    if T::PARTS > 1 && PARTS > 1 {
                        Fragment::<4, 32, 2>::attend::<_, _, 4, MODIFIES>(gpu, &head, row, keys, [0, end]);
                    } else {
                        Fragment::<4, PIECES, 2>::attend::<_, _, 1, MODIFIES>(
                            gpu,
                            &head,
                            row,
                            keys,
                            [0, end],
                        );
                    }
                }
            }
        }
    }
}

/// Where things lie in shared memory, and the block's barriers.
impl<
    T: WgmmaValue,
    const L: usize,
    const PARTS: usize,
    const PIECES: usize,
    const SCORES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> WgmmaTiles<T, L, PARTS, PIECES, SCORES, GROUPS, STAGES, MODIFIES>
{
    /// Elements of a row at most.
    const DIM: u32 = 2 * (L * PARTS) as u32;
    /// Key blocks of a step, and keys.
    const UNITS: u32 = SCORES as u32 / 32;
    const KEYS: u32 = Self::UNITS * BLOCK;
    /// Bytes of K, and of V, in a stage: panels of 64 elements of all keys, part by part. Panels begin at multiples of 1024 bytes.
    const KV_PART: u32 = Self::KEYS * Self::DIM * 2;
    const KV_BYTES: u32 = T::PARTS * Self::KV_PART;
    /// Where K lies: in panels like V.
    const K: u32 = STAGES * Self::KV_BYTES;
    /// Bytes of Q, of a warpgroup: likewise.
    const Q_PART: u32 = BLOCK * Self::DIM * 2;
    const Q_BYTES: u32 = T::PARTS * Self::Q_PART;
    const Q: u32 = Self::K + STAGES * Self::KV_BYTES;
    /// Bitmaps: by slot, group and block. Slots are the stages; of numbers in parts twice as many, so that more than one barrier stands between a
    /// read and the next write: racecheck takes one at which readers only arrive for none.
    const BITMAPS: u32 = Self::Q + GROUPS * Self::Q_BYTES;
    const BITMAP_STAGES: u32 = if T::PARTS > 1 { 2 * STAGES } else { STAGES };

    /// Thread blocks of a multiprocessor at least.
    const BLOCKS: u32 = if GROUPS == 1 && Self::SHARED_BYTES <= 113 * 1024 { 2 } else { 1 };

    /// Barriers: of an empty stage, of one that is full for a group, and of a group's own. Where there is one stage, they are those of V, and K
    /// has its own.
    const EMPTY: u32 = 1;
    const FULL: u32 = Self::EMPTY + STAGES;
    const QUERIES_COPIED: u32 = Self::FULL + STAGES * GROUPS;
    const HALVES: bool = STAGES == 1;
    const EMPTY_OF_KEYS: u32 = Self::QUERIES_COPIED + GROUPS;
    const FULL_OF_KEYS: u32 = Self::EMPTY_OF_KEYS + 1;
    /// Threads at the barrier of a stage that is full, for each warpgroup; and that is empty.
    const AT_FULL: u32 = WARPGROUP + T::PRODUCERS;
    const AT_EMPTY: u32 = GROUPS * WARPGROUP + T::PRODUCERS;

    /// Three warpgroups with scores that are changed or with `f32`, and two with such scores or with long rows, need more registers than a thread of 12 or 16 warps can have:
    /// they get those of one warpgroup more, the producers, of which some have no stage. Of 3 · 168 registers these have 56 and two have 224
    /// each, of 4 · 128 they have 56 and three have 152. Producers that split numbers have 104,
    /// and leave two 200 and three 136.
    const EXCHANGES_REGISTERS: bool =
        MODIFIES && GROUPS > 1 || GROUPS == 2 && L * PARTS == 128 || GROUPS == 3 && T::PARTS > 1;

    /// Where the bitmaps of a step lie.
    #[inline(always)]
    const fn bitmap_stage(step: u32, stage: u32) -> u32 {
        if T::PARTS > 1 { step % Self::BITMAP_STAGES } else { stage }
    }

    /// The number of a block in a stage, for a group.
    #[inline(always)]
    const fn slot(stage: u32, group: u32, unit: u32) -> u32 {
        (stage * GROUPS + group) * Self::UNITS + unit
    }
}

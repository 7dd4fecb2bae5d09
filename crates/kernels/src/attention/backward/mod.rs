//! Gradients of attention by blocks of 64 queries and 64 keys, by warpgroups (wgmma of sm_90a).
//!
//! ```text
//!   a thread block owns queries: dQ                        a thread block owns keys: dK and dV
//!   P  = 2^(scale·Q·Kᵀ + shift)  ─ mask                    Pᵀ  = 2^(scale·K·Qᵀ + shift)  ─ mask    dV += Pᵀ·dO
//!   dS = P ⊙ (dO·Vᵀ − delta)     dQ += dS·K                dSᵀ = Pᵀ ⊙ (V·dOᵀ − delta)             dK += dSᵀ·Q
//! ```
//! Scores are worked out anew, from what the forward pass left: O and the logarithm of each row's sum. `shift` is that logarithm,
//! negative, as a power of two, and `delta` the sum of dO ⊙ O along a row. The first kernel writes both for the second.
//! A thread block owns `GROUPS` × 64 rows of two matrices, a warpgroup each, and goes along the blocks of the two others that any of them
//! sees, through `STAGES` stages. All four lie in swizzled panels, which products take by rows and by columns. P and dS go from product to
//! product in registers, rounded to `T`. A row that comes out not finite is worked out anew, pair by pair.
//!
//! Where two gradients of long rows are too much for a thread, two warpgroups divide the work on 64 keys: one makes P and dV, the other dS
//! and dK, and P goes through shared memory. Of `f32` a number becomes two of bfloat16, and a product three, as forward; where rows of
//! it are so long that 64 of what streams have no room, a step is half a block. A lone warpgroup with d up to 64 shares its multiprocessor with
//! another thread block. [`BackwardMmaTiles`] are the same by warps.
//!
//! Source: Dao, *FlashAttention-2* (2023), algorithm 2, with a kernel for each side in place of its atomic additions, so that sums have
//! one order.
mod begin;
mod consume;
mod divide;
mod exact;
mod mma;
mod modified;
mod multiply;
mod produce;
mod side;
mod weights;
mod write;

use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, WARP};

pub use self::mma::BackwardMmaTiles;
use self::side::Side;
use super::score::Score;
use super::wgmma::{BITMAP_WORDS, BLOCK, BlockArgs, BlockTile, WgmmaValue};
use super::{Scheme, Shape, Tile};
use crate::{Bounds, Kernel};

/// Threads of a warpgroup.
const WARPGROUP: u32 = 4 * WARP;
/// Scores of a thread, of a block.
const SCORES: usize = BLOCK as usize / 2;
/// Numbers of a thread in pairs, as products take them, and in parts.
type Pairs = [[u32; 2]; SCORES / 2];
/// Bytes of a row of a panel: 64 elements.
const ROW: u32 = 128;
/// Bytes of a panel: 64 columns of 64 rows.
const PANEL: u32 = BLOCK * ROW;
/// Numbers that the first kernel leaves of a query: its shift and its delta.
pub const TERMS: usize = 2;

/// The operands of a backward pass. Gradients lie as what they are gradients of.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BackwardOperands<T> {
    /// Q, K and V as they were forward, and the O that came of them.
    pub q: GlobalPtr<T>,
    /// K.
    pub k: GlobalPtr<T>,
    /// V.
    pub v: GlobalPtr<T>,
    /// O.
    pub o: GlobalPtr<T>,
    /// The gradient of O.
    pub d_o: GlobalPtr<T>,
    /// The gradient of Q.
    pub d_q: GlobalMut<T>,
    /// The gradient of K.
    pub d_k: GlobalMut<T>,
    /// The gradient of V.
    pub d_v: GlobalMut<T>,
    /// The natural logarithm of each row's sum of exponentials, `rows` for each head.
    pub logsumexp: GlobalPtr<f32>,
    /// [`TERMS`] numbers a query, `rows` for each head: written where queries are owned, read where keys are.
    pub terms: GlobalMut<f32>,
    /// What a step of distance takes of a score, for each head; address 0 where it takes nothing.
    pub slopes: GlobalPtr<f32>,
    /// Sizes of Q, K, V and O, and how they lie.
    pub shape: Shape,
    /// Multiplies the products of Q and K: the scale.
    pub factor: f32,
}

/// Gradients by tiles of `GROUPS` × 64 rows of `PARTS` parts, of up to 2·`L` elements each: of K and V if `KEYS`, by the blocks of the
/// transposed mask; of Q if not. Scores may be changed if it `MODIFIES`, as forward.
#[derive(Debug)]
pub struct BackwardTiles<
    T,
    const KEYS: bool,
    const L: usize,
    const PARTS: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
>(PhantomData<T>);

/// What a thread works on.
struct Work<T, G> {
    gpu: G,
    operands: BackwardOperands<T>,
    bitmaps: GlobalPtr<u32>,
    /// The tile's first entry, and how many there are.
    entries: GlobalPtr<u32>,
    count: u32,
    /// Head of what is owned, and the tile's first row there.
    head: u32,
    first: u32,
    /// How many heads are gone through, with all entries each.
    heads: u32,
}

impl<
    T: WgmmaValue,
    const KEYS: bool,
    const L: usize,
    const PARTS: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> Kernel for BackwardTiles<T, KEYS, L, PARTS, GROUPS, STAGES, MODIFIES>
{
    type Args = BlockArgs<BackwardOperands<T>>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(L.is_multiple_of(32) && Self::WARPGROUPS <= 3);
        assert!(
            !Self::HALVES || T::PARTS > 1 && STAGES == 1,
            "shared memory has no room for more of such rows"
        );
        assert!(!Self::DIVIDES || GROUPS == 1, "the two that divide the work are the only ones");
        let barriers = if Self::DIVIDES { Self::READ + 1 } else { Self::WRITTEN };
        assert!(barriers <= 16, "a block has 16 barriers");
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        Tile {
            value: T::TYPE,
            vector: 16 / size_of::<T>() as u32,
            lanes: (L * PARTS) as u32 / 4,
            dimension: 2 * (L * PARTS) as u32,
            block_rows: GROUPS * BLOCK,
            scheme: if MODIFIES {
                Scheme::ModifiedBackwardTile { owns_keys: KEYS }
            } else {
                Scheme::BackwardTile { owns_keys: KEYS }
            },
        }
    };
    const THREADS: u32 = Self::WARPGROUPS * WARPGROUP
        + if Self::EXCHANGES_REGISTERS || T::PARTS > 1 { WARPGROUP } else { STAGES * WARP };
    const SHARED_BYTES: u32 = Self::WEIGHTS + Self::WEIGHT_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: Self::MIN_BLOCKS };
    const MIN_SM: u32 = 90;
    // Else thread blocks of the next launch take the room of short tiles that have ended, and two of the longest tiles share a multiprocessor.
    const LAUNCHES_DEPENDENTS: bool = Self::MIN_BLOCKS == 1;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        // By way of a shuffle the compiler sees that a warp has one trade.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        // SAFETY: the table has a record for each tile of the grid; what comes after the warpgroups that multiply are the producers.
        unsafe {
            let work = Work::of::<KEYS>(gpu, &args);
            if warp >= 4 * Self::WARPGROUPS {
                if Self::EXCHANGES_REGISTERS && Self::MIN_BLOCKS == 2 && T::PARTS > 1 {
                    gpu.warpgroup_give_registers::<72>();
                } else if Self::EXCHANGES_REGISTERS && Self::MIN_BLOCKS == 2 {
                    gpu.warpgroup_give_registers::<40>();
                } else if Self::EXCHANGES_REGISTERS && Self::HALVES && MODIFIES {
                    gpu.warpgroup_give_registers::<88>();
                } else if Self::EXCHANGES_REGISTERS && T::PARTS > 1 {
                    gpu.warpgroup_give_registers::<120>();
                } else if Self::DIVIDES {
                    gpu.warpgroup_give_registers::<24>();
                } else if Self::EXCHANGES_REGISTERS && Self::WARPGROUPS == 2 {
                    gpu.warpgroup_give_registers::<40>();
                } else if Self::EXCHANGES_REGISTERS {
                    gpu.warpgroup_give_registers::<32>();
                }
                let stage = warp - 4 * Self::WARPGROUPS;
                if Self::HALVES && MODIFIES {
                    Self::produce_halves::<G, 2>(&work);
                } else if Self::HALVES {
                    Self::produce_halves::<G, 4>(&work);
                } else if T::PARTS > 1 {
                    Self::produce_parts(&work);
                } else if stage < STAGES {
                    Self::produce(&work, stage);
                }
            } else {
                if Self::EXCHANGES_REGISTERS && Self::MIN_BLOCKS == 2 && T::PARTS > 1 {
                    gpu.warpgroup_take_registers::<184>();
                } else if Self::EXCHANGES_REGISTERS && Self::MIN_BLOCKS == 2 {
                    gpu.warpgroup_take_registers::<216>();
                } else if Self::EXCHANGES_REGISTERS && Self::HALVES && MODIFIES {
                    gpu.warpgroup_take_registers::<208>();
                } else if Self::EXCHANGES_REGISTERS && T::PARTS > 1 {
                    gpu.warpgroup_take_registers::<192>();
                } else if Self::DIVIDES {
                    gpu.warpgroup_take_registers::<240>();
                } else if Self::EXCHANGES_REGISTERS && Self::WARPGROUPS == 2 {
                    gpu.warpgroup_take_registers::<232>();
                } else if Self::EXCHANGES_REGISTERS {
                    gpu.warpgroup_take_registers::<160>();
                }
                match (Self::DIVIDES, Self::HALVES) {
                    (false, false) => Self::consume::<G, SCORES>(&work, warp),
                    (false, true) => Self::consume::<G, { SCORES / 2 }>(&work, warp),
                    (true, false) => Self::divide::<G, SCORES>(&work, warp),
                    (true, true) => Self::divide::<G, { SCORES / 2 }>(&work, warp),
                }
            }
        }
    }
}

/// Where things lie in shared memory, and the block's barriers.
impl<
    T: WgmmaValue,
    const KEYS: bool,
    const L: usize,
    const PARTS: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> BackwardTiles<T, KEYS, L, PARTS, GROUPS, STAGES, MODIFIES>
{
    /// Thread blocks of a multiprocessor: two where a lone warpgroup has few sums, so that one multiplies while the other makes weights.
    const MIN_BLOCKS: u32 = if Self::WARPGROUPS == 1 && L * PARTS == 32 { 2 } else { 1 };
    /// Whether two warpgroups divide the work on 64 rows.
    const DIVIDES: bool = KEYS && T::PARTS as usize * L * PARTS > 64;
    /// Warpgroups that multiply.
    const WARPGROUPS: u32 = if Self::DIVIDES { 2 } else { GROUPS };

    /// Panels of a row, of each part of its numbers.
    const PANELS: u32 = (L * PARTS) as u32 / 32;
    /// Bytes of 64 rows of a matrix, of a part of its numbers and of all; and of two matrices.
    const PART: u32 = Self::PANELS * PANEL;
    const MATRIX: u32 = T::PARTS * Self::PART;
    const PAIR: u32 = 2 * Self::MATRIX;
    /// Whether a step is half a block, as shared memory has no room for 64 rows of what streams; and its steps.
    const HALVES: bool = T::PARTS as usize * L * PARTS > 128;
    const STEPS: u32 = if Self::HALVES { 2 } else { 1 };
    /// Rows of what streams in a step, and bytes of a panel of them, of a part, of a matrix, and of two.
    const ROWS: u32 = BLOCK / Self::STEPS;
    const STREAMED_PANEL: u32 = PANEL / Self::STEPS;
    const STREAMED_PART: u32 = Self::PART / Self::STEPS;
    const STREAMED: u32 = Self::MATRIX / Self::STEPS;
    const STREAMED_PAIR: u32 = Self::PAIR / Self::STEPS;
    /// What streams comes first, then what is owned.
    const OWNED: u32 = STAGES * Self::STREAMED_PAIR;
    /// The terms of a step's queries, where keys are owned.
    const TERM_BYTES: u32 = if KEYS { Self::ROWS * TERMS as u32 * 4 } else { 0 };
    const TERMS: u32 = Self::OWNED + GROUPS * Self::PAIR;
    /// Slots of terms and bitmaps: the stages; of numbers in parts twice as many, so that more than one barrier stands between a read and the next
    /// write: racecheck takes one at which readers only arrive for none.
    const SLOTS: u32 = if T::PARTS > 1 { 2 * STAGES } else { STAGES };
    /// Bitmaps: by slot and group.
    const BITMAPS: u32 = Self::TERMS + Self::SLOTS * Self::TERM_BYTES;
    /// Weights that one warpgroup gives to the other, where two divide the work.
    const WEIGHTS: u32 = Self::BITMAPS + Self::SLOTS * GROUPS * BITMAP_WORDS * 4;
    const WEIGHT_BYTES: u32 = if Self::DIVIDES { SCORES as u32 / Self::STEPS * WARPGROUP * 4 } else { 0 };

    /// Barriers: of an empty stage, of one that is full for a warpgroup, of a warpgroup's own; and of weights that are written, and read.
    const EMPTY: u32 = 1;
    const FULL: u32 = Self::EMPTY + STAGES;
    const COPIED: u32 = Self::FULL + STAGES * Self::WARPGROUPS;
    const WRITTEN: u32 = Self::COPIED + Self::WARPGROUPS;
    const READ: u32 = Self::WRITTEN + 1;
    /// Threads at the barrier of a stage that is full, for each warpgroup; and that is empty.
    const AT_FULL: u32 = WARPGROUP + T::PRODUCERS;
    const AT_EMPTY: u32 = Self::WARPGROUPS * WARPGROUP + T::PRODUCERS;

    /// Three warpgroups with two gradients each, two with such of `f32` or of long rows, and two or three that change scores, need more registers
    /// than a thread of 12 or 16 warps can have: they get those of one warpgroup more, the producers, of which some may have no stage. Of
    /// 3 · 168 registers these have 40 and two have 232 each (24 and 240 where two divide the work), of 4 · 128 they have 32 and three have
    /// 160. Producers that split numbers have 120, and leave two 192; those that split half blocks and leave changed scores 208 have 88.
    /// Of two thread blocks' 2 · 128 registers each, a lone warpgroup has 216, or 184 beside producers that split numbers.
    const EXCHANGES_REGISTERS: bool = match Self::WARPGROUPS {
        1 => Self::MIN_BLOCKS == 2 && (KEYS || MODIFIES) && (STAGES == 4 || T::PARTS > 1),
        2 => MODIFIES || Self::DIVIDES || KEYS && T::PARTS > 1,
        _ => MODIFIES || KEYS,
    };

    /// Whether producers that split numbers load one matrix ahead, and not two: they have few registers beside changed scores, and in a kernel of K
    /// and V of which a multiprocessor has two thread blocks.
    const LOADS_LATE: bool = MODIFIES || Self::MIN_BLOCKS == 2 && KEYS;

    /// The slot of a step's terms and bitmaps.
    #[inline(always)]
    const fn slot(step: u32, stage: u32) -> u32 {
        if T::PARTS > 1 { step % Self::SLOTS } else { stage }
    }

    /// Where the terms of a slot begin.
    #[inline(always)]
    const fn terms(slot: u32) -> u32 {
        Self::TERMS + slot * Self::TERM_BYTES
    }

    /// Where a group's bitmap of a slot begins.
    #[inline(always)]
    const fn bitmap(slot: u32, group: u32) -> u32 {
        Self::BITMAPS + (slot * GROUPS + group) * BITMAP_WORDS * 4
    }
}

impl<T: WgmmaValue, G: Gpu> Work<T, G> {
    /// What this thread block works on.
    ///
    /// # Safety
    /// The table has a record for each tile of the grid.
    #[inline(always)]
    unsafe fn of<const KEYS: bool>(gpu: G, args: &BlockArgs<BackwardOperands<T>>) -> Self {
        // SAFETY: as promised by the caller.
        let BlockTile { first, entries, count } = unsafe { args.tile(gpu) };
        let heads = if KEYS { args.operands.shape.group_heads } else { 1 };
        let (operands, bitmaps, head) = (args.operands, args.bitmaps, gpu.block_idx_x());
        Self { gpu, operands, bitmaps, entries, count, head, first, heads }
    }

    /// The two matrices that are owned.
    #[inline(always)]
    fn owned<const KEYS: bool>(&self) -> Side<T> {
        if KEYS { Side::keys(&self.operands, self.head) } else { Side::queries(&self.operands, self.head) }
    }

    /// The two that stream, of head `index` of those that are gone through.
    #[inline(always)]
    fn streamed<const KEYS: bool>(&self, index: u32) -> Side<T> {
        if KEYS {
            Side::queries(&self.operands, self.query_head::<KEYS>(index))
        } else {
            Side::keys(&self.operands, self.head / self.operands.shape.group_heads)
        }
    }

    /// The queries' head, of those that are gone through.
    #[inline(always)]
    fn query_head<const KEYS: bool>(&self, index: u32) -> u32 {
        if KEYS { self.head * self.heads + index } else { self.head }
    }

    /// Whether scores are products times the scale, of all heads: as arguments say it, which take no registers.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.operands.slopes.address() == 0 && self.operands.shape.softcap == 0.0
    }

    /// How products of the queries' head become scores.
    ///
    /// # Safety
    /// The slopes are live, if there are any.
    #[inline(always)]
    unsafe fn score<const KEYS: bool, const MODIFIES: bool>(&self, index: u32) -> Score {
        let Self { gpu, operands, .. } = self;
        // SAFETY: as promised by the caller.
        unsafe {
            Score::of::<G, MODIFIES>(*gpu, &operands.shape, operands.slopes, self.query_head::<KEYS>(index))
        }
    }

    /// The terms of a head's first query.
    #[inline(always)]
    fn terms<const KEYS: bool>(&self, index: u32) -> GlobalMut<f32> {
        let queries = u64::from(self.query_head::<KEYS>(index)) * u64::from(self.operands.shape.rows);
        self.operands.terms.add(queries as usize * TERMS)
    }
}

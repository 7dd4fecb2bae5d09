//! Tiles of queries and keys by warps, panel by panel: for `f32`, a number in two parts, and for rows that are too long to stay in registers.
//!
//! ```text
//!   a step: half a block of keys                            each warp: 16 queries, O in registers, Q in shared memory
//!
//!     K₀   K₁   V₀   V₁    panels of 32 keys × 64 elements    S  = Q₀·K₀ᵀ             ─┐
//!    ┌──┐ ┌──┐ ┌──┐ ┌──┐                                      S += Q₁·K₁ᵀ ─ mask ─ softmax ─► P
//!    │  │►│  │►│  │►│  │► …  through a ring of slots          O₀ += P·V₀
//!    └──┘ └──┘ └──┘ └──┘                                      O₁ += P·V₁
//! ```
//! A thread block owns `GROUPS` × 64 queries of a head, as [`MmaTiles`](super::MmaTiles) do, by the same lists. All warps fill the ring, with one
//! barrier a panel: in 16 bits by asynchronous copies some panels ahead; in `f32` by way of registers, which hold the panel that comes next
//! while this one is multiplied, and in which its numbers become two of bfloat16 each. A product of these is three, the least first.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::super::lanes::Fragment;
use super::super::row::Head;
use super::super::tile_rows::{MOST_PAIRS, SCORES_OF_BLOCK, Softmax, seen};
use super::super::warp_mask::Seen;
use super::super::warp_products::{
    PANEL, ROW, WARP_ROWS, load_slice, multiply_columns, multiply_rows, place,
};
use super::super::wgmma::{BLOCK, BlockArgs, BlockEntry, BlockMask, WgmmaValue};
use super::super::{Operands, Scheme, Tile};
use super::Work;
use crate::common::{PASSES as PASSES_OF_GROUP, Rows, strided};
use crate::{Bounds, Kernel};

/// Keys of a step, and steps of a block; and a thread's scores of a step. Steps of whole blocks would take more registers than two thread blocks
/// of eight warps have.
const KEYS: u32 = BLOCK / STEPS;
const STEPS: u32 = 2;
const SCORES: usize = SCORES_OF_BLOCK / STEPS as usize;
/// Half the elements of a panel's row.
const L: usize = 32;
/// Slices of 16 elements of a panel.
const SLICES: usize = 4;
/// Pieces of eight elements of a panel's row.
const PIECES_OF_PANEL: u32 = 8;

/// Attention by tiles of `GROUPS` × 64 queries, for rows of up to 64·`PANELS` elements; four warps copy 16 rows of a panel at
/// once, and have `PASSES` times so many. Scores may be within a soft cap, and lessened by distance, if it `MODIFIES`.
#[derive(Debug)]
pub struct MmaPanelTiles<T, const PANELS: usize, const GROUPS: u32, const PASSES: usize, const MODIFIES: bool>(
    PhantomData<T>,
);

/// Steps that are left, this one among them; and the first key of this one and of the next.
#[derive(Clone, Copy)]
struct Steps {
    left: u32,
    keys: [u32; 2],
}

impl<T: WgmmaValue, const PANELS: usize, const GROUPS: u32, const PASSES: usize, const MODIFIES: bool> Kernel
    for MmaPanelTiles<T, PANELS, GROUPS, PASSES, MODIFIES>
{
    type Args = BlockArgs<Operands<T>>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!((PANELS < 4 || GROUPS == 1) && GROUPS as usize * PASSES * 16 == KEYS as usize);
        assert!((2 * PANELS).is_multiple_of(Self::SLOTS), "a step begins with the first slot");
        // Some GPUs of sm_8x have no more.
        assert!(Self::SHARED_BYTES <= 99 * 1024, "a block of sm_86 has 99 KiB");
        Tile {
            value: T::TYPE,
            vector: 16 / size_of::<T>() as u32,
            lanes: 8 * PANELS as u32,
            dimension: 64 * PANELS as u32,
            block_rows: GROUPS * BLOCK,
            scheme: if MODIFIES { Scheme::ModifiedMmaTile } else { Scheme::MmaTile },
        }
    };
    const THREADS: u32 = GROUPS * 4 * WARP;
    const SHARED_BYTES: u32 = Self::Q + GROUPS * T::PARTS * Self::Q_PART;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 0 };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        // SAFETY: the table has a record for each tile of the grid, and describes live memory.
        unsafe {
            let tile = args.tile(gpu);
            let head = Head::of::<G, MODIFIES>(gpu, &args.operands, gpu.block_idx_x());
            // Where rows are longest there is one, which the compiler is to see.
            let group = if PANELS == 4 { 0 } else { warp / 4 };
            let work = Work { gpu, head, tile, bitmaps: args.bitmaps, group };
            Self::attend(&work, &args.operands, warp);
        }
    }
}

impl<T: WgmmaValue, const PANELS: usize, const GROUPS: u32, const PASSES: usize, const MODIFIES: bool>
    MmaPanelTiles<T, PANELS, GROUPS, PASSES, MODIFIES>
{
    /// Slots of the ring; a step begins with the first.
    const SLOTS: usize = if T::PARTS > 1 { 2 } else { 4 };
    /// Bytes of a slot: a panel of each part.
    const SLOT: u32 = T::PARTS * Self::SLOT_PART;
    const SLOT_PART: u32 = KEYS * ROW;
    /// Where Q lies, behind the ring: the panels of a group's first part, then of the second.
    const Q: u32 = Self::SLOTS as u32 * Self::SLOT;
    const Q_PART: u32 = PANELS as u32 * PANEL;

    /// Works out the warp's 16 queries, and writes their rows of O.
    ///
    /// # Safety
    /// The whole thread block is here; head and entries are live.
    #[inline(always)]
    unsafe fn attend<G: Gpu>(work: &Work<T, G>, operands: &Operands<T>, warp: u32) {
        let (gpu, count) = (work.gpu, work.tile.count);
        let first = work.tile.first + warp * WARP_ROWS;
        let mut o = [[0.0; L]; PANELS];
        let mut softmax = Softmax::NEW;
        let scale = if MODIFIES { 1.0 } else { operands.shape.scale };
        // SAFETY: as promised by the caller; a slot is read when all have filled it, and filled when all warps have left it.
        unsafe {
            Self::copy_queries(work, operands.shape.rows);
            let key = |step: u32| {
                let block = BlockEntry::load_key_block(gpu, work.tile.entries, step / STEPS, count);
                block * BLOCK + step % STEPS * KEYS
            };
            let mut steps = Steps { left: STEPS * count, keys: [key(0), key(1)] };
            let mut held = Self::begin(work, &steps);
            let masks = (work.tile.entries, work.bitmaps);
            let mut next = Seen::load(gpu, masks, (0, count), work.group);
            let mut step = 0;
            while steps.left > 0 {
                let now = next;
                next = Seen::load(gpu, masks, ((step + 1) / STEPS, count), work.group);
                let is_seen = now.mask != BlockMask::EMPTY;
                let words = [now.word >> (step % STEPS * SCORES as u32), 0];
                let mut s = [0.0; SCORES];
                if now.mask != BlockMask::FULL {
                    s = seen(words);
                }
                for panel in 0..PANELS {
                    Self::advance(work, &steps, panel, &mut held);
                    if is_seen {
                        Self::multiply_keys(work, warp, panel, &mut s);
                    }
                }
                if MODIFIES && is_seen {
                    work.modify(operands, (first, steps.keys[0]), words, &mut s);
                }
                let mut weights = [[0; 2]; MOST_PAIRS];
                if is_seen {
                    weights = softmax.weigh::<_, T, SCORES, L, PANELS>(gpu, scale, &s, &mut o);
                }
                for (panel, o) in o.iter_mut().enumerate() {
                    Self::advance(work, &steps, PANELS + panel, &mut held);
                    if is_seen {
                        let v = (Self::slot(gpu, PANELS + panel), Self::SLOT_PART);
                        multiply_columns::<G, T, L>(gpu, Self::lane(gpu), &weights[..SCORES / 2], v, o);
                    }
                }
                step += 1;
                steps = Steps { left: steps.left - 1, keys: [steps.keys[1], key(step + 1)] };
            }
            // Nothing is under way when the thread block ends.
            gpu.copy_async_wait::<0>();
            // By way of a shuffle, so that no register holds what is known of the head's rows of O through all steps.
            let head = gpu.warp_shuffle_idx(FULL_WARP, gpu.block_idx_x(), 0, WARP);
            let head = Head::of::<G, MODIFIES>(gpu, operands, head);
            let again = softmax.write(gpu, &head, [first, operands.shape.rows], &o);
            work.each_again(warp, again, |row, keys, places| {
                Fragment::<4, 32, 2>::attend_one_by_one::<_, _, MODIFIES>(gpu, &head, row, keys, places);
            });
        }
    }

    /// Adds the products of a panel of Q and one of K to scores.
    ///
    /// # Safety
    /// The panel's slot is full; the whole warp is here.
    #[inline(always)]
    unsafe fn multiply_keys<G: Gpu>(work: &Work<T, G>, warp: u32, panel: usize, s: &mut [f32; SCORES]) {
        let (gpu, lane) = (work.gpu, Self::lane(work.gpu));
        let q = Self::Q + work.group * T::PARTS * Self::Q_PART + panel as u32 * PANEL;
        let own = |slice: usize| {
            // SAFETY: as promised by the caller: Q came before the first panel.
            unsafe { load_slice::<G, T>(gpu, lane, (q, Self::Q_PART), warp % 4 * WARP_ROWS, slice) }
        };
        // SAFETY: as promised by the caller.
        unsafe {
            let k = (Self::slot(gpu, panel), Self::SLOT_PART);
            multiply_rows::<G, T, SCORES>(gpu, lane, SLICES, own, k, s);
        }
    }

    /// Where panel `at` of a step lies: those of K come first. By way of a shuffle, so that no register holds places in it through all steps.
    #[inline(always)]
    fn slot<G: Gpu>(gpu: G, at: usize) -> u32 {
        gpu.warp_shuffle_idx(FULL_WARP, (at % Self::SLOTS) as u32 * Self::SLOT, 0, WARP)
    }

    /// The lane, likewise.
    #[inline(always)]
    fn lane<G: Gpu>(gpu: G) -> u32 {
        gpu.warp_shuffle_idx(FULL_WARP, gpu.lane_id(), gpu.lane_id(), WARP)
    }

    /// Copies the group's queries into panels, by its warps, or begins to. Zeros stand for what is not there.
    ///
    /// # Safety
    /// As for [`attend`](Self::attend).
    #[inline(always)]
    unsafe fn copy_queries<G: Gpu>(work: &Work<T, G>, end: u32) {
        let (gpu, head) = (work.gpu, &work.head);
        let q = Self::Q + work.group * T::PARTS * Self::Q_PART;
        let first = work.tile.first + work.group * BLOCK;
        let rows = Rows { matrix: head.q, first, end, stride_bytes: head.q_stride };
        for panel in 0..PANELS as u32 {
            // SAFETY: as promised by the caller.
            unsafe {
                if T::PARTS > 1 {
                    let loaded = T::load::<G, PASSES_OF_GROUP>(gpu, &rows, [64 * panel, head.dim]);
                    T::store::<G, PASSES_OF_GROUP>(gpu, &loaded, q + panel * PANEL, Self::Q_PART);
                } else {
                    let threads = (gpu.thread_idx_x() % (4 * WARP), 4 * WARP);
                    Self::copy(gpu, &rows, (BLOCK, 64 * panel, head.dim), q + panel * PANEL, threads);
                }
            }
        }
    }

    /// Starts copying so many rows of a panel of 16 bits, from a column on, by thread `thread` of `threads`.
    ///
    /// # Safety
    /// Nobody uses the place; rows are live.
    #[inline(always)]
    unsafe fn copy<G: Gpu>(
        gpu: G,
        rows: &Rows<T>,
        (count, column, dim): (u32, u32, u32),
        to: u32,
        (thread, threads): (u32, u32),
    ) {
        let (piece, row) = (thread % PIECES_OF_PANEL, thread / PIECES_OF_PANEL);
        let column = column + 8 * piece;
        let has_piece = column < dim;
        strided(row, count, threads / PIECES_OF_PANEL, |row| {
            let is_there = has_piece && rows.first + row < rows.end;
            let from = rows.at(row, if has_piece { column } else { 0 }).address();
            let (to, from) = (SharedPtr::from_offset(place(to, row, piece)), GlobalPtr::from_address(from));
            // SAFETY: as promised by the caller; nothing is read of what is not there.
            unsafe { gpu.copy_async_or_zero::<u16, 8>(to, from, is_there) };
        });
    }

    /// The rows of panel `at` of a step, and their first column: of the next step where `at` goes on.
    #[inline(always)]
    fn rows<G: Gpu>(work: &Work<T, G>, steps: &Steps, at: usize) -> (Rows<T>, u32) {
        let (step, at) = (at / (2 * PANELS), at % (2 * PANELS));
        let head = &work.head;
        let matrix = if at < PANELS { head.k } else { head.v };
        let end = if step < steps.left as usize { head.cols } else { 0 };
        let rows = Rows { matrix, first: steps.keys[step], end, stride_bytes: head.kv_stride };
        (rows, (at % PANELS) as u32 * 64)
    }

    /// What this thread's group holds of panel `at` of a step, in `f32`.
    ///
    /// # Safety
    /// As for [`attend`](Self::attend).
    #[inline(always)]
    unsafe fn load<G: Gpu>(work: &Work<T, G>, steps: &Steps, at: usize) -> T::Loaded<PASSES> {
        let (mut rows, column) = Self::rows(work, steps, at);
        rows.first += work.group * (KEYS / GROUPS);
        // SAFETY: as promised by the caller.
        unsafe { T::load::<G, PASSES>(work.gpu, &rows, [column, work.head.dim]) }
    }

    /// Starts copying panel `at` of a step, in 16 bits, and ends a group of copies.
    ///
    /// # Safety
    /// Nobody uses its slot; head and entries are live.
    #[inline(always)]
    unsafe fn copy_panel<G: Gpu>(work: &Work<T, G>, steps: &Steps, at: usize) {
        let gpu = work.gpu;
        let (rows, column) = Self::rows(work, steps, at);
        let threads = (gpu.thread_idx_x(), Self::THREADS);
        // SAFETY: as promised by the caller.
        unsafe {
            Self::copy(gpu, &rows, (KEYS, column, work.head.dim), Self::slot(gpu, at), threads);
        }
        gpu.copy_async_commit();
    }

    /// Starts filling the ring: gives what is held of the first panel.
    ///
    /// # Safety
    /// As for [`attend`](Self::attend).
    #[inline(always)]
    unsafe fn begin<G: Gpu>(work: &Work<T, G>, steps: &Steps) -> T::Loaded<PASSES> {
        // SAFETY: as promised by the caller; nobody uses the ring.
        unsafe {
            if T::PARTS == 1 {
                for at in 0..Self::SLOTS - 1 {
                    Self::copy_panel(work, steps, at);
                }
            }
            Self::load(work, steps, 0)
        }
    }

    /// Waits until the slot of panel `at` of a step is full and all warps have left the panel before, and starts with a panel that comes later.
    ///
    /// # Safety
    /// As for [`attend`](Self::attend).
    #[inline(always)]
    unsafe fn advance<G: Gpu>(work: &Work<T, G>, steps: &Steps, at: usize, held: &mut T::Loaded<PASSES>) {
        let gpu = work.gpu;
        // SAFETY: as promised by the caller. What is filled all warps have left: in `f32` by the barrier of the panel before, else by this one.
        unsafe {
            if T::PARTS > 1 {
                let to = Self::slot(gpu, at) + work.group * (KEYS / GROUPS) * ROW;
                T::store::<G, PASSES>(gpu, held, to, Self::SLOT_PART);
                *held = Self::load(work, steps, at + 1);
                gpu.sync_threads();
            } else {
                gpu.copy_async_wait::<2>();
                gpu.sync_threads();
                Self::copy_panel(work, steps, at + Self::SLOTS - 1);
            }
        }
    }
}

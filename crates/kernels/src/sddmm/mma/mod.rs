//! SDDMM on tensor cores: compute as dense, keep what C has.
//!
//! ```text
//!              B  N×K  ┌──────────┐         A block owns BM×BN elements of A·Bᵀ and goes along K, 128 bytes of
//!                      │ BN rows  │         each row at a time. Three stages of shared memory hold BM rows of A and BN
//!                      └──────────┘         rows of B, filled by asynchronous copies two steps ahead. Its warps
//!   A  M×K ┌───────┐  ┌────────────┐        multiply 8·RT rows by 32 columns each.
//!          │ BM    │  │ x  x   x   │        At the end all sums are written to where the stages were. From there
//!          │ rows  │  │   x  x    x│        warps take those that C has, by [`Subtiles`](super::Subtiles).
//!          └───────┘  └────────────┘        The host lists the tiles that C has something of.
//!                       D  M×N
//! ```
//! It pays where C is not too sparse: a row of B comes once for BM rows, where [`NonzeroSplit`](super::NonzeroSplit) loads it for
//! each nonzero.
mod operand;
mod stage;

use core::marker::PhantomData;

use lacuna_gpu::{Gpu, SharedPtr, WARP};

pub use operand::TileOperand;
use stage::{Source, Stage};

use super::fallback::fallback;
use super::subtiles::{AT_ONCE, SubtileNonzeros};
use super::{Operands, Scheme, Subtiles, Tile, TileArgs};
use crate::{Bounds, DeviceValue, IndexType, Kernel};

/// Columns of a warp's part: two products of 16.
const COLUMNS: u32 = 32;
/// Products of a warp along the columns.
const NT: usize = COLUMNS as usize / 16;
/// Stages of shared memory.
const STAGES: u32 = 3;

/// SDDMM by tiles, with operands `O`: a block of `WM`×`WN` warps, each with 8·`RT` rows and 32 columns.
#[derive(Debug)]
pub struct MmaTiles<O, const RT: usize, const WM: u32, const WN: u32>(PhantomData<O>);

impl<O: TileOperand, const RT: usize, const WM: u32, const WN: u32> Kernel for MmaTiles<O, RT, WM, WN> {
    type Args = TileArgs<O::Value>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(RT >= 1 && RT <= 8, "a warp's accumulators fit its registers");
        assert!(Self::THREADS <= 1024, "a block has at most 1024 threads");
        assert!(Self::BM * Self::PITCH * 4 <= Self::SHARED_BYTES, "sums fit where the stages were");
        assert!(
            Self::BM.is_multiple_of(Subtiles::ROWS) && Self::BN.is_multiple_of(Subtiles::COLUMNS),
            "whole subtiles"
        );
        Tile {
            value: O::Value::TYPE,
            index: IndexType::U32,
            vector: O::VECTOR,
            block_items: Self::BM,
            scheme: Scheme::MmaTile { columns: Self::BN, arithmetic: O::ARITHMETIC },
        }
    };
    const THREADS: u32 = WM * WN * WARP;
    const SHARED_BYTES: u32 = STAGES * Self::STAGE_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: Self::BLOCKS };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TileArgs<O::Value>) {
        let args = TileArgs { operands: args.operands.rebased_for_z(gpu.block_idx_z()), ..args };
        // SAFETY: the arguments describe live memory; all threads are here.
        unsafe {
            let tile = args.tile(gpu, gpu.block_idx_x());
            let warp = gpu.thread_idx_x() / WARP;
            let part = [warp % WM, warp / WM];
            // What says where the nonzeros are is loaded before the products, where registers allow; their places before sums
            // are exchanged.
            let load =
                || [0, 1].map(|i| SubtileNonzeros::of(gpu, &args.subtiles, Self::subtile(tile, warp, i).0));
            let early = if O::TRUNCATES { None } else { Some(load()) };
            let accumulators = Self::multiply_all(gpu, &args, tile, part);
            let own = early.unwrap_or_else(load);
            let places = [0, 1].map(|i: usize| own[i].places(gpu, &args.subtiles));
            Self::put(gpu, part, &accumulators);
            Self::store(gpu, &args, tile, warp, own, places);
        }
    }
}

/// A warp's accumulators: of 8 rows and 16 columns each, transposed as [`Gpu::mma_tf32`] has them.
type Accumulators<const RT: usize> = [[[f32; 4]; NT]; RT];

impl<O: TileOperand, const RT: usize, const WM: u32, const WN: u32> MmaTiles<O, RT, WM, WN> {
    /// Rows of a block.
    const BM: u32 = WM * RT as u32 * 8;
    /// Columns of a block.
    const BN: u32 = WN * COLUMNS;
    /// Blocks that share a multiprocessor: with 384 threads each has 168 registers, and stages take 227 KiB at most.
    const BLOCKS: u32 = if Self::THREADS < 384 { 384 / Self::THREADS } else { 1 };
    const STAGE_BYTES: u32 = (Self::BM + Self::BN) * Stage::ROW;
    /// Sums from one row to the next: four more keep those that are written together on different banks.
    const PITCH: u32 = Self::BN + 4;

    /// Multiplies the rows of the block along its K.
    ///
    /// # Safety
    /// The arguments describe live memory; all threads are here.
    #[inline(always)]
    unsafe fn multiply_all<G: Gpu>(
        gpu: G,
        args: &TileArgs<O::Value>,
        [row, column]: [u32; 2],
        [m, n]: [u32; 2],
    ) -> Accumulators<RT> {
        let Operands { a, b, items, k, a_stride_bytes, b_stride_bytes, .. } = args.operands;
        let of_a = Source { rows: a, first: row, end: items, stride_bytes: a_stride_bytes };
        let of_b = Source { rows: b, first: column, end: args.cols, stride_bytes: b_stride_bytes };
        let steps = k.div_ceil(O::STEP);
        let stage = |step: u32| Stage::at(step % STAGES * Self::STAGE_BYTES);
        let fill = |step: u32| {
            if step < steps {
                // SAFETY: nobody reads the stage: it was read before the last barrier, or never.
                unsafe {
                    let to = stage(step);
                    to.fill::<G, O, { WM }, { WN }>(gpu, &of_a, Self::BM, k, step);
                    to.after(Self::BM).fill::<G, O, { WM }, { WN }>(gpu, &of_b, Self::BN, k, step);
                }
            }
            gpu.copy_async_commit();
        };
        let mut accumulators = [[[0.0; 4]; NT]; RT];
        for step in 0..STAGES - 1 {
            fill(step);
        }
        for step in 0..steps {
            gpu.copy_async_wait::<{ STAGES - 2 }>();
            gpu.sync_threads();
            fill(step + STAGES - 1);
            let a = stage(step).after(m * RT as u32 * 8);
            let b = stage(step).after(Self::BM + n * COLUMNS);
            for half in 0..2 {
                // SAFETY: the stage is filled, and its rows are the block's.
                unsafe {
                    let mut x = [[O::Word::default(); 4]; RT];
                    for (r, x) in x.iter_mut().enumerate() {
                        *x = a.load(gpu, r as u32 * 8, half);
                    }
                    let mut w = [[[O::Word::default(); 4]; 2]; NT];
                    for (i, w) in w.as_flattened_mut().iter_mut().enumerate() {
                        *w = b.load(gpu, i as u32 * 8, half);
                    }
                    O::multiply(gpu, &x, &w, &mut accumulators);
                }
            }
        }
        gpu.copy_async_wait::<0>();
        accumulators
    }

    /// Writes a warp's accumulators to where the stages were.
    ///
    /// # Safety
    /// All threads are here.
    #[inline(always)]
    unsafe fn put<G: Gpu>(gpu: G, [m, n]: [u32; 2], accumulators: &Accumulators<RT>) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        let first = (m * RT as u32 * 8 + 2 * t) * Self::PITCH + n * COLUMNS + g;
        // All have read the last stage.
        gpu.sync_threads();
        for (r, accumulators) in accumulators.iter().enumerate() {
            for odd in 0..2 {
                for i in 0..2 * NT {
                    let sum = accumulators[i / 2][odd + i % 2 * 2];
                    let at = first + (r * 8 + odd) as u32 * Self::PITCH + i as u32 * 8;
                    // SAFETY: the place is this lane's alone.
                    unsafe { gpu.shared_store(SharedPtr::from_offset(at * 4), [sum]) };
                }
            }
        }
        gpu.sync_threads();
    }

    /// The first row and column of D of a warp's subtile `i`, and where its sums begin; outside of D where it has fewer.
    #[inline(always)]
    fn subtile([row, column]: [u32; 2], warp: u32, i: u32) -> ([u32; 2], SharedPtr<f32>) {
        const {
            let subtiles = Self::BM / Subtiles::ROWS * (Self::BN / Subtiles::COLUMNS);
            assert!(subtiles <= 2 * WM * WN, "a warp has two subtiles at most");
        }
        let across = Self::BN / Subtiles::COLUMNS;
        let index = warp + i * WM * WN;
        let first = [index / across * Subtiles::ROWS, index % across * Subtiles::COLUMNS];
        let at = if first[0] < Self::BM { [row + first[0], column + first[1]] } else { [u32::MAX; 2] };
        (at, SharedPtr::from_offset((first[0] * Self::PITCH + first[1]) * 4))
    }

    /// Writes those of the tile's sums that C has: a warp takes its subtiles.
    ///
    /// # Safety
    /// The sums are there; D has C's nonzeros, and those of the tile are this block's alone; the whole warp is here.
    #[inline(always)]
    unsafe fn store<G: Gpu>(
        gpu: G,
        args: &TileArgs<O::Value>,
        tile: [u32; 2],
        warp: u32,
        own: [SubtileNonzeros; 2],
        places: [[u32; AT_ONCE]; 2],
    ) {
        for i in 0..2 {
            let (first, sums) = Self::subtile(tile, warp, i as u32);
            // SAFETY: as promised by the caller.
            unsafe {
                own[i].take(gpu, &args.subtiles, places[i], sums, Self::PITCH, |index, place, sum| {
                    let sum = if O::TRUNCATES && !sum.is_finite() {
                        fallback(gpu, &args.operands, Subtiles::element(first, place))
                    } else {
                        sum
                    };
                    args.operands.store(gpu, index, 0, sum);
                });
            }
        }
    }
}

//! The constants of an SpMM kernel, and the proof that they fit together.
use core::marker::PhantomData;

use lacuna_gpu::WARP;

use super::form::{Form, Plain, scheme};
use super::tile::Tile;
use super::{prefetch, stage};
use crate::{Bounds, DeviceIndex, DeviceValue};

/// Nonzeros that a lane loads at once, and whose products it has under way together: one access of 16 bytes of values of
/// four bytes, or of 8 of shorter ones.
pub const QUAD: u32 = 4;

/// In persistent kernels, warps keep in shared memory what they need once a row: registers are short.
pub(super) const KEPT_BYTES: u32 = 32;

/// SpMM by rows: a group of `LANES · SPLIT` lanes computes one row of C, `LANES · V` columns wide.
///
/// - `T`, `I`: types of A's, B's and C's values, and of A's column indices. Sums are `f32`.
/// - `V`: columns of B that a lane loads at once (1, 2, 4 or 8; 16 bytes at most).
/// - `LANES`: lanes side by side along the columns (the paper's subwarp).
/// - `SPLIT`: subwarps that split the nonzeros of the row (intra-warp split-K), and add up their accumulators at the end.
/// - `WARPS`: warps of a block. They never wait for each other.
/// - `F`: what it is beside that, [`Plain`] mostly.
///
/// Constants that do not fit together are refused when the kernel is named, not when it runs:
///
/// ```
/// use lacuna_kernels::Kernel;
/// use lacuna_kernels::spmm::RowSplit;
/// assert_eq!(<RowSplit<f32, u32, 4, 8, 4, 8> as Kernel>::TILE.block_columns, 32);
/// ```
/// ```compile_fail,E0080
/// # use lacuna_kernels::Kernel;
/// # use lacuna_kernels::spmm::RowSplit;
/// let _ = <RowSplit<f32, u32, 4, 16, 4, 8> as Kernel>::TILE; // 64 lanes a row: more than a warp
/// ```
#[derive(Debug)]
pub struct RowSplit<T, I, const V: usize, const LANES: u32, const SPLIT: u32, const WARPS: u32, F = Plain>(
    PhantomData<(T, I, F)>,
);

impl<T, I, const V: usize, const LANES: u32, const SPLIT: u32, const WARPS: u32, F>
    RowSplit<T, I, V, LANES, SPLIT, WARPS, F>
where
    T: DeviceValue,
    I: DeviceIndex,
    F: Form,
{
    /// Lanes that work on one row.
    pub(super) const GROUP: u32 = LANES * SPLIT;
    /// Nonzeros staged at a time: a quad a lane.
    pub(super) const STAGE: u32 = Self::GROUP * QUAD;
    /// Rows of a warp.
    pub(super) const WARP_ROWS: u32 = WARP / Self::GROUP;
    /// Rows of a block.
    pub(super) const BLOCK_ROWS: u32 = Self::WARP_ROWS * WARPS;
    /// Columns of a block.
    pub(super) const BLOCK_COLUMNS: u32 = LANES * V as u32;
    /// Bytes of shared memory from one group to the next; 16 beside the stage put neighbours into different banks.
    pub(super) const STAGE_BYTES: u32 = Self::stage_bytes(Self::GROUP);
    /// Bytes of shared memory of a warp. Groups of one subwarp, which take short rows, need more than one of all subwarps:
    /// each has a stage of its own.
    pub(super) const WARP_BYTES: u32 = {
        let (subwarps, short) =
            (Self::STAGE_BYTES * Self::WARP_ROWS, Self::stage_bytes(LANES) * (WARP / LANES));
        let kept = if F::PERSISTENT { KEPT_BYTES } else { 0 };
        kept + if F::HYBRID { short } else { subwarps }
    };
    /// Bytes of shared memory of a block.
    pub(super) const BLOCK_BYTES: u32 =
        Self::WARP_BYTES * WARPS + if F::PERSISTENT { prefetch::bytes(Self::BLOCK_THREADS) } else { 0 };
    const fn stage_bytes(group: u32) -> u32 {
        stage::bytes::<F>(group * QUAD) + if group < WARP { 16 } else { 0 }
    }
    /// Threads of a block.
    pub(super) const BLOCK_THREADS: u32 = WARPS * WARP;

    /// Subwarps that share a row serve problems with few rows or columns, which wait for memory: three blocks an SM leave
    /// a thread 80 registers, for more loads under way. The others live by their many warps, at about 55 registers. Those
    /// of one column a lane, and of two without subwarps, are told how many warps, 40 (48 registers), 48 (40), or 32 (64): by
    /// itself ptxas may aim at fewer registers than it needs, and spill.
    /// A persistent block fills a multiprocessor, with 1024 threads or with 768 that have 80 registers each.
    pub(super) const REGISTER_BOUNDS: Bounds = if F::PERSISTENT {
        Bounds { max_threads: Self::BLOCK_THREADS, min_blocks: 1 }
    } else if SPLIT > 1 && Self::GROUP == WARP && LANES >= 4 {
        Bounds { max_threads: Self::BLOCK_THREADS, min_blocks: 24 / WARPS }
    } else if V == 1 || V == 2 && SPLIT == 1 {
        let warps = match (LANES, SPLIT) {
            (1, _) => 48,
            (..WARP, 1) => 32,
            _ => 40,
        };
        Bounds { max_threads: Self::BLOCK_THREADS, min_blocks: warps / WARPS }
    } else {
        Bounds { max_threads: 1024, min_blocks: 0 }
    };

    /// The constants as numbers.
    pub(super) const NUMBERS: Tile = {
        assert!(
            V.is_power_of_two() && V * size_of::<T>() <= 16,
            "a lane loads 1, 2, 4 or 8 columns in 16 bytes"
        );
        assert!(LANES.is_power_of_two() && SPLIT.is_power_of_two(), "lanes pair up in shuffles");
        assert!(Self::GROUP <= WARP, "a row's lanes lie in one warp");
        assert!(!F::HYBRID || Self::GROUP == WARP && SPLIT > 1, "subwarps of a warp share its long rows");
        assert!(WARPS >= 1 && Self::BLOCK_THREADS <= 1024, "a block has at most 1024 threads");
        assert!(Self::STAGE_BYTES.is_multiple_of(16), "vector accesses to shared memory are aligned");
        assert!(Self::BLOCK_BYTES <= 48 * 1024, "shared memory without opting in");
        Tile {
            value: T::TYPE,
            index: I::TYPE,
            vector: V as u32,
            block_rows: Self::BLOCK_ROWS,
            block_columns: Self::BLOCK_COLUMNS,
            scheme: scheme::<F>(LANES, SPLIT),
        }
    };
}

//! The constants of tiles that single warps multiply.

/// How a block's tile is cut up among its warps.
///
/// - `RT`, `NT`: 8-row and 16-column pieces of C that a consumer warp owns.
/// - `WM`, `WN`, `WK`: consumer warps along the rows, along the columns, and along K.
/// - `GROUPS`: groups of producer warps, which take stages in turn. `PRODUCERS`: warps of a group. `STAGES`: stages of shared
///   memory.
#[derive(Debug)]
pub(super) struct Shape<
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const GROUPS: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
>;

impl<
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const GROUPS: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
> Shape<RT, NT, WM, WN, WK, GROUPS, PRODUCERS, STAGES>
{
    /// Rows of C that a block computes.
    pub(super) const BM: u32 = WM * RT as u32 * 8;
    /// Columns of C that a block computes.
    pub(super) const BN: u32 = WN * NT as u32 * 16;
    /// Consumer warps.
    pub(super) const CONSUMERS: u32 = WM * WN * WK;
    /// Threads of a block.
    pub(super) const THREADS: u32 = (Self::CONSUMERS + GROUPS * PRODUCERS) * 32;
    /// Threads that use a stage.
    pub(super) const AT_STAGE: u32 = (Self::CONSUMERS + PRODUCERS) * 32;
    /// Bytes that the consumers' accumulators take when slices of K are added.
    pub(super) const REDUCTION_BYTES: u32 = if WK > 1 { Self::CONSUMERS * (RT * NT) as u32 * 512 } else { 0 };

    /// Checks that the constants fit together.
    pub(super) const fn check(stage_bytes: u32, copies: u32) {
        assert!(NT.is_multiple_of(2), "the swizzle of B works on 32 columns");
        assert!(Self::THREADS <= 1024, "a block has at most 1024 threads");
        assert!(copies.is_multiple_of(PRODUCERS * 32), "producers share the copies of B evenly");
        assert!(Self::REDUCTION_BYTES <= STAGES * stage_bytes, "the accumulators fit into the stages");
        assert!(STAGES * stage_bytes <= 227 * 1024, "a block of sm_90 has 227 KiB");
    }
}

/// Where a consumer warp stands in its block.
#[derive(Clone, Copy)]
pub struct Consumer {
    /// Along the rows.
    pub m: u32,
    /// Along the columns.
    pub n: u32,
    /// Along K.
    pub k: u32,
}

impl Consumer {
    #[inline(always)]
    pub(super) fn of<const WM: u32, const WN: u32>(warp: u32) -> Self {
        Self { m: warp % WM, n: warp / WM % WN, k: warp / (WM * WN) }
    }
}

//! Where the warps that multiply stand.

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

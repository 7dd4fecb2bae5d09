//! Indices of a table's rows.
use lacuna_gpu::{GlobalPtr, Gpu, Scalar};

/// The index of a row of a table, as a device holds it.
pub trait TableIndex: Scalar + Into<u64> {
    /// Bits of an index.
    const BITS: u32;
    /// In place of an index: there is no row. No table has a row of this number.
    const NONE: Self;
    /// The index of this number, which it can hold.
    fn from_number(number: u64) -> Self;
    /// The index of lane `lane` of the caller's `width` lanes.
    fn shuffle<G: Gpu>(self, gpu: G, mask: u32, lane: u32, width: u32) -> Self;
    /// Where the row starts, rows being `stride_bytes` apart.
    fn row<T>(self, table: GlobalPtr<T>, stride_bytes: u32) -> GlobalPtr<T>;
}

impl TableIndex for u32 {
    const BITS: u32 = 32;
    const NONE: Self = Self::MAX;
    #[inline(always)]
    fn from_number(number: u64) -> Self {
        number as Self
    }
    #[inline(always)]
    fn shuffle<G: Gpu>(self, gpu: G, mask: u32, lane: u32, width: u32) -> Self {
        gpu.warp_shuffle_idx(mask, self, lane, width)
    }
    #[inline(always)]
    fn row<T>(self, table: GlobalPtr<T>, stride_bytes: u32) -> GlobalPtr<T> {
        table.add_rows(self, stride_bytes)
    }
}

impl TableIndex for u64 {
    const BITS: u32 = 64;
    const NONE: Self = Self::MAX;
    #[inline(always)]
    fn from_number(number: u64) -> Self {
        number
    }
    #[inline(always)]
    fn shuffle<G: Gpu>(self, gpu: G, mask: u32, lane: u32, width: u32) -> Self {
        let low = gpu.warp_shuffle_idx(mask, self as u32, lane, width);
        let high = gpu.warp_shuffle_idx(mask, (self >> 32) as u32, lane, width);
        u64::from(high) << 32 | u64::from(low)
    }
    #[inline(always)]
    fn row<T>(self, table: GlobalPtr<T>, stride_bytes: u32) -> GlobalPtr<T> {
        table.add_bytes(self.wrapping_mul(u64::from(stride_bytes)))
    }
}

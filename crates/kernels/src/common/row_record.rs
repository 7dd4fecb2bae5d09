//! Where the rows of a sparse matrix lie in its arrays of nonzeros.
use lacuna_gpu::{GlobalPtr, Gpu};

/// Elements that the arrays of nonzeros have to spare at least. Lanes load up to eight at once, also where a row has fewer or
/// none.
pub const PADDING: usize = 16;

/// The values of a batch begin at multiples of this many elements, and so of 16 bytes.
pub const ALIGNED: usize = 8;

/// Where one row lies: the row swizzle and the row offsets in one 16-byte record, so that a warp finds its
/// nonzeros after one load instead of two that wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRecord {
    /// The row.
    pub row: u32,
    /// Index of its first nonzero.
    pub start: u32,
    /// Index after its last nonzero.
    pub end: u32,
}

impl RowRecord {
    /// RawVector of a record in memory.
    pub const WORDS: usize = 4;

    /// The record as memory holds it.
    pub const fn to_words(self) -> [u32; Self::WORDS] {
        [self.row, self.start, self.end, 0]
    }
    /// The record that memory holds.
    #[inline(always)]
    pub const fn from_words([row, start, end, _]: [u32; Self::WORDS]) -> Self {
        Self { row, start, end }
    }
    /// Loads record `index` of a table.
    ///
    /// # Safety
    /// The table is live, and has the record.
    #[inline(always)]
    pub(crate) unsafe fn load<G: Gpu>(gpu: G, table: GlobalPtr<u32>, index: usize) -> Self {
        // SAFETY: as promised by the caller.
        Self::from_words(unsafe { gpu.load_readonly(table.add(index * Self::WORDS)) })
    }
}

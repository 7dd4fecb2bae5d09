//! The pattern of a sparse matrix as tiles take it, in place of column indices.

/// Where the nonzeros of a chunk are: 32 columns of one row.
///
/// In memory, chunks of eight neighbouring rows lie together: chunk `c` of row `r` is record
/// `(r / 8 · chunks + c) · 8 + r % 8`. The last eight rows are filled up with empty chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowMask {
    /// A bit for each column that has a nonzero, the first column's lowest.
    pub mask: u32,
    /// Index of the chunk's first value.
    pub first: u32,
}

impl RowMask {
    /// Columns of a chunk.
    pub const COLUMNS: u32 = 32;
    /// Rows whose chunks lie together.
    pub const ROWS: u32 = 8;
    /// RawVector of a record.
    pub const WORDS: usize = 2;

    /// Chunks of a row.
    pub const fn chunks(cols: u32) -> u32 {
        cols.div_ceil(Self::COLUMNS)
    }

    /// Records of a matrix.
    pub const fn count(rows: usize, cols: usize) -> usize {
        rows.next_multiple_of(Self::ROWS as usize) * cols.div_ceil(Self::COLUMNS as usize)
    }

    /// The index of a record.
    #[inline(always)]
    pub const fn index(row: u32, chunk: u32, chunks: u32) -> usize {
        let (group, rows) = ((row / Self::ROWS) as usize, Self::ROWS as usize);
        (group * chunks as usize + chunk as usize) * rows + (row % Self::ROWS) as usize
    }

    /// Records from a chunk to the next of the same row.
    pub(crate) const NEXT_CHUNK: usize = Self::ROWS as usize;
}

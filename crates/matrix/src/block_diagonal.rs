//! Many matrices as one.

use crate::error::{FormatError, fit_u32};
use crate::{Csr, Pattern};

impl Pattern {
    /// The pattern with these blocks on its diagonal, from the top left, and nothing beside them.
    ///
    /// The rows and the columns of a block follow those of the blocks before it.
    ///
    /// # Errors
    /// If the rows, columns or nonzeros of all together do not fit `u32`.
    pub fn block_diagonal(blocks: &[&Pattern]) -> Result<Self, FormatError> {
        // Each is below 2³², so that no sum overflows.
        let total = |what, count: fn(&Pattern) -> usize| {
            fit_u32(what, blocks.iter().map(|block| count(block)).sum()).map(|total| total as usize)
        };
        let rows = total("rows", Pattern::rows)?;
        let cols = total("columns", Pattern::cols)?;
        let nnz = total("nonzeros", Pattern::nnz)?;

        let mut row_offsets = Vec::with_capacity(rows + 1);
        row_offsets.push(0);
        let mut col_indices = Vec::with_capacity(nnz);
        let mut first_column = 0;
        for block in blocks {
            let first = col_indices.len() as u32;
            row_offsets.extend(block.row_offsets()[1..].iter().map(|offset| first + offset));
            col_indices.extend(block.col_indices().iter().map(|column| first_column + column));
            first_column += block.cols() as u32;
        }
        Ok(Self::from_parts(rows, cols, row_offsets, col_indices))
    }
}

impl<V: Copy> Csr<V> {
    /// The matrix with these blocks on its diagonal, from the top left, and zeros beside them.
    ///
    /// So products of many patterns become one: with the dense operands one under the other, the results come out one
    /// under the other.
    ///
    /// # Errors
    /// If the rows, columns or nonzeros of all together do not fit `u32`.
    pub fn block_diagonal(blocks: &[&Self]) -> Result<Self, FormatError> {
        let patterns: Vec<&Pattern> = blocks.iter().map(|block| block.pattern().as_ref()).collect();
        let pattern = Pattern::block_diagonal(&patterns)?;
        Self::with_values(pattern, blocks.iter().flat_map(|block| block.values()).copied().collect())
    }
}

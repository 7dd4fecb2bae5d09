//! The mask blocks of a CSR pattern on a device.
use super::super::mask::Strip;
use super::strips::Strips;
use super::{MaskBlocks, SIDE};
use crate::pattern::DevicePattern;
use crate::{Index, Result};

/// Whether a mask's blocks hold keys enough that bitmaps may pay: [`FEWEST`] in the mean.
struct HasDenseBlocks(bool);

/// Keys of a block. Kernels that take a key at a time need less time for fewer.
const FEWEST: usize = 64;

impl<I: Index> DevicePattern<I> {
    /// Whether the mask may be one for blocks. The first call reads the pattern, as [`mask_blocks`](Self::mask_blocks) does.
    pub(in super::super) fn has_dense_blocks(&self) -> Result<bool> {
        let has = self.derived.get_or_make(|| {
            let (columns, rows) = self.rows_on_host()?;
            // For each key block the last strip that sees it.
            let (mut seen, mut last) = (0, vec![usize::MAX; self.cols.div_ceil(SIDE)]);
            for (strip, rows) in rows.chunks(SIDE).enumerate() {
                for column in rows.iter().flat_map(|row| &columns[row.clone()]) {
                    let last = &mut last[column.to_column() as usize / SIDE];
                    seen += usize::from(std::mem::replace(last, strip) != strip);
                }
            }
            Ok(HasDenseBlocks(self.nnz >= FEWEST * seen))
        })?;
        Ok(has.0)
    }

    /// The mask's blocks. The first call makes them: it reads the pattern from the device, and waits for that.
    pub(in super::super) fn mask_blocks(&self) -> Result<&MaskBlocks> {
        self.derived.get_or_make(|| {
            let (columns, rows) = self.rows_on_host()?;
            let strips = rows.chunks(SIDE).map(|rows| {
                let rows: Vec<&[I]> = rows.iter().map(|row| &columns[row.clone()]).collect();
                Strip::of_columns(&rows, |column| column.to_column())
            });
            let strips = Strips::list([self.rows, self.cols], strips)?;
            MaskBlocks::upload(self.row_table.device(), &strips)
        })
    }
}

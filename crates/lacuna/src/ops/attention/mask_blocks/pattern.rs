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
    /// Whether the mask may be one for blocks. The first call asks the device, or goes over the pattern on the host.
    pub(in super::super) fn has_dense_blocks(&self) -> Result<bool> {
        if let Some(windows) = self.windows()? {
            return Ok(self.nnz >= FEWEST * windows.blocks());
        }
        let has = self.derived.get_or_make(|| {
            let pattern = self.on_host()?;
            // For each key block the last strip that sees it.
            let (mut seen, mut last) = (0, vec![usize::MAX; self.cols.div_ceil(SIDE)]);
            for row in 0..self.rows {
                for blocks in
                    pattern.row_columns(row).chunk_by(|&a, &b| a as usize / SIDE == b as usize / SIDE)
                {
                    let last = &mut last[blocks[0] as usize / SIDE];
                    seen += usize::from(std::mem::replace(last, row / SIDE) != row / SIDE);
                }
            }
            Ok(HasDenseBlocks(self.nnz >= FEWEST * seen))
        })?;
        Ok(has.0)
    }

    /// The mask's blocks. The first call makes them: of what the device finds, or, where that would take too much memory, of the pattern
    /// [on the host](Self::on_host).
    pub(in super::super) fn mask_blocks(&self) -> Result<&MaskBlocks> {
        self.derived.get_or_make(|| {
            if let Some(windows) = self.windows()? {
                return self.blocks_of(windows);
            }
            let pattern = self.on_host()?;
            let strips = Strips::list([self.rows, self.cols], |queries| {
                Strip::of_columns(&queries.map(|query| pattern.row_columns(query)).collect::<Vec<_>>())
            })?;
            MaskBlocks::upload(self.row_table.device(), &strips)
        })
    }
}

#[cfg(test)]
mod tests;

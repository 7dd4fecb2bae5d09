//! The mask blocks of a CSR pattern, found on the device.
use lacuna_kernels::attention::{
    BITMAP_WORDS, BlockMask, CsrMask, FindBlocks, FindBlocksArgs, WINDOW_BLOCKS, WriteBitmaps,
    WriteBitmapsArgs,
};
use lacuna_kernels::entries;
use lacuna_kernels::transpose::{Offsets, OffsetsArgs};

use super::strips::{Strips, expect_blocks};
use super::{MaskBlocks, SIDE};
use crate::op::{MAX_GRID_YZ, launch_kernel};
use crate::ops::transpose;
use crate::pattern::DevicePattern;
use crate::{Buffer, Index, Result};

/// What each strip of 64 queries sees, by windows of 2,048 keys.
#[derive(Debug)]
pub(in super::super) struct Windows {
    /// Where each query's columns start, and the end of the last.
    row_offsets: Buffer<u32>,
    /// As [`FindBlocks`] writes it.
    seen: Buffer<u32>,
    /// The same on the host.
    on_host: Vec<[u32; 2]>,
    /// Keys that four neighbouring queries see together, summed over the mask.
    entries: usize,
}

/// The words may take as much memory as the columns, and some more: in sparser masks nearly all windows are empty.
const MOST_BESIDES: usize = 1 << 20;

/// Windows of a strip.
fn windows_of(cols: usize) -> usize {
    cols.div_ceil(WINDOW_BLOCKS as usize * SIDE)
}

impl Windows {
    /// Blocks in which a query sees a key.
    pub(super) fn blocks(&self) -> usize {
        self.on_host.iter().map(|[seen, _]| seen.count_ones() as usize).sum()
    }

    /// Keys that four neighbouring queries see together, summed over the mask.
    pub(in super::super) fn query_tile_entries(&self) -> usize {
        self.entries
    }
}

impl<I: Index> DevicePattern<I> {
    /// What strips see. The first call asks the device, and waits for that. None where the mask is so large and so sparse that this would
    /// take more memory than the mask itself.
    pub(in super::super) fn windows(&self) -> Result<Option<&Windows>> {
        let windows = windows_of(self.cols);
        let count = self.rows.div_ceil(SIDE).saturating_mul(windows);
        let most = MOST_BESIDES + self.nnz * size_of::<I>();
        if count.saturating_mul(size_of::<[u32; 2]>()) > most || windows > MAX_GRID_YZ {
            return Ok(None);
        }
        self.derived.get_or_make(|| self.find_windows(count)).map(Some)
    }

    fn find_windows(&self, count: usize) -> Result<Windows> {
        let device = self.row_table.device();
        let stream = device.stream()?;
        let mut row_offsets = device.zeros::<u32>(self.rows + 1)?;
        let mut seen = device.uninitialized::<u32>(2 * count)?;
        let mut entries = device.uninitialized::<u32>(count)?;
        if count > 0 {
            let offsets = OffsetsArgs {
                row_table: self.row_table_pointer(),
                row_offsets: row_offsets.as_slice_mut().pointer(),
                rows: self.rows as u32,
            };
            transpose::launch::<Offsets>(&stream, offsets.rows, 1, &offsets)?;
            let args = FindBlocksArgs {
                mask: self.csr_mask(&row_offsets),
                seen: seen.as_slice_mut().pointer(),
                entries: entries.as_slice_mut().pointer(),
            };
            let grid = self.windows_grid();
            launch_kernel::<FindBlocks<I::Device>>(&stream, entries::attention(), |_| grid, &args)?;
        }
        let on_host = seen.download(&stream)?.as_chunks().0.to_vec();
        let entries = entries.download(&stream)?.iter().map(|&entries| entries as usize).sum();
        Ok(Windows { row_offsets, seen, on_host, entries })
    }

    /// The mask's blocks, of what its strips see.
    pub(super) fn blocks_of(&self, windows: &Windows) -> Result<MaskBlocks> {
        expect_blocks(windows.blocks())?;
        let device = self.row_table.device();
        let of_strip = windows_of(self.cols);
        let (mut first, mut bitmaps) = (Vec::with_capacity(windows.on_host.len()), 0);
        let mut strips = Vec::with_capacity(self.rows.div_ceil(SIDE));
        for of_strip in windows.on_host.chunks(of_strip.max(1)) {
            let mut strip = vec![];
            for (window, &[seen, whole]) in of_strip.iter().enumerate() {
                first.push(bitmaps);
                let mut left = seen;
                while left != 0 {
                    let block = left.trailing_zeros();
                    let mask = if whole >> block & 1 != 0 {
                        BlockMask::Full
                    } else {
                        bitmaps += 1;
                        BlockMask::Partial(bitmaps - 1)
                    };
                    strip.push([window as u32 * WINDOW_BLOCKS + block, mask.to_word()]);
                    left &= left - 1;
                }
            }
            strips.push(strip);
        }
        strips.resize(self.rows.div_ceil(SIDE), vec![]);
        let stream = device.stream()?;
        let mut written = device.uninitialized::<u32>(bitmaps as usize * BITMAP_WORDS as usize)?;
        if bitmaps > 0 {
            let first = device.upload(&first)?;
            let args = WriteBitmapsArgs {
                mask: self.csr_mask(&windows.row_offsets),
                seen: windows.seen.as_slice().pointer(),
                first: first.as_slice().pointer(),
                bitmaps: written.as_slice_mut().pointer(),
            };
            let grid = self.windows_grid();
            launch_kernel::<WriteBitmaps<I::Device>>(&stream, entries::attention(), |_| grid, &args)?;
            // So that others may use them at once, and the numbers may go.
            stream.synchronize()?;
        }
        let (queries, keys, elements) = (self.rows, self.cols, self.nnz as u64);
        MaskBlocks::with_bitmaps(&Strips { queries, keys, elements, strips, bitmaps: vec![] }, written)
    }

    fn csr_mask(&self, row_offsets: &Buffer<u32>) -> CsrMask<I::Device> {
        CsrMask {
            row_offsets: row_offsets.as_slice().pointer(),
            columns: self.columns_pointer(),
            rows: self.rows as u32,
        }
    }

    /// Strips by windows.
    fn windows_grid(&self) -> [u32; 3] {
        [self.rows.div_ceil(SIDE) as u32, windows_of(self.cols) as u32, 1]
    }
}

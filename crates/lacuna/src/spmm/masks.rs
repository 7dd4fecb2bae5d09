//! A pattern's masks: what kernels by tiles read in place of column indices.
use std::ptr;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::spmm::{MaskArgs, RowMask, Scheme};
use lacuna_kernels::{Entry, entries};

use super::choose::Problem;
use crate::backend::Launch;
use crate::csr::DevicePattern;
use crate::{Index, Result};

/// CUDA's limit on blocks along y.
const MAX_GRID_Y: u32 = 65_535;
/// Masks may take this many times the memory of the nonzeros, and some more: sparser patterns have nearly as many chunks
/// as nonzeros.
const MOST_TO_NONZEROS: u64 = 4;
const MOST_BESIDES: u64 = 1 << 20;

/// Bytes of a pattern's masks, where they are few enough and their kernel's grid reaches all of them.
pub(super) fn bytes(problem: &Problem) -> Option<u64> {
    let bytes = (RowMask::count(problem.rows, problem.cols) * RowMask::WORDS * size_of::<u32>()) as u64;
    let nonzero_bytes = u64::from(problem.value.bytes() + problem.index.bytes());
    let most = MOST_BESIDES + MOST_TO_NONZEROS * nonzero_bytes * problem.nnz as u64;
    let chunks = problem.cols.div_ceil(RowMask::COLUMNS as usize);
    (bytes <= most && chunks <= MAX_GRID_Y as usize * RowMask::COLUMNS as usize).then_some(bytes)
}

impl<I: Index> DevicePattern<I> {
    /// The address of the pattern's masks. The first call makes them, and waits for that.
    pub(super) fn masks(&self) -> Result<u64> {
        if let Some(masks) = self.masks.get() {
            return Ok(masks.as_slice().address());
        }
        let device = self.row_table.device();
        let masks = device.zeros(RowMask::count(self.rows, self.cols) * RowMask::WORDS)?;
        let entry = entries::spmm()
            .iter()
            .find(|Entry { tile, .. }| tile.scheme == Scheme::Masks && tile.index == I::TYPE);
        let entry = entry.expect("each index type has the kernel that makes masks");
        let args = MaskArgs::<I::Device> {
            row_table: GlobalPtr::from_address(self.row_table.as_slice().address()),
            columns: GlobalPtr::from_address(self.columns.as_slice().address()),
            masks: GlobalMut::from_address(masks.as_slice().address()),
            rows: self.rows as u32,
            cols: self.cols as u32,
        };
        let blocks = [
            args.rows.div_ceil(entry.tile.block_rows),
            RowMask::chunks(args.cols).div_ceil(entry.tile.block_columns),
        ];
        if !blocks.contains(&0) {
            let stream = device.stream()?;
            stream.launch(&Launch {
                entry: entry.name,
                grid: [blocks[0], blocks[1], 1],
                threads: entry.threads,
                shared_bytes: entry.shared_bytes,
                args: &args,
                args_pointer: ptr::from_ref(&args).cast(),
            })?;
            stream.synchronize()?;
        }
        // Another thread may have been faster: its masks are the same.
        let masks = self.masks.get_or_init(|| masks);
        Ok(masks.as_slice().address())
    }
}

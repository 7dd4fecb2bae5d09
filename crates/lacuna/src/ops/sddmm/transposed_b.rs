//! Transposing a B that is given as K×N.
use lacuna_gpu::{GlobalMut, GlobalPtr, Scalar};
use lacuna_kernels::entries;
use lacuna_kernels::sddmm::{DenseArgs, DenseTranspose};

use super::OPERATION;
use crate::op::{Layout, MAX_GRID_X, MAX_GRID_YZ, launch_kernel, spans};
use crate::{Buffer, Device, Error, Result, Slice, Stream, Value};

/// B as the kernels read it, N×K: room for it in the plan, and how it is filled.
#[derive(Debug)]
pub(super) struct TransposedB<T: Value> {
    /// Matrices of `cols` × `rows`, one after another.
    room: Buffer<T>,
    /// Rows of B as it is given: K.
    rows: usize,
    /// Columns of B as it is given: N.
    cols: usize,
    /// Matrices: 1 where all products share one.
    batch: usize,
}

impl<T: Value> TransposedB<T> {
    /// Room for `batch` matrices of `rows` × `cols`.
    pub(super) fn new(device: &Device, rows: usize, cols: usize, batch: usize) -> Result<Self> {
        let tiles = DenseArgs::<u32>::tiles(rows as u32, cols as u32) as usize;
        Error::expect_at_most("the number of 32×32 tiles of B", MAX_GRID_X, tiles)?;
        let elements = rows.checked_mul(cols).and_then(|elements| elements.checked_mul(batch));
        let room = device.uninitialized(elements.unwrap_or(usize::MAX))?;
        Ok(Self { room, rows, cols, batch })
    }

    /// Where the transposed matrices are.
    pub(super) fn address(&self) -> u64 {
        self.room.as_slice().address()
    }

    /// Elements from one to the next; 0 where there is one for all products.
    pub(super) fn batch_stride(&self) -> usize {
        if self.batch == 1 { 0 } else { self.rows * self.cols }
    }

    /// Transposes B.
    pub(super) fn fill(&self, stream: &Stream, b: Slice<'_, T>, layout: &Layout) -> Result<()> {
        self.room.device().expect_same(OPERATION, "the stream", stream.device())?;
        if self.room.is_empty() {
            return Ok(());
        }
        if size_of::<T>() == 2 {
            self.launch::<u16>(stream, b.address(), layout)
        } else {
            self.launch::<u32>(stream, b.address(), layout)
        }
    }

    fn launch<W: Scalar>(&self, stream: &Stream, b: u64, layout: &Layout) -> Result<()> {
        let (rows, cols) = (self.rows as u32, self.cols as u32);
        for batch in spans(self.batch, MAX_GRID_YZ) {
            let args = DenseArgs::<W> {
                from: GlobalPtr::from_address(b).add(batch.start * layout.batch_stride),
                to: GlobalMut::from_address(self.address()).add(batch.start * self.rows * self.cols),
                from_batch: layout.batch_stride as u64,
                stride_bytes: layout.stride_bytes,
                rows,
                cols,
            };
            let grid = [DenseArgs::<W>::tiles(rows, cols) as u32, 1, batch.len() as u32];
            launch_kernel::<DenseTranspose<W>>(stream, entries::sddmm(), |_| grid, &args)?;
        }
        Ok(())
    }
}

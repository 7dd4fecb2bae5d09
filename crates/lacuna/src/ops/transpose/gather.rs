//! Values in the order of Aᵀ.
use lacuna_gpu::{GlobalMut, GlobalPtr, Scalar};
use lacuna_kernels::transpose::{Gather, GatherArgs};

use super::{OPERATION, TransposedPattern, launch};
use crate::op::{MAX_GRID_YZ, spans};
use crate::{CsrMatrix, Element, Index, Result, Slice, SliceMut, Stream, Value};

/// Elements of a vector, where addresses allow it.
const VECTOR: usize = 4;

/// Where values are, and how many: addresses of those of A and of Aᵀ, and the elements of Aᵀ's to write, for each of a
/// batch of matrices.
struct Values {
    from: u64,
    to: u64,
    len: usize,
    batch: usize,
    batch_stride: usize,
}

impl<I: Index> TransposedPattern<I> {
    /// Puts values that stand in the order of A's nonzeros, row by row, into the order of Aᵀ's: `out[i] =
    /// values[permutation[i]]`. Both have nnz elements, and may start at any element. Returns at once.
    ///
    /// Values are of 2 or 4 bytes; a call with others does not compile.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) and [`Error::OtherDevice`](crate::Error::OtherDevice) for operands that do not fit; what the driver says.
    pub fn gather<T: Element>(
        &self,
        stream: &Stream,
        values: Slice<'_, T>,
        out: SliceMut<'_, T>,
    ) -> Result<()> {
        let (device, len) = (self.permutation.device(), self.pattern.nnz);
        device.expect_same(OPERATION, "the stream", stream.device())?;
        for (what, operand) in [("the values of A", values), ("the values of Aᵀ", out.as_slice())] {
            device.expect_operand(OPERATION, what, operand, || "one a nonzero".into(), len)?;
        }
        let (from, to) = (values.address(), out.address());
        self.launch_gather::<T>(stream, &Values { from, to, len, batch: 1, batch_stride: 0 })
    }

    /// Gathers the values of `a`, of the pattern that was transposed, into `matrix`, of the transposed pattern and the
    /// same batch.
    pub(super) fn fill<T: Value>(
        &self,
        stream: &Stream,
        a: &CsrMatrix<T, I>,
        matrix: &mut CsrMatrix<T, I>,
    ) -> Result<()> {
        let (from, batch, stride) = (a.values_address(), a.batch(), a.values_stride());
        let to = matrix.padded_values_mut(OPERATION)?.address();
        self.launch_gather::<T>(stream, &Values { from, to, len: stride, batch, batch_stride: stride })
    }

    /// Gathers as many values as nonzeros, and writes zeros after them until there are `len`.
    fn launch_gather<T: Element>(&self, stream: &Stream, values: &Values) -> Result<()> {
        const { assert!(size_of::<T>() == 2 || size_of::<T>() == 4, "values of 2 or 4 bytes are gathered") }
        if values.len == 0 {
            return Ok(());
        }
        if size_of::<T>() == 2 {
            self.launch_words::<u16>(stream, values)
        } else {
            self.launch_words::<u32>(stream, values)
        }
    }

    fn launch_words<W: Scalar>(&self, stream: &Stream, values: &Values) -> Result<()> {
        let &Values { from, to, len, batch, batch_stride } = values;
        let bytes = size_of::<W>() as u64;
        let is_aligned = to.is_multiple_of(VECTOR as u64 * bytes);
        for matrices in spans(batch, MAX_GRID_YZ) {
            let start = matrices.start * batch_stride;
            let args = GatherArgs::<W> {
                permutation: self.permutation.as_slice().pointer(),
                values: GlobalPtr::from_address(from).add(start),
                out: GlobalMut::from_address(to).add(start),
                nnz: self.pattern.nnz as u32,
                len: len as u32,
                batch_stride: batch_stride as u32,
            };
            let (len, rows) = (len as u32, matrices.len() as u32);
            if is_aligned {
                launch::<Gather<W, VECTOR>>(stream, len, rows, &args)?;
            } else {
                launch::<Gather<W, 1>>(stream, len, rows, &args)?;
            }
        }
        Ok(())
    }
}

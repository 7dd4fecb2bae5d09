//! Values in the order of Aᵀ.
use lacuna_gpu::{GlobalMut, GlobalPtr, Scalar};
use lacuna_kernels::transpose::GatherArgs;

use super::{OPERATION, TransposedPattern, launch};
use crate::{CsrMatrix, Element, Error, Result, Slice, SliceMut, Stream};

/// Elements of a vector, where addresses allow it.
const VECTOR: u64 = 4;

impl TransposedPattern {
    /// Puts values that stand in the order of A's nonzeros, row by row, into the order of Aᵀ's: `out[i] =
    /// values[permutation[i]]`. Both have nnz elements, and may start at any element. Returns at once.
    ///
    /// Values are of 2 or 4 bytes; a call with others does not compile.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OtherDevice`] for operands that do not fit; what the driver says.
    pub fn gather<T: Element>(
        &self,
        stream: &Stream,
        values: Slice<'_, T>,
        out: SliceMut<'_, T>,
    ) -> Result<()> {
        let device = self.permutation.device();
        device.expect_same(OPERATION, "the stream", stream.device())?;
        device.expect_same(OPERATION, "the values of A", values.device())?;
        device.expect_same(OPERATION, "the values of Aᵀ", out.device())?;
        let expected = self.pattern.nnz;
        for (what, got) in [("the values of A", values.len()), ("the values of Aᵀ", out.len())] {
            if got != expected {
                let shape = "one a nonzero".into();
                return Err(Error::Length { operation: OPERATION, what, shape, expected, got });
            }
        }
        self.launch_gather::<T>(stream, values.address(), out.address(), expected)
    }

    /// Gathers the values of `a`, of the pattern that was transposed, into `matrix`, of the transposed pattern.
    pub(super) fn fill(&self, stream: &Stream, a: &CsrMatrix, matrix: &mut CsrMatrix) -> Result<()> {
        let (values, out) = (a.padded_values().address(), matrix.padded_values());
        self.launch_gather::<f32>(stream, values, out.address(), out.len())
    }

    /// Gathers as many values as nonzeros, and writes zeros after them until there are `len`.
    fn launch_gather<T: Element>(&self, stream: &Stream, values: u64, out: u64, len: usize) -> Result<()> {
        const { assert!(size_of::<T>() == 2 || size_of::<T>() == 4, "values of 2 or 4 bytes are gathered") }
        if len == 0 {
            return Ok(());
        }
        if size_of::<T>() == 2 {
            self.launch_words::<u16>(stream, values, out, len as u32)
        } else {
            self.launch_words::<u32>(stream, values, out, len as u32)
        }
    }

    fn launch_words<W: Scalar>(&self, stream: &Stream, values: u64, out: u64, len: u32) -> Result<()> {
        let args = GatherArgs::<W> {
            permutation: GlobalPtr::from_address(self.permutation.as_slice().address()),
            values: GlobalPtr::from_address(values),
            out: GlobalMut::from_address(out),
            nnz: self.pattern.nnz as u32,
            len,
        };
        let vector = if out.is_multiple_of(VECTOR * size_of::<W>() as u64) { VECTOR } else { 1 };
        let name = format!("transpose_gather_b{}_v{vector}", 8 * size_of::<W>());
        launch(stream, &name, len, &args)
    }
}

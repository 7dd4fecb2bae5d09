//! Gradients of the greatest and the least product, by their winners.
use std::sync::Arc;

use lacuna_gpu::GlobalPtr;
use lacuna_kernels::spmm::{
    BGradient, BGradientArgs, Tile, ValuesGradient, ValuesGradientArgs, Winning as Args,
};
use lacuna_kernels::{Entry, Kernel, entries};

use super::{OPERATION, Spmm};
use crate::op::{MAX_GRID_YZ, launch_kernel, spans};
use crate::{CsrMatrix, Error, Index, Result, Slice, SliceMut, Stream, Value};

/// What gradients of the greatest or the least product are worked out from.
#[derive(Clone, Copy, Debug)]
pub struct Winning<'o, T: Value = f32> {
    /// The gradient of the reduced products, before the epilogue: [`output_len`](Spmm::output_len) elements, which lie as C.
    pub gradient: Slice<'o, T>,
    /// What [`run_with_winners`](Spmm::run_with_winners) wrote: [`winners_len`](Spmm::winners_len) elements.
    pub winners: Slice<'o, u32>,
}

impl<T: Value, I: Index> Spmm<T, I> {
    /// The gradient of A's values, for [`Reduce::Max`](super::Reduce::Max) and [`Reduce::Min`](super::Reduce::Min): of nonzero p in
    /// row i and column k the sum of gradient\[i, n\] · B\[k, n\] over the columns n that p won. `d_a` is of A's pattern, with as
    /// many matrices as the plan's batch; their values are replaced. Sums are in `f32` and rounded once, always in the same
    /// order; a product is taken in only where p won, so that a NaN elsewhere does not matter.
    ///
    /// The first gradient of a pattern works out the row of each nonzero, and waits for the device; it cannot be recorded.
    /// Later calls return at once.
    ///
    /// # Errors
    /// As [`run_with_winners`](Spmm::run_with_winners); [`Error::Prepacked`] for values that stay as they are.
    pub fn values_gradient(
        &self,
        stream: &Stream,
        winning: Winning<'_, T>,
        b: Slice<'_, T>,
        d_a: &mut CsrMatrix<T, I>,
    ) -> Result<()> {
        self.check_winning(stream, &winning, d_a)?;
        self.b.check("B", d_a.device(), b)?;
        let (got, batch) = (d_a.batch(), self.options.batch);
        let expected = || format!("the plan's, {batch}");
        Error::expect(got == batch, OPERATION, "the batch of the gradient of A", expected, got)?;
        if self.pattern.nnz == 0 {
            return Ok(());
        }
        let rows = self.pattern.row_indices()?.as_slice().pointer();
        let out_batch = d_a.values_stride();
        let out = d_a.padded_values_mut(OPERATION)?.pointer();
        for products in spans(batch, MAX_GRID_YZ) {
            let first = products.start;
            let args = ValuesGradientArgs::<T::Device, I::Device> {
                rows,
                columns: self.pattern.columns_pointer(),
                winning: self.winning(&winning, first),
                b: b.pointer().add(first * self.b.batch_stride),
                b_batch: self.b.batch_stride as u64,
                out: out.add(first * out_batch),
                out_batch: out_batch as u64,
                nonzeros: self.pattern.nnz as u32,
                n: self.n as u32,
                b_stride_bytes: self.b.stride_bytes,
            };
            let blocks = |entry: &Entry<Tile>| args.nonzeros.div_ceil(entry.tile.block_rows);
            let grid = |entry: &Entry<Tile>| [blocks(entry), 1, products.len() as u32];
            launch_kernel::<ValuesGradient<T::Device, I::Device>>(stream, entries::spmm(), grid, &args)?;
        }
        Ok(())
    }

    /// The gradient of B, for [`Reduce::Max`](super::Reduce::Max) and [`Reduce::Min`](super::Reduce::Min): of its element in row k
    /// and column n the sum of A\[p\] · gradient\[i, n\] over the nonzeros p of A's column k, in row i, that won there. `d_b`
    /// lies as B, whose gaps stay as they are. Sums are in `f32` and rounded once, in the order of A's rows.
    ///
    /// The first gradient of a pattern works out that of Aᵀ, as [`transposed`](CsrMatrix::transposed) does, and waits for the
    /// device; it cannot be recorded. Later calls return at once.
    ///
    /// # Errors
    /// As [`run_with_winners`](Spmm::run_with_winners); [`Error::Parameter`] where products share one B, whose gradient would be
    /// the sum of theirs; [`Error::TooLarge`] for more than 65,535 rows of A with 16-bit indices.
    pub fn b_gradient(
        &self,
        stream: &Stream,
        a: &CsrMatrix<T, I>,
        winning: Winning<'_, T>,
        d_b: SliceMut<'_, T>,
    ) -> Result<()> {
        self.check_winning(stream, &winning, a)?;
        self.check_batch_of_a(a)?;
        self.b.check("the gradient of B", a.device(), d_b.as_slice())?;
        self.b.expect_disjoint("the batch stride of B")?;
        if self.input_len() == 0 {
            return Ok(());
        }
        let transposed = a.transposed_pattern(stream)?;
        let values_batch = self.values_batch(a);
        let out = d_b.pointer();
        let columns = BGradient::<T::Device, I::Device>::TILE.block_columns;
        for (products, columns) in self.parts(columns, values_batch, usize::MAX) {
            let (first, start) = (products.start, columns.start);
            let mut winning = self.winning(&winning, first);
            winning.gradient = winning.gradient.add(start);
            winning.winners = winning.winners.add(start);
            let args = BGradientArgs::<T::Device, I::Device> {
                row_table: transposed.pattern().row_table_pointer(),
                rows_of_a: transposed.pattern().columns_pointer(),
                permutation: transposed.permutation().pointer(),
                values: GlobalPtr::from_address(a.values_address()).add(first * values_batch as usize),
                winning,
                out: out.add(first * self.b.batch_stride + start),
                out_batch: self.b.batch_stride as u64,
                rows: self.pattern.cols as u32,
                n: columns.len() as u32,
                out_stride_bytes: self.b.stride_bytes,
                values_batch,
            };
            let grid = |entry: &Entry<Tile>| {
                let [x, y] =
                    [args.rows.div_ceil(entry.tile.block_rows), args.n.div_ceil(entry.tile.block_columns)];
                [x, y, products.len() as u32]
            };
            launch_kernel::<BGradient<T::Device, I::Device>>(stream, entries::spmm(), grid, &args)?;
        }
        Ok(())
    }

    /// Gradient and winners as kernels take them, from a product of the batch on.
    fn winning(&self, winning: &Winning<'_, T>, first: usize) -> Args<T::Device> {
        let winners_batch = self.pattern.rows * self.n;
        Args {
            gradient: winning.gradient.pointer().add(first * self.c.batch_stride),
            gradient_batch: self.c.batch_stride as u64,
            winners: winning.winners.pointer::<u32>().add(first * winners_batch),
            winners_batch: winners_batch as u64,
            winners_stride: self.n as u32,
            gradient_stride_bytes: self.c.stride_bytes,
        }
    }

    fn check_winning(&self, stream: &Stream, winning: &Winning<'_, T>, a: &CsrMatrix<T, I>) -> Result<()> {
        if !Arc::ptr_eq(&self.pattern, a.pattern()) {
            return Err(Error::OtherPattern { operation: OPERATION });
        }
        a.device().expect_same(OPERATION, "the stream", stream.device())?;
        self.check_winners(winning.winners)?;
        self.c.check("the gradient of C", a.device(), winning.gradient)
    }
}

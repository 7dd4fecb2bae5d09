//! Gradients of the table and of the weights.
use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::entries;
use lacuna_kernels::nhot::{LookupArgs, Nonzeros, Pass, TableIndex, WeightArgs};

use super::launch::lookup;
use super::transposed::{Scales, Transposed};
use super::{BagIndex, Bags, Choice, NHot, OPERATION, Problem, choose};
use crate::op::{MAX_GRID_X, VECTORS, launch, spans, widest};
use crate::{Result, Slice, SliceMut, Stream, Value};

/// The kernels of a plan's gradient of the table, or of its named rows, for each of [`VECTORS`].
struct GradientKernels<const NAMED: bool>([Choice; VECTORS.len()]);

impl<T: Value, I: BagIndex> NHot<T, I> {
    /// The gradient of the table, all of it, from that of the result: `output_gradient` has a row a bag, as the result where that is
    /// [`RowMajor`](super::Layout::RowMajor), and without gaps where it is transposed. `gradient` lies as the table. Rows that no
    /// bag names, and that of the padding index, become zeros. Terms are added in the order of the indices' places, so that the
    /// same operands give the same bits in every run.
    ///
    /// The first gradient of a plan sorts the indices on the device, and waits for it; it cannot be recorded. Later calls return
    /// at once.
    ///
    /// # Errors
    /// As [`run`](NHot::run); [`Error::OutOfMemory`](crate::Error::OutOfMemory); [`Error::TooLarge`](crate::Error::TooLarge) for
    /// a table above 2³² − 4097 rows, whose named rows have gradients alone.
    pub fn backward_table(
        &self,
        stream: &Stream,
        bags: &Bags<I>,
        output_gradient: Slice<'_, T>,
        gradient: SliceMut<'_, T>,
    ) -> Result<()> {
        self.table.check("the gradient of the table", bags.device(), gradient.as_slice())?;
        let offsets = self.transposed()?.offsets(bags.table_rows())?;
        let offsets = offsets.slice(..=bags.table_rows())?;
        self.gradient::<false>(stream, bags, output_gradient, gradient.address(), self.table.stride, offsets)
    }

    /// As [`backward_table`](NHot::backward_table), only those rows that [`named_rows`](NHot::named_rows) has, in that order and
    /// without gaps: as many rows as it has elements.
    ///
    /// # Errors
    /// As `backward_table`.
    pub fn backward_named(
        &self,
        stream: &Stream,
        bags: &Bags<I>,
        output_gradient: Slice<'_, T>,
        gradient: SliceMut<'_, T>,
    ) -> Result<()> {
        let transposed = self.transposed()?;
        let (rows, columns) = (transposed.rows.len(), self.columns);
        let (what, shape) = ("the gradient of the named rows", || format!("{rows}×{columns}"));
        bags.device().expect_operand(OPERATION, what, gradient.as_slice(), shape, rows * columns)?;
        let offsets = transposed.offsets_of_named.as_slice();
        self.gradient::<true>(stream, bags, output_gradient, gradient.address(), self.columns, offsets)
    }

    /// The rows of the table that bags name, without that of the padding index, in ascending order. The first call sorts, as
    /// for [`backward_table`](NHot::backward_table).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or what the driver says.
    pub fn named_rows(&self) -> Result<Slice<'_, I>> {
        Ok(self.transposed()?.rows.as_slice())
    }

    /// The gradient of each weight, in the order of the indices: the product of its row of the table and its bag's row of
    /// `output_gradient`, which is as for [`backward_table`](NHot::backward_table). Of the padding index it is 0.
    ///
    /// # Errors
    /// As [`run`](NHot::run), and [`Error::Length`](crate::Error::Length) where there is not an element for each index.
    pub fn backward_weights(
        &self,
        stream: &Stream,
        bags: &Bags<I>,
        output_gradient: Slice<'_, T>,
        table: Slice<'_, T>,
        gradient: SliceMut<'_, f32>,
    ) -> Result<()> {
        self.check_bags(stream, bags)?;
        self.table.check("the table", bags.device(), table)?;
        self.gradients.check("the gradient of the result", bags.device(), output_gradient)?;
        let (what, shape) = ("the gradient of the weights", || "one an index".into());
        bags.device().expect_operand(OPERATION, what, gradient.as_slice(), shape, bags.nnz())?;
        let layouts = |vector: u32| self.table.allows(vector) && self.gradients.allows(vector);
        let vector = self.vector(table.address() | output_gradient.address(), layouts);
        let entry = entries::nhot()
            .iter()
            .filter(|entry| entry.tile.pass == Pass::Weights && entry.tile.value == T::TYPE)
            .filter(|entry| entry.tile.index_bits == I::BITS && entry.tile.vector <= vector)
            .max_by_key(|entry| entry.tile.vector)
            .expect("the list has one for single elements");
        let args = WeightArgs::<T::Device, I> {
            nonzeros: self.nonzeros(0),
            scales: GlobalPtr::from_address(self.scales()?.address()),
            table: table.pointer(),
            gradient: output_gradient.pointer(),
            out: gradient.pointer(),
            stride_bytes: self.table.stride_bytes,
            gradient_stride_bytes: self.gradients.stride_bytes,
            columns: self.columns as u32,
        };
        for span in spans(bags.bags(), MAX_GRID_X) {
            let mut args = args;
            args.nonzeros.offsets = args.nonzeros.offsets.add(span.start);
            args.gradient = args.gradient.add(span.start * self.gradients.stride);
            if args.scales.address() != 0 {
                args.scales = args.scales.add(span.start);
            }
            launch(stream, entry, [span.len() as u32, 1, 1], &args)?;
        }
        Ok(())
    }

    /// A lookup in the result's gradient: for each row of the table, or of the named ones, of those bags that name it.
    fn gradient<const NAMED: bool>(
        &self,
        stream: &Stream,
        bags: &Bags<I>,
        output_gradient: Slice<'_, T>,
        out: u64,
        out_stride: usize,
        offsets: Slice<'_, u32>,
    ) -> Result<()> {
        self.check_bags(stream, bags)?;
        self.gradients.check("the gradient of the result", bags.device(), output_gradient)?;
        let transposed = self.transposed()?;
        let layouts =
            |vector: u32| self.gradients.allows(vector) && out_stride.is_multiple_of(vector as usize);
        let rows = offsets.len() - 1;
        let problem = Problem {
            bags: rows,
            nnz: transposed.nnz,
            longest: transposed.longest,
            vector: self.vector(output_gradient.address() | out, layouts),
            index_bits: u32::BITS,
            ..*self.selection.problem()
        };
        let at = VECTORS.iter().position(|&vector| vector == problem.vector).unwrap_or(VECTORS.len() - 1);
        let cheapest = |vector| choose(&Problem { vector, ..problem })[0];
        let kernels = || Ok(GradientKernels::<NAMED>(VECTORS.map(cheapest)));
        let choice = self.derived.get_or_make(kernels)?.0[at];
        let weights = bags.weights_address();
        let places = if weights == 0 { 0 } else { transposed.places.as_slice().address() };
        let args = LookupArgs::<T::Device, u32> {
            nonzeros: Nonzeros {
                offsets: offsets.pointer(),
                indices: transposed.bags.as_slice().pointer(),
                weights: GlobalPtr::from_address(weights),
                places: GlobalPtr::from_address(places),
                scales: GlobalPtr::from_address(self.scales()?.address()),
                padding: u32::NONE,
            },
            table: output_gradient.pointer(),
            out: GlobalMut::from_address(out),
            out_stride: out_stride as u64,
            stride_bytes: self.gradients.stride_bytes,
            bags: 0,
            columns: self.columns as u32,
            parts: 0,
            mean: 0,
            transposed: 0,
        };
        lookup(stream, &choice, rows, args)
    }

    /// The most elements that these addresses, these layouts and the columns allow to load at once.
    fn vector(&self, addresses: u64, layouts: impl Fn(u32) -> bool) -> u32 {
        let bytes = u64::from(T::TYPE.bytes());
        widest(|vector| {
            addresses.is_multiple_of(bytes * u64::from(vector))
                && self.columns.is_multiple_of(vector as usize)
                && layouts(vector)
        })
    }

    fn transposed(&self) -> Result<&Transposed<I>> {
        self.derived.get_or_make(|| Transposed::new(&self.pattern, self.options.padding_index))
    }

    fn scales(&self) -> Result<&Scales> {
        self.derived.get_or_make(|| Scales::new(&self.pattern, &self.options))
    }
}

//! Plans: what is worked out once for bags and a number of columns.
use std::marker::PhantomData;
use std::sync::Arc;

use lacuna_gpu::GlobalPtr;
use lacuna_kernels::nhot::{LookupArgs, Nonzeros};

use super::bags::BagPattern;
use super::launch::lookup;
use super::{BagIndex, Bags, Choice, DeviceIndices, Layout, Mode, OPERATION, Options, Problem};
use crate::op::{
    Layout as DenseLayout, MAX_WIDTH, Selection, strides, tells_choice, tunes_selection, widest,
};
use crate::pattern::Derived;
use crate::tune::{Tunable, drawn};
use crate::{Buffer, Device, Error, Result, Slice, SliceMut, Stream, Value};

/// Embedding-bag lookup, as PyTorch's `EmbeddingBag`: sums or means of the rows of a dense table that bags name, which is
/// Y = X·W with few nonzeros in each row of X. Values are of `T`, sums in f32, rounded to `T` once.
///
/// An index that a bag names twice counts twice. An empty bag gives zeros. A weight that is not finite flows into its bag, and
/// into no other; a row that no bag names is not read. The same operands give the same bits in every run, by the plan and the
/// addresses' alignment.
///
/// ```
/// use lacuna::{Bags, Device, NHot};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Rows of the table: 1 2, 10 20, 100 200.
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let table = device.upload(&[1.0_f32, 2.0, 10.0, 20.0, 100.0, 200.0])?;
/// let bags = Bags::<u32>::new(&device, 3, &[0, 2, 2, 4], &[0, 2, 1, 1])?;
/// let plan = NHot::plan(&bags, 2)?;
/// let mut out = device.uninitialized(plan.output_len())?;
/// plan.run(&stream, &bags, table.as_slice(), out.as_slice_mut())?;
/// assert_eq!(out.download(&stream)?, [101.0, 202.0, 0.0, 0.0, 20.0, 40.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NHot<T: Value = f32, I: BagIndex = u32> {
    pub(super) pattern: Arc<BagPattern<I>>,
    pub(super) options: Options,
    pub(super) columns: usize,
    pub(super) table: DenseLayout,
    pub(super) out: DenseLayout,
    /// The gradient of the result, always a row a bag.
    pub(super) gradients: DenseLayout,
    pub(super) selection: Selection<Problem>,
    /// What gradients read, each made when the first needs it.
    pub(super) derived: Derived,
    values: PhantomData<T>,
}

impl<T: Value, I: BagIndex> NHot<T, I> {
    /// A plan for sums over these bags, of a table of `columns` columns.
    ///
    /// # Errors
    /// [`Error::TooLarge`] from 2³⁰ columns on, or where no buffer can hold the table or the result.
    pub fn plan(bags: &Bags<I>, columns: usize) -> Result<Self> {
        Self::plan_with(bags, columns, Options::default())
    }

    /// As [`plan`](NHot::plan), with options.
    ///
    /// # Errors
    /// As `plan`, and [`Error::TooLarge`] for a stride of 4 GiB; [`Error::Parameter`] for strides below the elements of a row,
    /// and for a padding index that is not a row; [`Error::Illegal`] for an algorithm that cannot do this problem.
    pub fn plan_with(bags: &Bags<I>, columns: usize, options: Options) -> Result<Self> {
        Error::expect_at_most("the number of columns", MAX_WIDTH, columns)?;
        let (rows, count) = (bags.table_rows(), bags.bags());
        if let Some(padding) = options.padding_index {
            let expected = || format!("below {rows}, the rows of the table");
            Error::expect(padding < rows, OPERATION, "the padding index", expected, padding)?;
        }
        let layout = |rows, n, strides| DenseLayout::new(rows, n, T::TYPE.bytes(), strides);
        let table = strides!(OPERATION, "the table", "columns", options.table_stride);
        let table = layout(rows, columns, table)?;
        let by_rows = options.layout == Layout::RowMajor;
        let out = |width, stride| strides!(OPERATION, "the result", width, stride);
        // Gradients of the result have rows of columns, whatever it has.
        let gradients =
            layout(count, columns, out("columns", if by_rows { options.out_stride } else { None }))?;
        let out = if by_rows { gradients } else { layout(columns, count, out("bags", options.out_stride))? };

        let info = bags.device().info();
        let problem_at = |vector| Problem {
            bags: count,
            nnz: bags.nnz(),
            longest: bags.pattern().longest,
            columns,
            vector: widest(|allowed| {
                allowed <= vector && table.allows(allowed) && (!by_rows || out.allows(allowed))
            }),
            value: T::TYPE,
            index_bits: I::BITS,
            multiprocessors: info.multiprocessors,
            sm: info.sm,
        };
        let selection = Selection::new(options.algorithm, T::TYPE.bytes(), problem_at);
        Ok(Self {
            pattern: Arc::clone(bags.pattern()),
            options,
            columns,
            table,
            out,
            gradients,
            selection: selection.expect_some(|| format!("{columns} columns"))?,
            derived: Derived::default(),
            values: PhantomData,
        })
    }

    /// Elements that the table must have, up to the last of the last row. The gap after it may be there too.
    pub fn table_len(&self) -> usize {
        self.table.len()
    }

    /// Elements that the result must have, up to the last of the last row. The gap after it may be there too.
    pub fn output_len(&self) -> usize {
        self.out.len()
    }

    /// Gives the lookup to the stream, and returns at once. Work on other streams that uses the operands meanwhile must be
    /// ordered with this: see [`Stream`]. It can be recorded in a graph.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::OtherPattern`] and [`Error::OtherDevice`] for operands that do not fit; [`Error::Illegal`]
    /// where the algorithm asked for needs other alignment; [`Error::Launch`] or, on the simulator, its findings.
    pub fn run(
        &self,
        stream: &Stream,
        bags: &Bags<I>,
        table: Slice<'_, T>,
        out: SliceMut<'_, T>,
    ) -> Result<()> {
        self.lookup(stream, bags, self.nonzeros(bags.weights_address()), table, out)
    }

    /// The lookup of these nonzeros, which are the bags', or as many others.
    fn lookup(
        &self,
        stream: &Stream,
        bags: &Bags<I>,
        nonzeros: Nonzeros<I>,
        table: Slice<'_, T>,
        out: SliceMut<'_, T>,
    ) -> Result<()> {
        self.check_bags(stream, bags)?;
        self.table.check("the table", bags.device(), table)?;
        self.out.check("the result", bags.device(), out.as_slice())?;
        let transposed = self.options.layout == Layout::Transposed;
        // Transposed, elements are stored one by one.
        let addresses = table.address() | if transposed { 0 } else { out.address() };
        let choice = self.selection.at(addresses, "table and result are")?;
        let args = LookupArgs::<T::Device, I> {
            nonzeros,
            table: table.pointer(),
            out: out.pointer(),
            out_stride: self.out.stride as u64,
            stride_bytes: self.table.stride_bytes,
            bags: 0,
            columns: self.columns as u32,
            parts: 0,
            mean: u32::from(self.options.mode == Mode::Mean),
            transposed: u32::from(transposed),
        };
        lookup(stream, choice, bags.bags(), args)
    }

    /// The bags as kernels have them.
    pub(super) fn nonzeros(&self, weights: u64) -> Nonzeros<I> {
        Nonzeros {
            offsets: self.pattern.offsets.as_slice().pointer(),
            indices: self.pattern.indices.as_slice().pointer(),
            weights: GlobalPtr::from_address(weights),
            places: GlobalPtr::from_address(0),
            scales: GlobalPtr::from_address(0),
            padding: self.options.padding_index.map_or(I::NONE, I::from_row),
        }
    }

    pub(super) fn check_bags(&self, stream: &Stream, bags: &Bags<I>) -> Result<()> {
        if !Arc::ptr_eq(&self.pattern, bags.pattern()) {
            return Err(Error::OtherPattern { operation: OPERATION });
        }
        bags.device().expect_same(OPERATION, "the stream", stream.device())
    }
}

impl<T: Value> NHot<T, u32> {
    /// As [`run`](NHot::run), with other indices in place of the bags' own, as many, which are on the device already: bags keep
    /// their lengths and their weights. Gradients are still those of the bags' own indices.
    ///
    /// ```
    /// use lacuna::{Bags, BeamSearch, Device, NHot};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Device::simulator();
    /// let stream = device.stream()?;
    /// let search = BeamSearch::plan(&device, 1, 2, 4, 0)?;
    /// let mut state = search.start()?;
    /// let logits = device.upload(&[0.0_f32, 3.0, 1.0, 2.0, /* beam 1: */ 0.0, 0.0, 0.0, 0.0])?;
    /// search.step(&stream, logits.as_slice(), &mut state)?;
    /// // Tokens 1 and 3 were chosen. One index a bag: which it is here does not matter.
    /// let bags = Bags::new(&device, 4, &[0, 1, 2], &[0, 0])?;
    /// let plan = NHot::plan(&bags, 2)?;
    /// let table = device.upload(&[0.0_f32, 1.0, 10.0, 11.0, 20.0, 21.0, 30.0, 31.0])?;
    /// let mut out = device.uninitialized(plan.output_len())?;
    /// plan.run_with_indices(&stream, &bags, state.token_indices(), table.as_slice(), out.as_slice_mut())?;
    /// assert_eq!(out.download(&stream)?, [10.0, 11.0, 30.0, 31.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As `run`; [`Error::Length`] where there are not as many indices as the bags have, and [`Error::Parameter`] where they may
    /// be beyond the table.
    pub fn run_with_indices(
        &self,
        stream: &Stream,
        bags: &Bags<u32>,
        indices: DeviceIndices<'_>,
        table: Slice<'_, T>,
        out: SliceMut<'_, T>,
    ) -> Result<()> {
        let (what, shape) = ("the indices", || "one for each of the bags' own".into());
        Error::expect_len(OPERATION, what, shape, bags.nnz(), indices.len())?;
        bags.device().expect_same(OPERATION, what, indices.as_slice().device())?;
        let (rows, below) = (bags.table_rows(), indices.below());
        let expected = || format!("at most {rows}, the rows of the table");
        Error::expect(below <= rows, OPERATION, "the limit of the indices", expected, below)?;
        let own = self.nonzeros(bags.weights_address());
        self.lookup(stream, bags, Nonzeros { indices: indices.as_slice().pointer(), ..own }, table, out)
    }
}

tells_choice!(NHot<T: Value, I: BagIndex>);

impl<T: Value, I: BagIndex> Tunable for NHot<T, I> {
    type Subject = Bags<I>;
    /// The table and the result.
    type Scratch = (Buffer<T>, Buffer<T>);
    const NAME: &'static str = "nhot";

    fn device(&self) -> &Device {
        self.pattern.indices.device()
    }
    fn describe(&self, bags: &Bags<I>) -> Option<String> {
        if !self.selection.is_auto() || self.output_len() == 0 || bags.nnz() == 0 {
            return None;
        }
        let Problem { bags: count, nnz, longest, columns, vector, value, index_bits, .. } =
            *self.selection.problem();
        let (rows, layout) = (bags.table_rows(), self.options.layout);
        let weights = if bags.weights_address() == 0 { "" } else { ", weighted" };
        Some(format!(
            "{value} u{index_bits} {count} bags, {nnz} indices, longest {longest}{weights}; table {rows}×{columns}, vectors of \
             {vector}, {layout:?}"
        ))
    }
    tunes_selection!();
    fn with_candidate(&self, bags: &Bags<I>, name: &str) -> Result<Self> {
        Self::plan_with(bags, self.columns, self.options.algorithm(self.selection.algorithm_of(name)))
    }
    fn scratch(&self, bags: &Bags<I>) -> Result<Self::Scratch> {
        Ok((drawn(bags.device(), self.table_len())?, bags.device().zeros(self.output_len())?))
    }
    fn run_on(&self, stream: &Stream, bags: &Bags<I>, (table, out): &mut Self::Scratch) -> Result<()> {
        self.run(stream, bags, table.as_slice(), out.as_slice_mut())
    }
}

//! Plans: what is worked out once for a pattern and a number of columns.
use std::marker::PhantomData;
use std::sync::Arc;

use super::choose::{Choice, Problem, b_bytes_limit, is_by_tiles};
use super::pieces::Pieces;
use super::{OPERATION, Options};
use crate::op::{Layout, MAX_WIDTH, Selection, strides, tells_choice, tunes_selection, widest};
use crate::pattern::DevicePattern;
use crate::tune::{Tunable, drawn, row_class};
use crate::{Buffer, CsrMatrix, Device, Error, Index, Result, Slice, SliceMut, Stream, Value};

/// C = clamp(alpha·A·B + beta·C + bias, lo, hi) for one pattern of A (M×K) and one N, with values of `T` and sums in f32.
///
/// B is K×N and C is M×N, row by row; without other [options](Options) C = A·B, and there are no gaps. The mean, the greatest or
/// the least of a row's products may take the place of their sum ([`Reduce`](super::Reduce)). Each sum runs over the row's nonzeros alone, and the same operands give the same bits in every run, by the plan and the addresses'
/// alignment. Values that are not finite flow as IEEE 754 says, and only into the rows whose nonzeros they meet; where a
/// tile of C on tensor cores has some, all of the tile is computed by fused multiply-adds.
///
/// Where rows are [cut into pieces](Spmm::longest_piece), the plan has the room for what these come to, and its clones share it:
/// runs of such a plan on several streams must be ordered.
#[derive(Clone, Debug)]
pub struct Spmm<T: Value = f32, I: Index = u32> {
    pub(super) pattern: Arc<DevicePattern<I>>,
    pub(super) n: usize,
    pub(super) options: Options,
    pub(super) b: Layout,
    pub(super) c: Layout,
    pub(super) selection: Selection<Problem>,
    /// What each chosen kernel that cuts rows needs, by its name.
    pub(super) pieces: Vec<(&'static str, Arc<Pieces>)>,
    values: PhantomData<T>,
}

/// What a run works on.
#[derive(Debug)]
pub struct Operands<'o, T: Value = f32, I: Index = u32> {
    /// The matrix, of the pattern that was planned for; or as many as the plan's batch.
    pub a: &'o CsrMatrix<T, I>,
    /// B: [`input_len`](Spmm::input_len) elements.
    pub b: Slice<'o, T>,
    /// C: [`output_len`](Spmm::output_len) elements.
    pub c: SliceMut<'o, T>,
    /// What is added to each row of C: M elements, the same for the whole batch.
    pub bias: Option<Slice<'o, T>>,
}

impl<T: Value, I: Index> Spmm<T, I> {
    /// A plan for `a` and B's `n` columns.
    ///
    /// # Errors
    /// [`Error::TooLarge`] from 2³⁰ columns on, or where no buffer can hold B or C; what the driver says, where the first
    /// plan of a pattern makes bitmasks of it.
    pub fn plan(a: &CsrMatrix<T, I>, n: usize) -> Result<Self> {
        Self::plan_with(a, n, Options::default().batch(a.batch()))
    }

    /// As [`plan`](Spmm::plan), with options.
    ///
    /// # Errors
    /// As `plan`, and [`Error::TooLarge`] for a stride of 4 GiB; [`Error::Parameter`] for limits of a clamp that are
    /// not in order, strides below N, and batch strides that let matrices of C overlap; [`Error::Illegal`] for an
    /// algorithm that cannot do this problem.
    pub fn plan_with(a: &CsrMatrix<T, I>, n: usize, options: Options) -> Result<Self> {
        Error::expect_at_most("N", MAX_WIDTH, n)?;
        options.check()?;
        let bytes = T::TYPE.bytes();
        let Options { batch, b_stride, b_batch_stride, c_stride, c_batch_stride, .. } = options;
        let Options { precision, reduce, longest_piece, .. } = options;
        let b = strides!(OPERATION, "B", "N", b_stride, batch, b_batch_stride);
        let b = Layout::new(a.cols(), n, bytes, b)?;
        let c = strides!(OPERATION, "C", "N", c_stride, batch, c_batch_stride);
        let c = Layout::new(a.rows(), n, bytes, c)?;
        c.expect_disjoint("the batch stride of C")?;

        let problem_at = |vector| {
            let vector = widest(|allowed| allowed <= vector && b.allows(allowed) && c.allows(allowed));
            Problem { batch, precision, reduce, longest_piece, ..Problem::of(a, n, vector) }
        };
        let selection = Selection::new(options.algorithm, bytes, problem_at).expect_some(|| {
            let whole = [b_stride, c_stride, b_batch_stride, c_batch_stride] == [None; 4];
            format!("N = {n}{}", if whole { "" } else { " and these strides" })
        })?;
        let b_bytes = a.cols() as u64 * u64::from(b.stride_bytes);
        if b_bytes > b_bytes_limit(&selection.best().entry.tile) {
            let why = format!("it addresses B by 32-bit offsets, and K rows of it are {b_bytes} bytes");
            return Err(selection.illegal(why));
        }
        let pattern = Arc::clone(a.pattern());
        Self { pattern, n, options, b, c, selection, pieces: Vec::new(), values: PhantomData }.prepared()
    }

    /// This plan, once what its kernels need of the pattern is there: bitmasks, or kernels without where they have no room; for
    /// means, one over the length of each row; tables of rows in pieces.
    fn prepared(mut self) -> Result<Self> {
        self.row_scale()?;
        self.selection.prepare(|choice| is_by_tiles(&choice.entry.tile), || self.pattern.bitmasks())?;
        let problem = self.selection.problem();
        self.pieces.clear();
        for choice in self.selection.iter() {
            let (name, length) = (choice.entry.name, problem.piece_length(choice.entry));
            if let Some(length) = length.filter(|_| self.pieces_for(name).is_none()) {
                self.pieces.push((name, Pieces::new(&self.pattern, problem, length)?));
            }
        }
        Ok(self)
    }

    /// What the kernel of this name needs to cut rows.
    pub(super) fn pieces_for(&self, name: &str) -> Option<&Pieces> {
        self.pieces.iter().find(|(known, _)| *known == name).map(|(_, pieces)| &**pieces)
    }

    /// Nonzeros that rows have at most, by the kernel that [`choice`](Self::choice) tells: longer ones are cut into pieces of about
    /// so many. None if all rows stay whole.
    pub fn longest_piece(&self) -> Option<usize> {
        self.selection.problem().piece_length(self.choice().entry)
    }

    /// Elements that B must have, up to the last of the last row: K·N without gaps. The gap after it may be there too.
    pub fn input_len(&self) -> usize {
        self.b.len()
    }

    /// Elements that C must have, up to the last of the last row: M·N without gaps. The gap after it may be there too.
    pub fn output_len(&self) -> usize {
        self.c.len()
    }

    pub(super) fn check(&self, stream: &Stream, operands: &Operands<'_, T, I>) -> Result<()> {
        let Operands { a, b, c, bias } = operands;
        if !Arc::ptr_eq(&self.pattern, a.pattern()) {
            return Err(Error::OtherPattern { operation: OPERATION });
        }
        let device = a.device();
        device.expect_same(OPERATION, "the stream", stream.device())?;
        self.check_batch_of_a(a)?;
        self.b.check("B", device, *b)?;
        self.c.check("C", device, c.as_slice())?;
        let Some(bias) = bias else { return Ok(()) };
        let shape = || "one for each row of C".into();
        device.expect_operand(OPERATION, "the bias", *bias, shape, self.pattern.rows)
    }

    pub(super) fn check_batch_of_a(&self, a: &CsrMatrix<T, I>) -> Result<()> {
        let (got, batch) = (a.batch(), self.options.batch);
        let expected = || format!("1 or the plan's, {batch}");
        Error::expect([1, batch].contains(&got), OPERATION, "the batch of A", expected, got)
    }
}

tells_choice!(Spmm<T: Value, I: Index>);

impl<T: Value, I: Index> Tunable for Spmm<T, I> {
    type Subject = CsrMatrix<T, I>;
    /// B and C.
    type Scratch = (Buffer<T>, Buffer<T>);
    const NAME: &'static str = "spmm";

    fn device(&self) -> &Device {
        self.pattern.row_table.device()
    }
    fn describe(&self, a: &CsrMatrix<T, I>) -> Option<String> {
        if !self.selection.is_auto() || self.output_len() == 0 {
            return None;
        }
        let Problem { rows, cols, nnz, n, vector, batch, value, index, precision, reduce, .. } =
            *self.selection.problem();
        let (rows_class, order) = (row_class(a.stats()), self.pattern.row_order);
        // Sums and means have the same kernels, the greatest and the least product others.
        let compares = if reduce.is_extremum() { ", compared" } else { "" };
        // All products may share one B, which caches then hold.
        let shared = if batch > 1 && self.options.b_batch_stride == Some(0) { ", one B" } else { "" };
        Some(format!(
            "{value} {index} {precision:?} {rows}×{cols}, {nnz} nonzeros, {rows_class}, {order:?}; n {n}, vectors of {vector}, \
             batch {batch} of {} A{shared}{compares}",
            a.batch()
        ))
    }
    tunes_selection!(prepared);
    fn with_candidate(&self, a: &CsrMatrix<T, I>, name: &str) -> Result<Self> {
        // Without an epilogue, so that choices do not depend on it, and repeated products do not grow in C.
        let plain = self.options.alpha(1.0).beta(0.0).clamp(f32::NEG_INFINITY, f32::INFINITY);
        Self::plan_with(a, self.n, plain.algorithm(self.selection.algorithm_of(name)))
    }
    fn scratch(&self, _a: &CsrMatrix<T, I>) -> Result<Self::Scratch> {
        Ok((drawn(self.device(), self.input_len())?, self.device().zeros(self.output_len())?))
    }
    fn run_on(&self, stream: &Stream, a: &CsrMatrix<T, I>, (b, c): &mut Self::Scratch) -> Result<()> {
        self.run(stream, a, b.as_slice(), c.as_slice_mut())
    }
}

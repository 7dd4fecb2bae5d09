//! Plans: what is worked out once for a mask and a dimension.
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use lacuna_gpu::GlobalMut;
use lacuna_kernels::attention::{self as kernels, Args, QueryTileArgs, Scheme, WgmmaTileArgs};

use super::choose::{Algorithm, Choice, Problem, choose};
use super::options::in_powers_of_two;
use super::{AttentionSteps, OPERATION, Options};
use crate::op::{
    Layout, MAX_GRID_YZ, MAX_WIDTH, Selection, VECTORS, launch, spans, strides, tunes_selection, widest,
};
use crate::pattern::DevicePattern;
use crate::tune::{Tunable, drawn, row_class};
use crate::{Buffer, CsrMatrix, Device, Error, Index, Result, Slice, SliceMut, Stream, Value};

/// O = softmax(scale·Q·Kᵀ ⊙ mask)·V for one mask (queries × keys), one dimension d, and a batch of heads, with values of
/// `T` and sums in f32.
///
/// Of each head Q and O are queries × d, K and V keys × d, row by row, without gaps and one head after another if the
/// options say nothing else. The mask is the pattern of a sparse matrix, whose values mean nothing; all heads share it.
///
/// - A query without keys gets O = 0, and −∞ as the logarithm of its sum of exponentials.
/// - Values that are not finite flow as IEEE 754 says, and only into queries whose keys they meet. A score of NaN or +∞
///   makes the query's row of O NaN, and so do scores that are all −∞, as in dense libraries. One of −∞ among others has
///   weight 0.
/// - The same operands give the same bits in every run, by the plan and the addresses' alignment.
///
/// ```
/// use lacuna::matrix::{Csr, generate};
/// use lacuna::{CsrMatrix, Device, SparseAttention};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // 40 tokens, each of which sees the 8 nearest, and some of those further back.
/// let mask = generate::band_random(40, 8, 0.9, 1)?;
/// let ones = vec![1.0; mask.nnz()];
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let mask = CsrMatrix::new(&device, &Csr::with_values(mask, ones)?)?;
///
/// let plan = SparseAttention::plan(&mask, 16)?;
/// let q = device.upload(&generate::random_values(40 * 16, 2))?;
/// let k = device.upload(&generate::random_values(40 * 16, 3))?;
/// let v = device.upload(&generate::random_values(40 * 16, 4))?;
/// let mut o = device.zeros(40 * 16)?;
/// plan.run(&stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut())?;
/// // The first token sees itself alone.
/// assert_eq!(o.download(&stream)?[..16], v.download(&stream)?[..16]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SparseAttention<T: Value = f32, I: Index = u32> {
    pattern: Arc<DevicePattern<I>>,
    device: Device,
    dim: usize,
    options: Options,
    factor: f32,
    /// Of Q, of K and V, and of O.
    q: Layout,
    kv: Layout,
    o: Layout,
    /// Empty where three steps are taken.
    selection: Selection<Problem>,
    steps: Option<Arc<Steps<T, I>>>,
    values: PhantomData<T>,
}

/// Attention in three steps, and room for its weights.
#[derive(Debug)]
struct Steps<T: Value, I: Index> {
    plan: AttentionSteps<T, I>,
    weights: Mutex<CsrMatrix<T, I>>,
}

/// What a run works on.
#[derive(Debug)]
pub struct Operands<'o, T: Value = f32> {
    /// Q: [`query_len`](SparseAttention::query_len) elements.
    pub q: Slice<'o, T>,
    /// K: [`key_len`](SparseAttention::key_len) elements.
    pub k: Slice<'o, T>,
    /// V: as many.
    pub v: Slice<'o, T>,
    /// O: [`output_len`](SparseAttention::output_len) elements.
    pub o: SliceMut<'o, T>,
    /// If wanted, the natural logarithm of the sum of exponentials of each query's scores: one a query of each head.
    pub logsumexp: Option<SliceMut<'o, f32>>,
}

impl<T: Value, I: Index> SparseAttention<T, I> {
    /// A plan for one head with this mask (queries × keys), and rows of `dim` elements. The mask's values are not read.
    ///
    /// # Errors
    /// As [`plan_with`](Self::plan_with).
    pub fn plan(mask: &CsrMatrix<T, I>, dim: usize) -> Result<Self> {
        Self::plan_with(mask, dim, Options::default())
    }

    /// As [`plan`](Self::plan), with options.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a dimension of 0, a scale that is not finite, and a `kv_group` that does not divide the heads;
    /// [`Error::TooLarge`] from 2³⁰ elements a row on, or where no buffer can hold an operand; [`Error::Parameter`] for strides below
    /// d, for heads of O that overlap, and for strides and shared K and V where three steps are taken; [`Error::Illegal`] where the
    /// algorithm cannot do this dimension, or not on this GPU; what the driver says, where the first plan of a mask lists what its
    /// queries see in fours, or its blocks.
    pub fn plan_with(mask: &CsrMatrix<T, I>, dim: usize, options: Options) -> Result<Self> {
        let expected = || "at least 1, the elements of a row of Q";
        Error::expect(dim > 0, OPERATION, "the dimension", expected, dim)?;
        Error::expect_at_most("the dimension", MAX_WIDTH, dim)?;
        let factor = options.factor(dim)?;
        let layout = |tokens, strides| Layout::new(tokens, dim, T::TYPE.bytes(), strides);
        let Options { batch, q_stride, kv_stride, o_stride, .. } = options;
        let of_q = strides!(OPERATION, "Q", "d", q_stride, batch, options.q_batch_stride);
        let expected = || format!("a divisor of the {batch} heads");
        let divides = options.kv_group > 0 && batch.is_multiple_of(options.kv_group);
        Error::expect(divides, OPERATION, "the heads that share K and V", expected, options.kv_group)?;
        let kv_heads = batch / options.kv_group;
        let of_kv = strides!(OPERATION, "K", "d", kv_stride, kv_heads, options.kv_batch_stride);
        let of_o = strides!(OPERATION, "O", "d", o_stride, batch, options.o_batch_stride);
        let (q, kv) = (layout(mask.rows(), of_q)?, layout(mask.cols(), of_kv)?);
        let o = layout(mask.rows(), of_o)?;
        o.expect_disjoint("the batch stride of O")?;
        let (pattern, device) = (Arc::clone(mask.pattern()), mask.device().clone());
        let (value, index) = (T::TYPE, I::TYPE);
        let layouts = [q, kv, o];
        let widest_below = |vector| {
            widest(|allowed| allowed <= vector && layouts.iter().all(|layout| layout.allows(allowed)))
        };
        let (nnz, vector) = (mask.nnz(), widest_below(VECTORS[0]));
        let info = device.info();
        let mut problem = Problem {
            nnz,
            queries: mask.rows(),
            keys: mask.cols(),
            heads: batch,
            query_tile_entries: None,
            blocks: None,
            has_positive_scale: factor > 0.0,
            dim,
            vector,
            value,
            index,
            multiprocessors: info.multiprocessors,
            sm: info.sm,
        };
        let wanted = options.algorithm;
        problem.query_tile_entries =
            derived(&problem, wanted, Scheme::QueryTile, || Ok(pattern.query_tiles()?.entries()))?;
        problem.blocks = derived(&problem, wanted, Scheme::WgmmaTile, || {
            let has_them = wanted != Algorithm::Auto || pattern.has_dense_blocks()?;
            has_them.then(|| Ok(*pattern.mask_blocks()?.counts())).transpose()
        })?
        .flatten();
        let selection = Selection::new(options.algorithm, T::TYPE.bytes(), |vector| Problem {
            vector: widest_below(vector),
            ..problem
        });
        let steps = if options.algorithm == Algorithm::ThreeSteps
            || selection.is_auto() && selection.first().is_none()
        {
            let plan = AttentionSteps::plan(mask, dim, options)?;
            let weights = Mutex::new(plan.weights()?);
            Some(Arc::new(Steps { plan, weights }))
        } else {
            None
        };
        let values = PhantomData;
        let plan = Self { pattern, device, dim, options, factor, q, kv, o, selection, steps, values };
        if plan.steps.is_none() && plan.choice().is_none() {
            return Err(plan.illegal(format!("no kernel can do this shape with d = {dim}")));
        }
        Ok(plan)
    }

    /// The fused kernel that runs where all operands are aligned to 16 bytes, as whole buffers are; none where three steps
    /// are taken.
    pub fn choice(&self) -> Option<&Choice> {
        self.selection.first()
    }
    /// The fused kernels that are legal for each alignment of the operands' addresses, the best alignment first; each list in
    /// the order of the cost model. All are empty where only three steps can do it.
    pub fn legal(&self) -> [Vec<Choice>; 4] {
        self.selection.legal().map(|mut choices| {
            // There was no room for the query tiles.
            choices.retain(|choice| choice.cost.is_finite());
            choices
        })
    }
    /// Bytes of device memory that the plan holds for its runs: the scores of all heads where three steps are taken, and
    /// otherwise nothing. What was worked out of the mask is not counted; it is kept with that.
    pub fn workspace_bytes(&self) -> usize {
        self.steps.as_ref().map_or(0, |steps| steps.plan.weights_bytes())
    }
    /// The options that were planned with.
    pub fn options(&self) -> &Options {
        &self.options
    }
    /// What multiplies the scores: the scale asked for, or 1/√d.
    pub fn scale(&self) -> f32 {
        self.factor
    }
    /// Elements that Q must have, up to the last of the last row: batch · queries · d, without strides. The gap after it may
    /// be there too.
    pub fn query_len(&self) -> usize {
        self.q.len()
    }
    /// The same of K, and of V: batch / `kv_group` · keys · d, without strides.
    pub fn key_len(&self) -> usize {
        self.kv.len()
    }
    /// The same of O: batch · queries · d, without strides.
    pub fn output_len(&self) -> usize {
        self.o.len()
    }
    /// Elements of the logarithms: batch · queries.
    pub fn logsumexp_len(&self) -> usize {
        self.options.batch * self.pattern.rows
    }

    /// As [`run_with`](Self::run_with), without logarithms.
    ///
    /// # Errors
    /// As `run_with`.
    pub fn run(
        &self,
        stream: &Stream,
        q: Slice<'_, T>,
        k: Slice<'_, T>,
        v: Slice<'_, T>,
        o: SliceMut<'_, T>,
    ) -> Result<()> {
        self.run_with(stream, Operands { q, k, v, o, logsumexp: None })
    }

    /// Gives the work to the stream, and returns at once. Work on other streams that uses the operands meanwhile must be
    /// ordered with this: see [`Stream`].
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OtherDevice`] for operands that do not fit; [`Error::Illegal`] where the algorithm asked
    /// for needs other alignment; [`Error::Launch`] or, on the simulator, its findings.
    pub fn run_with(&self, stream: &Stream, operands: Operands<'_, T>) -> Result<()> {
        self.check(stream, &operands)?;
        if self.output_len() == 0 {
            return Ok(());
        }
        let Operands { q, k, v, o, logsumexp } = operands;
        if let Some(steps) = &self.steps {
            if logsumexp.is_some() {
                return Err(self.illegal("three steps have no logarithms".into()));
            }
            // Whoever panicked while it held the room left no work half given to a stream.
            let mut weights = steps.weights.lock().unwrap_or_else(PoisonError::into_inner);
            return steps.plan.forward(stream, q, k, v, &mut weights, o);
        }
        let addresses = q.address() | k.address() | v.address() | o.address();
        let Choice { entry, .. } = *self.selection.at(addresses, "Q, K, V or O is")?;
        let (rows, cols, none) = (self.pattern.rows, self.pattern.cols, GlobalMut::from_address(0));
        for heads in spans(self.options.batch, MAX_GRID_YZ) {
            let head = heads.start;
            let grid = |items: u32| [items.div_ceil(entry.tile.block_rows), heads.len() as u32, 1];
            let [of_q, of_o] = [self.q, self.o].map(|layout| head * layout.batch_stride);
            let group = self.options.kv_group;
            let of_kv = head / group * self.kv.batch_stride;
            let operands = kernels::Operands::<T::Device> {
                q: q.pointer().add(of_q),
                k: k.pointer().add(of_kv),
                v: v.pointer().add(of_kv),
                o: o.pointer().add(of_o),
                logsumexp: logsumexp.as_ref().map_or(none, |slice| slice.pointer().add(head * rows)),
                q_batch_stride: self.q.batch_stride as u64,
                kv_batch_stride: self.kv.batch_stride as u64,
                o_batch_stride: self.o.batch_stride as u64,
                q_stride_bytes: self.q.stride_bytes,
                kv_stride_bytes: self.kv.stride_bytes,
                o_stride_bytes: self.o.stride_bytes,
                rows: rows as u32,
                cols: cols as u32,
                dim: self.dim as u32,
                scale: in_powers_of_two(self.factor),
                group_heads: group as u32,
                first_of_group: (head % group) as u32,
            };
            match entry.tile.scheme {
                Scheme::WgmmaTile => {
                    let [tile_table, entries, bitmaps] =
                        self.pattern.mask_blocks()?.pointers(entry.tile.block_rows);
                    let grid = [heads.len() as u32, (rows as u32).div_ceil(entry.tile.block_rows), 1];
                    let args = WgmmaTileArgs { tile_table, entries, bitmaps, operands };
                    launch(stream, entry, grid, &args)?;
                }
                Scheme::QueryTile => {
                    let tiles = self.pattern.query_tiles()?;
                    let ([tile_table, entries], count) = (tiles.pointers(), tiles.count());
                    let args = QueryTileArgs { tile_table, entries, operands, tiles: count };
                    launch(stream, entry, grid(count), &args)?;
                }
                Scheme::Row { .. } => {
                    let (row_table, columns) =
                        (self.pattern.row_table_pointer(), self.pattern.columns_pointer());
                    let args = Args { row_table, columns, operands };
                    launch(stream, entry, grid(rows as u32), &args)?;
                }
            }
        }
        Ok(())
    }

    fn check(&self, stream: &Stream, operands: &Operands<'_, T>) -> Result<()> {
        let Operands { q, k, v, o, logsumexp } = operands;
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        self.q.check("Q", &self.device, *q)?;
        self.kv.check("K", &self.device, *k)?;
        self.kv.check("V", &self.device, *v)?;
        self.o.check("O", &self.device, o.as_slice())?;
        let Some(logsumexp) = logsumexp else { return Ok(()) };
        let (rows, batch) = (self.pattern.rows, self.options.batch);
        let (shape, len) = (|| format!("{batch} heads of {rows}×1"), self.logsumexp_len());
        self.device.expect_operand(OPERATION, "the logarithms", logsumexp.as_slice(), shape, len)
    }

    fn illegal(&self, why: String) -> Error {
        let mut error = self.selection.illegal(why);
        if let (Error::Illegal { legal, .. }, None) = (&mut error, &self.steps) {
            let steps = format!("{:?}", Algorithm::ThreeSteps);
            *legal = if legal.is_empty() { steps } else { format!("{legal}, {steps}") };
        }
        error
    }
}

/// What is made of the mask for kernels of this scheme, if such may be chosen. Where there is no room for it, and the algorithm is
/// the library's choice, they may not.
fn derived<D>(
    problem: &Problem,
    wanted: Algorithm,
    scheme: Scheme,
    make: impl FnOnce() -> Result<D>,
) -> Result<Option<D>> {
    let may_be = |choice: &Choice| {
        choice.entry.tile.scheme == scheme && (wanted == Algorithm::Auto || wanted == choice.algorithm)
    };
    if !choose(problem).iter().any(may_be) {
        return Ok(None);
    }
    match make() {
        Err(Error::OutOfMemory { .. }) if wanted == Algorithm::Auto => Ok(None),
        made => made.map(Some),
    }
}

impl<T: Value, I: Index> Tunable for SparseAttention<T, I> {
    type Subject = CsrMatrix<T, I>;
    /// Q, K, V and O.
    type Scratch = [Buffer<T>; 4];
    const NAME: &'static str = "attention";

    fn device(&self) -> &Device {
        &self.device
    }
    fn describe(&self, mask: &CsrMatrix<T, I>) -> Option<String> {
        if !self.selection.is_auto() || self.output_len() == 0 || self.pattern.nnz == 0 {
            return None;
        }
        let (value, index) = (T::TYPE, I::TYPE);
        let DevicePattern { rows, cols, nnz, row_order, .. } = *self.pattern;
        let rows_class = row_class(mask.stats());
        // Bitmasks in which four neighbours share other parts of what they see are other problems, by tenths.
        let shared =
            self.pattern.query_tile_part().map_or_else(|| "none".into(), |part| format!("{part:.1}"));
        let (dim, batch, vector) = (self.dim, self.options.batch, self.selection.problem().vector);
        Some(format!(
            "{value} {index} {rows}×{cols}, {nnz} keys, {rows_class}, {row_order:?}, query tiles {shared}; d {dim}, batch {batch}, \
             vectors of {vector}"
        ))
    }
    tunes_selection!();
    fn with_candidate(&self, mask: &CsrMatrix<T, I>, name: &str) -> Result<Self> {
        Self::plan_with(mask, self.dim, self.options.algorithm(self.selection.algorithm_of(name)))
    }
    fn scratch(&self, _mask: &CsrMatrix<T, I>) -> Result<Self::Scratch> {
        let (queries, keys) = (self.query_len(), self.key_len());
        let [q, k, v] = [queries, keys, keys].map(|len| drawn(&self.device, len));
        Ok([q?, k?, v?, self.device.zeros(self.output_len())?])
    }
    fn run_on(
        &self,
        stream: &Stream,
        _mask: &CsrMatrix<T, I>,
        [q, k, v, o]: &mut Self::Scratch,
    ) -> Result<()> {
        self.run(stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut())
    }
}

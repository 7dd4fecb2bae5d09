//! Plans: what is worked out once for a mask and a dimension.
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use lacuna_kernels::attention::{Args, QueryTileArgs, Scheme};

use super::choose::{Algorithm, Choice, Problem, choose};
use super::frame::{Frame, tells_operands};
use super::{AttentionSteps, Options};
use crate::op::{Selection, launch, tunes_selection};
use crate::pattern::DevicePattern;
use crate::tune::{Tunable, row_class};
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
    frame: Frame,
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
    /// If wanted, a slope of each head (ALiBi, ICLR 2022): slope · |i + keys − queries − j| is taken from the score of query i and key j,
    /// after scale and soft cap. The last query is as far as the last key, as in FlashAttention.
    pub alibi_slopes: Option<Slice<'o, f32>>,
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
    /// d, for heads of O that overlap, for a soft cap that is not above 0, and for strides, shared K and V and a soft cap where three steps are
    /// taken; [`Error::Illegal`] where the
    /// algorithm cannot do this dimension, or not on this GPU; what the driver says, where the first plan of a mask lists what its
    /// queries see in fours, or its blocks.
    pub fn plan_with(mask: &CsrMatrix<T, I>, dim: usize, options: Options) -> Result<Self> {
        let (device, size) = (mask.device(), [mask.rows(), mask.cols()]);
        let frame = Frame::new::<T>(device, size, dim, options)?;
        let pattern = Arc::clone(mask.pattern());
        let mut problem = frame.problem::<T>(mask.nnz(), Some(I::TYPE));
        let wanted = options.algorithm;
        let [query_tiles, blocks] = [&[Scheme::QueryTile][..], &[Scheme::WgmmaTile, Scheme::MmaTile]];
        problem.query_tile_entries = derived(&problem, wanted, query_tiles, || pattern.query_tile_entries())?;
        problem.blocks = derived(&problem, wanted, blocks, || {
            let has_them = wanted != Algorithm::Auto || pattern.has_dense_blocks()?;
            has_them.then(|| Ok(*pattern.mask_blocks()?.counts())).transpose()
        })?
        .flatten();
        let mut selection = frame.selection(&problem);
        let by_query_tiles = |choice: &Choice| choice.entry.tile.scheme == Scheme::QueryTile;
        if selection.iter().any(by_query_tiles)
            && derived(&problem, wanted, query_tiles, || pattern.query_tiles().map(|_| ()))?.is_none()
        {
            problem.query_tile_entries = None;
            selection = frame.selection(&problem);
        }
        let steps = if options.algorithm == Algorithm::ThreeSteps
            || selection.is_auto() && selection.first().is_none()
        {
            let plan = AttentionSteps::plan(mask, dim, options)?;
            let weights = Mutex::new(plan.weights()?);
            Some(Arc::new(Steps { plan, weights }))
        } else {
            None
        };
        let plan = Self { pattern, frame, selection, steps, values: PhantomData };
        if plan.steps.is_none() && plan.choice().is_none() {
            let (keys, precision) = (mask.nnz() / mask.rows().max(1), options.precision);
            let why = format!(
                "no kernel can do this shape with d = {dim}, {keys} keys a query, and Precision::{precision:?}"
            );
            return Err(plan.illegal(why));
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
    /// Gives the work to the stream, and returns at once. Work on other streams that uses the operands meanwhile must be
    /// ordered with this: see [`Stream`].
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OtherDevice`] for operands that do not fit; [`Error::Illegal`] where the algorithm asked
    /// for needs other alignment; [`Error::Launch`] or, on the simulator, its findings.
    pub fn run_with(&self, stream: &Stream, operands: Operands<'_, T>) -> Result<()> {
        self.frame.check(stream, &operands)?;
        if self.output_len() == 0 {
            return Ok(());
        }
        if let Some(steps) = &self.steps {
            let Operands { q, k, v, o, logsumexp, alibi_slopes } = operands;
            if logsumexp.is_some() {
                return Err(self.illegal("three steps have no logarithms".into()));
            }
            if alibi_slopes.is_some() {
                return Err(self.illegal("three steps take no slopes".into()));
            }
            // Whoever panicked while it held the room left no work half given to a stream.
            let mut weights = steps.weights.lock().unwrap_or_else(PoisonError::into_inner);
            return steps.plan.forward(stream, q, k, v, &mut weights, o);
        }
        let Choice { entry, .. } = *self.selection.at(operands.addresses(), "Q, K, V or O is")?;
        let entry = self.frame.kernel(entry, operands.alibi_slopes);
        let pattern = &self.pattern;
        self.frame.launch(&operands, |heads, operands| {
            let grid = |items: u32| [items.div_ceil(entry.tile.block_rows), heads, 1];
            match entry.tile.scheme {
                // No plan has a kernel of another kind; its launch would be refused.
                Scheme::WgmmaTile
                | Scheme::MmaTile
                | Scheme::ModifiedMmaTile
                | Scheme::BackwardTile { .. }
                | Scheme::BackwardMmaTile { .. }
                | Scheme::ModifiedWgmmaTile
                | Scheme::ModifiedBackwardTile { .. }
                | Scheme::ModifiedBackwardMmaTile { .. }
                | Scheme::MaskBlocks { .. }
                | Scheme::TransposeBitmaps => pattern.mask_blocks()?.launch(stream, entry, heads, operands),
                Scheme::QueryTile | Scheme::ModifiedQueryTile => {
                    let tiles = pattern.query_tiles()?;
                    let ([tile_table, entries], count) = (tiles.pointers(), tiles.count());
                    let args = QueryTileArgs { tile_table, entries, operands, tiles: count };
                    launch(stream, entry, grid(count), &args)
                }
                Scheme::Row { .. } | Scheme::ModifiedRow { .. } => {
                    let (row_table, columns) = (pattern.row_table_pointer(), pattern.columns_pointer());
                    let args = Args { row_table, columns, operands };
                    launch(stream, entry, grid(operands.shape.rows), &args)
                }
            }
        })
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

tells_operands!(SparseAttention<T: Value, I: Index>);

/// What is made of the mask for kernels of these schemes, if such may be chosen. Where there is no room for it, and the algorithm is
/// the library's choice, they may not.
fn derived<D>(
    problem: &Problem,
    wanted: Algorithm,
    schemes: &[Scheme],
    make: impl FnOnce() -> Result<D>,
) -> Result<Option<D>> {
    let may_be = |choice: &Choice| {
        schemes.contains(&choice.entry.tile.scheme)
            && (wanted == Algorithm::Auto || wanted == choice.algorithm)
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
        &self.frame.device
    }
    fn describe(&self, mask: &CsrMatrix<T, I>) -> Option<String> {
        if !self.selection.is_auto() || self.output_len() == 0 || self.pattern.nnz == 0 {
            return None;
        }
        let (value, index) = (T::TYPE, I::TYPE);
        let DevicePattern { rows, cols, nnz, row_order, .. } = *self.pattern;
        let rows_class = row_class(mask.stats());
        // Bitmasks in which four neighbours share other parts of what they see are other problems, by tenths.
        let Problem { query_tile_entries, vector, .. } = *self.selection.problem();
        let part = |entries| format!("{:.1}", entries as f64 / nnz as f64);
        let shared = query_tile_entries.map_or_else(|| "none".into(), part);
        let (dim, batch) = (self.frame.dim, self.frame.options.batch);
        Some(format!(
            "{value} {index} {rows}×{cols}, {nnz} keys, {rows_class}, {row_order:?}, query tiles {shared}; d {dim}, batch {batch}, \
             vectors of {vector}{}",
            self.frame.asked::<T>()
        ))
    }
    tunes_selection!();
    fn with_candidate(&self, mask: &CsrMatrix<T, I>, name: &str) -> Result<Self> {
        Self::plan_with(mask, self.frame.dim, self.frame.options.algorithm(self.selection.algorithm_of(name)))
    }
    fn scratch(&self, _mask: &CsrMatrix<T, I>) -> Result<Self::Scratch> {
        self.frame.scratch()
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

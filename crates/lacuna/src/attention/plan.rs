//! Plans: what is worked out once for a mask and a dimension.
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::attention::{self as kernels, Args, QuadArgs};

use super::choose::{Algorithm, Choice, Problem, choose};
use super::options::in_powers_of_two;
use super::{AttentionSteps, OPERATION, Options};
use crate::backend::Launch;
use crate::csr::{DevicePattern, expect_at_most};
use crate::{CsrMatrix, Device, Error, Index, Result, Slice, SliceMut, Stream, Value};

/// Elements that addresses may allow to load at once.
const VECTORS: [u32; 4] = [8, 4, 2, 1];
/// The most elements of a row.
const MAX_DIM: usize = (1 << 30) - 1;
/// CUDA's limit on blocks along y: heads in one launch.
const MAX_GRID_Y: usize = 65_535;

/// O = softmax(scale·Q·Kᵀ ⊙ mask)·V for one mask (queries × keys), one dimension d, and a batch of heads, with values of
/// `T` and sums in f32.
///
/// Of each head Q and O are queries × d, K and V keys × d, row by row and without gaps, one head after another. The
/// mask is the pattern of a sparse matrix, whose values mean nothing; all heads share it.
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
    /// Elements of Q and O, and of K and V.
    lens: [usize; 2],
    /// The choice for each of [`VECTORS`]; none where it goes by steps.
    choices: [Option<Choice>; VECTORS.len()],
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
    /// O: as many as Q.
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
    /// [`Error::Parameter`] for a dimension of 0 and a scale that is not finite; [`Error::TooLarge`] from 2³⁰ elements a row
    /// on, or where no buffer can hold an operand; [`Error::Illegal`] where the algorithm cannot do this dimension; what the
    /// driver says, where the first plan of a mask lists what its queries see in fours.
    pub fn plan_with(mask: &CsrMatrix<T, I>, dim: usize, options: Options) -> Result<Self> {
        if dim == 0 {
            return Err(Error::Parameter {
                operation: OPERATION,
                what: "the dimension",
                expected: "at least 1, the elements of a row of Q".into(),
                got: dim.to_string(),
            });
        }
        expect_at_most("the dimension", MAX_DIM, dim)?;
        let factor = options.factor(dim)?;
        let limit = isize::MAX as usize / size_of::<T>();
        let len = |what: &'static str, tokens: usize| {
            let len = tokens.checked_mul(dim).and_then(|len| len.checked_mul(options.batch));
            let too_large = Error::TooLarge { what, limit: limit as u64, got: u64::MAX };
            len.filter(|&len| len <= limit).ok_or(too_large)
        };
        let lens = [
            len("the number of elements of Q", mask.rows())?,
            len("the number of elements of K", mask.cols())?,
        ];
        let (pattern, device) = (Arc::clone(mask.pattern()), mask.device().clone());
        let choices = [None; VECTORS.len()];
        let mut plan =
            Self { pattern, device, dim, options, factor, lens, choices, steps: None, values: PhantomData };
        let quad_entries = plan.quad_entries()?;
        plan.choices = VECTORS.map(|vector| plan.find(vector, quad_entries));
        let fused = plan.choices.iter().any(Option::is_some);
        let algorithm = options.algorithm;
        if algorithm == Algorithm::ThreeSteps || algorithm == Algorithm::Auto && !fused {
            let steps = AttentionSteps::plan(mask, dim, options)?;
            let weights = Mutex::new(steps.weights()?);
            plan.steps = Some(Arc::new(Steps { plan: steps, weights }));
        } else if !fused {
            return Err(plan.illegal(format!("no kernel has these numbers with d = {dim}"), VECTORS[0]));
        }
        Ok(plan)
    }

    /// The fused kernel that runs where all operands are aligned to 16 bytes, as whole buffers are; none where three steps
    /// are taken.
    pub fn choice(&self) -> Option<&Choice> {
        self.choices.iter().flatten().next()
    }
    /// The fused kernels that are legal for each alignment of the operands' addresses, the best alignment first; each list in
    /// the order of the cost model. All are empty where only three steps can do it.
    ///
    /// # Errors
    /// Those of listing what the mask's queries see in fours, where this plan has not done so.
    pub fn legal(&self) -> Result<[Vec<Choice>; 4]> {
        let quad_entries = self.quad_entries()?;
        Ok(VECTORS.map(|vector| {
            let mut choices = choose(&Problem { quad_entries, ..self.problem(vector) });
            // There was no room for the fours.
            choices.retain(|choice| choice.cost.is_finite());
            choices
        }))
    }
    /// This plan with, for each alignment, the first of `entries` that is [legal](Self::legal) there. Where none is, the
    /// choice stays.
    pub(crate) fn preferring(mut self, legal: &[Vec<Choice>], entries: &[&str]) -> Self {
        for (choice, legal) in self.choices.iter_mut().zip(legal) {
            let preferred = |entry: &&str| legal.iter().find(|choice| choice.entry == *entry);
            *choice = entries.iter().find_map(preferred).copied().or(*choice);
        }
        self
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
    /// Elements of Q, and of O: batch · queries · d.
    pub fn query_len(&self) -> usize {
        self.lens[0]
    }
    /// Elements of K, and of V: batch · keys · d.
    pub fn key_len(&self) -> usize {
        self.lens[1]
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
        if self.query_len() == 0 {
            return Ok(());
        }
        let Operands { q, k, v, o, logsumexp } = operands;
        if let Some(steps) = &self.steps {
            if logsumexp.is_some() {
                return Err(self.illegal("three steps have no logarithms".into(), VECTORS[0]));
            }
            // Whoever panicked while it held the room left no work half given to a stream.
            let mut weights = steps.weights.lock().unwrap_or_else(PoisonError::into_inner);
            return steps.plan.forward(stream, q, k, v, &mut weights, o);
        }
        let choice = self.choice_at(q.address() | k.address() | v.address() | o.address())?;
        let (rows, cols) = (self.pattern.rows, self.pattern.cols);
        for head in (0..self.options.batch).step_by(MAX_GRID_Y) {
            let heads = MAX_GRID_Y.min(self.options.batch - head);
            let (queries, keys) = (head * rows * self.dim, head * cols * self.dim);
            let logsumexp = logsumexp.as_ref().map(|slice| GlobalMut::from_address(slice.address()));
            let operands = kernels::Operands::<T::Device> {
                q: GlobalPtr::from_address(q.address()).add(queries),
                k: GlobalPtr::from_address(k.address()).add(keys),
                v: GlobalPtr::from_address(v.address()).add(keys),
                o: GlobalMut::from_address(o.address()).add(queries),
                logsumexp: logsumexp.map_or(GlobalMut::from_address(0), |first| first.add(head * rows)),
                rows: rows as u32,
                cols: cols as u32,
                dim: self.dim as u32,
                scale: in_powers_of_two(self.factor),
            };
            if choice.is_by_quads() {
                let quads = self.pattern.quads()?;
                let ([quad_table, entries], count) = (quads.pointers(), quads.count());
                let args = QuadArgs { quad_table, entries, operands, quads: count };
                launch(stream, choice, [count, heads as u32], &args)?;
            } else {
                let row_table = GlobalPtr::from_address(self.pattern.row_table.as_slice().address());
                let columns = GlobalPtr::<I::Device>::from_address(self.pattern.columns.as_slice().address());
                let args = Args { row_table, columns, operands };
                launch(stream, choice, [rows as u32, heads as u32], &args)?;
            }
        }
        Ok(())
    }

    fn check(&self, stream: &Stream, operands: &Operands<'_, T>) -> Result<()> {
        let Operands { q, k, v, o, logsumexp } = operands;
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        let (rows, cols, dim) = (self.pattern.rows, self.pattern.cols, self.dim);
        let expect = |what: &'static str, device: &Device, got: usize, [tokens, dim]: [usize; 2]| {
            self.device.expect_same(OPERATION, what, device)?;
            let expected = self.options.batch * tokens * dim;
            if got == expected {
                return Ok(());
            }
            let shape = format!("{} heads of {tokens}×{dim}", self.options.batch);
            Err(Error::Length { operation: OPERATION, what, shape, expected, got })
        };
        expect("Q", q.device(), q.len(), [rows, dim])?;
        expect("K", k.device(), k.len(), [cols, dim])?;
        expect("V", v.device(), v.len(), [cols, dim])?;
        expect("O", o.device(), o.len(), [rows, dim])?;
        if let Some(logsumexp) = logsumexp {
            expect("the logarithms", logsumexp.device(), logsumexp.len(), [rows, 1])?;
        }
        Ok(())
    }

    fn problem(&self, vector: u32) -> Problem {
        let DevicePattern { nnz, cols: keys, .. } = *self.pattern;
        let (value, index) = (T::TYPE, I::TYPE);
        Problem { nnz, keys, quad_entries: None, dim: self.dim, vector, value, index }
    }

    /// The mask's entries as quads, if such kernels may be chosen. Where there is no room for them, and the algorithm is the
    /// library's choice, they may not.
    fn quad_entries(&self) -> Result<Option<usize>> {
        let wanted = self.options.algorithm;
        let may_be = |choice: &Choice| {
            choice.is_by_quads() && (wanted == Algorithm::Auto || wanted == choice.algorithm)
        };
        if !choose(&self.problem(VECTORS[0])).iter().any(may_be) {
            return Ok(None);
        }
        match self.pattern.quads() {
            Err(Error::OutOfMemory { .. }) if wanted == Algorithm::Auto => Ok(None),
            quads => Ok(Some(quads?.entries())),
        }
    }

    /// The kernel for addresses that allow vectors of `vector`.
    fn find(&self, vector: u32, quad_entries: Option<usize>) -> Option<Choice> {
        let wanted = self.options.algorithm;
        let fits = |choice: &Choice| wanted == Algorithm::Auto || choice.algorithm == wanted;
        let problem = Problem { quad_entries, ..self.problem(vector) };
        choose(&problem).into_iter().find(fits)
    }

    /// The choice for addresses whose bits are in `addresses`.
    fn choice_at(&self, addresses: u64) -> Result<&Choice> {
        let bytes = u64::from(T::TYPE.bytes());
        let allowed =
            VECTORS.into_iter().position(|vector| addresses.is_multiple_of(bytes * u64::from(vector)));
        let allowed = allowed.unwrap_or(VECTORS.len() - 1);
        self.choices[allowed..].iter().flatten().next().ok_or_else(|| {
            self.illegal("Q, K, V or O is not aligned for its vectors".into(), VECTORS[allowed])
        })
    }

    fn illegal(&self, why: String, vector: u32) -> Error {
        let mut legal: Vec<String> =
            choose(&self.problem(vector)).iter().map(|choice| format!("{:?}", choice.algorithm)).collect();
        if self.steps.is_none() {
            legal.push(format!("{:?}", Algorithm::ThreeSteps));
        }
        let algorithm = format!("{:?}", self.options.algorithm);
        Error::Illegal { operation: OPERATION, algorithm, why, legal: legal.join(", ") }
    }
}

/// Launches a kernel over so many items and heads.
fn launch<A: Copy + 'static>(
    stream: &Stream,
    choice: &Choice,
    [items, heads]: [u32; 2],
    args: &A,
) -> Result<()> {
    stream.launch(&Launch {
        entry: choice.entry,
        grid: [items.div_ceil(choice.tile.block_rows), heads, 1],
        threads: choice.threads,
        shared_bytes: choice.shared_bytes,
        args,
        args_pointer: ptr::from_ref(args).cast(),
    })
}

//! Plans: what is worked out once for a pattern.
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::RowRecord;
use lacuna_kernels::softmax::{BackwardArgs, ForwardArgs};

use super::choose::{find, legal};
use super::{OPERATION, RowLengths, SoftmaxAlgorithm, SoftmaxOptions, SoftmaxPart, SoftmaxProblem};
use crate::backend::Launch;
use crate::csr::DevicePattern;
use crate::{CsrMatrix, Error, Index, Result, RowOrder, Stream, Value};

/// CUDA's limit on blocks along x.
const MAX_GRID_X: usize = i32::MAX as usize;
/// CUDA's limit on blocks along y: matrices in one launch.
const MAX_GRID_Y: usize = 65_535;

/// y = softmax(scale·x) over each row's stored values, for one pattern, with values of `T` and arithmetic in f32; and the
/// gradient of x from that of y.
///
/// What is not stored takes no part: it counts as −∞, not as 0. A row without nonzeros has nothing to write. A value of −∞
/// becomes 0. A row whose scaled values are all −∞, or of which one is NaN or +∞, becomes NaN, and no other row does. The same
/// values give the same bits in every run.
///
/// ```
/// use lacuna::matrix::Csr;
/// use lacuna::{CsrMatrix, Device, SparseSoftmax};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // [ 1 . 1 ]
/// // [ . . 5 ]
/// let x = Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 2], vec![1.0_f32, 1.0, 5.0])?;
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let mut x = CsrMatrix::new(&device, &x)?;
/// SparseSoftmax::plan(&x)?.run_in_place(&stream, &mut x)?;
/// assert_eq!(x.values()?.download(&stream)?, [0.5, 0.5, 1.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SparseSoftmax<T: Value = f32, I: Index = u32> {
    pattern: Arc<DevicePattern<I>>,
    options: SoftmaxOptions,
    problem: SoftmaxProblem,
    parts: Vec<SoftmaxPart>,
    values: PhantomData<T>,
}

/// Which kernel of a part runs.
type EntryOf = fn(&SoftmaxPart) -> &'static str;

impl<T: Value, I: Index> SparseSoftmax<T, I> {
    /// A plan for the pattern of `a`, and for as many matrices as it has, with a scale of 1.
    ///
    /// # Errors
    /// None that are known.
    pub fn plan(a: &CsrMatrix<T, I>) -> Result<Self> {
        Self::plan_with(a, SoftmaxOptions::default().batch(a.batch()))
    }

    /// As [`plan`](Self::plan), with options.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a scale that is 0, not finite, or of a size below 2⁻¹⁰⁰ or above 2¹⁰⁰; [`Error::Illegal`] for
    /// an algorithm that there is not for this type.
    pub fn plan_with(a: &CsrMatrix<T, I>, options: SoftmaxOptions) -> Result<Self> {
        options.check()?;
        let problem = SoftmaxProblem {
            sorted: a.pattern().row_order == RowOrder::LongestFirst,
            batch: options.batch,
            value: T::TYPE,
            multiprocessors: a.device().info().multiprocessors,
            sm: a.device().info().sm,
            ..SoftmaxProblem::new(*a.row_lengths())
        };
        let parts = find(&problem, options.algorithm).ok_or_else(|| Error::Illegal {
            operation: OPERATION,
            algorithm: format!("{:?}", options.algorithm),
            why: format!("there is no such kernel for {}", T::TYPE),
            legal: format!("{:?}", legal(&problem)),
        })?;
        Ok(Self { pattern: Arc::clone(a.pattern()), options, problem, parts, values: PhantomData })
    }

    /// The kernels that run, and the rows that they do, longest first; none where all rows are empty.
    pub fn parts(&self) -> &[SoftmaxPart] {
        &self.parts
    }

    /// This plan with the kernels of another of the same pattern.
    pub(crate) fn with_parts_of(self, other: &Self) -> Self {
        Self { parts: other.parts.clone(), ..self }
    }

    /// The algorithms that can be asked for.
    pub fn legal(&self) -> Vec<SoftmaxAlgorithm> {
        legal(&self.problem)
    }

    /// The options that were planned with.
    pub fn options(&self) -> &SoftmaxOptions {
        &self.options
    }

    /// y = softmax(scale·x), row by row. Gives the work to the stream, and returns at once. Both are of the planned pattern:
    /// [`with_zeros`](CsrMatrix::with_zeros) makes a y.
    ///
    /// # Errors
    /// [`Error::OtherPattern`], [`Error::OtherDevice`], [`Error::Packed`], and [`Error::Parameter`] (for a batch that is not the
    /// plan's) for operands that do not fit; [`Error::Launch`] or, on the simulator, its findings.
    pub fn run(&self, stream: &Stream, x: &CsrMatrix<T, I>, y: &mut CsrMatrix<T, I>) -> Result<()> {
        self.check(stream, x, "the batch of x")?;
        self.check(stream, y, "the batch of y")?;
        self.forward(stream, x.values_address(), y.padded_values_mut(OPERATION)?.address())
    }

    /// As [`run`](Self::run), with the result in place of x: no second matrix is needed.
    ///
    /// # Errors
    /// As `run`.
    pub fn run_in_place(&self, stream: &Stream, x: &mut CsrMatrix<T, I>) -> Result<()> {
        self.check(stream, x, "the batch of x")?;
        let address = x.padded_values_mut(OPERATION)?.address();
        self.forward(stream, address, address)
    }

    /// The gradient of x from the softmax's result `y` and the gradient `dy` of it: dx = scale·y·(dy − Σ y·dy), the sum over
    /// the row. Gives the work to the stream, and returns at once.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn backward(
        &self,
        stream: &Stream,
        y: &CsrMatrix<T, I>,
        dy: &CsrMatrix<T, I>,
        dx: &mut CsrMatrix<T, I>,
    ) -> Result<()> {
        self.check(stream, y, "the batch of y")?;
        self.check(stream, dy, "the batch of dy")?;
        self.check(stream, dx, "the batch of dx")?;
        let dx = dx.padded_values_mut(OPERATION)?.address();
        self.gradient(stream, y.values_address(), dy.values_address(), dx)
    }

    /// As [`backward`](Self::backward), with dx in place of dy.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn backward_in_place(
        &self,
        stream: &Stream,
        y: &CsrMatrix<T, I>,
        dy: &mut CsrMatrix<T, I>,
    ) -> Result<()> {
        self.check(stream, y, "the batch of y")?;
        self.check(stream, dy, "the batch of dy")?;
        let address = dy.padded_values_mut(OPERATION)?.address();
        self.gradient(stream, y.values_address(), address, address)
    }

    fn forward(&self, stream: &Stream, x: u64, y: u64) -> Result<()> {
        let scale = self.options.scale;
        let exponent_scale = (f64::from(scale.abs()) * std::f64::consts::LOG2_E) as f32;
        self.launches(
            stream,
            |part| part.forward,
            |row_table, rows, values_batch, skipped| ForwardArgs {
                row_table,
                x: GlobalMut::<T::Device>::from_address(x).add(skipped),
                y: GlobalMut::from_address(y).add(skipped),
                rows,
                values_batch,
                sign: 1.0_f32.copysign(scale),
                exponent_scale,
            },
        )
    }

    fn gradient(&self, stream: &Stream, y: u64, dy: u64, dx: u64) -> Result<()> {
        let scale = self.options.scale;
        self.launches(
            stream,
            |part| part.backward,
            |row_table, rows, values_batch, skipped| BackwardArgs {
                row_table,
                y: GlobalMut::<T::Device>::from_address(y).add(skipped),
                dy: GlobalMut::from_address(dy).add(skipped),
                dx: GlobalMut::from_address(dx).add(skipped),
                rows,
                values_batch,
                scale,
            },
        )
    }

    /// Launches a kernel for each part, and for as many rows and matrices as a grid can have. `args` is given the rows'
    /// records and their number, the elements from matrix to matrix, and the elements before the first matrix.
    fn launches<A: Copy + 'static>(
        &self,
        stream: &Stream,
        entry: EntryOf,
        args: impl Fn(GlobalPtr<u32>, u32, u32, usize) -> A,
    ) -> Result<()> {
        let table = GlobalPtr::<u32>::from_address(self.pattern.row_table.as_slice().address());
        // Below 2³²: the matrix was checked when it was made.
        let values_batch = crate::csr::padded(self.pattern.nnz);
        for part in &self.parts {
            for first in (0..part.rows as usize).step_by(MAX_GRID_X) {
                let rows = MAX_GRID_X.min(part.rows as usize - first) as u32;
                let records = table.add((part.first as usize + first) * RowRecord::WORDS);
                for matrix in (0..self.options.batch).step_by(MAX_GRID_Y) {
                    let matrices = MAX_GRID_Y.min(self.options.batch - matrix) as u32;
                    let args = args(records, rows, values_batch as u32, matrix * values_batch);
                    stream.launch(&Launch {
                        entry: entry(part),
                        grid: [rows.div_ceil(part.block_rows), matrices, 1],
                        threads: part.threads,
                        shared_bytes: part.shared_bytes,
                        args: &args,
                        args_pointer: ptr::from_ref(&args).cast(),
                    })?;
                }
            }
        }
        Ok(())
    }

    fn check(&self, stream: &Stream, matrix: &CsrMatrix<T, I>, batch_what: &'static str) -> Result<()> {
        if !Arc::ptr_eq(&self.pattern, matrix.pattern()) {
            return Err(Error::OtherPattern { operation: OPERATION });
        }
        matrix.device().expect_same(OPERATION, "the stream", stream.device())?;
        if matrix.batch() != self.options.batch {
            return Err(Error::Parameter {
                operation: OPERATION,
                what: batch_what,
                expected: format!("the plan's, {}", self.options.batch),
                got: matrix.batch().to_string(),
            });
        }
        Ok(())
    }
}

impl<T: Value, I: Index> CsrMatrix<T, I> {
    /// How long the rows are.
    pub fn row_lengths(&self) -> &RowLengths {
        &self.pattern().lengths
    }
}

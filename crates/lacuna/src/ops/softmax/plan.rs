//! Plans: what is worked out once for a pattern.
use std::marker::PhantomData;
use std::sync::Arc;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::softmax::{BackwardArgs, ForwardArgs, Tile};
use lacuna_kernels::{Entry, RowRecord};

use super::choose::{find, legal};
use super::{Algorithm, OPERATION, Options, Part, Problem};
use crate::op::{MAX_GRID_X, MAX_GRID_YZ, launch, spans};
use crate::pattern::{DevicePattern, padded};
use crate::tune::{Candidate, Tunable, draw_into, row_class};
use crate::{CsrMatrix, Device, Error, Index, Result, RowOrder, Stream, Value};

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
    options: Options,
    problem: Problem,
    parts: Vec<Part>,
    values: PhantomData<T>,
}

/// Which kernel of a part runs.
type EntryOf = fn(&Part) -> &'static Entry<Tile>;

impl<T: Value, I: Index> SparseSoftmax<T, I> {
    /// A plan for the pattern of `a`, and for as many matrices as it has, with a scale of 1.
    ///
    /// # Errors
    /// None that are known.
    pub fn plan(a: &CsrMatrix<T, I>) -> Result<Self> {
        Self::plan_with(a, Options::default().batch(a.batch()))
    }

    /// As [`plan`](Self::plan), with options.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a scale that is 0, not finite, or of a size below 2⁻¹⁰⁰ or above 2¹⁰⁰; [`Error::Illegal`] for
    /// an algorithm that there is not for this type.
    pub fn plan_with(a: &CsrMatrix<T, I>, options: Options) -> Result<Self> {
        options.check()?;
        let problem = Problem {
            sorted: a.pattern().row_order == RowOrder::LongestFirst,
            batch: options.batch,
            value: T::TYPE,
            multiprocessors: a.device().info().multiprocessors,
            sm: a.device().info().sm,
            ..Problem::new(*a.row_lengths())
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
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The algorithms that can be asked for.
    pub fn legal(&self) -> Vec<Algorithm> {
        legal(&self.problem)
    }

    /// The options that were planned with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// y = softmax(scale·x), row by row. Gives the work to the stream, and returns at once. Both are of the planned pattern:
    /// [`with_zeros`](CsrMatrix::with_zeros) makes a y.
    ///
    /// # Errors
    /// [`Error::OtherPattern`], [`Error::OtherDevice`], [`Error::Prepacked`], and [`Error::Parameter`] (for a batch that is not the
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
    fn launches<A: Copy + Send + Sync + 'static>(
        &self,
        stream: &Stream,
        entry: EntryOf,
        args: impl Fn(GlobalPtr<u32>, u32, u32, usize) -> A,
    ) -> Result<()> {
        let table = self.pattern.row_table_pointer();
        // Below 2³²: the matrix was checked when it was made.
        let values_batch = padded(self.pattern.nnz);
        for part in &self.parts {
            for rows in spans(part.rows as usize, MAX_GRID_X) {
                let records = table.add((part.first as usize + rows.start) * RowRecord::WORDS);
                let rows = rows.len() as u32;
                for matrices in spans(self.options.batch, MAX_GRID_YZ) {
                    let skipped = matrices.start * values_batch;
                    let args = args(records, rows, values_batch as u32, skipped);
                    let entry = entry(part);
                    let grid = [rows.div_ceil(entry.tile.block_rows), matrices.len() as u32, 1];
                    launch(stream, entry, grid, &args)?;
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
        let (got, batch) = (matrix.batch(), self.options.batch);
        Error::expect(got == batch, OPERATION, batch_what, || format!("the plan's, {batch}"), got)
    }
}

impl<T: Value, I: Index> SparseSoftmax<T, I> {
    /// The names of its kernels, longest rows first.
    fn name(&self) -> String {
        let entries: Vec<&str> = self.parts.iter().map(|part| part.forward.name).collect();
        entries.join(" + ")
    }

    /// Plans for the same: the model's, then each algorithm's, those with other kernels.
    fn alternatives(&self) -> Vec<Self> {
        let mut plans = vec![self.clone()];
        for algorithm in self.legal() {
            let parts = find(&self.problem, algorithm).expect("it is legal");
            let other = Self { parts, ..self.clone() };
            if plans.iter().all(|known| known.name() != other.name()) {
                plans.push(other);
            }
        }
        plans
    }
}

impl<T: Value, I: Index> Tunable for SparseSoftmax<T, I> {
    type Subject = CsrMatrix<T, I>;
    /// x and y.
    type Scratch = (CsrMatrix<T, I>, CsrMatrix<T, I>);
    const NAME: &'static str = "softmax";

    fn device(&self) -> &Device {
        self.pattern.row_table.device()
    }
    fn describe(&self, a: &CsrMatrix<T, I>) -> Option<String> {
        if self.options.algorithm != Algorithm::Auto || self.parts.is_empty() || self.options.batch == 0 {
            return None;
        }
        let DevicePattern { rows, nnz, row_order, .. } = *self.pattern;
        let rows_class = row_class(a.stats());
        let (value, batch) = (T::TYPE, self.options.batch);
        Some(format!("{value} {rows} rows, {nnz} nonzeros, {rows_class}, {row_order:?}; batch {batch}"))
    }
    fn candidates(&self) -> Vec<Vec<Candidate>> {
        // They are few, and all are measured: each for rows of some length, or one of them for all rows.
        vec![self.alternatives().iter().map(|plan| Candidate { name: plan.name(), cost: 1.0 }).collect()]
    }
    fn with_candidate(&self, _a: &CsrMatrix<T, I>, name: &str) -> Result<Self> {
        self.clone().preferring(&[name])
    }
    fn preferring(self, names: &[&str]) -> Result<Self> {
        let plans = self.alternatives();
        let preferred = names.iter().find_map(|&name| plans.iter().find(|plan| plan.name() == name));
        Ok(preferred.cloned().unwrap_or(self))
    }
    fn scratch(&self, a: &CsrMatrix<T, I>) -> Result<Self::Scratch> {
        let batch = self.options.batch;
        let (mut x, y) = (a.with_zeros(batch)?, a.with_zeros(batch)?);
        for matrix in 0..batch {
            draw_into(x.batch_values_mut(matrix)?)?;
        }
        Ok((x, y))
    }
    fn run_on(&self, stream: &Stream, _a: &CsrMatrix<T, I>, (x, y): &mut Self::Scratch) -> Result<()> {
        self.run(stream, x, y)
    }
}

//! Plans: what is worked out once for a pattern and a length of products.
use std::ptr;
use std::sync::Arc;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::sddmm::{Args, PanelArgs, TileArgs};

use super::choose::{Choice, Problem, choose, find, is_ordered};
use super::dense::Turned;
use super::panels::{PanelTiles, Panels};
use super::{Algorithm, MAX_GRID_Z, OPERATION, Options, Schedule};
use crate::backend::Launch;
use crate::csr::DevicePattern;
use crate::layout::{Layout, Strides};
use crate::{CsrMatrix, Error, Index, Result, Slice, Stream, Value};

/// The most columns of A and B.
const MAX_K: usize = (1 << 30) - 1;
/// Elements that addresses may allow to load at once.
const VECTORS: [u32; 4] = [8, 4, 2, 1];

/// D = (A·Bᵀ) ⊙ I\[C\] for one pattern of C and D (M×N) and one K, with values of `T` and sums in f32.
///
/// A is M×K and B is N×K, row by row; without other [options](Options) there are no gaps, and one product. D has a value
/// for each nonzero of C: the product of A's row and B's row that meet there, or that times C's value
/// ([`run_scaled`](Sddmm::run_scaled)), rounded to `T` once. With K = 0 every product is +0. The same operands give the same
/// bits in every run, by the plan and the addresses' alignment. Values that are not finite flow as IEEE 754 says, and only
/// into the results of their rows.
///
/// Where B is given as K×N, the plan has the room for the turned B: runs of it on several streams must be ordered.
///
/// ```
/// use lacuna::matrix::Csr;
/// use lacuna::{CsrMatrix, Device, Sddmm};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // [ x . ]     A = [ 1 2 ]     B = [ 5 6 ]
/// // [ x x ]         [ 3 4 ]         [ 7 8 ]
/// let c = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![0.0; 3])?;
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let mut d = CsrMatrix::new(&device, &c)?;
/// let a = device.upload(&[1.0, 2.0, 3.0, 4.0])?;
/// let b = device.upload(&[5.0, 6.0, 7.0, 8.0])?;
/// let plan = Sddmm::plan(&d, 2)?;
/// plan.run(&stream, a.as_slice(), b.as_slice(), &mut d)?;
/// assert_eq!(d.values()?.download(&stream)?, [17.0, 39.0, 53.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sddmm<T: Value = f32, I: Index = u32> {
    pattern: Arc<DevicePattern<I>>,
    options: Options,
    /// The problem, but for what addresses allow.
    problem: Problem,
    a: Layout,
    b: Layout,
    /// The choice for each of [`VECTORS`].
    choices: [Option<Choice>; VECTORS.len()],
    /// Room for B as the kernels read it, where it is given as K×N.
    turned: Option<Turned<T>>,
    /// The pattern by panels, where a choice reads it so.
    panels: Option<PanelTiles>,
}

/// What a run works on.
#[derive(Debug)]
pub struct Operands<'o, T: Value = f32, I: Index = u32> {
    /// A: [`a_len`](Sddmm::a_len) elements.
    pub a: Slice<'o, T>,
    /// B: [`b_len`](Sddmm::b_len) elements.
    pub b: Slice<'o, T>,
    /// What scales the results: one matrix of the pattern that was planned for, or as many as the plan's batch.
    pub c: Option<&'o CsrMatrix<T, I>>,
    /// D: as many matrices of that pattern as the plan's batch. Their values are replaced.
    pub d: &'o mut CsrMatrix<T, I>,
}

impl<T: Value, I: Index> Sddmm<T, I> {
    /// A plan for the pattern of `c` and products of length `k`, as many as `c` has matrices.
    ///
    /// The first plan of a pattern that needs it makes what kernels read of it on the device, and waits for that: the row of
    /// each nonzero, an order of their tiles, and masks. Where kernels go by panels of columns, each plan reads the pattern and
    /// has tiles of its own, at most 16 bytes for each nonzero.
    ///
    /// # Errors
    /// [`Error::TooLarge`] from a K of 2³⁰ on, or where no buffer can hold A or B; [`Error::OutOfMemory`], or what the
    /// driver says.
    pub fn plan(c: &CsrMatrix<T, I>, k: usize) -> Result<Self> {
        Self::plan_with(c, k, Options::default().batch(c.batch()))
    }

    /// As [`plan`](Sddmm::plan), with options.
    ///
    /// # Errors
    /// As `plan`, and [`Error::TooLarge`] for a stride of 4 GiB; [`Error::Parameter`] for strides below the elements of a
    /// row; [`Error::Illegal`] for an algorithm that cannot do this problem.
    pub fn plan_with(c: &CsrMatrix<T, I>, k: usize, options: Options) -> Result<Self> {
        if k > MAX_K {
            return Err(Error::TooLarge { what: "K", limit: MAX_K as u64, got: k as u64 });
        }
        let bytes = T::TYPE.bytes();
        let Options { batch, b_transposed, .. } = options;
        let a = Strides {
            operation: OPERATION,
            width: "K",
            len_what: "the number of elements of A",
            stride_what: "the stride of A",
            stride: options.a_stride,
            batch,
            batch_stride: options.a_batch_stride,
        };
        let a = Layout::new(c.rows(), k, bytes, a)?;
        let b = Strides {
            operation: OPERATION,
            width: if b_transposed { "N" } else { "K" },
            len_what: "the number of elements of B",
            stride_what: "the stride of B",
            stride: options.b_stride,
            batch,
            batch_stride: options.b_batch_stride,
        };
        let (b_rows, b_cols) = if b_transposed { (k, c.cols()) } else { (c.cols(), k) };
        let b = Layout::new(b_rows, b_cols, bytes, b)?;

        let pattern = Arc::clone(c.pattern());
        let Options { precision, .. } = options;
        let problem = Problem { batch, precision, ..Problem::of(c, k, 1) };
        let choices = [None; VECTORS.len()];
        let mut plan = Self { pattern, options, problem, a, b, choices, turned: None, panels: None };
        plan.choices = VECTORS.map(|vector| find(&plan.problem_at(vector), options.algorithm));
        if plan.choices.iter().all(Option::is_none) {
            let whole = [options.a_stride, options.b_stride, options.a_batch_stride, options.b_batch_stride];
            let strides = if whole == [None; 4] { "" } else { " and these strides" };
            return Err(
                plan.illegal(format!("no kernel has these numbers with K = {k}{strides}"), VECTORS[0])
            );
        }
        if b_transposed {
            let batch = if b.batch_stride == 0 { batch.min(1) } else { batch };
            plan.turned = Some(Turned::new(c.device(), k, c.cols(), batch)?);
        }
        plan.prepared()
    }

    /// This plan, once what its kernels need of the pattern is there. Where there is no room for masks, and the algorithm is
    /// the library's choice, kernels that need none take their place.
    fn prepared(mut self) -> Result<Self> {
        if self.pattern.nnz > 0 && self.choices.iter().flatten().any(Choice::is_by_tiles) {
            match self.pattern.masks() {
                Err(Error::OutOfMemory { .. }) if self.options.algorithm == Algorithm::Auto => {
                    let others = |legal: Vec<Choice>| legal.into_iter().find(|choice| !choice.is_by_tiles());
                    self.choices = self.legal().map(others);
                }
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
        if self.choices.iter().flatten().any(Choice::is_by_panels) {
            self.panels = Some(PanelTiles::new(&self.pattern, Panels::of(&self.problem))?);
        }
        if self.choices.iter().flatten().any(Choice::is_by_nonzeros) {
            self.pattern.row_indices()?;
            self.order()?;
        }
        Ok(self)
    }

    /// The address of the order in which tiles are taken; 0 where they come as they stand.
    fn order(&self) -> Result<u64> {
        let is_ordered = match self.options.order {
            Schedule::Auto => is_ordered(&self.problem),
            Schedule::Unsorted => false,
            Schedule::ByColumn => true,
        };
        if is_ordered { Ok(self.pattern.tile_order()?.as_slice().address()) } else { Ok(0) }
    }

    /// The kernel that runs where A and B are aligned to 16 bytes, as whole buffers are.
    pub fn choice(&self) -> &Choice {
        self.choices.iter().flatten().next().expect("a plan has at least one choice")
    }

    /// The options that were planned with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The kernels that are legal for each alignment of A's and B's addresses, the best alignment first; each list in the
    /// order of the cost model.
    pub fn legal(&self) -> [Vec<Choice>; 4] {
        VECTORS.map(|vector| choose(&self.problem_at(vector)))
    }

    /// This plan with, for each alignment, the first of `entries` that is [legal](Self::legal) there. Where none is, the
    /// choice stays.
    pub(crate) fn preferring(mut self, legal: &[Vec<Choice>], entries: &[&str]) -> Result<Self> {
        for (choice, legal) in self.choices.iter_mut().zip(legal) {
            let preferred = |entry: &&str| legal.iter().find(|choice| choice.entry == *entry);
            *choice = entries.iter().find_map(preferred).copied().or(*choice);
        }
        self.prepared()
    }

    /// The problem, where addresses allow all that K and the strides do.
    pub(crate) fn aligned_problem(&self) -> Problem {
        self.problem_at(VECTORS[0])
    }

    /// Elements that A must have, up to the last of the last row: M·K without gaps. The gap after it may be there too.
    pub fn a_len(&self) -> usize {
        self.a.len()
    }

    /// Elements that B must have, up to the last of the last row: N·K without gaps. The gap after it may be there too.
    pub fn b_len(&self) -> usize {
        self.b.len()
    }

    /// D = (A·Bᵀ) ⊙ I\[C\]: gives the product to the stream, and returns at once. See [`run_with`](Sddmm::run_with).
    ///
    /// # Errors
    /// As `run_with`.
    pub fn run(
        &self,
        stream: &Stream,
        a: Slice<'_, T>,
        b: Slice<'_, T>,
        d: &mut CsrMatrix<T, I>,
    ) -> Result<()> {
        self.run_with(stream, Operands { a, b, c: None, d })
    }

    /// D = (A·Bᵀ) ⊙ C: as [`run`](Sddmm::run), each product multiplied by the value of C, in `f32`, before it is rounded.
    ///
    /// # Errors
    /// As `run_with`.
    pub fn run_scaled(
        &self,
        stream: &Stream,
        a: Slice<'_, T>,
        b: Slice<'_, T>,
        c: &CsrMatrix<T, I>,
        d: &mut CsrMatrix<T, I>,
    ) -> Result<()> {
        self.run_with(stream, Operands { a, b, c: Some(c), d })
    }

    /// Gives the product to the stream, and returns at once. Work on other streams that uses the operands meanwhile must
    /// be ordered with this: see [`Stream`]. It can be recorded in a graph.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::OtherPattern`], [`Error::OtherDevice`], [`Error::Parameter`] (for the batch of C or D)
    /// for operands that do not fit; [`Error::Packed`] for a D whose values stay as they are; [`Error::Illegal`] where the
    /// algorithm asked for needs other alignment; [`Error::Launch`] or, on the simulator, its findings.
    pub fn run_with(&self, stream: &Stream, operands: Operands<'_, T, I>) -> Result<()> {
        self.check(stream, &operands)?;
        if self.pattern.nnz == 0 || self.options.batch == 0 {
            return Ok(());
        }
        let Operands { a, b, c, d } = operands;
        let (mut b_address, mut b_batch) = (b.address(), self.b.batch_stride);
        let mut b_stride_bytes = self.b.stride_bytes;
        if let Some(turned) = &self.turned {
            turned.fill(stream, b, &self.b)?;
            (b_address, b_batch) = (turned.address(), turned.batch_stride());
            b_stride_bytes = self.problem.k as u32 * T::TYPE.bytes();
        }
        let choice = self.choice_at(a.address() | b_address)?;
        let a_batch = self.a.batch_stride;
        let (scale, scale_batch) =
            c.map_or((0, 0), |c| (c.values_address(), if c.batch() == 1 { 0 } else { c.values_stride() }));
        let d_batch = d.values_stride();
        let d = GlobalMut::<T::Device>::from_address(d.padded_values_mut(OPERATION)?.address());
        for first in (0..self.options.batch).step_by(MAX_GRID_Z) {
            let scale_offset = if scale == 0 { 0 } else { first * scale_batch };
            let scale = GlobalPtr::from_address(scale).add(scale_offset);
            let a = GlobalPtr::from_address(a.address()).add(first * a_batch);
            let b = GlobalPtr::from_address(b_address).add(first * b_batch);
            let d = d.add(first * d_batch);
            let [scale_batch, a_batch, b_batch, d_batch] =
                [scale_batch, a_batch, b_batch, d_batch].map(|elements| elements as u64);
            let (k, a_stride_bytes) = (self.problem.k as u32, self.a.stride_bytes);
            let products = MAX_GRID_Z.min(self.options.batch - first) as u32;
            if let Algorithm::MmaTile { rows: tile_rows, columns: tile_columns } = choice.algorithm {
                let (masks, _) = self.pattern.masks()?.pointers();
                let (rows, cols) = (self.pattern.rows as u32, self.pattern.cols as u32);
                let args = TileArgs::<T::Device> {
                    masks,
                    scale,
                    a,
                    b,
                    d,
                    scale_batch,
                    a_batch,
                    b_batch,
                    d_batch,
                    rows,
                    cols,
                    k,
                    a_stride_bytes,
                    b_stride_bytes,
                };
                let grid = [rows.div_ceil(tile_rows), cols.div_ceil(tile_columns), products];
                launch(stream, choice, grid, &args)?;
                continue;
            }
            if let (Algorithm::ColumnPanel { .. }, Some(panels)) = (choice.algorithm, &self.panels) {
                let args = PanelArgs::<T::Device, I::Device> {
                    table: panels.pointer(),
                    columns: GlobalPtr::from_address(self.pattern.columns.as_slice().address()),
                    scale,
                    a,
                    b,
                    d,
                    scale_batch,
                    a_batch,
                    b_batch,
                    d_batch,
                    tiles: panels.count(),
                    k,
                    a_stride_bytes,
                    b_stride_bytes,
                };
                launch(stream, choice, [args.tiles.div_ceil(choice.block_items), 1, products], &args)?;
                continue;
            }
            let args = Args::<T::Device, I::Device> {
                rows: GlobalPtr::from_address(self.pattern.row_indices()?.as_slice().address()),
                columns: GlobalPtr::from_address(self.pattern.columns.as_slice().address()),
                order: GlobalPtr::from_address(self.order()?),
                scale,
                a,
                b,
                d,
                scale_batch,
                a_batch,
                b_batch,
                d_batch,
                nnz: self.pattern.nnz as u32,
                k,
                a_stride_bytes,
                b_stride_bytes,
            };
            launch(stream, choice, [args.nnz.div_ceil(choice.block_items), 1, products], &args)?;
        }
        Ok(())
    }

    fn check(&self, stream: &Stream, operands: &Operands<'_, T, I>) -> Result<()> {
        let Operands { a, b, c, d } = operands;
        for matrix in [*c, Some(&**d)].into_iter().flatten() {
            if !Arc::ptr_eq(&self.pattern, matrix.pattern()) {
                return Err(Error::OtherPattern { operation: OPERATION });
            }
        }
        let device = d.device();
        device.expect_same(OPERATION, "the stream", stream.device())?;
        device.expect_same(OPERATION, "A", a.device())?;
        device.expect_same(OPERATION, "B", b.device())?;
        let batch = self.options.batch;
        let refused = |what, expected, got: usize| {
            Err(Error::Parameter { operation: OPERATION, what, expected, got: got.to_string() })
        };
        if d.batch() != batch {
            return refused("the batch of D", format!("the plan's, {batch}"), d.batch());
        }
        if let Some(c) = c.filter(|c| c.batch() != 1 && c.batch() != batch) {
            return refused("the batch of C", format!("1 or the plan's, {batch}"), c.batch());
        }
        self.a.check("A", a.len())?;
        self.b.check("B", b.len())
    }

    /// The problem, where addresses allow vectors of `vector`. What is turned has rows without gaps.
    fn problem_at(&self, vector: u32) -> Problem {
        let b_allows = |vector| self.options.b_transposed || self.b.allows(vector);
        let allowed = |&allowed: &u32| allowed <= vector && self.a.allows(allowed) && b_allows(allowed);
        let vector = VECTORS.into_iter().find(allowed).unwrap_or(1);
        Problem { vector, ..self.problem }
    }

    /// The choice for addresses whose bits are in `addresses`.
    fn choice_at(&self, addresses: u64) -> Result<&Choice> {
        let bytes = u64::from(T::TYPE.bytes());
        let allowed =
            VECTORS.into_iter().position(|vector| addresses.is_multiple_of(bytes * u64::from(vector)));
        let allowed = allowed.unwrap_or(VECTORS.len() - 1);
        let choice = self.choices[allowed..].iter().flatten().next();
        choice.ok_or_else(|| self.illegal("A and B are not aligned for its vectors".into(), VECTORS[allowed]))
    }

    fn illegal(&self, why: String, vector: u32) -> Error {
        let legal = choose(&self.problem_at(vector));
        let legal: Vec<String> = legal.iter().map(|choice| format!("{:?}", choice.algorithm)).collect();
        let algorithm = format!("{:?}", self.options.algorithm);
        Error::Illegal { operation: OPERATION, algorithm, why, legal: legal.join(", ") }
    }
}

fn launch<A: Copy + 'static>(stream: &Stream, choice: &Choice, grid: [u32; 3], args: &A) -> Result<()> {
    stream.launch(&Launch {
        entry: choice.entry,
        grid,
        threads: choice.threads,
        shared_bytes: choice.shared_bytes,
        args,
        args_pointer: ptr::from_ref(args).cast(),
    })
}

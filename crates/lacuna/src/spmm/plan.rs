//! Plans: what is worked out once for a pattern and a number of columns.
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::spmm::{Args, Output, TileArgs};

use super::choose::{Choice, Problem, choose, find};
use super::grid::{Extent, MAX_GRID_YZ, ahead_rows, is_mixed, is_persistent, resident_blocks, team_share};
use super::{OPERATION, Options};
use crate::backend::Launch;
use crate::csr::{DevicePattern, RowOrder};
use crate::layout::{Layout, Strides};
use crate::packs::Packs;
use crate::{CsrMatrix, Error, Index, Result, Slice, SliceMut, Stream, Value};

/// The most columns of B.
const MAX_N: usize = (1 << 30) - 1;
/// Columns that addresses may allow to load at once.
const VECTORS: [u32; 4] = [8, 4, 2, 1];

/// C = clamp(alpha·A·B + beta·C + bias, lo, hi) for one pattern of A (M×K) and one N, with values of `T` and sums in f32.
///
/// B is K×N and C is M×N, row by row; without other [options](Options) C = A·B, and there are no gaps. Each sum runs
/// over the row's nonzeros alone, and the same operands give the same bits in every run, by the plan and the addresses'
/// alignment. Values that are not finite flow as IEEE 754 says, and only into the rows whose nonzeros they meet; where a
/// tile of C on tensor cores has some, all of the tile is computed by fused multiply-adds.
#[derive(Clone, Debug)]
pub struct Spmm<T: Value = f32, I: Index = u32> {
    pattern: Arc<DevicePattern<I>>,
    n: usize,
    options: Options,
    b: Layout,
    c: Layout,
    /// The choice for each of [`VECTORS`].
    choices: [Option<Choice>; VECTORS.len()],
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

/// Products `product..` of the batch, columns `column..` of each: what one launch does.
struct Part {
    product: usize,
    products: usize,
    column: usize,
    columns: usize,
}

impl<T: Value, I: Index> Spmm<T, I> {
    /// A plan for `a` and B's `n` columns.
    ///
    /// # Errors
    /// [`Error::TooLarge`] from 2³⁰ columns on, or where no buffer can hold B or C; what the driver says, where the first
    /// plan of a pattern makes masks of it.
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
        if n > MAX_N {
            return Err(Error::TooLarge { what: "N", limit: MAX_N as u64, got: n as u64 });
        }
        options.check()?;
        let bytes = T::TYPE.bytes();
        let batch = options.batch;
        let b = Strides {
            operation: OPERATION,
            width: "N",
            len_what: "the number of elements of B",
            stride_what: "the stride of B",
            stride: options.b_stride,
            batch,
            batch_stride: options.b_batch_stride,
        };
        let b = Layout::new(a.cols(), n, bytes, b)?;
        let c = Strides {
            operation: OPERATION,
            width: "N",
            len_what: "the number of elements of C",
            stride_what: "the stride of C",
            stride: options.c_stride,
            batch,
            batch_stride: options.c_batch_stride,
        };
        let c = Layout::new(a.rows(), n, bytes, c)?;
        c.expect_disjoint("the batch stride of C")?;

        let pattern = Arc::clone(a.pattern());
        let values = PhantomData;
        let mut plan = Self { pattern, n, options, b, c, choices: [None; VECTORS.len()], values };
        plan.choices = VECTORS.map(|vector| find(&plan.problem(a, vector), options.algorithm));
        if plan.choices.iter().all(Option::is_none) {
            let Options { b_stride, c_stride, b_batch_stride, c_batch_stride, .. } = options;
            let whole = [b_stride, c_stride, b_batch_stride, c_batch_stride] == [None; 4];
            let strides = if whole { "" } else { " and these strides" };
            return Err(plan.illegal(
                format!("no kernel has these numbers with N = {n}{strides}"),
                a,
                VECTORS[0],
            ));
        }
        let b_bytes = a.cols() as u64 * u64::from(b.stride_bytes);
        if b_bytes > plan.choice().b_bytes_limit() {
            let why = format!("it addresses B by 32-bit offsets, and K rows of it are {b_bytes} bytes");
            return Err(plan.illegal(why, a, VECTORS[0]));
        }
        plan.prepared(a)
    }

    /// This plan, once what its kernels need of the pattern is there. Where there is no room for masks, and the algorithm is
    /// the library's choice, kernels that need none take their place.
    fn prepared(mut self, a: &CsrMatrix<T, I>) -> Result<Self> {
        if !self.choices.iter().flatten().any(Choice::is_by_tiles) {
            return Ok(self);
        }
        match self.pattern.masks() {
            Err(Error::OutOfMemory { .. }) if self.options.algorithm == super::Algorithm::Auto => {
                let by_rows = |legal: Vec<Choice>| legal.into_iter().find(|choice| !choice.is_by_tiles());
                self.choices = self.legal(a).map(by_rows);
            }
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        Ok(self)
    }

    /// The kernel that runs where B and C are aligned to 16 bytes, as whole buffers are.
    pub fn choice(&self) -> &Choice {
        self.choices.iter().flatten().next().expect("a plan has at least one choice")
    }

    /// The options that were planned with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The problem for operands whose addresses allow everything, as those of whole buffers do.
    pub(crate) fn aligned_problem(&self, a: &CsrMatrix<T, I>) -> Problem {
        self.problem(a, VECTORS[0])
    }

    /// The kernels that are legal for each alignment of B's and C's addresses, the best alignment first; each list in the
    /// order of the cost model.
    pub(crate) fn legal(&self, a: &CsrMatrix<T, I>) -> [Vec<Choice>; VECTORS.len()] {
        VECTORS.map(|vector| choose(&self.problem(a, vector)))
    }

    /// This plan with, for each alignment, the first of `entries` that is [legal](Self::legal) there. Where none is, the
    /// choice stays.
    pub(crate) fn preferring(
        mut self,
        a: &CsrMatrix<T, I>,
        legal: &[Vec<Choice>],
        entries: &[&str],
    ) -> Result<Self> {
        for (choice, legal) in self.choices.iter_mut().zip(legal) {
            let preferred = |entry: &&str| legal.iter().find(|choice| choice.entry == *entry);
            *choice = entries.iter().find_map(preferred).copied().or(*choice);
        }
        self.prepared(a)
    }

    /// Elements that B must have, up to the last of the last row: K·N without gaps. The gap after it may be there too.
    pub fn input_len(&self) -> usize {
        self.b.len()
    }

    /// Elements that C must have, up to the last of the last row: M·N without gaps. The gap after it may be there too.
    pub fn output_len(&self) -> usize {
        self.c.len()
    }

    /// As [`run_with`](Spmm::run_with), without a bias.
    ///
    /// # Errors
    /// As `run_with`.
    pub fn run(
        &self,
        stream: &Stream,
        a: &CsrMatrix<T, I>,
        b: Slice<'_, T>,
        c: SliceMut<'_, T>,
    ) -> Result<()> {
        self.run_with(stream, Operands { a, b, c, bias: None })
    }

    /// Gives the product to the stream, and returns at once. Work on other streams that uses the operands meanwhile must
    /// be ordered with this: see [`Stream`].
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::OtherPattern`], [`Error::NotPacked`], [`Error::OtherDevice`], [`Error::Parameter`] (for A's
    /// batch) for operands that do not fit; [`Error::Illegal`] where the algorithm asked for needs other alignment;
    /// [`Error::Launch`] or, on the simulator, its findings.
    pub fn run_with(&self, stream: &Stream, operands: Operands<'_, T, I>) -> Result<()> {
        self.check(stream, &operands)?;
        if self.output_len() == 0 {
            return Ok(());
        }
        let Operands { a, b, c, bias } = operands;
        let choice = self.choice_at(b.address() | c.address(), a)?;
        let bias = GlobalPtr::<T::Device>::from_address(bias.map_or(0, |bias| bias.address()));
        let (b, c) = (GlobalPtr::from_address(b.address()), GlobalMut::from_address(c.address()));
        let values = GlobalPtr::from_address(a.values_address());
        let output = self.options.output(c, &self.c, bias);
        let values_batch = if a.batch() == 1 { 0 } else { a.values_stride() as u32 };
        let packs = match (choice.is_packed(), a.packs()) {
            (false, _) => None,
            (true, None) => return Err(Error::NotPacked { operation: OPERATION }),
            (true, packs) => packs,
        };
        let masks = if choice.is_by_tiles() { Some(self.pattern.masks()?) } else { None };
        self.parts(choice.tile.block_columns, values_batch, |part| {
            let values = values.add(part.product * values_batch as usize);
            let b = b.add(part.product * self.b.batch_stride + part.column);
            let c = output.c.add(part.product * self.c.batch_stride + part.column);
            let (output, n, rows) = (Output { c, ..output }, part.columns as u32, self.pattern.rows as u32);
            let (b_batch, b_stride_bytes) = (self.b.batch_stride as u64, self.b.stride_bytes);
            if let Some(masks) = masks {
                let (masks, places) = masks.pointers();
                let none = (GlobalPtr::from_address(0), GlobalPtr::from_address(0));
                let (units, packs) = packs.map_or(none, Packs::pointers);
                let cols = self.pattern.cols as u32;
                let args = TileArgs {
                    masks,
                    values,
                    places,
                    units,
                    packs,
                    b,
                    b_batch,
                    output,
                    rows,
                    cols,
                    n,
                    b_stride_bytes,
                    values_batch,
                };
                return self.launch(stream, choice, &part, &args);
            }
            let row_table = GlobalPtr::from_address(self.pattern.row_table.as_slice().address());
            let columns = GlobalPtr::<I::Device>::from_address(self.pattern.columns.as_slice().address());
            let args = Args {
                row_table,
                values,
                columns,
                b,
                b_batch,
                output,
                rows,
                long_rows: self.long_rows(choice, &part),
                ahead_rows: self.ahead_rows(choice, &part),
                n,
                b_stride_bytes,
                values_batch,
            };
            self.launch(stream, choice, &part, &args)
        })
    }

    /// Rows at the head of the table that are long for the kernel.
    fn long_rows(&self, choice: &Choice, part: &Part) -> u32 {
        let pattern = &self.pattern;
        if !is_mixed(&choice.tile) || pattern.row_order != RowOrder::LongestFirst {
            return pattern.rows as u32;
        }
        let blocks = self.extent(part).sharing_blocks(&choice.tile, self.resident(choice));
        pattern.lengths.longer(team_share(&choice.tile, blocks, pattern.nnz as u64))
    }

    /// Rows of B that a block brings into L1 before it begins.
    fn ahead_rows(&self, choice: &Choice, part: &Part) -> u32 {
        let pattern = &self.pattern;
        if !is_persistent(&choice.tile) {
            return 0;
        }
        let blocks = self.extent(part).sharing_blocks(&choice.tile, self.resident(choice));
        ahead_rows(&choice.tile, blocks, pattern.cols as u64, pattern.nnz as u64) as u32
    }

    /// What a launch computes.
    fn extent(&self, part: &Part) -> Extent {
        let [rows, columns, products] =
            [self.pattern.rows, part.columns, part.products].map(|count| count as u64);
        Extent { rows, columns, products }
    }

    /// Blocks of a kernel that the device holds at once.
    fn resident(&self, choice: &Choice) -> u64 {
        resident_blocks(choice.bounds, self.pattern.row_table.device().info().multiprocessors)
    }

    /// Cuts the product into what one launch can do, for tiles of so many columns.
    fn parts(
        &self,
        tile_columns: u32,
        values_batch: u32,
        mut launch: impl FnMut(Part) -> Result<()>,
    ) -> Result<()> {
        let launch_columns = MAX_GRID_YZ * tile_columns as usize;
        // A launch counts the values of its products in 32 bits.
        let countable = u32::MAX.checked_div(values_batch).map_or(usize::MAX, |count| count as usize);
        let launch_products = MAX_GRID_YZ.min(countable);
        for product in (0..self.options.batch).step_by(launch_products) {
            let products = launch_products.min(self.options.batch - product);
            for column in (0..self.n).step_by(launch_columns) {
                let columns = launch_columns.min(self.n - column);
                launch(Part { product, products, column, columns })?;
            }
        }
        Ok(())
    }

    fn launch<A: Copy + 'static>(
        &self,
        stream: &Stream,
        choice: &Choice,
        part: &Part,
        args: &A,
    ) -> Result<()> {
        stream.launch(&Launch {
            entry: choice.entry,
            grid: self.extent(part).grid(&choice.tile, self.resident(choice)),
            threads: choice.threads,
            shared_bytes: choice.shared_bytes,
            args,
            args_pointer: ptr::from_ref(args).cast(),
        })
    }

    fn check(&self, stream: &Stream, operands: &Operands<'_, T, I>) -> Result<()> {
        let Operands { a, b, c, bias } = operands;
        if !Arc::ptr_eq(&self.pattern, a.pattern()) {
            return Err(Error::OtherPattern { operation: OPERATION });
        }
        let device = a.device();
        device.expect_same(OPERATION, "the stream", stream.device())?;
        device.expect_same(OPERATION, "B", b.device())?;
        device.expect_same(OPERATION, "C", c.device())?;
        if a.batch() != 1 && a.batch() != self.options.batch {
            return Err(Error::Parameter {
                operation: OPERATION,
                what: "the batch of A",
                expected: format!("1 or the plan's, {}", self.options.batch),
                got: a.batch().to_string(),
            });
        }
        self.b.check("B", b.len())?;
        self.c.check("C", c.len())?;
        if let Some(bias) = bias {
            device.expect_same(OPERATION, "the bias", bias.device())?;
            let (expected, got) = (self.pattern.rows, bias.len());
            if got != expected {
                let shape = "one for each row of C".into();
                return Err(Error::Length { operation: OPERATION, what: "the bias", shape, expected, got });
            }
        }
        Ok(())
    }

    /// The problem, where addresses allow vectors of `vector`.
    fn problem(&self, a: &CsrMatrix<T, I>, vector: u32) -> Problem {
        let allowed = |&allowed: &u32| allowed <= vector && self.b.allows(allowed) && self.c.allows(allowed);
        let vector = VECTORS.into_iter().find(allowed).unwrap_or(1);
        let Options { batch, precision, .. } = self.options;
        Problem { batch, precision, ..Problem::of(a, self.n, vector) }
    }

    /// The choice for addresses whose bits are in `addresses`.
    fn choice_at(&self, addresses: u64, a: &CsrMatrix<T, I>) -> Result<&Choice> {
        let bytes = u64::from(T::TYPE.bytes());
        let allowed =
            VECTORS.into_iter().position(|vector| addresses.is_multiple_of(bytes * u64::from(vector)));
        let allowed = allowed.unwrap_or(VECTORS.len() - 1);
        self.choices[allowed..].iter().flatten().next().ok_or_else(|| {
            self.illegal("B and C are not aligned for its vectors".into(), a, VECTORS[allowed])
        })
    }

    fn illegal(&self, why: String, a: &CsrMatrix<T, I>, vector: u32) -> Error {
        let legal = choose(&self.problem(a, vector));
        let legal: Vec<String> = legal.iter().map(|choice| format!("{:?}", choice.algorithm)).collect();
        let algorithm = format!("{:?}", self.options.algorithm);
        Error::Illegal { operation: OPERATION, algorithm, why, legal: legal.join(", ") }
    }
}

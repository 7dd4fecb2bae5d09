//! Plans: what is worked out once for a pattern and a number of columns.
use std::ptr;
use std::sync::Arc;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::spmm::Args;

use super::choose::{Choice, Problem, SpmmAlgorithm, choose};
use crate::backend::Launch;
use crate::csr::DevicePattern;
use crate::{CsrMatrix, Error, Result, Slice, SliceMut, Stream};

const OPERATION: &str = "SpMM";
/// The kernels count a row's bytes in 32 bits.
const MAX_N: usize = (1 << 30) - 1;
/// Columns that addresses may allow to load at once.
const VECTORS: [u32; 3] = [4, 2, 1];
/// CUDA's limit on blocks along y: tiles of columns in one launch.
const MAX_COLUMN_TILES: usize = 65_535;

/// What may be asked of SpMM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpmmOptions {
    /// The algorithm, if not the library's choice. It must be legal for N; where B's or C's address does not allow its
    /// vectors, the run is refused.
    pub algorithm: SpmmAlgorithm,
}

impl SpmmOptions {
    /// With this algorithm.
    #[must_use]
    pub fn algorithm(mut self, algorithm: SpmmAlgorithm) -> Self {
        self.algorithm = algorithm;
        self
    }
}

/// C = A·B for one pattern of A (M×K) and one N, with f32 values and sums.
///
/// B is K×N and C is M×N, row by row without gaps. Each element of C is the sum over the row's nonzeros alone, in an
/// order that depends on nothing but the plan and the addresses' alignment: results are the same in every run. Values
/// that are not finite flow as IEEE 754 says, and only into the rows whose nonzeros they meet.
#[derive(Clone, Debug)]
pub struct Spmm {
    pattern: Arc<DevicePattern>,
    n: usize,
    /// The choice for each of [`VECTORS`].
    choices: [Option<Choice>; VECTORS.len()],
    algorithm: SpmmAlgorithm,
}

impl Spmm {
    /// A plan for `a` and B's `n` columns.
    ///
    /// # Errors
    /// [`Error::TooLarge`] from 2³⁰ columns on.
    pub fn plan(a: &CsrMatrix, n: usize) -> Result<Self> {
        Self::plan_with(a, n, SpmmOptions::default())
    }

    /// As [`plan`](Spmm::plan), with options.
    ///
    /// # Errors
    /// As `plan`; [`Error::Illegal`] for an algorithm that cannot do this problem.
    pub fn plan_with(a: &CsrMatrix, n: usize, options: SpmmOptions) -> Result<Self> {
        if n > MAX_N {
            return Err(Error::TooLarge { what: "N", limit: MAX_N as u64, got: n as u64 });
        }
        let algorithm = options.algorithm;
        let wanted = |choice: &Choice| algorithm == SpmmAlgorithm::Auto || algorithm == choice.algorithm;
        let choices = VECTORS.map(|vector| choose(&Problem::of(a, n, vector)).into_iter().find(wanted));
        let plan = Self { pattern: Arc::clone(a.pattern()), n, choices, algorithm };
        if plan.choices.iter().all(Option::is_none) {
            return Err(illegal(
                algorithm,
                format!("no kernel has these numbers with N = {n}"),
                a,
                n,
                VECTORS[0],
            ));
        }
        Ok(plan)
    }

    /// The kernel that runs where B and C are aligned to 16 bytes, as whole buffers are.
    pub fn choice(&self) -> &Choice {
        self.choices.iter().flatten().next().expect("a plan has at least one choice")
    }

    /// All kernels for whole buffers, cheapest by the cost model first.
    pub(crate) fn candidates(&self, a: &CsrMatrix) -> Vec<Choice> {
        choose(&Problem::of(a, self.n, VECTORS[0]))
    }

    /// This plan with, for each alignment, the first of `entries` that is legal there. Where none is, the choice stays.
    pub(crate) fn preferring(mut self, a: &CsrMatrix, entries: &[&str]) -> Self {
        for (choice, vector) in self.choices.iter_mut().zip(VECTORS) {
            let legal = choose(&Problem::of(a, self.n, vector));
            let preferred = |entry: &&str| legal.iter().find(|choice| choice.entry == *entry);
            *choice = entries.iter().find_map(preferred).copied().or(*choice);
        }
        self
    }

    /// Elements that B must have: K·N.
    pub fn input_len(&self) -> usize {
        self.pattern.cols * self.n
    }

    /// Elements that C must have: M·N.
    pub fn output_len(&self) -> usize {
        self.pattern.rows * self.n
    }

    /// Gives C = A·B to the stream, and returns at once. `a` has the pattern that was planned for. Work on other streams
    /// that uses A, B or C meanwhile must be ordered with this: see [`Stream`].
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::OtherPattern`], [`Error::OtherDevice`] for operands that do not fit; [`Error::Illegal`]
    /// where the algorithm asked for needs other alignment; [`Error::Launch`] or, on the simulator, its findings.
    pub fn run(&self, stream: &Stream, a: &CsrMatrix, b: Slice<'_, f32>, c: SliceMut<'_, f32>) -> Result<()> {
        self.check(stream, a, b, &c)?;
        if self.output_len() == 0 {
            return Ok(());
        }
        let choice = self.choice_at(b.address() | c.address(), a)?;
        let args = Args {
            row_table: GlobalPtr::from_address(self.pattern.row_table.as_slice().address()),
            values: GlobalPtr::from_address(a.values_address()),
            columns: GlobalPtr::from_address(self.pattern.columns.as_slice().address()),
            b: GlobalPtr::from_address(b.address()),
            c: GlobalMut::from_address(c.address()),
            rows: self.pattern.rows as u32,
            n: self.n as u32,
            stride: self.n as u32,
        };
        let row_blocks = args.rows.div_ceil(choice.tile.block_rows);
        let tile_columns = choice.tile.block_columns as usize;
        let launch_columns = MAX_COLUMN_TILES * tile_columns;
        for first in (0..self.n).step_by(launch_columns) {
            let columns = launch_columns.min(self.n - first);
            let args = Args { b: args.b.add(first), c: args.c.add(first), n: columns as u32, ..args };
            stream.launch(&Launch {
                entry: choice.entry,
                grid: [row_blocks, columns.div_ceil(tile_columns) as u32, 1],
                threads: choice.threads,
                shared_bytes: choice.shared_bytes,
                args: &args,
                args_pointer: ptr::from_ref(&args).cast(),
            })?;
        }
        Ok(())
    }

    fn check(&self, stream: &Stream, a: &CsrMatrix, b: Slice<'_, f32>, c: &SliceMut<'_, f32>) -> Result<()> {
        if !Arc::ptr_eq(&self.pattern, a.pattern()) {
            return Err(Error::OtherPattern { operation: OPERATION });
        }
        let device = a.device();
        device.expect_same(OPERATION, "the stream", stream.device())?;
        device.expect_same(OPERATION, "B", b.device())?;
        device.expect_same(OPERATION, "C", c.device())?;
        let b = ("B", self.pattern.cols, self.input_len(), b.len());
        let c = ("C", self.pattern.rows, self.output_len(), c.len());
        for (what, rows, expected, got) in [b, c] {
            if got != expected {
                let shape = format!("{rows}×{}", self.n);
                return Err(Error::Length { operation: OPERATION, what, shape, expected, got });
            }
        }
        Ok(())
    }

    /// The choice for addresses whose bits are in `addresses`.
    fn choice_at(&self, addresses: u64, a: &CsrMatrix) -> Result<&Choice> {
        let allowed = VECTORS.into_iter().position(|vector| addresses.is_multiple_of(4 * u64::from(vector)));
        let allowed = allowed.unwrap_or(VECTORS.len() - 1);
        self.choices[allowed..].iter().flatten().next().ok_or_else(|| {
            let why = "B and C are not aligned for its vectors";
            illegal(self.algorithm, why.into(), a, self.n, VECTORS[allowed])
        })
    }
}

fn illegal(algorithm: SpmmAlgorithm, why: String, a: &CsrMatrix, n: usize, vector: u32) -> Error {
    let legal = choose(&Problem::of(a, n, vector));
    let legal: Vec<String> = legal.iter().map(|choice| format!("{:?}", choice.algorithm)).collect();
    Error::Illegal { operation: OPERATION, algorithm: format!("{algorithm:?}"), why, legal: legal.join(", ") }
}

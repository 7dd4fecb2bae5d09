//! Plans: what is worked out once for a shape.
use std::marker::PhantomData;

use lacuna_gpu::GlobalMut;
use lacuna_kernels::Entry;
use lacuna_kernels::topn::{FinalizeArgs, MergeArgs, Method, Output, Tile, TopNArgs};

use super::choose::{Cut, choose, cut, find, of_method, second};
use super::{Algorithm, Choice, OPERATION, Options, Problem};
use crate::op::{Layout, MAX_GRID_X, MAX_GRID_YZ, Turn, illegal, launch, spans, strides};
use crate::tune::{Candidate, Tunable, drawn};
use crate::{Buffer, Device, Error, Result, Slice, SliceMut, Stream, Value};

/// The N greatest values of each row of a dense, row-major matrix, in falling order, and their indices: as probabilities of the
/// row's softmax, as their logarithms, or as they are. Logits are `T`, results `f32`.
///
/// Of equal values the one of smaller index comes first; −0 and 0 are equal. NaN counts as the greatest. So does +∞ among
/// numbers; a row with either has NaN for all probabilities, and one of −∞ alone, too. Otherwise −∞ has probability 0, and comes
/// last, by index. The same logits give the same bits in every run.
///
/// ```
/// use lacuna::{Device, TopN};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let logits = device.upload(&[0.0_f32, 2.0, 1.0, f32::NEG_INFINITY, /* row 1: */ 5.0, 5.0, 5.0, 5.0])?;
/// let (mut values, mut indices) = (device.zeros::<f32>(4)?, device.zeros::<u32>(4)?);
/// let plan = TopN::plan(&device, 2, 4, 2)?;
/// plan.run(&stream, logits.as_slice(), values.as_slice_mut(), indices.as_slice_mut())?;
/// assert_eq!(indices.download(&stream)?, [1, 2, 0, 1]);
/// let values = values.download(&stream)?;
/// assert!((values[0] - 0.6652).abs() < 1e-4 && values[2] == 0.25);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TopN<T: Value = f32> {
    device: Device,
    problem: Problem,
    options: Options,
    exponent_scale: f32,
    logits: Layout,
    results: Layout,
    choice: Choice,
    cut: Cut,
    workspace: Workspace,
    values: PhantomData<T>,
}

/// What chunks of rows find, where rows have several; else nothing.
#[derive(Debug)]
struct Workspace {
    /// A list for each chunk of each row.
    keys: Buffer<u64>,
    /// The greatest value of each chunk, and its sum.
    sums: Buffer<f32>,
    /// The keys of each list.
    counts: Buffer<u32>,
    /// For runs, which write lists and then join them.
    turn: Turn,
}

impl<T: Value> TopN<T> {
    /// A plan for the `n` greatest of each of `rows` rows of `columns` logits, as probabilities.
    ///
    /// # Errors
    /// As [`plan_with`](Self::plan_with).
    pub fn plan(device: &Device, rows: usize, columns: usize, n: usize) -> Result<Self> {
        Self::plan_with(device, rows, columns, n, Options::default())
    }

    /// As [`plan`](Self::plan), with options. Where rows are cut into chunks, the plan has memory for what these find: runs of
    /// such a plan on several streams must be ordered.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an `n` that is 0 or more than `columns`, a temperature that is not from 2⁻¹⁰⁰ to 2¹⁰⁰, or a row
    /// stride below `columns`; [`Error::Illegal`] for an algorithm that cannot do this; [`Error::TooLarge`] for sizes that
    /// cannot be counted; [`Error::OutOfMemory`], or what the driver says.
    pub fn plan_with(
        device: &Device,
        rows: usize,
        columns: usize,
        n: usize,
        options: Options,
    ) -> Result<Self> {
        let exponent_scale = options.exponent_scale()?;
        let expected = || format!("from 1 to the {columns} elements of a row");
        Error::expect((1..=columns).contains(&n), OPERATION, "N", expected, n)?;
        let logits = strides!(OPERATION, "the logits", "columns", options.row_stride);
        let logits = Layout::new(rows, columns, T::TYPE.bytes(), logits)?;
        let results = Layout::new(rows, n, 4, strides!(OPERATION, "the result", "N", None))?;
        let problem = Problem {
            value: T::TYPE,
            multiprocessors: device.info().multiprocessors,
            sm: device.info().sm,
            ..Problem::new(rows, columns, n)
        };
        let found = find(&problem, options.algorithm);
        let found =
            found.and_then(|choice| Some((choice, cut(&problem, choice.entry, choice.algorithm.chunks())?)));
        let (choice, cut) = found.ok_or_else(|| {
            let why = format!("there is no such kernel for {} that finds {n} of {columns} so", T::TYPE);
            illegal(&problem, options.algorithm, why)
        })?;
        let chunks = cut.chunks as usize;
        let places = chunks.saturating_mul(cut.room as usize);
        Error::expect_at_most("N times the chunks of a row", MAX_GRID_X, places)?;
        let listed = if chunks > 1 { rows } else { 0 };
        let workspace = Workspace {
            keys: device.uninitialized(places.saturating_mul(listed))?,
            sums: device.uninitialized(2 * chunks * listed)?,
            counts: device.uninitialized(2 * chunks * listed)?,
            turn: Turn::default(),
        };
        let device = device.clone();
        let values = PhantomData;
        Ok(Self { device, problem, options, exponent_scale, logits, results, choice, cut, workspace, values })
    }

    /// The kernel that runs, and how rows are cut.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The entry point of the second launch, which makes the results of rows that are cut into several chunks.
    pub fn finalize(&self) -> Option<&'static Entry<Tile>> {
        (self.cut.chunks > 1).then(|| of_method(second(self.choice.entry.tile.method)))
    }

    /// The options that were planned with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Bytes of device memory that the plan holds.
    pub fn workspace_bytes(&self) -> usize {
        let Workspace { keys, sums, counts, .. } = &self.workspace;
        8 * keys.len() + 4 * (sums.len() + counts.len())
    }

    /// The least number of logits: rows × columns, but for the gap of a row stride after the last row.
    pub fn input_len(&self) -> usize {
        self.logits.len()
    }

    /// Values and indices of a result: rows × N.
    pub fn output_len(&self) -> usize {
        self.results.len()
    }

    /// Writes the values and the indices of each row, N of each, row by row. Gives the work to the stream, and returns at once.
    /// Logits may start at any element.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OtherDevice`] for operands that do not fit; [`Error::Launch`] or, on the simulator, its
    /// findings.
    pub fn run(
        &self,
        stream: &Stream,
        logits: Slice<'_, T>,
        values: SliceMut<'_, f32>,
        indices: SliceMut<'_, u32>,
    ) -> Result<()> {
        self.run_checked(stream, logits, values, indices, None)
    }

    /// As [`run`](Self::run), and writes the logarithm of each row's sum of exponentials, log Σ exp(logit / temperature), one a
    /// row: −∞ for a row of −∞ alone, NaN for one with NaN or +∞.
    ///
    /// # Errors
    /// As `run`.
    pub fn run_with_log_sum_exp(
        &self,
        stream: &Stream,
        logits: Slice<'_, T>,
        values: SliceMut<'_, f32>,
        indices: SliceMut<'_, u32>,
        log_sum_exp: SliceMut<'_, f32>,
    ) -> Result<()> {
        self.run_checked(stream, logits, values, indices, Some(log_sum_exp))
    }

    fn run_checked(
        &self,
        stream: &Stream,
        logits: Slice<'_, T>,
        values: SliceMut<'_, f32>,
        indices: SliceMut<'_, u32>,
        log_sums: Option<SliceMut<'_, f32>>,
    ) -> Result<()> {
        self.results.check("the values", &self.device, values.as_slice())?;
        self.results.check("the indices", &self.device, indices.as_slice())?;
        if let Some(log_sums) = &log_sums {
            let (log_sums, shape) = (log_sums.as_slice(), || "one a row".into());
            self.device.expect_operand(OPERATION, "the log-sum-exps", log_sums, shape, self.problem.rows)?;
        }
        let log_sums = log_sums.map(|log_sums| log_sums.address());
        self.launches(stream, logits, [values.address(), indices.address()], log_sums)
    }

    /// As [`run`](Self::run), to addresses of values, indices and logarithms that have room and are nobody else's.
    pub(super) fn launches(
        &self,
        stream: &Stream,
        logits: Slice<'_, T>,
        [values, indices]: [u64; 2],
        log_sums: Option<u64>,
    ) -> Result<()> {
        let Problem { rows, columns, n, .. } = self.problem;
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        self.logits.check("the logits", &self.device, logits)?;
        let output = |row: usize| Output {
            values: GlobalMut::<f32>::from_address(values).add(row * n),
            indices: GlobalMut::<u32>::from_address(indices).add(row * n),
            log_sums: GlobalMut::<f32>::from_address(log_sums.unwrap_or(0)).add(row),
            exponent_scale: self.exponent_scale,
            form: self.options.output.form() as u32,
            has_log_sums: log_sums.is_some().into(),
        };
        let Workspace { keys, sums, counts, turn } = &self.workspace;
        let _turn = (self.cut.chunks > 1).then(|| turn.take());
        let Cut { chunk, chunks, room } = self.cut;
        for span in spans(rows, MAX_GRID_X / chunks as usize) {
            let first = span.start;
            let args = TopNArgs {
                logits: logits.pointer::<T::Device>().add(first * self.logits.stride),
                keys: GlobalMut::from_address(keys.as_slice().address())
                    .add(first * (chunks * room) as usize),
                sums: GlobalMut::from_address(sums.as_slice().address()).add(2 * first * chunks as usize),
                counts: GlobalMut::from_address(counts.as_slice().address()).add(2 * first * chunks as usize),
                output: output(first),
                row_stride: self.logits.stride as u64,
                columns: columns as u32,
                chunk,
                chunks,
                n: n as u32,
            };
            launch(stream, self.choice.entry, [span.len() as u32 * chunks, 1, 1], &args)?;
        }
        match second(self.choice.entry.tile.method) {
            _ if chunks == 1 => Ok(()),
            Method::Finalize => self.finalize_lists(stream, output),
            _ => self.merge_lists(stream, output),
        }
    }

    /// Makes results of sorted lists.
    fn merge_lists(&self, stream: &Stream, output: impl Fn(usize) -> Output) -> Result<()> {
        let (rows, n, chunks) = (self.problem.rows, self.problem.n, self.cut.chunks);
        let merge = of_method(Method::Merge);
        for span in spans(rows, MAX_GRID_YZ) {
            let first = span.start;
            let args = MergeArgs {
                keys: self.workspace.keys.as_slice().pointer().add(first * chunks as usize * n),
                sums: self.workspace.sums.as_slice().pointer().add(2 * first * chunks as usize),
                output: output(first),
                columns: self.problem.columns as u32,
                chunk: self.cut.chunk,
                chunks,
                n: n as u32,
            };
            let grid = [(chunks * n as u32).div_ceil(merge.threads), span.len() as u32, 1];
            launch(stream, merge, grid, &args)?;
        }
        Ok(())
    }

    /// Makes results of what was gathered.
    fn finalize_lists(&self, stream: &Stream, output: impl Fn(usize) -> Output) -> Result<()> {
        let Cut { chunks, room, .. } = self.cut;
        let finalize = of_method(Method::Finalize);
        for span in spans(self.problem.rows, MAX_GRID_X) {
            let first = span.start;
            let args = FinalizeArgs {
                keys: self.workspace.keys.as_slice().pointer().add(first * (chunks * room) as usize),
                counts: self.workspace.counts.as_slice().pointer().add(2 * first * chunks as usize),
                sums: self.workspace.sums.as_slice().pointer().add(2 * first * chunks as usize),
                output: output(first),
                room,
                chunks,
                n: self.problem.n as u32,
            };
            launch(stream, finalize, [span.len() as u32, 1, 1], &args)?;
        }
        Ok(())
    }
}

/// A kernel with its number of chunks, as an autotuner knows it.
fn name(choice: &Choice) -> String {
    format!("{} in {}", choice.entry.name, choice.algorithm.chunks())
}

impl<T: Value> Tunable for TopN<T> {
    type Subject = ();
    /// Logits, values and indices.
    type Scratch = (Buffer<T>, Buffer<f32>, Buffer<u32>);
    const NAME: &'static str = "topn";

    fn device(&self) -> &Device {
        &self.device
    }
    fn describe(&self, _nothing: &()) -> Option<String> {
        let Problem { rows, columns, n, value, .. } = self.problem;
        let stride = self.logits.stride;
        let is_auto = self.options.algorithm == Algorithm::Auto && rows > 0;
        is_auto.then(|| format!("{value} {n} of {columns}, {rows} rows, {stride} apart"))
    }
    fn candidates(&self) -> Vec<Vec<Candidate>> {
        // They are legal at any alignment.
        let candidate = |choice: &Choice| Candidate { name: name(choice), cost: choice.cost };
        vec![choose(&self.problem).iter().map(candidate).collect()]
    }
    fn with_candidate(&self, _nothing: &(), name: &str) -> Result<Self> {
        let Problem { rows, columns, n, .. } = self.problem;
        let choice = choose(&self.problem).into_iter().find(|choice| self::name(choice) == name);
        let algorithm = choice.expect("it is a candidate").algorithm;
        let plan = Self::plan_with(&self.device, rows, columns, n, self.options.algorithm(algorithm))?;
        Ok(Self { options: self.options, ..plan })
    }
    fn preferring(self, names: &[&str]) -> Result<Self> {
        let [known] = self.candidates().try_into().expect("one list serves all alignments");
        match names.iter().find(|&&name| known.iter().any(|candidate| candidate.name == name)) {
            Some(name) => self.with_candidate(&(), name),
            None => Ok(self),
        }
    }
    fn scratch(&self, _nothing: &()) -> Result<Self::Scratch> {
        let (device, len) = (&self.device, self.output_len());
        Ok((drawn(device, self.input_len())?, device.zeros(len)?, device.zeros(len)?))
    }
    fn run_on(&self, stream: &Stream, _: &(), (logits, values, indices): &mut Self::Scratch) -> Result<()> {
        self.run(stream, logits.as_slice(), values.as_slice_mut(), indices.as_slice_mut())
    }
}

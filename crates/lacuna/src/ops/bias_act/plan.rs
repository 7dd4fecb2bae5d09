//! Plans: what is worked out once for a shape.
use std::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::bias_act::BiasActArgs;

use super::{Activation, Bias, Choice, OPERATION, Options, Problem};
use crate::op::{
    Layout, MAX_GRID_X, MAX_WIDTH, Selection, launch, spans, strides, tells_choice, tunes_selection, widest,
};
use crate::tune::{Tunable, drawn};
use crate::{Buffer, Device, Error, Result, Slice, SliceMut, Stream, Value};

/// The most rows: the kernels' 32-bit numbers run past the last by a block's.
const MAX_ROWS: usize = u32::MAX as usize - 4096;

/// out = act(x + bias + residual) for dense matrices of one shape, with values of `T`: the sum and the activation in f32, in
/// this order, rounded to `T` once.
///
/// The residual is added before the activation, as residual networks have it; bias and residual may be absent. The result
/// may take the place of x ([`run_in_place`](Self::run_in_place)), not that of the residual. Values that are not finite flow
/// as IEEE 754 says, and only into their own element. The same operands give the same bits in every run, by every algorithm.
///
/// ```
/// use lacuna::bias_act::{Operands, Options};
/// use lacuna::{BiasAct, Device};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let x = device.upload(&[1.0_f32, -2.0, 3.0, /* row 1: */ -4.0, 5.0, -6.0])?;
/// let bias = device.upload(&[0.5_f32, 0.5, -4.0])?;
/// let mut out = device.zeros::<f32>(6)?;
/// let plan = BiasAct::plan_with(&device, 2, 3, Options::default().relu())?;
/// let operands =
///     Operands { input: x.as_slice(), bias: Some(bias.as_slice()), residual: None, out: out.as_slice_mut() };
/// plan.run(&stream, operands)?;
/// assert_eq!(out.download(&stream)?, [1.5, 0.0, 0.0, 0.0, 5.5, 0.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BiasAct<T: Value = f32> {
    device: Device,
    rows: usize,
    columns: usize,
    options: Options,
    input: Layout,
    residual: Layout,
    out: Layout,
    /// Elements of the bias.
    bias_len: usize,
    selection: Selection<Problem>,
    values: PhantomData<T>,
}

/// What a run works on.
#[derive(Debug)]
pub struct Operands<'o, T: Value = f32> {
    /// x: [`input_len`](BiasAct::input_len) elements.
    pub input: Slice<'o, T>,
    /// The bias: [`bias_len`](BiasAct::bias_len) elements.
    pub bias: Option<Slice<'o, T>>,
    /// The residual: [`residual_len`](BiasAct::residual_len) elements.
    pub residual: Option<Slice<'o, T>>,
    /// The result: [`output_len`](BiasAct::output_len) elements.
    pub out: SliceMut<'o, T>,
}

impl<T: Value> BiasAct<T> {
    /// A plan for matrices of `rows` rows and `columns` columns without gaps, a bias per column, and no activation.
    ///
    /// # Errors
    /// As [`plan_with`](Self::plan_with).
    pub fn plan(device: &Device, rows: usize, columns: usize) -> Result<Self> {
        Self::plan_with(device, rows, columns, Options::default())
    }

    /// As [`plan`](Self::plan), with options.
    ///
    /// # Errors
    /// [`Error::TooLarge`] from 2³⁰ columns or 2³² − 4096 rows on, for a stride of 4 GiB, and where no buffer can hold a matrix;
    /// [`Error::Parameter`] for strides below the columns, limits of a clamp that are not in order, and channels that do not
    /// divide the rows; [`Error::Illegal`] for an algorithm that cannot do this problem.
    pub fn plan_with(device: &Device, rows: usize, columns: usize, options: Options) -> Result<Self> {
        Error::expect_at_most("the number of columns", MAX_WIDTH, columns)?;
        Error::expect_at_most("the number of rows", MAX_ROWS, rows)?;
        options.activation.check()?;
        let bias_len = bias_len(options.bias, rows, columns)?;
        let layout = |strides| Layout::new(rows, columns, T::TYPE.bytes(), strides);
        let input = layout(strides!(OPERATION, "x", "columns", options.input_stride))?;
        let residual = layout(strides!(OPERATION, "the residual", "columns", options.residual_stride))?;
        let out = layout(strides!(OPERATION, "the result", "columns", options.out_stride))?;
        let layouts = [input, residual, out];
        let info = device.info();
        let problem_at = |vector| Problem {
            rows,
            columns,
            vector: widest(|allowed| {
                allowed <= vector && layouts.iter().all(|layout| layout.allows(allowed))
            }),
            value: T::TYPE,
            multiprocessors: info.multiprocessors,
            sm: info.sm,
        };
        let selection = Selection::new(options.algorithm, T::TYPE.bytes(), problem_at)
            .expect_some(|| format!("{columns} columns and these strides"))?;
        let device = device.clone();
        let values = PhantomData;
        Ok(Self { device, rows, columns, options, input, residual, out, bias_len, selection, values })
    }

    /// Elements that x must have, up to the last of the last row. The gap after it may be there too.
    pub fn input_len(&self) -> usize {
        self.input.len()
    }

    /// Elements that a bias must have.
    pub fn bias_len(&self) -> usize {
        self.bias_len
    }

    /// Elements that a residual must have, up to the last of the last row. The gap after it may be there too.
    pub fn residual_len(&self) -> usize {
        self.residual.len()
    }

    /// Elements that the result must have, up to the last of the last row. The gap after it may be there too.
    pub fn output_len(&self) -> usize {
        self.out.len()
    }

    /// Gives the work to the stream, and returns at once. It can be recorded in a graph.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OtherDevice`] for operands that do not fit; [`Error::Illegal`] where the algorithm asked
    /// for needs other alignment; [`Error::Launch`] or, on the simulator, its findings.
    pub fn run(&self, stream: &Stream, operands: Operands<'_, T>) -> Result<()> {
        let Operands { input, bias, residual, out } = operands;
        self.input.check("x", &self.device, input)?;
        self.out.check("the result", &self.device, out.as_slice())?;
        self.launches(stream, [input.address(), out.address()], bias, residual)
    }

    /// As [`run`](Self::run), with the result in place of x: `matrix` is both.
    ///
    /// # Errors
    /// As `run`, and [`Error::Parameter`] where input and result have different strides.
    pub fn run_in_place(
        &self,
        stream: &Stream,
        matrix: SliceMut<'_, T>,
        bias: Option<Slice<'_, T>>,
        residual: Option<Slice<'_, T>>,
    ) -> Result<()> {
        let (of_x, of_result) = (self.input.stride, self.out.stride);
        let (what, expected) = ("the stride of the result in place", || format!("that of x, {of_x}"));
        Error::expect(of_result == of_x, OPERATION, what, expected, of_result)?;
        self.out.check("the matrix", &self.device, matrix.as_slice())?;
        self.launches(stream, [matrix.address(); 2], bias, residual)
    }

    fn launches(
        &self,
        stream: &Stream,
        [input, out]: [u64; 2],
        bias: Option<Slice<'_, T>>,
        residual: Option<Slice<'_, T>>,
    ) -> Result<()> {
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        if let Some(residual) = &residual {
            self.residual.check("the residual", &self.device, *residual)?;
        }
        if let Some(bias) = &bias {
            let shape = || format!("{:?}", self.options.bias);
            self.device.expect_operand(OPERATION, "the bias", *bias, shape, self.bias_len)?;
        }
        if self.output_len() == 0 {
            return Ok(());
        }
        let [bias, residual] = [bias, residual].map(|operand| operand.map_or(0, |operand| operand.address()));
        let by_column = self.options.bias == Bias::PerColumn;
        // A bias per row is loaded element by element.
        let addresses = input | out | residual | if by_column { bias } else { 0 };
        let choice = self.selection.at(addresses, "the operands are")?;
        let tile = &choice.entry.tile;
        let parts = (self.columns as u32).div_ceil(tile.block_columns);
        let block_rows = tile.block_rows as usize;
        for span in spans(self.rows, MAX_GRID_X / parts as usize * block_rows) {
            let args = BiasActArgs::<T::Device> {
                input: GlobalMut::from_address(input),
                out: GlobalMut::from_address(out),
                residual: GlobalPtr::from_address(residual),
                bias: GlobalPtr::from_address(bias),
                bias_rows: if by_column { 0 } else { self.bias_len as u32 },
                input_stride_bytes: self.input.stride_bytes,
                out_stride_bytes: self.out.stride_bytes,
                residual_stride_bytes: self.residual.stride_bytes,
                first_row: span.start as u32,
                end_row: span.end as u32,
                columns: self.columns as u32,
                parts,
                activation: self.options.activation.to_device(),
            };
            let grid = [span.len().div_ceil(block_rows) as u32 * parts, 1, 1];
            launch(stream, choice.entry, grid, &args)?;
        }
        Ok(())
    }
}

/// Elements of such a bias.
fn bias_len(bias: Bias, rows: usize, columns: usize) -> Result<usize> {
    match bias {
        Bias::PerColumn => Ok(columns),
        Bias::PerRow => Ok(rows),
        Bias::PerChannel { channels } => {
            let divides = channels > 0 && rows.is_multiple_of(channels);
            let expected = || format!("a divisor of the {rows} rows");
            Error::expect(divides, OPERATION, "the number of channels", expected, channels)?;
            Ok(channels)
        }
    }
}

tells_choice!(BiasAct<T: Value>);

impl<T: Value> Tunable for BiasAct<T> {
    type Subject = ();
    /// x and the result.
    type Scratch = (Buffer<T>, Buffer<T>);
    const NAME: &'static str = "bias_act";

    fn device(&self) -> &Device {
        &self.device
    }
    fn describe(&self, _nothing: &()) -> Option<String> {
        if !self.selection.is_auto() || self.output_len() == 0 {
            return None;
        }
        let Problem { rows, columns, vector, value, .. } = *self.selection.problem();
        // Limits take the same time wherever they are.
        let activation = if self.options.activation == Activation::Gelu { ", GELU" } else { "" };
        Some(format!("{value} {rows}×{columns}, vectors of {vector}{activation}"))
    }
    tunes_selection!();
    fn with_candidate(&self, _nothing: &(), name: &str) -> Result<Self> {
        let algorithm = self.selection.algorithm_of(name);
        Self::plan_with(&self.device, self.rows, self.columns, self.options.algorithm(algorithm))
    }
    fn scratch(&self, _nothing: &()) -> Result<Self::Scratch> {
        Ok((drawn(&self.device, self.input_len())?, self.device.zeros(self.output_len())?))
    }
    fn run_on(&self, stream: &Stream, _nothing: &(), (input, out): &mut Self::Scratch) -> Result<()> {
        let (input, out) = (input.as_slice(), out.as_slice_mut());
        self.run(stream, Operands { input, bias: None, residual: None, out })
    }
}

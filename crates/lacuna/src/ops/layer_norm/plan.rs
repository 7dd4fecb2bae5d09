//! Plans: what is worked out once for a shape.
use std::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::Entry;
use lacuna_kernels::layer_norm::{LayerNormChannelsArgs, LayerNormRowsArgs, Scale, Scheme, Tile};

use super::{Choice, OPERATION, Options, Problem, Shape};
use crate::op::{Layout, MAX_GRID_X, Selection, launch, spans, tells_choice, tunes_selection, widest};
use crate::tune::{Tunable, drawn};
use crate::{Buffer, Device, Error, Result, Slice, SliceMut, Stream, Value};

/// The most tokens of a launch over maps.
const MAX_TOKENS: usize = 1 << 31;

/// out = (x − mean) / √(variance + ε) · weight + bias, with mean and variance over the features of each token: what
/// `torch.nn.LayerNorm` computes (Ba, Kiros, Hinton, *Layer Normalization*, 2016). The variance is the mean of the squared
/// deviations, over n and not n − 1. All is computed in f32, and rounded to `T` once.
///
/// Weight and bias have an element for each feature, and may be absent. The result may take the place of x
/// ([`run_in_place`](Self::run_in_place)). A token with a number that is not finite becomes NaN, and no other does. Where the sum
/// of a token's numbers overflows f32 it becomes NaN; where only that of the squared deviations does (deviations of about 10¹⁹),
/// the variance is infinite, and the result is the bias. Where variance and ε are both 0 in f32, nothing defines the result: 0/0
/// is NaN, and what rounding leaves may be any number. The same operands give the same bits in every run and in place; other
/// kernels, and so other alignment, add up in another order.
///
/// ```
/// use lacuna::layer_norm::{Operands, Options, Shape};
/// use lacuna::{Device, LayerNorm};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let x = device.upload(&[1.0_f32, 3.0, /* row 1: */ -6.0, 2.0])?;
/// let bias = device.upload(&[0.5_f32, 10.0])?;
/// let mut out = device.zeros::<f32>(4)?;
/// let shape = Shape::Rows { rows: 2, features: 2 };
/// let plan = LayerNorm::plan_with(&device, shape, Options::default().epsilon(0.0))?;
/// let operands =
///     Operands { input: x.as_slice(), weight: None, bias: Some(bias.as_slice()), out: out.as_slice_mut() };
/// plan.run(&stream, operands)?;
/// assert_eq!(out.download(&stream)?, [-0.5, 11.0, -0.5, 11.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LayerNorm<T: Value = f32> {
    device: Device,
    shape: Shape,
    options: Options,
    input: Layout,
    out: Layout,
    selection: Selection<Problem>,
    values: PhantomData<T>,
}

/// What a run works on.
#[derive(Debug)]
pub struct Operands<'o, T: Value = f32> {
    /// x: [`input_len`](LayerNorm::input_len) elements.
    pub input: Slice<'o, T>,
    /// The weight: an element for each feature; 1 if none.
    pub weight: Option<Slice<'o, T>>,
    /// The bias: an element for each feature; nothing is added if none.
    pub bias: Option<Slice<'o, T>>,
    /// The result: [`output_len`](LayerNorm::output_len) elements.
    pub out: SliceMut<'o, T>,
}

impl<T: Value> LayerNorm<T> {
    /// A plan for tokens without gaps, with an ε of 10⁻⁵.
    ///
    /// # Errors
    /// As [`plan_with`](Self::plan_with).
    pub fn plan(device: &Device, shape: Shape) -> Result<Self> {
        Self::plan_with(device, shape, Options::default())
    }

    /// As [`plan`](Self::plan), with options.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an ε below 0 or not finite, and strides below a row or an image; [`Error::TooLarge`] from 2³⁰
    /// elements of a row or an image or 2³² − 4096 of these on, for a stride of 4 GiB, and where no buffer can hold all of them;
    /// [`Error::Illegal`] for an algorithm that cannot do this problem.
    pub fn plan_with(device: &Device, shape: Shape, options: Options) -> Result<Self> {
        options.check()?;
        let layouts = shape.layouts(T::TYPE.bytes(), [options.input_stride, options.out_stride])?;
        let info = device.info();
        let problem_at = |vector| Problem {
            shape,
            vector: widest(|allowed| {
                allowed <= vector && layouts.iter().all(|layout| layout.allows(allowed))
            }),
            value: T::TYPE,
            multiprocessors: info.multiprocessors,
            sm: info.sm,
        };
        let selection = Selection::new(options.algorithm, T::TYPE.bytes(), problem_at)
            .expect_some(|| format!("{shape:?} and these strides"))?;
        let [input, out] = layouts;
        Ok(Self { device: device.clone(), shape, options, input, out, selection, values: PhantomData })
    }

    /// Tokens and features.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Elements that x must have, up to the last of the last row or image. The gap after it may be there too.
    pub fn input_len(&self) -> usize {
        self.input.len()
    }

    /// Elements that the result must have, up to the last of the last row or image. The gap after it may be there too.
    pub fn output_len(&self) -> usize {
        self.out.len()
    }

    /// Gives the work to the stream, and returns at once. It can be recorded in a graph.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OtherDevice`] for operands that do not fit; [`Error::Illegal`] where the algorithm asked
    /// for needs other alignment; [`Error::Launch`] or, on the simulator, its findings.
    pub fn run(&self, stream: &Stream, operands: Operands<'_, T>) -> Result<()> {
        let Operands { input, weight, bias, out } = operands;
        self.input.check("x", &self.device, input)?;
        self.out.check("the result", &self.device, out.as_slice())?;
        self.launches(stream, [input.address(), out.address()], weight, bias)
    }

    /// As [`run`](Self::run), with the result in place of x: `tokens` is both.
    ///
    /// # Errors
    /// As `run`, and [`Error::Parameter`] where input and result have different strides.
    pub fn run_in_place(
        &self,
        stream: &Stream,
        tokens: SliceMut<'_, T>,
        weight: Option<Slice<'_, T>>,
        bias: Option<Slice<'_, T>>,
    ) -> Result<()> {
        let (of_x, of_result) = (self.input.stride, self.out.stride);
        let (what, expected) = ("the stride of the result in place", || format!("that of x, {of_x}"));
        Error::expect(of_result == of_x, OPERATION, what, expected, of_result)?;
        self.out.check("the tokens", &self.device, tokens.as_slice())?;
        self.launches(stream, [tokens.address(); 2], weight, bias)
    }

    fn launches(
        &self,
        stream: &Stream,
        tokens: [u64; 2],
        weight: Option<Slice<'_, T>>,
        bias: Option<Slice<'_, T>>,
    ) -> Result<()> {
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        for (what, operand) in [("the weight", weight), ("the bias", bias)] {
            if let Some(operand) = operand {
                let features = self.shape.features();
                self.device.expect_operand(OPERATION, what, operand, || "one a feature".into(), features)?;
            }
        }
        if self.output_len() == 0 {
            return Ok(());
        }
        let [weight, bias] = [weight, bias].map(|operand| operand.map_or(0, |operand| operand.address()));
        let addresses = tokens[0] | tokens[1] | weight | bias;
        let entry = self.selection.at(addresses, "the operands are")?.entry;
        let parameters = [weight, bias].map(GlobalPtr::from_address);
        match entry.tile.scheme {
            Scheme::Rows { .. } => self.launch_rows(stream, entry, tokens, parameters),
            Scheme::Channels => self.launch_channels(stream, entry, tokens, parameters),
        }
    }

    fn launch_rows(
        &self,
        stream: &Stream,
        entry: &Entry<Tile>,
        [input, out]: [u64; 2],
        [weight, bias]: [GlobalPtr<T::Device>; 2],
    ) -> Result<()> {
        let block_rows = entry.tile.block_tokens as usize;
        for span in spans(self.shape.outer(), MAX_GRID_X * block_rows) {
            let args = LayerNormRowsArgs::<T::Device> {
                input: GlobalMut::from_address(input),
                out: GlobalMut::from_address(out),
                weight,
                bias,
                input_stride_bytes: self.input.stride_bytes,
                out_stride_bytes: self.out.stride_bytes,
                first_row: span.start as u32,
                end_row: span.end as u32,
                features: self.shape.features() as u32,
                scale: self.scale(),
            };
            launch(stream, entry, [span.len().div_ceil(block_rows) as u32, 1, 1], &args)?;
        }
        Ok(())
    }

    fn launch_channels(
        &self,
        stream: &Stream,
        entry: &Entry<Tile>,
        [input, out]: [u64; 2],
        [weight, bias]: [GlobalPtr<T::Device>; 2],
    ) -> Result<()> {
        let pixels = self.shape.pixels();
        for span in spans(self.shape.outer(), MAX_TOKENS / pixels) {
            let first = |address, stride_bytes| {
                GlobalMut::from_address(address).add_bytes(span.start as u64 * u64::from(stride_bytes))
            };
            let tokens = span.len() * pixels;
            let args = LayerNormChannelsArgs::<T::Device> {
                input: first(input, self.input.stride_bytes),
                out: first(out, self.out.stride_bytes),
                weight,
                bias,
                input_stride_bytes: self.input.stride_bytes,
                out_stride_bytes: self.out.stride_bytes,
                plane_bytes: pixels as u32 * T::TYPE.bytes(),
                channels: self.shape.features() as u32,
                pixels: pixels as u32,
                tokens: tokens as u32,
                scale: self.scale(),
            };
            launch(stream, entry, [tokens.div_ceil(entry.tile.block_tokens as usize) as u32, 1, 1], &args)?;
        }
        Ok(())
    }

    fn scale(&self) -> Scale {
        Scale { inverse: (1.0 / self.shape.features() as f64) as f32, epsilon: self.options.epsilon }
    }
}

tells_choice!(LayerNorm<T: Value>);

impl<T: Value> Tunable for LayerNorm<T> {
    type Subject = ();
    /// x and the result.
    type Scratch = (Buffer<T>, Buffer<T>);
    const NAME: &'static str = "layer_norm";

    fn device(&self) -> &Device {
        &self.device
    }
    fn describe(&self, _nothing: &()) -> Option<String> {
        if !self.selection.is_auto() || self.output_len() == 0 {
            return None;
        }
        let Problem { shape, vector, value, .. } = *self.selection.problem();
        Some(format!("{value} {shape:?}, vectors of {vector}"))
    }
    tunes_selection!();
    fn with_candidate(&self, _nothing: &(), name: &str) -> Result<Self> {
        let algorithm = self.selection.algorithm_of(name);
        Self::plan_with(&self.device, self.shape, self.options.algorithm(algorithm))
    }
    fn scratch(&self, _nothing: &()) -> Result<Self::Scratch> {
        Ok((drawn(&self.device, self.input_len())?, self.device.zeros(self.output_len())?))
    }
    fn run_on(&self, stream: &Stream, _nothing: &(), (input, out): &mut Self::Scratch) -> Result<()> {
        let (input, out) = (input.as_slice(), out.as_slice_mut());
        self.run(stream, Operands { input, weight: None, bias: None, out })
    }
}

//! The check that nearly all cases share.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::Csr;
use lacuna::pointwise::{Activation, Operands, Options};
use lacuna::{CsrMatrix, Error, Index, Precision, SparsePointwiseConv, spmm};
use lacuna_cases::conv::oracle_shape;
use lacuna_cases::number::rounded;
use lacuna_reference::{Epilogue, PointwiseReference, pointwise};

use super::Maps;
use super::place::{Place, Placed};
use crate::expect::same_bits;
use crate::spmm::arithmetic::precision_on;
use crate::{Context, Number};

/// How a case is run.
#[derive(Clone, Copy, Debug)]
struct Way {
    algorithm: spmm::Algorithm,
    precision: Precision,
    activation: Activation,
    has_bias: bool,
    accumulate: bool,
    input: Place,
    out: Place,
}

const PLAIN: Way = Way {
    algorithm: spmm::Algorithm::Auto,
    precision: Precision::Single,
    activation: Activation::Relu,
    has_bias: true,
    accumulate: false,
    input: Place { gap: 0, before: 0, after: 0, offset: 0 },
    out: Place { gap: 0, before: 0, after: 0, offset: 0 },
};

/// Checks a convolution against the oracle, in three types of values with both types of indices; gives the largest error over its bound.
///
/// By the library's choice: of whole buffers, twice; of parts of wider maps, at any alignment; and added to what the result holds. With bias and activation and
/// without. `by_all` has every legal algorithm run, too.
///
/// # Errors
/// What is wrong, with the type and the way.
pub fn conform(cx: &Context<'_>, maps: &Maps, by_all: bool) -> Result<f64> {
    let worst = of_type::<f32, u32>(cx, maps, by_all)?.max(of_type::<f16, u16>(cx, maps, by_all)?);
    Ok(worst.max(of_type::<bf16, u32>(cx, maps, by_all)?))
}

fn of_type<T: Number, I: Index>(cx: &Context<'_>, maps: &Maps, by_all: bool) -> Result<f64> {
    let subject = Subject::<T, I>::new(cx, maps)?;
    // Whole vectors of 16 bytes a channel, where gaps are made so.
    let gap = |pixels: usize| pixels.next_multiple_of(8) - pixels;
    let [pixels, out_pixels] = [maps.shape.size, maps.shape.out_size()].map(|[rows, columns]| rows * columns);
    let part = Place { before: 3, after: 2, ..Place::default() };
    let clamp = Activation::Clamp { lo: -0.5, hi: 1.25 };
    let mut ways = vec![
        PLAIN,
        Way { activation: Activation::Identity, has_bias: false, ..PLAIN },
        Way { activation: clamp, input: part, out: part, ..PLAIN },
        Way { accumulate: true, input: Place { gap: 3, offset: 1, ..part }, ..PLAIN },
        Way {
            accumulate: true,
            activation: Activation::Identity,
            input: Place { gap: gap(pixels), before: 2, ..Place::default() },
            out: Place { gap: gap(out_pixels), after: 2, ..Place::default() },
            ..PLAIN
        },
        Way { has_bias: false, out: Place { gap: 1, offset: 1, ..part }, ..PLAIN },
    ];
    if by_all {
        for precision in [Precision::Single, Precision::Tf32] {
            let way = Way { precision, ..PLAIN };
            let [legal, ..] = subject.plan(&way)?.legal();
            ways.extend(legal.iter().map(|choice| Way { algorithm: choice.algorithm, ..way }));
        }
    }
    let again = subject.run(&PLAIN)?;
    same_bits("once, and again", &subject.run(&PLAIN)?, &again, out_pixels)?;
    ways.iter().try_fold(0.0, |worst: f64, way| {
        let at = || format!("{} and {}, {way:?}", T::TYPE, I::TYPE);
        Ok(worst.max(subject.check(way).with_context(at)?))
    })
}

struct Subject<'c, T: Number, I: Index> {
    cx: &'c Context<'c>,
    maps: &'c Maps,
    weights: CsrMatrix<T, I>,
    input: Vec<T>,
    bias: Vec<T>,
    before: Vec<T>,
    reference: PointwiseReference<T>,
}

impl<'c, T: Number, I: Index> Subject<'c, T, I> {
    fn new(cx: &'c Context<'c>, maps: &'c Maps) -> Result<Self> {
        let values = rounded::<T>(maps.weights.values());
        let weights = Csr::with_values(maps.weights.pattern().clone(), values)?;
        let (input, bias, before) = (rounded(&maps.input), rounded(&maps.bias), rounded(&maps.before));
        let reference = pointwise(&oracle_shape(maps.shape, maps.shape.batch), &weights, &input)?;
        let weights = CsrMatrix::with_index(cx.device, &weights)?;
        Ok(Self { cx, maps, weights, input, bias, before, reference })
    }

    /// How input and result lie.
    fn placed(&self, way: &Way) -> [Placed; 2] {
        let shape = self.maps.shape;
        let [pixels, out_pixels] = [shape.size, shape.out_size()].map(|[rows, columns]| rows * columns);
        [
            Placed::new(way.input, shape.batch, shape.channels, pixels),
            Placed::new(way.out, shape.batch, shape.filters, out_pixels),
        ]
    }

    fn plan(&self, way: &Way) -> Result<SparsePointwiseConv<T, I>> {
        let shape = self.maps.shape;
        let [input, out] = self.placed(way);
        let options = Options::default().activation(way.activation).algorithm(way.algorithm);
        let mut options = options.precision(way.precision);
        if way.input != Place::default() {
            options = options.input_channel_stride(input.channel_stride());
            options = options.input_image_stride(input.image_stride());
        }
        if way.out != Place::default() {
            options = options.out_channel_stride(out.channel_stride()).out_image_stride(out.image_stride());
        }
        let options = if way.accumulate { options.accumulate() } else { options };
        let plan = SparsePointwiseConv::plan(&self.weights, shape, options)?;
        let [rows, columns] = shape.out_size();
        let copied = (shape.padding, shape.out_size()) != ([0, 0], shape.size);
        let gathered = if copied { shape.batch * shape.channels * rows * columns } else { 0 };
        let (got, expected) = (plan.workspace_bytes(), gathered * size_of::<T>());
        ensure!(got == expected, "a workspace of {got} bytes, but {expected} were expected");
        Ok(plan)
    }

    fn run(&self, way: &Way) -> Result<Vec<T>> {
        self.run_plan(&self.plan(way)?, way)
    }

    fn run_plan(&self, plan: &SparsePointwiseConv<T, I>, way: &Way) -> Result<Vec<T>> {
        let Context { device, stream, .. } = *self.cx;
        let [input, out] = self.placed(way);
        let from = input.spread(&self.input);
        let x = device.upload(&from)?;
        let bias = way.has_bias.then(|| device.upload(&self.bias)).transpose()?;
        let held = if way.accumulate { self.before.clone() } else { vec![T::POISON; self.before.len()] };
        let mut result = device.upload(&out.spread(&held))?;
        // Up to the last element, or to the end of the buffer.
        let (start, out_start) = (input.start(), out.start());
        let input_end = start + plan.input_len();
        let operands = Operands {
            weights: &self.weights,
            input: x.slice(start..input_end)?,
            bias: bias.as_ref().map(|bias| bias.as_slice()),
            out: result.slice_mut(out_start..out_start + plan.output_len())?,
        };
        let (_, launches) = device.record(|| plan.run(stream, operands))?;
        if device.is_simulator() {
            let most = if plan.output_len() == 0 { 0 } else { 1 + usize::from(plan.workspace_bytes() > 0) };
            ensure!(launches.len() <= most, "{} launches, but at most {most} were expected", launches.len());
        }
        same_bits("x before and after", &from, &x.download(stream)?, 0)?;
        out.collect(result.download(stream)?)
    }

    /// The largest error over its bound.
    fn check(&self, way: &Way) -> Result<f64> {
        let plan = self.plan(way)?;
        let [input, out] = self.placed(way);
        let is_aligned = |at: usize| (at * size_of::<T>()).is_multiple_of(16);
        let got = match self.run_plan(&plan, way) {
            Err(error) if !matches!(way.algorithm, spmm::Algorithm::Auto) => {
                let is_illegal = matches!(error.downcast_ref(), Some(Error::Illegal { .. }));
                ensure!(is_illegal && !is_aligned(out.start() | input.start()), "{error:#}");
                return Ok(0.0);
            }
            got => got?,
        };
        // What is gathered is aligned.
        let starts = if plan.workspace_bytes() > 0 { out.start() } else { input.start() | out.start() };
        let arithmetic = plan.choice().entry.tile.scheme.arithmetic().filter(|_| is_aligned(starts));
        let (lo, hi) = match way.activation {
            Activation::Relu => (0.0, f32::INFINITY),
            Activation::Clamp { lo, hi } => (lo, hi),
            _ => (f32::NEG_INFINITY, f32::INFINITY),
        };
        let epilogue = Epilogue {
            beta: if way.accumulate { 1.0 } else { 0.0 },
            c: &self.before,
            bias: way.has_bias.then_some(&*self.bias),
            lo,
            hi,
            ..Epilogue::default()
        };
        let reference = self.reference.clone().precision(precision_on(arithmetic))?;
        Ok(reference.check_with(&epilogue, &got)?.worst_over_bound)
    }
}

//! The check that nearly all cases share.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::conv::{Activation, Algorithm, MapLayout, Operands, Options};
use lacuna::{Conv, Error};
use lacuna_cases::conv::{oracle_shape, precision};
use lacuna_cases::maps::{apart, channels_first, channels_last, together};
use lacuna_cases::number::rounded;
use lacuna_reference::{ConvInputs, ConvReference, Precision, conv};

use super::Maps;
use crate::expect::{same_bits, same_numbers};
use crate::{Context, NotRun, Number};

/// Allows tensor cores for short sums, too.
const PRECISION: lacuna::Precision = lacuna::Precision::Tf32;

/// Checks a convolution against the oracle, by every legal algorithm; gives the largest error over its bound.
///
/// In both layouts, with the same bits by the same algorithm; with bias, residual and activation and without; and the count of results.
///
/// # Errors
/// What is wrong, with the type and the algorithm.
pub fn conform(cx: &Context<'_>, maps: &Maps) -> Result<f64> {
    let worst = of_type::<f32>(cx, maps)?.max(of_type::<f16>(cx, maps)?);
    Ok(worst.max(of_type::<bf16>(cx, maps)?))
}

/// The same by one algorithm alone, of `f16` with channels last. Where that is none of the legal ones, the case is not run.
pub(super) fn conform_by(cx: &Context<'_>, maps: &Maps, algorithm: Algorithm) -> Result<f64> {
    let subject = Subject::<f16>::new(cx, maps, 0, Activation::Identity);
    match subject.plan(algorithm, MapLayout::Nhwc, None) {
        Ok(_) => subject.check(algorithm, MapLayout::Nhwc),
        Err(error) => Err(NotRun(error.to_string()).into()),
    }
}

fn of_type<T: Number>(cx: &Context<'_>, maps: &Maps) -> Result<f64> {
    let legal = |layout| -> Result<Vec<Algorithm>> {
        let options = Options::default().layout(layout).precision(PRECISION);
        let [legal, ..] = Conv::<T>::plan(cx.device, maps.shape, options)?.legal();
        Ok(legal.iter().map(|choice| choice.algorithm).collect())
    };
    let of_last = legal(MapLayout::Nhwc)?;
    let mut algorithms = vec![(Algorithm::Auto, MapLayout::Nhwc)];
    algorithms.extend(of_last.iter().map(|&algorithm| (algorithm, MapLayout::Nhwc)));
    let of_first = legal(MapLayout::Nchw)?.into_iter().filter(|algorithm| !of_last.contains(algorithm));
    algorithms.extend(of_first.map(|algorithm| (algorithm, MapLayout::Nchw)));
    let activations = [Activation::Relu, Activation::Identity, Activation::Clamp { lo: -0.5, hi: 1.25 }]
        .into_iter()
        .cycle();
    let mut worst = 0.0_f64;
    for (i, ((algorithm, layout), activation)) in algorithms.into_iter().zip(activations).enumerate() {
        let subject = Subject::<T>::new(cx, maps, i, activation);
        let at = || format!("{}, {algorithm:?}, {activation:?}", T::TYPE);
        worst = worst.max(subject.check(algorithm, layout).with_context(at)?);
    }
    Ok(worst)
}

/// What is convolved, and what is made of the sums.
pub(super) struct Subject<'c, T> {
    cx: &'c Context<'c>,
    maps: &'c Maps,
    input: Vec<T>,
    weights: Vec<T>,
    bias: Option<Vec<T>>,
    residual: Option<Vec<T>>,
    pub(super) activation: Activation,
}

impl<'c, T: Number> Subject<'c, T> {
    /// What is added goes by `way`: all of it, nothing, and each of them.
    pub(super) fn new(cx: &'c Context<'c>, maps: &'c Maps, way: usize, activation: Activation) -> Self {
        Self {
            cx,
            maps,
            input: rounded(&maps.input),
            weights: rounded(&maps.weights),
            bias: matches!(way % 4, 0 | 2).then(|| rounded(&maps.bias)),
            residual: matches!(way % 4, 0 | 3).then(|| rounded(&maps.residual)),
            activation,
        }
    }

    /// What results may be.
    pub(super) fn reference(&self, precision: Precision) -> Result<ConvReference<T>> {
        let (lo, hi) = match self.activation {
            Activation::Relu => (0.0, f32::INFINITY),
            Activation::Clamp { lo, hi } => (lo, hi),
            _ => (f32::NEG_INFINITY, f32::INFINITY),
        };
        Ok(conv(&ConvInputs {
            shape: oracle_shape(self.maps.shape, self.maps.shape.batch),
            input: &self.input,
            weights: &self.weights,
            bias: self.bias.as_deref(),
            residual: self.residual.as_deref(),
            precision,
            lo,
            hi,
        })?)
    }

    fn check(&self, algorithm: Algorithm, layout: MapLayout) -> Result<f64> {
        let plan = self.plan(algorithm, layout, None)?;
        let chosen = plan.choice().algorithm;
        let reference = self.reference(precision::<T>(chosen))?;
        let first = self.run(algorithm, layout, 0)?;
        let mut worst = reference.check(&first)?.worst_over_bound;
        if plan.splits() > 1 {
            // One block has all channels, and uses its stages again. The library may choose another kernel for that.
            let whole = self.run_plan(&self.plan(chosen, layout, Some(1))?, layout, 0)?;
            worst = worst.max(reference.check(&whole).context("without splits")?.worst_over_bound);
        }
        let [_, columns] = self.maps.shape.out_size();
        same_bits("once, and again", &first, &self.run(algorithm, layout, 0)?, columns)?;
        let is_of_layout = matches!(
            algorithm,
            Algorithm::DepthwiseNhwc { .. } | Algorithm::DepthwiseNchw { .. } | Algorithm::DepthwisePlanes
        );
        let other = if layout == MapLayout::Nhwc { MapLayout::Nchw } else { MapLayout::Nhwc };
        let mut ways = vec![
            ("the other layout", other, 0, [None; 2]),
            ("not aligned", layout, 1, [None; 2]),
            ("planes apart", MapLayout::Nchw, 0, [Some(8); 2]),
        ];
        if algorithm == Algorithm::Auto {
            ways.push(("planes of the input apart", MapLayout::Nchw, 0, [Some(3), None]));
            ways.push(("planes of the result apart", MapLayout::Nchw, 0, [None, Some(1)]));
        }
        for (what, its_layout, offset, steps) in ways {
            let run = || {
                let plan = self.plan(algorithm, its_layout, None)?;
                let plan = if steps == [None; 2] { plan } else { self.apart(plan.options(), steps)? };
                self.run_plan(&plan, its_layout, offset)
            };
            match run() {
                Ok(got) => {
                    // In the other layout the library may choose another kernel, whose sums are in another order.
                    let its_kernel = self.plan(algorithm, its_layout, None)?.choice().algorithm;
                    if its_kernel == chosen {
                        same_numbers(what, &first, &got, columns)?;
                    }
                    worst = worst.max(reference.check(&got).context(what)?.worst_over_bound);
                }
                Err(error) => {
                    let is_illegal = matches!(error.downcast_ref(), Some(Error::Illegal { .. }));
                    // These are for one layout, at any alignment.
                    let is_last =
                        matches!(algorithm, Algorithm::WgmmaPanels { .. } | Algorithm::FewChannelsMma { .. });
                    let may_be = is_of_layout || is_last && offset == 0;
                    ensure!(is_illegal && may_be, "{what}: {error}");
                }
            }
        }
        Ok(worst)
    }

    fn plan(&self, algorithm: Algorithm, layout: MapLayout, splits: Option<usize>) -> Result<Conv<T>> {
        let mut options = Options::default().activation(self.activation).layout(layout);
        options = options.algorithm(algorithm).precision(PRECISION);
        options.splits = splits;
        Ok(Conv::plan(self.cx.device, self.maps.shape, options)?)
    }

    /// A plan with gaps between channels of the input, and of the result, that begin at multiples of so many elements.
    fn apart(&self, options: &Options, [step, out_step]: [Option<usize>; 2]) -> Result<Conv<T>> {
        let stride = |step: usize, [rows, columns]: [usize; 2]| (rows * columns / step + 1) * step;
        let mut options = *options;
        options.input_channel_stride = step.map(|step| stride(step, self.maps.shape.size));
        options.out_channel_stride = out_step.map(|step| stride(step, self.maps.shape.out_size()));
        Ok(Conv::plan(self.cx.device, self.maps.shape, options)?)
    }

    fn run(&self, algorithm: Algorithm, layout: MapLayout, offset: usize) -> Result<Vec<T>> {
        self.run_plan(&self.plan(algorithm, layout, None)?, layout, offset)
    }

    /// The result, in NCHW, of maps that begin `offset` elements into their buffers, and whose planes lie as the plan has it.
    pub(super) fn run_plan(&self, plan: &Conv<T>, layout: MapLayout, offset: usize) -> Result<Vec<T>> {
        let (device, stream, shape) = (self.cx.device, self.cx.stream, self.maps.shape);
        let (pixels, out_pixels) = (shape.size.iter().product(), shape.out_size().iter().product());
        let is_last = layout == MapLayout::Nhwc;
        let laid = |maps: &[T], channels: usize, pixels: usize, stride: Option<usize>| {
            let maps = if is_last { channels_last(maps, channels, pixels) } else { maps.to_vec() };
            let maps = stride.map_or(maps.clone(), |stride| apart(&maps, pixels, stride, T::CANARY));
            [&vec![T::CANARY; offset][..], &maps].concat()
        };
        let &Options { input_channel_stride, out_channel_stride, .. } = plan.options();
        let filters = plan.pack(stream, device.upload(&self.weights)?.as_slice())?;
        let input = device.upload(&laid(&self.input, shape.channels, pixels, input_channel_stride))?;
        let bias =
            self.bias.as_ref().map(|bias| device.upload(&[&vec![T::CANARY; offset][..], bias].concat()));
        let bias = bias.transpose()?;
        let residual = self.residual.as_ref();
        let residual = residual
            .map(|residual| device.upload(&laid(residual, shape.filters, out_pixels, out_channel_stride)));
        let residual = residual.transpose()?;
        let blank = vec![T::POISON; shape.output_len()];
        let mut out = device.upload(&laid(&blank, shape.filters, out_pixels, out_channel_stride))?;
        let mut nonzeros = device.upload(&[7_u32])?;
        let operands = Operands {
            bias: bias.as_ref().map(|bias| bias.slice(offset..)).transpose()?,
            residual: residual.as_ref().map(|residual| residual.slice(offset..)).transpose()?,
            nonzeros: Some(nonzeros.as_slice_mut()),
            ..Operands::new(input.slice(offset..)?, &filters, out.slice_mut(offset..)?)
        };
        plan.run(stream, operands)?;
        let mut out = out.download(stream)?.split_off(offset);
        if let Some(stride) = out_channel_stride {
            out = together(&out, out_pixels, stride, T::CANARY).context("a gap was written")?;
        }
        let counted = out.iter().filter(|x| x.wide() != 0.0).count() + 7;
        let got = nonzeros.download(stream)?[0];
        ensure!(got as usize == counted, "{counted} results other than zero, and 7, but {got} were counted");
        Ok(if is_last { channels_first(&out, shape.filters, out_pixels) } else { out })
    }
}

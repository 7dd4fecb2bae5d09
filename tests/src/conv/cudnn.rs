//! Convolution by cuDNN: on a GPU, where the library is there.
use anyhow::{Result, ensure};
use half::{bf16, f16};
use lacuna::conv::{Activation, Algorithm, MapLayout, Operands, Options, Shape};
use lacuna::{Conv, Error};
use lacuna_cases::conv::precision;
use lacuna_cases::number::rounded;
use lacuna_reference::Precision;

use super::conform::Subject;
use super::{LAYERS, Layer, Maps, square};
use crate::expect::{refused, same_bits, same_numbers};
use crate::{Case, Context, Effort, NotRun, Number};

/// The layers, by name.
const CHOSEN: [&str; 13] = [
    "tile",
    "odd",
    "split",
    "batch",
    "wide_padding",
    "pointwise",
    "stride",
    "five",
    "seven",
    "oblong",
    "depthwise",
    "depthwise_stride",
    "depthwise_any",
];

pub(super) fn cases() -> Vec<Case> {
    let graph = Case::new("conv/cudnn/graph", "recorded, and done twice", graph).effort(Effort::Gpu);
    let chosen = LAYERS.into_iter().filter(|(name, ..)| CHOSEN.contains(name));
    let layers = chosen.flat_map(|layer| {
        [(MapLayout::Nchw, "nchw"), (MapLayout::Nhwc, "nhwc")].into_iter().flat_map(move |layout| {
            [of_type::<f32>(layer, layout), of_type::<f16>(layer, layout), of_type::<bf16>(layer, layout)]
        })
    });
    let tf32 = Case::new("conv/cudnn/tf32", "f32 rounded to TF32, on request", tf32).effort(Effort::Gpu);
    layers.chain([graph, tf32]).collect()
}

fn of_type<T: Number>((name, about, shape, zeros): Layer, (layout, suffix): (MapLayout, &str)) -> Case {
    let check = move |cx: &Context<'_>| check::<T>(cx, &Maps::drawn(shape, zeros, cx.seed), layout);
    Case::new(format!("conv/cudnn/{name}_{}_{suffix}", T::TYPE_NAME), about, check).effort(Effort::Gpu)
}

/// A plan by cuDNN. Without the library a case is not run, nor where cuDNN cannot do what not every version of it can.
fn plan<T: Number>(cx: &Context<'_>, shape: Shape, layout: MapLayout, options: Options) -> Result<Conv<T>> {
    let options = options.layout(layout).algorithm(Algorithm::CuDnn);
    let is_usual = size_of::<T>() == 4 && layout == MapLayout::Nchw;
    Conv::plan(cx.device, shape, options).map_err(|error| match error {
        Error::NoLibrary { .. } => NotRun(error.to_string()).into(),
        Error::Illegal { .. } if !is_usual => NotRun(error.to_string()).into(),
        other => other.into(),
    })
}

/// The sums against the oracle, and what follows against the same of these sums on the host: values of 16 bits are rounded twice.
fn check<T: Number>(cx: &Context<'_>, maps: &Maps, layout: MapLayout) -> Result<f64> {
    let (shape, [_, columns]) = (maps.shape, maps.shape.out_size());
    let alone = Subject::<T>::new(cx, maps, 1, Activation::Identity);
    let of_sums = plan(cx, shape, layout, Options::default())?;
    ensure!(of_sums.cudnn_algorithm().is_some(), "the plan does not say by what cuDNN does it");
    let sums = alone.run_plan(&of_sums, layout, 0)?;
    let arithmetic = precision::<T>(Algorithm::CuDnn);
    let mut worst = alone.reference(arithmetic)?.check(&sums)?.worst_over_bound;
    same_bits("once, and again", &sums, &alone.run_plan(&of_sums, layout, 0)?, columns)?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { .. });
    match alone.run_plan(&of_sums, layout, 1).map_err(|error| error.downcast::<Error>()) {
        Err(Ok(error)) => refused::<()>("maps not aligned", Err(error), is_illegal, &["CuDnn", "aligned"])?,
        Err(Err(other)) => return Err(other),
        Ok(_) => anyhow::bail!("maps that are not aligned were accepted"),
    }

    let (lo, hi) = (-0.5, 1.25);
    let followed = Subject::<T>::new(cx, maps, 0, Activation::Clamp { lo, hi });
    let of_all = plan(cx, shape, layout, Options::default().activation(followed.activation))?;
    let got = followed.run_plan(&of_all, layout, 0)?;
    let (bias, residual) = (rounded::<T>(&maps.bias), rounded::<T>(&maps.residual));
    let pixels: usize = shape.out_size().iter().product();
    let expected = sums.iter().zip(&residual).enumerate().map(|(at, (sum, residual))| {
        let biased = sum.wide() + bias[at / pixels % shape.filters].wide();
        T::from_f32((biased + residual.wide()).clamp(lo, hi))
    });
    same_numbers("what follows the sums", &expected.collect::<Vec<_>>(), &got, columns)?;
    if size_of::<T>() == 4 {
        worst = worst.max(followed.reference(arithmetic)?.check(&got)?.worst_over_bound);
    }
    Ok(worst)
}

fn tf32(cx: &Context<'_>) -> Result<f64> {
    let maps = Maps::drawn(square(40, [9, 10], 24), 0.5, cx.seed);
    let subject = Subject::<f32>::new(cx, &maps, 1, Activation::Identity);
    let options = Options::default().precision(lacuna::Precision::Tf32);
    let plan = plan(cx, maps.shape, MapLayout::Nchw, options)?;
    let sums = subject.run_plan(&plan, MapLayout::Nchw, 0)?;
    Ok(subject.reference(Precision::Tf32)?.check(&sums)?.worst_over_bound)
}

/// A plan's run allocates nothing and waits for nothing: it can be recorded, with what follows and without.
fn graph(cx: &Context<'_>) -> Result<f64> {
    let (device, stream) = (cx.device, cx.stream);
    let maps = Maps::drawn(square(16, [9, 10], 24), 0.5, cx.seed);
    let (shape, [_, columns]) = (maps.shape, maps.shape.out_size());
    let (input, bias) = (device.upload(&maps.input)?, device.upload(&maps.bias)?);
    let weights = device.upload(&maps.weights)?;
    for (activation, bias) in [(Activation::Identity, None), (Activation::Relu, Some(&bias))] {
        let plan = plan::<f32>(cx, shape, MapLayout::Nchw, Options::default().activation(activation))?;
        let filters = plan.pack(stream, weights.as_slice())?;
        let mut out = device.upload(&vec![f32::POISON; shape.output_len()])?;
        let bias = bias.map(|bias| bias.as_slice());
        plan.run(stream, Operands { bias, ..Operands::new(input.as_slice(), &filters, out.as_slice_mut()) })?;
        let once = out.download(stream)?;
        let mut graph = stream.capture(|stream| {
            let out = out.as_slice_mut();
            plan.run(stream, Operands { bias, ..Operands::new(input.as_slice(), &filters, out) })
        })?;
        for _ in 0..2 {
            out.upload(&vec![f32::POISON; shape.output_len()])?;
            // SAFETY: plan and buffers are alive, and nothing else uses them meanwhile.
            unsafe { graph.replay(stream) }?;
            same_bits("a run, and its replay", &once, &out.download(stream)?, columns)?;
        }
    }
    Ok(0.0)
}

//! Measuring layer normalisation, with weight and bias: of rows of features, or over the channels of maps. It is a matter of bytes:
//! it is set against a copy.
use anyhow::Result;
use lacuna::LayerNorm;
use lacuna::layer_norm::{Operands, Options, Shape};
use lacuna_cases::Number;
use lacuna_reference::{LayerNormInputs, layer_norm};

use crate::checked::rows_of;
use crate::copies::{self, PLAIN_COPY};
use crate::measure::{Work, by_value, judged};
use crate::operation::{Columns, Operation, Rate, Takes, Task, Width};
use crate::record::Record;
use crate::session::{Session, others};

/// Layer normalisation, as it is measured.
pub(crate) static OPERATION: Operation = Operation {
    name: "layer-norm",
    title: "Layer normalisation",
    about: "Layer normalisation of M rows of N features, or of M images of N channels and K pixels, with weight and bias",
    values: None,
    columns: Columns::N,
    width: Some(Width {
        title: "pixels",
        flag: "--k",
        about: "the pixels of a channel, 1 for rows of features",
        is_cut: true,
    }),
    takes: Takes { indices: &[], ..Takes::INDICES },
    rate: Rate::Bytes,
    is_by_sparsity: false,
    peers: &[PLAIN_COPY],
    // A sum; a difference, a sum and a fused step; two differences, a product and a fused step.
    flops: |size| 10.0 * size.elements * size.width,
    // x and the result; weight and bias.
    bytes: |size, value, _| value * 2.0 * (size.elements * size.width + size.cols),
    footprint: |size| 8.0 * size.elements * size.width,
    simulated: |size| 12.0 * size.elements * size.width,
    measure: |session, task| by_value!(session, measure::<_>(session, task)),
};

fn measure<T: Number>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let device = &session.device;
    let (rows, features, pixels) = (problem.rows(), problem.cols(), problem.width);
    let shape = match pixels {
        1 => Shape::Rows { rows, features },
        _ => Shape::Maps { images: rows, channels: features, pixels },
    };
    let options = Options::default();
    let plan = |algorithm| LayerNorm::<T>::plan_with(device, shape, options.algorithm(algorithm));
    let plans = session.plans(plan, |chosen| others(chosen.choice(), &chosen.legal()[0]))?;

    let draw = |name, sizes, salt| problem.drawn_as(name, sizes, salt, T::from_f32);
    let width = features * pixels;
    let input = draw("x", [rows, width], 0xa)?;
    let (weight, bias) = (draw("the weight", [1, features], 0xb)?, draw("the bias", [1, features], 0xc)?);
    let checked: Vec<usize> = problem.checked_rows().collect();
    let reference = layer_norm(&LayerNormInputs {
        input: &rows_of(&input, width, &checked),
        features,
        pixels,
        weight: Some(&weight),
        bias: Some(&bias),
        epsilon: options.epsilon,
    })?;
    let (input, weight, bias) = (device.upload(&input)?, device.upload(&weight)?, device.upload(&bias)?);
    let mut out = device.zeros::<T>(rows * width)?;
    let work = Work {
        plans: &plans,
        algorithm: &|plan| plan.choice().entry.name.into(),
        operands: &mut out,
        clear: &|out| Ok(out.upload(&problem.unwritten("the result", out.len())?)?),
        run: &|plan, out, stream| {
            let (weight, bias) = (Some(weight.as_slice()), Some(bias.as_slice()));
            let (input, out) = (input.as_slice(), out.as_slice_mut());
            plan.run(stream, Operands { input, weight, bias, out })
        },
        check: &|_, out, stream| {
            let got = rows_of(&out.download(stream)?, width, &checked);
            Ok(judged(reference.check(&got)))
        },
    };
    work.measure(session, task, |peers, context, _| copies::measure(peers, context, None))
}

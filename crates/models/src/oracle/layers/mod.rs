//! One layer in `f64`.

mod attention;
mod convolution;
mod layer_norm;
mod maps;
mod pool;

use lacuna_reference::Precision;

use super::approximate::{clamped, sum_error};
use super::{Approximate, Number, OracleError, numbers};
use crate::model::Options;
use crate::network::{Activation, Layer, LayerNorm, Network, Operation, Pad, Shape};
use crate::weights::{Folded, Weights};

/// The result of a layer, of inputs that fit it, where values are of this type.
pub(super) fn layer<T: Number>(
    network: &Network,
    layer: &Layer,
    weights: &Weights,
    options: &Options,
    inputs: &[&Approximate],
) -> Result<Approximate, OracleError> {
    let shape = network.shape(layer.output);
    let of_layer = |source| OracleError::Weights { layer: layer.name.clone(), source };
    if let Some(conv) = network.convolution(layer) {
        let folded = Folded::new(&conv, weights).map_err(of_layer)?.rounded::<T>();
        let result = convolution::convolution::<T>(&conv, &folded, options.of(&layer.name), inputs, shape);
        return Ok(result.stored::<T>());
    }
    let result = match &layer.operation {
        Operation::LayerNorm(norm) => {
            let [weight, bias] = LayerNorm::tensors(&layer.name)
                .map(|name| weights.get(&name, &[shape.channels]).map_err(of_layer));
            let [weight, bias] = [rounded::<T>(weight?.values()), rounded::<T>(bias?.values())];
            layer_norm::layer_norm(norm, [&weight, &bias], inputs[0])
        }
        Operation::Attention(of) => attention::attention::<T>(of, inputs, shape),
        Operation::Pool(pool) => pool::pool(pool, inputs[0], shape),
        Operation::Pad(of) => pad::<T>(of, inputs[0], shape),
        Operation::PadChannels(of) => maps::pad_channels(of, inputs[0], shape),
        Operation::Add(add) => sum(inputs[0], inputs[1], add.activation),
        Operation::Concat(_) => concat(inputs, shape),
        Operation::FlattenNhwc(_) => maps::flatten_nhwc(inputs[0], shape),
        Operation::DepthToSpace(of) => maps::depth_to_space(of, inputs[0], shape),
        Operation::Resize(resize) => maps::resize::<T>(resize, inputs[0], shape),
        // Elements in NCHW are in order already. Layers with weights were above.
        Operation::Flatten(_) | Operation::Conv(_) | Operation::Linear(_) | Operation::Scale(_) => {
            Approximate { shape, ..inputs[0].clone() }
        }
    };
    Ok(result.stored::<T>())
}

/// Numbers as they are in this type.
fn rounded<T: Number>(values: &[f32]) -> Vec<f32> {
    numbers(&values.iter().map(|&value| T::from_f32(value)).collect::<Vec<T>>())
}

fn sum(x: &Approximate, y: &Approximate, activation: Activation) -> Approximate {
    let [lo, hi] = limits(activation);
    let element = |at: usize| {
        let ([x, x_error], [y, y_error]) = ([x.value[at], x.error[at]], [y.value[at], y.error[at]]);
        let own = sum_error(2, x.abs() + x_error + y.abs() + y_error, 0.0, Precision::Fp32);
        clamped(x + y, x_error + y_error + own, lo, hi)
    };
    let (value, error) = (0..x.value.len()).map(element).unzip();
    Approximate { shape: x.shape, value, error }
}

fn pad<T: Number>(pad: &Pad, input: &Approximate, shape: Shape) -> Approximate {
    let margin = f64::from(rounded::<T>(&[pad.value])[0]);
    let [height, width] = input.shape.size;
    let [rows, columns] = shape.size;
    let element = |at: usize| {
        let (plane, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
        let inside =
            |d: usize, at: usize| at.checked_sub(pad.before[d]).filter(|&at| at < input.shape.size[d]);
        match (inside(0, row), inside(1, column)) {
            (Some(row), Some(column)) => {
                let at = (plane * height + row) * width + column;
                (input.value[at], input.error[at])
            }
            _ => (margin, 0.0),
        }
    };
    let (value, error) = (0..shape.elements()).map(element).unzip();
    Approximate { shape, value, error }
}

fn concat(inputs: &[&Approximate], shape: Shape) -> Approximate {
    let join = |of: fn(&Approximate) -> &[f64]| {
        let image = |image: usize| {
            inputs.iter().flat_map(move |&input| {
                let len = input.shape.image_len();
                of(input)[image * len..][..len].iter().copied()
            })
        };
        (0..shape.images).flat_map(image).collect()
    };
    Approximate { shape, value: join(|input| &input.value), error: join(|input| &input.error) }
}

/// The least and the greatest result.
fn limits(activation: Activation) -> [f64; 2] {
    match activation {
        Activation::Relu => [0.0, f64::INFINITY],
        Activation::Clamp { lo, hi } => [lo.into(), hi.into()],
        _ => [f64::NEG_INFINITY, f64::INFINITY],
    }
}

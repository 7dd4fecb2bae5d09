//! All layers, or one.
use super::layers::layer;
use super::{Approximate, Check, OracleError};
use crate::model::Options;
use crate::network::{Layer, Network, Shape};
use crate::weights::Weights;

/// The result of a network for an input, NCHW, with errors carried through all layers; `options` tell in which precision a device may compute, and
/// whether weights may be held as sparse matrices.
///
/// # Errors
/// [`OracleError::Length`] for an input of another length; [`OracleError::Weights`].
pub fn run(
    network: &Network,
    weights: &Weights,
    options: &Options,
    input: &[f32],
) -> Result<Approximate, OracleError> {
    expect_len("the input", network.input_shape(), input)?;
    let mut last_use = vec![0; network.shapes().len()];
    for (step, layer) in network.layers().iter().enumerate() {
        layer.inputs.iter().for_each(|input| last_use[input.index()] = step);
    }
    last_use[network.output().index()] = usize::MAX;
    let mut values: Vec<Option<Approximate>> = vec![None; network.shapes().len()];
    values[network.input().index()] = Some(Approximate::exact(network.input_shape(), input));
    for (step, of) in network.layers().iter().enumerate() {
        let inputs: Vec<&Approximate> =
            of.inputs.iter().filter_map(|input| values[input.index()].as_ref()).collect();
        let result = layer(network, of, weights, options, &inputs)?;
        values[of.output.index()] = Some(result);
        // What nobody reads any more goes.
        for value in &of.inputs {
            if last_use[value.index()] == step {
                values[value.index()] = None;
            }
        }
    }
    let output = values.swap_remove(network.output().index());
    let missing = || OracleError::Length { what: "the output".into(), expected: 1, got: 0 };
    output.ok_or_else(missing)
}

/// Checks one layer's result, NCHW, with its inputs, as the device had them, taken as exact.
///
/// # Errors
/// [`OracleError::Length`], [`OracleError::Weights`], and [`OracleError::Wrong`].
pub fn check_layer(
    network: &Network,
    of: &Layer,
    weights: &Weights,
    options: &Options,
    inputs: &[Vec<f32>],
    got: &[f32],
) -> Result<Check, OracleError> {
    let shapes = network.input_shapes(of);
    let known = shapes.iter().zip(inputs).map(|(&shape, values)| {
        expect_len(&format!("an input of layer {}", of.name), shape, values)?;
        Ok(Approximate::exact(shape, values))
    });
    let known = known.collect::<Result<Vec<_>, OracleError>>()?;
    if known.len() != shapes.len() {
        let what = format!("inputs of layer {}", of.name);
        return Err(OracleError::Length { what, expected: shapes.len(), got: known.len() });
    }
    let known: Vec<&Approximate> = known.iter().collect();
    layer(network, of, weights, options, &known)?.check(&format!("layer {}", of.name), got)
}

fn expect_len(what: &str, shape: Shape, values: &[f32]) -> Result<(), OracleError> {
    let (expected, got) = (shape.elements(), values.len());
    if expected == got { Ok(()) } else { Err(OracleError::Length { what: what.to_owned(), expected, got }) }
}

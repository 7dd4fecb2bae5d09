//! All layers, or one.
use super::layers::layer;
use super::{Approximate, Check, Number, OracleError};
use crate::model::Options;
use crate::network::{Layer, Network, Shape, ValueId};
use crate::weights::Weights;

/// The result of a network for an input, NCHW (or several, one after another), with errors carried through all layers. The input's type is that of values; `options` tell in which precision a device may compute, and
/// whether weights may be held as sparse matrices.
///
/// # Errors
/// [`OracleError::Length`] for an input of another length; [`OracleError::Weights`].
pub fn run<T: Number>(
    network: &Network,
    weights: &Weights,
    options: &Options,
    input: &[T],
) -> Result<Approximate, OracleError> {
    let (expected, got) = (network.input_len(), input.len());
    if expected != got {
        return Err(OracleError::Length { what: "the input".into(), expected, got });
    }
    let mut rest = input;
    let exact = |&input: &ValueId| {
        let shape = network.shape(input);
        let (values, others) = rest.split_at(shape.elements());
        rest = others;
        Approximate::exact(shape, values)
    };
    let inputs = network.inputs().iter().map(exact).collect();
    run_from::<T>(network, weights, options, inputs)
}

/// The same of inputs that are known within a bound, and as long as their shapes say.
fn run_from<T: Number>(
    network: &Network,
    weights: &Weights,
    options: &Options,
    inputs: Vec<Approximate>,
) -> Result<Approximate, OracleError> {
    let mut last_use = vec![0; network.shapes().len()];
    for (step, layer) in network.layers().iter().enumerate() {
        layer.inputs.iter().for_each(|input| last_use[input.index()] = step);
    }
    last_use[network.output().index()] = usize::MAX;
    let mut values: Vec<Option<Approximate>> = vec![None; network.shapes().len()];
    for (value, input) in network.inputs().iter().zip(inputs) {
        values[value.index()] = Some(input);
    }
    for (step, of) in network.layers().iter().enumerate() {
        let inputs: Vec<&Approximate> =
            of.inputs.iter().filter_map(|input| values[input.index()].as_ref()).collect();
        let result = layer::<T>(network, of, weights, options, &inputs)?;
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
pub fn check_layer<T: Number>(
    network: &Network,
    of: &Layer,
    weights: &Weights,
    options: &Options,
    inputs: &[Vec<T>],
    got: &[T],
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
    layer::<T>(network, of, weights, options, &known)?.check(&format!("layer {}", of.name), got)
}

fn expect_len<T>(what: &str, shape: Shape, values: &[T]) -> Result<(), OracleError> {
    let (expected, got) = (shape.elements(), values.len());
    if expected == got { Ok(()) } else { Err(OracleError::Length { what: what.to_owned(), expected, got }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::network::{
        Add, Concat, Conv, DepthToSpace, Flatten, FlattenNhwc, Linear, PadChannels, Pool, Resize, Sampling,
        Scale,
    };
    use crate::weights::Tensor;

    const ERROR: f64 = 1e-3;

    /// Each type of layer.
    fn network() -> Network {
        let mut builder = Network::builder(Shape::maps(1, 2, [4, 4]));
        let x = builder.input();
        let mut add = |name: &str, operation: crate::network::Operation, inputs: &[_]| {
            builder.layer(name, operation, inputs).unwrap()
        };
        let a = add("a", Conv::new(3, [3, 3]).padding([1, 1]).norm("norm").relu6().into(), &[x]);
        let b = add("b", Conv::depthwise([3, 3]).padding([1, 1]).residual().relu().into(), &[a, a]);
        let c = add("c", Scale::norm().into(), &[b]);
        let d = add("d", Add::new().relu().into(), &[c, a]);
        let e = add("e", Concat.into(), &[d, x]);
        let more = add("more", PadChannels::zeros(1, 2).into(), &[e]);
        let space = add("space", DepthToSpace::new(2).into(), &[more]);
        let smaller = add("smaller", Resize::bilinear([4, 4], Sampling::AlignCorners).into(), &[space]);
        let f = add("f", Pool::max([2, 2], [2, 2]).into(), &[smaller]);
        let g = add("g", Pool::average([2, 2], [1, 1]).padding([1, 0]).into(), &[f]);
        let flat = add("flat", FlattenNhwc.into(), &[g]);
        let h = add("h", Flatten.into(), &[flat]);
        let out = add("out", Linear::new(3).into(), &[h]);
        builder.finish(out).unwrap()
    }

    proptest! {
        /// What a network makes of any input within the bound is within the bound of its result.
        #[test]
        fn carried_errors_hold(
            seed in 0_u64..1000,
            input in prop::collection::vec(-2.0_f64..2.0, 32),
            off in prop::collection::vec(-1.0_f64..1.0, 32),
        ) {
            let network = network();
            let weights = Weights::drawn(&network, seed).unwrap();
            let shape = network.input_shape();
            let run = |value: Vec<f64>, error: f64| {
                let error = vec![error; value.len()];
                let input = vec![Approximate { shape, value, error }];
                run_from::<f32>(&network, &weights, &Options::dense(), input).unwrap()
            };
            // At the ends, where errors are greatest.
            let others = input.iter().zip(&off).map(|(value, off)| value + ERROR * off.signum()).collect();
            let (known, other) = (run(input, ERROR), run(others, 0.0));
            for at in 0..known.value.len() {
                prop_assert!((known.value[at] - other.value[at]).abs() <= known.error[at]);
            }
        }
    }

    #[test]
    fn a_carried_error_is_no_larger_than_it_may_be() {
        let mut builder = Network::builder(Shape::matrix(1, 2));
        let out = builder.layer("fc", Linear { bias: false, ..Linear::new(1) }, &[builder.input()]).unwrap();
        let network = builder.finish(out).unwrap();
        let mut weights = Weights::new();
        weights.insert("fc.weight", Tensor::new(vec![1, 2], vec![1.0, -2.0]).unwrap());
        let input = Approximate { shape: Shape::matrix(1, 2), value: vec![1.0, 1.0], error: vec![ERROR; 2] };
        let result = run_from::<f32>(&network, &weights, &Options::dense(), vec![input]).unwrap();
        assert_eq!(result.value, [-1.0]);
        assert!(result.error[0] >= 3.0 * ERROR && result.error[0] < 3.001 * ERROR, "{:e}", result.error[0]);
    }
}

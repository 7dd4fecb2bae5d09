//! What the host makes of a network whose sums are exact: the bits of the scores, and which samples each layer leaves.
use anyhow::{Context as _, Result, ensure};
use lacuna::spdnn::{Algorithm, Bias, Layer};

use super::Network;
use super::conform::{Outcome, run, with_and_without_pruning};
use super::network::limits;
use crate::Context;
use crate::expect::same_bits;

/// What is expected.
pub(super) struct Expected {
    pub(super) scores: Vec<f32>,
    pub(super) categories: Vec<u32>,
    /// How many samples are not all zero after each layer.
    pub(super) alive: Vec<usize>,
}

impl Expected {
    /// Runs the network, sum by sum.
    pub(super) fn of(network: &Network) -> Self {
        let (mut numbers, mut width) = (network.samples.clone(), network.inputs());
        let mut alive = Vec::new();
        for layer in &network.layers {
            let sample = |row| through(layer, &numbers[row * width..][..width]);
            let next: Vec<f32> = (0..network.rows).flat_map(sample).collect();
            (numbers, width) = (next, layer.outputs());
            alive.push(nonzero(&numbers, network.rows, width).len());
        }
        let categories = nonzero(&numbers, network.rows, width);
        // A sample of which nothing is left counts as zeros without a sign.
        for row in 0..network.rows {
            if categories.binary_search(&(row as u32)).is_err() {
                numbers[row * width..][..width].fill(0.0);
            }
        }
        Self { scores: numbers, categories, alive }
    }
}

/// A sample's way through a layer.
fn through(layer: &Layer, sample: &[f32]) -> Vec<f32> {
    let (lo, hi) = limits(layer.activation());
    let output = |output: usize| {
        let (columns, weights) = layer.weights().row(output);
        let edges = weights.iter().zip(columns);
        let sum = edges.fold(0.0, |sum, (&weight, &input)| weight.mul_add(sample[input as usize], sum));
        let bias = match layer.bias() {
            Bias::PerOutput(biases) => biases[output],
            Bias::Scalar(bias) => *bias,
            other => unreachable!("{other:?} is not drawn"),
        };
        match sum + bias {
            sum if sum < lo => lo,
            sum if sum > hi => hi,
            sum => sum,
        }
    };
    (0..layer.outputs()).map(output).collect()
}

/// The samples that are not all zero.
fn nonzero(numbers: &[f32], rows: usize, width: usize) -> Vec<u32> {
    let is_alive = |&row: &u32| numbers[row as usize * width..][..width].iter().any(|&number| number != 0.0);
    (0..rows as u32).filter(is_alive).collect()
}

/// Compares a network whose sums are exact with the host, by these algorithms, with and without pruning. Gives the layers after
/// which samples were left out, those of the last algorithm.
///
/// # Errors
/// What is wrong, with the options.
pub(super) fn same_as_host(
    cx: &Context<'_>,
    network: &Network,
    algorithms: &[Algorithm],
) -> Result<Vec<usize>> {
    let expected = Expected::of(network);
    let mut layers = Vec::new();
    for options in algorithms.iter().flat_map(|&algorithm| with_and_without_pruning(algorithm)) {
        let at = || format!("{options:?}");
        let Outcome { scores, inference } = run(cx, network, options).with_context(at)?;
        same_bits("host, then device", &expected.scores, &scores, network.outputs()).with_context(at)?;
        let (got, wanted) = (inference.categories(), &expected.categories);
        ensure!(got == wanted, "{}: categories {got:?}, not {wanted:?}", at());
        for &(layer, alive) in inference.live() {
            let wanted = expected.alive[layer];
            ensure!(alive == wanted, "{}: after layer {layer} {alive} are alive, not {wanted}", at());
        }
        if options.prune {
            layers = inference.live().iter().map(|&(layer, _)| layer).collect();
        }
    }
    Ok(layers)
}

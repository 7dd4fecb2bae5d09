//! Networks that passes have made smaller: the same function.
use anyhow::{Context as _, Result, ensure};
use lacuna::spdnn::{Activation, Bias, Layer, Options, Passes, Simplified, simplify};

use super::conform::run;
use super::network::Draw;
use super::{Network, challenge};
use crate::expect::same_numbers;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("found", "neurons that are the same, constant, or read by nobody", |cx| {
            let network = repeated(cx.seed)?;
            let total = simplified(&network, Passes::default())?.total();
            ensure!(total.merged > 0 && total.constant > 0 && total.dead > 0, "found is {total:?}");
            ensure!(total.edges_left < total.edges && total.regrouped > 0, "left is {total:?}");
            check(cx, &network)
        }),
        case("none", "a network in which there is nothing to find", |cx| {
            let mut draw = Draw::new(cx.seed);
            let bias = draw.biases(40, [-0.5, 0.5]);
            let first = draw.layer(12, [3; 40], bias, Activation::Relu)?;
            let second = draw.layer(40, [40, 7, 9], Bias::Scalar(0.1), Activation::Identity)?;
            let samples = draw.samples(40, 12);
            let network = Network { layers: vec![first, second], rows: 40, samples };
            let total = simplified(&network, Passes::default())?.total();
            ensure!(total.edges_left == total.edges && total.merged + total.dead == 0, "found is {total:?}");
            check(cx, &network)
        }),
        case("challenge", "16 copies of each neuron, and more where their inputs have become one", |cx| {
            let network = challenge::network(cx.seed)?;
            let total = simplified(&network, Passes::default())?.total();
            ensure!(total.merged > 11 * (64 - 4), "{} neurons were merged", total.merged);
            check(cx, &network)
        }),
    ]
}

fn case(name: &str, about: &str, check: fn(&Context<'_>) -> Result<f64>) -> Case {
    Case::new(format!("spdnn/passes/{name}"), about, check)
}

fn simplified(network: &Network, passes: Passes) -> Result<Simplified> {
    simplify(network.layers.iter().cloned().map(anyhow::Ok), passes)
}

/// Checks what each pass, and all together, make of a network: within the oracle's bound for the network as it was, and the same
/// numbers where no sum was changed. Gives the largest error over its bound.
fn check(cx: &Context<'_>, network: &Network) -> Result<f64> {
    let reference = network.reference()?;
    let categories = reference.categories().ok();
    let before = run(cx, network, Options::default())?;
    let none = Passes::default().constants(false).merge(false).dead(false);
    let mut worst = 0.0_f64;
    for passes in [none, none.constants(true), none.merge(true), none.dead(true), Passes::default()] {
        let small = simplified(network, passes)?;
        let total = small.total();
        let smaller = Network { layers: small.layers, rows: network.rows, samples: network.samples.clone() };
        let after = run(cx, &smaller, Options::default()).with_context(|| format!("{passes:?}"))?;
        worst = worst
            .max(reference.check(&after.scores).with_context(|| format!("{passes:?}"))?.worst_over_bound);
        if let Some(categories) = &categories {
            ensure!(after.inference.categories() == categories, "{passes:?}: other categories");
        }
        ensure!(
            passes.merge || passes.constants || total.regrouped == 0,
            "{passes:?} changed sums: {total:?}"
        );
        if total.regrouped == 0 {
            same_numbers("before, then after", &before.scores, &after.scores, network.outputs())
                .with_context(|| format!("{passes:?}"))?;
        }
    }
    Ok(worst)
}

/// A network of irregular layers: a neuron is one of a few that were drawn, and some have no weights.
fn repeated(seed: u64) -> Result<Network> {
    let mut draw = Draw::new(seed);
    let widths = [20, 90, 70, 110, 15];
    let activations =
        [Activation::Relu, Activation::Clamp { lo: -0.25, hi: 1.0 }, Activation::Identity, Activation::Relu];
    let mut layers = Vec::new();
    for (pair, activation) in widths.windows(2).zip(activations) {
        let lengths = (0..pair[1] / 3).map(|output| [3, 0, 9, 1, 4, 2][output % 6]);
        let biases = draw.biases(pair[1] / 3, [-0.4, 0.4]);
        let drawn = draw.layer(pair[0], lengths, biases, activation)?;
        layers.push(of_outputs(&drawn, pair[1], |_| draw.below(pair[1] / 3))?);
    }
    Ok(Network { layers, rows: 45, samples: draw.samples(45, 20) })
}

/// A layer whose outputs are those of another one.
fn of_outputs(drawn: &Layer, count: usize, which: impl FnMut(usize) -> usize) -> Result<Layer> {
    let Bias::PerOutput(of_drawn) = drawn.bias() else { unreachable!("each output has its own bias") };
    let outputs: Vec<usize> = (0..count).map(which).collect();
    let weights = drawn.weights().select_rows(outputs.iter().copied())?;
    let biases = outputs.iter().map(|&output| of_drawn[output]).collect();
    Ok(Layer::new(weights, Bias::PerOutput(biases), drawn.activation())?)
}

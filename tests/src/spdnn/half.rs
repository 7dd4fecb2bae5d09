//! Layers whose weights are `f16` on the device.
use anyhow::{Result, ensure};
use half::f16;
use lacuna::ValueType;
use lacuna::matrix::Csr;
use lacuna::spdnn::{Activation, Bias, Layer, Options, PackedNetwork, Passes, simplify};

use super::conform::run;
use super::network::Draw;
use super::shapes::irregular;
use super::{Network, conform};
use crate::expect::same_numbers;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    let case = |name, about, check: fn(&Context<'_>) -> Result<f64>| {
        Case::new(format!("spdnn/f16/{name}"), about, check)
    };
    vec![
        case("irregular", "rows of any length, each second layer of f32", |cx| {
            check(cx, irregular(cx.seed, 40)?, |layer| layer % 2 == 0)
        }),
        case("classes", "from 1 to 40 outputs with the same inputs", |cx| {
            let mut draw = Draw::new(cx.seed);
            let sizes: Vec<usize> = (1..=40).collect();
            let biases = [draw.biases(820, [-0.5, 0.5]), draw.biases(60, [-0.5, 0.5])];
            let [first, second] = biases;
            let first = draw.classes(50, &sizes, 19, first, Activation::Relu)?;
            let second = draw.classes(820, &[16, 17, 15, 4, 5, 3], 37, second, Activation::Relu)?;
            let samples = draw.samples(33, 50);
            check(cx, Network { layers: vec![first, second], rows: 33, samples }, |_| true)
        }),
        case("passes", "a layer stays f16 while its weights are such numbers", passes),
    ]
}

/// The network with some of its layers in `f16`: right, and the same bits as the same numbers in `f32`.
fn check(cx: &Context<'_>, mut network: Network, is_half: impl Fn(usize) -> bool) -> Result<f64> {
    let mut wide = network.clone();
    for (at, (layer, wide)) in network.layers.iter_mut().zip(&mut wide.layers).enumerate() {
        if is_half(at) {
            let weights = layer.weights().map_values(f16::from_f32);
            *wide = Layer::new(weights.map_values(f16::to_f32), layer.bias().clone(), layer.activation())?;
            *layer = Layer::of_f16(&weights, layer.bias().clone(), layer.activation())?;
        }
    }
    let scores = [&network, &wide].map(|network| Ok(run(cx, network, Options::default())?.scores));
    let [half, single]: [Result<Vec<f32>>; 2] = scores;
    same_numbers("f16, then f32", &half?, &single?, network.outputs())?;
    let bytes = [&network, &wide].map(|network| {
        Ok(PackedNetwork::new(cx.device, &network.layers, network.rows, Options::default())?.bytes())
    });
    let [half, single]: [Result<usize>; 2] = bytes;
    let (half, single) = (half?, single?);
    ensure!(half < single, "{half} bytes with f16, {single} with f32");
    conform(cx, &network)
}

/// Two equal neurons become one: of the sums of their weights, 2049 is no `f16`, and 2050 is.
fn passes(cx: &Context<'_>) -> Result<f64> {
    let mut draw = Draw::new(cx.seed);
    for (weights, expected) in [([2048.0, 1.0], ValueType::F32), ([2048.0, 2.0], ValueType::F16)] {
        let halves = |dense: &[f32], rows: usize| {
            let weights = Csr::from_dense(rows, dense.len() / rows, dense)?;
            let bias = Bias::Scalar(0.0);
            Ok(Layer::of_f16(&weights.map_values(f16::from_f32), bias, Activation::Relu)?)
        };
        let layers: Vec<Layer> =
            [halves(&[1.0, 1.0], 2), halves(&weights, 1)].into_iter().collect::<Result<_>>()?;
        let network = Network { layers, rows: 40, samples: draw.samples(40, 1) };
        let small = simplify(network.layers.iter().cloned().map(anyhow::Ok), Passes::default())?;
        let got = small.layers[1].weight_type();
        ensure!(got == expected, "the weights {weights:?} became {got:?}");
        let after = Network { layers: small.layers, ..network.clone() };
        network.reference()?.check(&run(cx, &after, Options::default())?.scores)?;
    }
    Ok(0.0)
}

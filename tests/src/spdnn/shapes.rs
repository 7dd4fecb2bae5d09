//! Layers of every form, and any number of samples.
use anyhow::Result;
use lacuna::spdnn::{Activation, Algorithm, Bias, Layer};

use super::conform::{conform_by, on_tensor_cores};
use super::network::Draw;
use super::{Network, conform};
use crate::{Case, Context, Options};

/// Name, what it is, and how it is made from a seed.
type Shape = (&'static str, &'static str, fn(u64) -> Result<Network>);

const SHAPES: [Shape; 10] = [
    ("one_layer", "40 inputs, 30 outputs", |seed| {
        let mut draw = Draw::new(seed);
        let layer = draw.layer(40, IRREGULAR.into_iter().cycle().take(30), SCALAR, Activation::Identity)?;
        of_layers(draw, 33, vec![layer])
    }),
    ("single", "one input, one output", |seed| {
        let mut draw = Draw::new(seed);
        let layer = draw.layer(1, [1], SCALAR, Activation::Relu)?;
        of_layers(draw, 40, vec![layer])
    }),
    ("no_inputs", "samples of no numbers: what is left is the bias", |seed| {
        let mut draw = Draw::new(seed);
        let bias = draw.biases(6, [-1.0, 1.0]);
        let first = draw.layer(0, [0; 6], bias, Activation::Relu)?;
        let second = draw.layer(6, [6, 2, 0], SCALAR, Activation::Identity)?;
        of_layers(draw, 35, vec![first, second])
    }),
    ("no_outputs", "nothing is asked for", |seed| {
        let mut draw = Draw::new(seed);
        let first = draw.layer(9, [4; 6], SCALAR, Activation::Relu)?;
        let second = draw.layer(6, [], SCALAR, Activation::Relu)?;
        of_layers(draw, 35, vec![first, second])
    }),
    ("nothing_between", "a layer without outputs before one without inputs", |seed| {
        let mut draw = Draw::new(seed);
        let first = draw.layer(9, [], Bias::Scalar(0.0), Activation::Identity)?;
        let bias = draw.biases(5, [-1.0, 1.0]);
        let second = draw.layer(0, [0; 5], bias, Activation::Relu)?;
        of_layers(draw, 35, vec![first, second])
    }),
    ("no_weights", "outputs that are their bias alone", |seed| {
        let mut draw = Draw::new(seed);
        let first = draw.layer(9, [0; 40], Bias::Scalar(-1.0), Activation::Relu)?;
        let bias = draw.biases(17, [-1.0, 1.0]);
        let second = draw.layer(40, [0; 17], bias, CLAMP)?;
        of_layers(draw, 35, vec![first, second])
    }),
    ("classes", "from 1 to 40 outputs with the same inputs: groups, and rests of them", |seed| {
        let mut draw = Draw::new(seed);
        let sizes: Vec<usize> = (1..=40).collect();
        let bias = draw.biases(820, [-0.5, 0.5]);
        let first = draw.classes(50, &sizes, 7, bias, Activation::Relu)?;
        let second = draw.classes(820, &[16, 17, 15, 4, 5, 3], 9, SCALAR, Activation::Relu)?;
        of_layers(draw, 33, vec![first, second])
    }),
    ("many_inputs", "1,100 inputs and 300 outputs: several stages, two blocks", |seed| {
        let mut draw = Draw::new(seed);
        let lengths =
            (0..300).map(|output| [3, 1, 0, 9, 2, 5][output % 6] + usize::from(output == 299) * 1095);
        let first = draw.layer(1100, lengths, SCALAR, Activation::Relu)?;
        let second = draw.layer(300, [200, 17, 1], SCALAR, Activation::Identity)?;
        of_layers(draw, 27, vec![first, second])
    }),
    ("beside_stages", "511, 512 and 513 inputs, which a stage has or has not", |seed| {
        let mut draw = Draw::new(seed);
        let first = draw.layer(511, vec![511, 1], SCALAR, Activation::Identity)?;
        let second = draw.layer(2, vec![2; 512], SCALAR, Activation::Relu)?;
        let third = draw.layer(512, (0..513).map(|output| 512 * usize::from(output == 7)), SCALAR, CLAMP)?;
        let fourth = draw.layer(513, vec![513, 512], SCALAR, Activation::Relu)?;
        of_layers(draw, 14, vec![first, second, third, fourth])
    }),
    ("beside_blocks", "255, 256 and 257 outputs", |seed| {
        let mut draw = Draw::new(seed);
        let first = draw.layer(10, [2; 255], SCALAR, Activation::Relu)?;
        let second = draw.layer(255, [3; 256], SCALAR, Activation::Relu)?;
        let third = draw.layer(256, [3; 257], SCALAR, Activation::Relu)?;
        of_layers(draw, 14, vec![first, second, third])
    }),
];

/// How many samples there are.
const SAMPLES: [usize; 7] = [0, 1, 31, 32, 33, 65, 130];

/// Lengths of rows that no kernel has in mind.
const IRREGULAR: [usize; 17] = [5, 0, 3, 1, 17, 1, 4, 2, 0, 1, 1, 40, 3, 1, 2, 1, 0];

const SCALAR: Bias = Bias::Scalar(-0.1);
const CLAMP: Activation = Activation::Clamp { lo: -0.5, hi: 0.75 };

/// Random networks on the simulator, and on a GPU, unless asked for another number.
const RANDOM: [usize; 2] = [4, 60];

pub(super) fn cases(options: Options) -> Vec<Case> {
    let shapes = SHAPES.into_iter().map(|(name, about, make)| {
        Case::new(format!("spdnn/shapes/{name}"), about, move |cx| conform(cx, &make(cx.seed)?))
    });
    let papers = [Algorithm::Auto, Algorithm::Baseline, Algorithm::StagedEll];
    let wide = [
        Case::new(
            "spdnn/wide/most_staged",
            "65,536 inputs, the most that indices of two bytes have",
            move |cx| conform_by(cx, &wide(cx.seed, 1 << 16)?, &papers),
        ),
        Case::new("spdnn/wide/past_staged", "65,537 inputs: one more", move |cx| {
            conform_by(cx, &wide(cx.seed, (1 << 16) + 1)?, &papers[..2])
        }),
    ];
    let exact = SHAPES.into_iter().map(|(name, about, make)| {
        let check = move |cx: &Context<'_>| {
            let network = make(cx.seed)?.in_bf16()?;
            conform_by(cx, &network, &on_tensor_cores(cx, &network))
        };
        Case::new(format!("spdnn/tensor_cores/{name}"), about, check)
    });
    let samples = SAMPLES.into_iter().map(|rows| {
        let check = move |cx: &Context<'_>| {
            let network = irregular(cx.seed, rows)?;
            let worst = conform(cx, &network)?;
            let network = network.in_bf16()?;
            Ok(worst.max(conform_by(cx, &network, &on_tensor_cores(cx, &network))?))
        };
        Case::new(format!("spdnn/samples/{rows}"), "of a network of rows of any length", check)
    });
    let check = |cx: &Context<'_>| conform(cx, &random(cx.seed)?);
    let random = Case::random(options, RANDOM, "spdnn/random", "a network drawn by the seed", check);
    shapes.chain(wide).chain(exact).chain(samples).chain(random).collect()
}

fn of_layers(mut draw: Draw, rows: usize, layers: Vec<Layer>) -> Result<Network> {
    let samples = draw.samples(rows, layers[0].inputs());
    Ok(Network { layers, rows, samples })
}

/// A few outputs of many inputs, of which the last one is read.
fn wide(seed: u64, inputs: usize) -> Result<Network> {
    let mut draw = Draw::new(seed);
    let last = inputs as u32 - 1;
    // More inputs than a stage has, and a few.
    let many = (0..700).map(|i| last - 90 * i).rev().collect();
    let few = vec![0, 32_767, 32_768, last - 1, last];
    let first =
        draw.of_rows(inputs, vec![many, vec![last], few], Bias::Scalar(0.25), Activation::Identity)?;
    of_layers(draw, 3, vec![first])
}

/// 37 → 70 → 19 → 300 → 5, with every kind of bias and activation. The first layer brings samples to life, and later ones may leave them out.
pub(super) fn irregular(seed: u64, rows: usize) -> Result<Network> {
    let mut draw = Draw::new(seed);
    let mut lengths = IRREGULAR.into_iter().cycle();
    let bias = draw.biases(70, [-1.0, 0.5]);
    let first = draw.layer(37, lengths.by_ref().take(70), bias, Activation::Identity)?;
    let second = draw.layer(70, lengths.by_ref().take(19), Bias::Scalar(-1.5), Activation::Relu)?;
    let bias = draw.biases(300, [-1.0, 0.0]);
    let clamp = Activation::Clamp { lo: 0.0, hi: 0.75 };
    let third = draw.layer(19, lengths.by_ref().take(300), bias, clamp)?;
    let fourth = draw.layer(300, [61, 1, 0, 37, 130], Bias::Scalar(0.0), Activation::Identity)?;
    of_layers(draw, rows, vec![first, second, third, fourth])
}

fn random(seed: u64) -> Result<Network> {
    let mut draw = Draw::new(seed);
    let count = 1 + draw.below(5);
    let mut width = 1 + draw.below(80);
    let mut layers = Vec::new();
    for _ in 0..count {
        let outputs = 1 + draw.below(80);
        // Layers of few weights let more samples die.
        let longest = 1 + draw.below(20);
        let lengths: Vec<usize> = (0..outputs).map(|_| draw.below(longest + 1)).collect();
        let bias = match draw.below(6) {
            0 => draw.biases(outputs, [-0.5, 0.5]),
            1 | 2 => draw.biases(outputs, [-1.5, 0.0]),
            _ => Bias::Scalar(-0.75),
        };
        let activation = match draw.below(8) {
            0 => Activation::Identity,
            1 => CLAMP,
            2 => Activation::Clamp { lo: 0.0, hi: 2.0 },
            _ => Activation::Relu,
        };
        layers.push(if draw.below(2) == 0 {
            draw.layer(width, lengths, bias, activation)?
        } else {
            // One of two outputs has a class of its own, and the others are in one.
            let half = outputs / 2;
            let sizes: Vec<usize> = (0..outputs - half).map(|_| 1).chain([half]).collect();
            draw.classes(width, &sizes, longest, bias, activation)?
        });
        width = outputs;
    }
    let (rows, is_exact) = (draw.below(100), draw.below(2) == 0);
    let network = of_layers(draw, rows, layers)?;
    if is_exact { network.in_bf16() } else { Ok(network) }
}

//! Samples that die, come to life, and are no numbers.
use anyhow::{Result, ensure};
use lacuna::matrix::{Csr, Pattern};
use lacuna::spdnn::{Activation, Bias, Layer};

use super::conform::algorithms;
use super::host::{Expected, same_as_host};
use super::network::Draw;
use super::{Network, conform, shapes};
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spdnn/pruning/depths", "samples that die after every layer", depths),
        Case::new("spdnn/pruning/seldom", "lists that come seldom in a deep network", seldom),
        Case::new("spdnn/pruning/all_die", "nothing is left after a layer", all_die),
        Case::new("spdnn/pruning/revival", "a bias in the middle brings all to life", revival),
        Case::new("spdnn/pruning/last_revival", "a bias in the last layer does", last_revival),
        Case::new("spdnn/pruning/signs", "results of -0, alone and beside others", signs),
        Case::new("spdnn/pruning/strange", "samples of NaN, ±∞, huge and subnormal numbers", strange),
        Case::new("spdnn/pruning/strange_weights", "weights of NaN and ±∞ make something of zeros", weights),
    ]
}

/// Numbers of a sample.
const WIDTH: usize = 4;

/// Each output is its input and the bias.
pub(super) fn diagonal(width: usize, bias: Bias, activation: Activation) -> Result<Layer> {
    let pattern = Pattern::new(width, width, (0..=width as u32).collect(), (0..width as u32).collect())?;
    Ok(Layer::new(Csr::with_values(pattern, vec![1.0; width])?, bias, activation)?)
}

/// Layers that take 1 from all that is there.
fn descent(layers: usize) -> Result<Vec<Layer>> {
    (0..layers).map(|_| diagonal(WIDTH, Bias::Scalar(-1.0), Activation::Relu)).collect()
}

/// Samples of one number each, from 0 to `most`, so that each dies after another layer.
fn heights(rows: usize, most: usize) -> Vec<f32> {
    let mut samples = vec![0.0; rows * WIDTH];
    for row in 0..rows {
        samples[row * WIDTH + row / 3 % WIDTH] = (row % (most + 1)) as f32;
    }
    samples
}

fn depths(cx: &Context<'_>) -> Result<f64> {
    let network = Network { layers: descent(7)?, rows: 65, samples: heights(65, 9) };
    let alive = Expected::of(&network).alive;
    ensure!(alive.is_sorted_by(|a, b| a > b), "the case is not one: alive are {alive:?}");
    let lists = same_as_host(cx, &network, &algorithms(cx, &network))?;
    ensure!(lists == [0, 1, 2, 3, 4, 5, 6], "samples are listed after {lists:?}");
    Ok(0.0)
}

fn seldom(cx: &Context<'_>) -> Result<f64> {
    let network = Network { layers: descent(14)?, rows: 40, samples: heights(40, 16) };
    let lists = same_as_host(cx, &network, &algorithms(cx, &network))?;
    ensure!(lists.len() > 5 && lists.len() < 14, "samples are listed after {lists:?}");
    Ok(0.0)
}

fn all_die(cx: &Context<'_>) -> Result<f64> {
    let network = Network { layers: descent(6)?, rows: 40, samples: heights(40, 3) };
    let expected = Expected::of(&network);
    ensure!(expected.alive[2] == 0 && expected.alive[1] > 0, "the case is not one: {:?}", expected.alive);
    same_as_host(cx, &network, &algorithms(cx, &network))?;
    Ok(0.0)
}

/// All samples are zero before the layer that is no descent, and something after it: none may be left out before.
fn revived(cx: &Context<'_>, revival: Layer, at: usize) -> Result<()> {
    let mut layers = descent(6)?;
    layers[at] = revival;
    layers.truncate(at + 3);
    let network = Network { layers, rows: 40, samples: heights(40, at) };
    let alive = Expected::of(&network).alive;
    ensure!(alive[at - 1] == 0 && alive[at] == 40, "the case is not one: alive are {alive:?}");
    let lists = same_as_host(cx, &network, &algorithms(cx, &network))?;
    ensure!(lists.first() == Some(&at), "samples are listed after {lists:?}");
    Ok(())
}

fn revival(cx: &Context<'_>) -> Result<f64> {
    let relu = Activation::Relu;
    revived(cx, diagonal(WIDTH, Bias::Scalar(2.5), relu)?, 3)?;
    revived(cx, diagonal(WIDTH, Bias::PerOutput(vec![0.0, -1.0, 1.5, 0.0]), relu)?, 3)?;
    revived(cx, diagonal(WIDTH, Bias::Scalar(-2.5), Activation::Identity)?, 2)?;
    let clamp = Activation::Clamp { lo: 0.5, hi: 4.0 };
    revived(cx, diagonal(WIDTH, Bias::Scalar(-1.0), clamp)?, 3)?;
    Ok(0.0)
}

fn last_revival(cx: &Context<'_>) -> Result<f64> {
    let mut layers = descent(4)?;
    layers.push(diagonal(WIDTH, Bias::PerOutput(vec![0.0, 0.0, 0.0, 0.5]), Activation::Relu)?);
    let network = Network { layers, rows: 40, samples: heights(40, 6) };
    let lists = same_as_host(cx, &network, &algorithms(cx, &network))?;
    ensure!(lists == [4], "samples are listed after {lists:?}");
    Ok(0.0)
}

/// A sample of which all is -0 dies; beside another number -0 stays.
fn signs(cx: &Context<'_>) -> Result<f64> {
    let clamp = Activation::Clamp { lo: -0.0, hi: 8.0 };
    let layers =
        (0..3).map(|_| diagonal(WIDTH, Bias::Scalar(-1.0), clamp)).collect::<Result<Vec<Layer>>>()?;
    let network = Network { layers, rows: 40, samples: heights(40, 6) };
    let scores = Expected::of(&network).scores;
    let is = |negative| scores.iter().any(|x| x.to_bits() == if negative { 1 << 31 } else { 0 });
    ensure!(is(true) && is(false), "the case is not one: there are not both zeros");
    same_as_host(cx, &network, &algorithms(cx, &network))?;
    Ok(0.0)
}

/// Numbers that are not usual ones.
const STRANGE: [f32; 11] =
    [f32::NAN, 0.0, f32::INFINITY, 1.0, f32::NEG_INFINITY, -0.0, f32::MAX, 1e-45, f32::MIN, -1e-40, 0.5];

fn strange(cx: &Context<'_>) -> Result<f64> {
    let mut network = shapes::irregular(cx.seed, 66)?;
    let inputs = network.inputs();
    // One strange number a sample, and then many.
    for row in 0..22 {
        network.samples[row * inputs + row % inputs] = STRANGE[row % STRANGE.len()];
    }
    for (at, number) in network.samples[22 * inputs..44 * inputs].iter_mut().enumerate() {
        *number = STRANGE[(at * 7 + at / inputs) % STRANGE.len()];
    }
    Ok(conform(cx, &network)?.max(conform(cx, &network.in_bf16()?)?))
}

fn weights(cx: &Context<'_>) -> Result<f64> {
    let mut worst = 0.0_f64;
    for number in [f32::NAN, f32::NEG_INFINITY] {
        let mut draw = Draw::new(cx.seed);
        let bias = Bias::Scalar(-0.5);
        let mut layers = vec![
            draw.layer(12, [3; 20], bias.clone(), Activation::Relu)?,
            draw.layer(20, [4; 9], bias.clone(), Activation::Relu)?,
            draw.layer(9, [2, 9, 1, 0, 5], bias, Activation::Relu)?,
        ];
        let mut strange = layers[1].weights().clone();
        strange.values_mut()[14] = number;
        layers[1] = Layer::new(strange, layers[1].bias().clone(), Activation::Relu)?;
        let samples = draw.samples(33, 12);
        let network = Network { layers, rows: 33, samples };
        // What a sample of zeros makes of the weight is NaN.
        let categories = network.reference()?.categories()?;
        let is_there = (3..33).step_by(5).all(|zeros| categories.contains(&zeros));
        ensure!(is_there, "the case is not one: with {number} categories are {categories:?}");
        worst = worst.max(conform(cx, &network)?);
    }
    Ok(worst)
}

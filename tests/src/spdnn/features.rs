//! Samples of every kind, and in parts.
use anyhow::{Context as _, Result, ensure};
use lacuna::SparseNetwork;
use lacuna::matrix::Csr;
use lacuna::spdnn::{Activation, Algorithm, Bias, Features, Options};

use super::conform::{Outcome, References, algorithms, run_on};
use super::network::Draw;
use super::{Network, shapes};
use crate::expect::same_bits;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spdnn/features/binary", "zeros and ones, in any form", binary),
        Case::new("spdnn/features/numbers", "numbers, listed or not", numbers),
        Case::new("spdnn/features/whole_tiles", "zeros and ones of whole tiles of samples and inputs", whole),
        Case::new("spdnn/features/none", "no samples, in any form", none),
        Case::new(
            "spdnn/features/tensor_cores",
            "in any form, by the kernels that take weights of bfloat16",
            exact,
        ),
        Case::new("spdnn/features/parts", "samples a part at a time", parts),
    ]
}

/// The samples as the library takes them: with numbers listed, and as bits if all are 0 or 1.
fn kinds(network: &Network) -> Result<Vec<(&'static str, Features)>> {
    let sparse = Csr::from_dense(network.rows, network.inputs(), &network.samples)?;
    let mut kinds = Vec::new();
    if network.samples.iter().all(|&number| number == 0.0 || number == 1.0) {
        kinds.push(("binary", Features::binary(sparse.pattern())));
    }
    kinds.extend([("sparse", Features::sparse(sparse)), ("dense", network.dense()?)]);
    Ok(kinds)
}

/// By every kernel the samples give the same bits in any form.
fn in_any_form(cx: &Context<'_>, network: &Network) -> Result<f64> {
    let references = References::of(network)?;
    let mut worst = 0.0_f64;
    // From an address that only single elements are aligned at.
    let on_device = cx.device.upload(&[&[f32::NAN], &network.samples[..]].concat())?;
    for algorithm in algorithms(cx, network) {
        let options = Options::default().algorithm(algorithm);
        let made = SparseNetwork::new(cx.device, &network.layers, network.rows, options)?;
        let samples = made.arrange(cx.stream, network.rows, on_device.slice(1..)?)?;
        let at = || format!("{algorithm:?}, on the device");
        let Outcome { scores, inference } = run_on(cx, &made, &samples).with_context(at)?;
        let reference = references.by(network, algorithm);
        worst = worst.max(reference.check(&scores).with_context(at)?.worst_over_bound);
        for (kind, features) in kinds(network)? {
            let at = || format!("{algorithm:?}, {kind}");
            let shape = [features.rows(), features.inputs()];
            ensure!(shape == [network.rows, network.inputs()], "{}: the shape is {shape:?}", at());
            let samples = made.upload(cx.stream, &features)?;
            let got = run_on(cx, &made, &samples).with_context(at)?;
            same_bits("on the device, then so", &scores, &got.scores, network.outputs()).with_context(at)?;
            ensure!(got.inference == inference, "{}: {:?}, not {inference:?}", at(), got.inference);
        }
    }
    Ok(worst)
}

/// The irregular network, with other samples.
fn with_samples(cx: &Context<'_>, rows: usize) -> Result<Network> {
    let network = shapes::irregular(cx.seed, 0)?;
    let samples = Draw::new(cx.seed ^ 1).ones(rows, network.inputs());
    Ok(Network { rows, samples, ..network })
}

fn binary(cx: &Context<'_>) -> Result<f64> {
    in_any_form(cx, &with_samples(cx, 45)?)
}

fn numbers(cx: &Context<'_>) -> Result<f64> {
    in_any_form(cx, &shapes::irregular(cx.seed, 45)?)
}

fn exact(cx: &Context<'_>) -> Result<f64> {
    let binary = in_any_form(cx, &with_samples(cx, 45)?.in_bf16()?)?;
    Ok(binary.max(in_any_form(cx, &shapes::irregular(cx.seed, 45)?.in_bf16()?)?))
}

fn whole(cx: &Context<'_>) -> Result<f64> {
    let mut draw = Draw::new(cx.seed);
    let (bias, relu) = (Bias::Scalar(-0.5), Activation::Relu);
    let layers = vec![draw.layer(288, [5; 64], bias.clone(), relu)?, draw.layer(64, [9; 32], bias, relu)?];
    let samples = draw.ones(64, 288);
    in_any_form(cx, &Network { layers, rows: 64, samples })
}

fn none(cx: &Context<'_>) -> Result<f64> {
    in_any_form(cx, &with_samples(cx, 0)?)
}

/// What comes of parts is what comes of all at once, also of the course of pruning, and in any form.
fn parts(cx: &Context<'_>) -> Result<f64> {
    for rows in [0, 32, 70] {
        for network in [with_samples(cx, rows)?, shapes::irregular(cx.seed, rows)?] {
            for algorithm in [Algorithm::Auto, Algorithm::Baseline] {
                in_parts(cx, &network, algorithm)?;
            }
        }
    }
    Ok(0.0)
}

fn in_parts(cx: &Context<'_>, network: &Network, algorithm: Algorithm) -> Result<()> {
    let options = Options::default().algorithm(algorithm);
    let made = SparseNetwork::new(cx.device, &network.layers, 64, options)?;
    let expected = made.infer(cx.stream, &network.dense()?)?;
    for (kind, features) in kinds(network)? {
        for part in [1, 33, usize::MAX] {
            let got = made.infer_in_parts(cx.stream, &features, part)?;
            let at = || format!("{algorithm:?}, {} samples, {kind}, parts of {part}", network.rows);
            ensure!(got == expected, "{}: {got:?}, not {expected:?}", at());
        }
    }
    Ok(())
}

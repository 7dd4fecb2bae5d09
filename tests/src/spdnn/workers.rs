//! Networks on several workers, and in parts that fit into a limit of memory: the same results.
use anyhow::{Context as _, Result, ensure};
use lacuna::SparseNetwork;
use lacuna::matrix::Csr;
use lacuna::spdnn::{Algorithm, Features, Fit, Inference, Options, PackedNetwork, Workers};

use super::refusals::is_parameter;
use super::shapes::irregular;
use super::{Network, challenge};
use crate::expect::refused;
use crate::{Case, Context};

/// Workers of one device.
const WORKERS: [usize; 2] = [1, 3];

pub(super) fn cases() -> Vec<Case> {
    let case = |name, about, check: fn(&Context<'_>) -> Result<f64>| {
        Case::new(format!("spdnn/workers/{name}"), about, check)
    };
    vec![
        case("binary", "images of bits, by kernels that read bits and by others", |cx| {
            let network = challenge::network(cx.seed)?;
            let ones = Csr::from_dense(network.rows, network.inputs(), &network.samples)?;
            let features = Features::binary(ones.pattern());
            check(cx, &network, &features, Algorithm::Auto)?;
            check(cx, &network, &features, Algorithm::Baseline)
        }),
        case("dense", "numbers", |cx| {
            let network = irregular(cx.seed, 100)?;
            check(cx, &network, &network.dense()?, Algorithm::Auto)
        }),
        case("sparse", "listed numbers", |cx| {
            let network = irregular(cx.seed, 100)?;
            let samples = Csr::from_dense(network.rows, network.inputs(), &network.samples)?;
            check(cx, &network, &Features::sparse(samples), Algorithm::Auto)
        }),
        case("none", "no samples", |cx| {
            let network = irregular(cx.seed, 0)?;
            check(cx, &network, &network.dense()?, Algorithm::Auto)
        }),
        case("refusals", "no device, too little memory, samples of other workers", refusals),
    ]
}

/// Any number of workers, with all the memory and with little, give what one network gives.
fn check(cx: &Context<'_>, network: &Network, features: &Features, algorithm: Algorithm) -> Result<f64> {
    let options = Options::default().algorithm(algorithm);
    let alone = SparseNetwork::new(cx.device, &network.layers, network.rows, options)?;
    let expected = alone.infer(cx.stream, features)?;
    let packed = PackedNetwork::new(cx.device, &network.layers, network.rows, options)?;
    let roomy = packed.fit(features, usize::MAX)?;
    ensure!(roomy.part_bytes.is_none() && roomy.rows == network.rows, "all fit, but {roomy:?}");
    let tight = Fit { part_bytes: Some(1 << 10), rows: 32, bytes: 0 };
    for fit in [roomy, tight] {
        for count in WORKERS {
            let at = || format!("{count} workers, {fit:?}");
            let devices = vec![cx.device.clone(); count];
            let mut workers = Workers::new(&devices, &packed, fit).with_context(at)?;
            let mut dealt = workers.deal(features).with_context(at)?;
            // Twice, for what a run leaves behind.
            for _ in 0..2 {
                same(&expected, &workers.run(&mut dealt).with_context(at)?).with_context(at)?;
            }
            let rows: usize = dealt.shares().iter().map(|share| share.rows).sum();
            ensure!(rows == network.rows, "{}: {rows} samples were dealt", at());
            // Shares that have followed the times.
            same(&expected, &workers.infer(features).with_context(at)?).with_context(at)?;
            let sum: f64 = workers.shares().iter().sum();
            ensure!((sum - 1.0).abs() < 1e-9, "{}: shares are {:?}", at(), workers.shares());
        }
    }
    Ok(0.0)
}

fn same(expected: &Inference, got: &Inference) -> Result<()> {
    ensure!(expected == got, "one network gives {expected:?}, workers {got:?}");
    Ok(())
}

fn refusals(cx: &Context<'_>) -> Result<f64> {
    let network = irregular(cx.seed, 100)?;
    let features = network.dense()?;
    let packed = PackedNetwork::new(cx.device, &network.layers, network.rows, Options::default())?;
    refused(
        "1,000 bytes",
        packed.fit(&features, 1000),
        is_parameter,
        &["the limit of memory", "for 32 samples"],
    )?;
    // What it says is enough is enough, and a byte less is not.
    let least =
        (0..1 << 24).find(|&limit| packed.fit(&features, limit).is_ok()).context("no limit is enough")?;
    let fit = packed.fit(&features, least)?;
    ensure!(fit.rows == 32 && fit.bytes == least, "in {least} bytes: {fit:?}");
    refused(
        "no device",
        Workers::new(&[], &packed, fit),
        is_parameter,
        &["the number of devices", "at least 1"],
    )?;
    let one = Workers::new(std::slice::from_ref(cx.device), &packed, fit)?;
    let mut two = Workers::new(&[cx.device.clone(), cx.device.clone()], &packed, fit)?;
    let mut dealt = one.deal(&features)?;
    let says = ["the workers that samples were dealt to"];
    refused("samples of one", two.run(&mut dealt), is_parameter, &says)?;
    Ok(0.0)
}

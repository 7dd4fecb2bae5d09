//! Networks, samples and room for results that are used again.
use anyhow::{Result, ensure};
use lacuna::SparseNetwork;
use lacuna::matrix::{Csr, Pattern};
use lacuna::spdnn::{Algorithm, Features, Layer, Options, PackedNetwork};

use super::conform::{Outcome, run_in, run_on};
use super::network::Draw;
use super::{Network, shapes};
use crate::expect::same_bits;
use crate::{Case, Context, Effort};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spdnn/reuse/workspace", "samples of other numbers in one workspace", workspace),
        Case::new("spdnn/reuse/packed", "one packed network on the device twice, and again", packed),
        Case::new("spdnn/reuse/one_by_one", "layers made one by one", one_by_one),
        Case::new("spdnn/reuse/replaced", "samples replaced where they are", replaced),
        Case::new("spdnn/reuse/sent", "samples sent from page-locked memory", sent),
        Case::new("spdnn/reuse/streamed", "weights that stay on the host, in parts of any size", streamed),
        Case::new("spdnn/reuse/profile", "a profile leaves the result of a run", profile),
        Case::new("spdnn/reuse/graph", "a recorded inference, with other samples", graph).effort(Effort::Gpu),
    ]
}

/// Those that lie in tiles, row by row, and in stages.
const ALGORITHMS: [Algorithm; 3] = [Algorithm::Auto, Algorithm::Baseline, Algorithm::StagedEll];

fn made(cx: &Context<'_>, network: &Network, algorithm: Algorithm) -> Result<SparseNetwork> {
    let options = Options::default().algorithm(algorithm);
    Ok(SparseNetwork::new(cx.device, &network.layers, network.rows, options)?)
}

/// The same network, whose samples are drawn anew.
fn other_samples(cx: &Context<'_>, network: &Network, rows: usize) -> Network {
    let samples = Draw::new(cx.seed ^ 99).samples(rows, network.inputs());
    Network { rows, samples, ..network.clone() }
}

fn workspace(cx: &Context<'_>) -> Result<f64> {
    let network = shapes::irregular(cx.seed, 70)?;
    let mut worst = 0.0_f64;
    for algorithm in ALGORITHMS {
        let made = made(cx, &network, algorithm)?;
        let mut workspace = made.workspace(70)?;
        ensure!(workspace.bytes() > 0, "a workspace of no bytes");
        let before = workspace.inference(cx.stream)?;
        ensure!(before.categories().is_empty(), "before the first run there are categories: {before:?}");
        ensure!(workspace.scores(cx.stream)?.is_empty(), "before the first run there are scores");
        for rows in [70, 3, 33, 0, 70] {
            let network = other_samples(cx, &network, rows);
            let samples = made.upload(cx.stream, &network.dense()?)?;
            let Outcome { scores, inference } = run_in(cx, &made, &samples, &mut workspace)?;
            worst = worst.max(network.reference()?.check(&scores)?.worst_over_bound);
            same_bits("scores, twice", &scores, &workspace.scores(cx.stream)?, network.outputs())?;
            let fresh = run_on(cx, &made, &samples)?.inference;
            ensure!(inference == fresh, "{algorithm:?}, {rows} samples: {inference:?}, not {fresh:?}");
        }
    }
    Ok(worst)
}

fn packed(cx: &Context<'_>) -> Result<f64> {
    let network = shapes::irregular(cx.seed, 40)?;
    let mut worst = 0.0_f64;
    for algorithm in ALGORITHMS {
        let options = Options::default().algorithm(algorithm);
        let packed = PackedNetwork::new(cx.device, &network.layers, 40, options)?;
        let edges: usize = network.layers.iter().map(|layer| layer.weights().nnz()).sum();
        ensure!(packed.bytes() > 4 * edges, "{} bytes for {edges} weights", packed.bytes());
        let first = SparseNetwork::from_packed(cx.device, &packed)?;
        let mut second = SparseNetwork::from_packed(cx.device, &packed)?;
        ensure!(*second.options() == options, "options {:?}", second.options());
        second.replace_weights(&packed)?;
        let samples = first.upload(cx.stream, &network.dense()?)?;
        let outcome = run_on(cx, &first, &samples)?;
        worst = worst.max(network.reference()?.check(&outcome.scores)?.worst_over_bound);
        ensure!(outcome == run_on(cx, &second, &samples)?, "{algorithm:?}: the second differs");
    }
    Ok(worst)
}

fn one_by_one(cx: &Context<'_>) -> Result<f64> {
    let network = shapes::irregular(cx.seed, 40)?;
    let options = Options::default();
    let layer = |at: usize| Ok::<Layer, anyhow::Error>(network.layers[at].clone());
    let packed = PackedNetwork::from_fn(cx.device, network.layers.len(), 40, options, layer)?;
    let one_by_one = SparseNetwork::from_packed(cx.device, &packed)?;
    let samples = one_by_one.upload(cx.stream, &network.dense()?)?;
    let got = run_on(cx, &one_by_one, &samples)?;
    let at_once = run_on(cx, &made(cx, &network, Algorithm::Auto)?, &samples)?;
    ensure!(got == at_once, "one by one {:?}, but at once {:?}", got.inference, at_once.inference);

    let failing = |at: usize| match at {
        2 => anyhow::bail!("layer 2 is lost"),
        _ => layer(at),
    };
    match PackedNetwork::from_fn(cx.device, network.layers.len(), 40, options, failing) {
        Err(error) => ensure!(error.to_string() == "layer 2 is lost", "another error: {error}"),
        Ok(_) => anyhow::bail!("a layer that cannot be made was accepted"),
    }
    Ok(network.reference()?.check(&got.scores)?.worst_over_bound)
}

/// 45 samples of zeros and ones, as numbers and as bits.
fn ones(network: &Network, seed: u64) -> Result<(Network, Features)> {
    let samples = Draw::new(seed).ones(45, network.inputs());
    let ones = Csr::from_dense(45, network.inputs(), &samples)?;
    Ok((Network { rows: 45, samples, ..network.clone() }, Features::binary(ones.pattern())))
}

fn replaced(cx: &Context<'_>) -> Result<f64> {
    let network = shapes::irregular(cx.seed, 0)?;
    let ([first, second], mut worst) = ([ones(&network, cx.seed)?, ones(&network, cx.seed ^ 5)?], 0.0_f64);
    for algorithm in ALGORITHMS {
        let made = made(cx, &first.0, algorithm)?;
        let (before, after) = match algorithm {
            Algorithm::Auto => (first.1.clone(), second.1.clone()),
            _ => (first.0.dense()?, second.0.dense()?),
        };
        let mut samples = made.upload(cx.stream, &before)?;
        ensure!(samples.is_binary() == (algorithm == Algorithm::Auto), "{algorithm:?}: the wrong kind");
        let old = run_on(cx, &made, &samples)?;
        samples.replace(&after)?;
        let new = run_on(cx, &made, &samples)?;
        ensure!(old.scores != new.scores, "the case is not one: other samples give the same");
        for (network, outcome) in [(&first.0, old), (&second.0, new)] {
            worst = worst.max(network.reference()?.check(&outcome.scores)?.worst_over_bound);
        }
    }
    Ok(worst)
}

fn sent(cx: &Context<'_>) -> Result<f64> {
    let network = shapes::irregular(cx.seed, 0)?;
    let ([first, second], mut worst) = ([ones(&network, cx.seed)?, ones(&network, cx.seed ^ 5)?], 0.0_f64);
    let made = made(cx, &first.0, Algorithm::Auto)?;
    let mut samples = made.upload(cx.stream, &first.1)?;
    for (network, features) in [&second, &first] {
        let pinned = features.pin(cx.device)?;
        samples.send(cx.stream, &pinned)?;
        let outcome = run_on(cx, &made, &samples)?;
        worst = worst.max(network.reference()?.check(&outcome.scores)?.worst_over_bound);
        ensure!(outcome.inference == made.infer(cx.stream, features)?, "sent {:?}", outcome.inference);
    }
    let none = Features::binary(&Pattern::new(0, network.inputs(), vec![0], Vec::new())?);
    made.upload(cx.stream, &none)?.send(cx.stream, &none.pin(cx.device)?)?;
    Ok(worst)
}

/// Runs one right after another, of which the second takes the places of weights that the first reads.
fn streamed(cx: &Context<'_>) -> Result<f64> {
    let network = shapes::irregular(cx.seed, 40)?;
    let mut worst = 0.0_f64;
    for algorithm in ALGORITHMS {
        let options = Options::default().algorithm(algorithm);
        let packed = PackedNetwork::new(cx.device, &network.layers, 40, options)?;
        let resident = SparseNetwork::from_packed(cx.device, &packed)?;
        ensure!(resident.device_bytes() == packed.bytes(), "{} bytes", resident.device_bytes());
        let samples = resident.upload(cx.stream, &network.dense()?)?;
        let expected = run_on(cx, &resident, &samples)?;
        worst = worst.max(network.reference()?.check(&expected.scores)?.worst_over_bound);
        // A layer at a time, some, and all.
        for part in [0, packed.bytes() / 2, usize::MAX] {
            let mut streamed = SparseNetwork::streamed(cx.device, &packed, part)?;
            streamed.replace_weights(&packed)?;
            let bytes = streamed.device_bytes();
            ensure!(bytes > 0 && bytes <= 2 * packed.bytes(), "parts of {part}: {bytes} bytes");
            ensure!(part < usize::MAX || bytes == packed.bytes(), "all in a part: {bytes} bytes");
            let mut workspace = streamed.workspace(40)?;
            for run in 0..2 {
                streamed.run(cx.stream, &samples, &mut workspace)?;
                let got = run_in(cx, &streamed, &samples, &mut workspace)?;
                let same = got == expected;
                ensure!(same, "{algorithm:?}, parts of {part}, run {run}: {:?}", got.inference);
            }
        }
    }
    Ok(worst)
}

fn profile(cx: &Context<'_>) -> Result<f64> {
    let network = shapes::irregular(cx.seed, 40)?;
    let made = made(cx, &network, Algorithm::Auto)?;
    let samples = made.upload(cx.stream, &network.dense()?)?;
    let mut workspace = made.workspace(40)?;
    let times = made.profile(cx.stream, &samples, &mut workspace)?;
    ensure!(times.len() == network.layers.len(), "{} times of {} layers", times.len(), network.layers.len());
    ensure!(times.iter().all(|&time| time >= 0.0), "times are {times:?}");
    let (got, expected) = (workspace.inference(cx.stream)?, made.infer(cx.stream, &network.dense()?)?);
    ensure!(got == expected, "profiled {got:?}, but run {expected:?}");
    Ok(0.0)
}

fn graph(cx: &Context<'_>) -> Result<f64> {
    let network = shapes::irregular(cx.seed, 100)?;
    let other = other_samples(cx, &network, 100);
    for algorithm in [Algorithm::Baseline, Algorithm::StagedEll] {
        let made = made(cx, &network, algorithm)?;
        let mut samples = made.upload(cx.stream, &network.dense()?)?;
        let mut workspace = made.workspace(100)?;
        made.run(cx.stream, &samples, &mut workspace)?;
        let mut graph = cx.stream.capture(|stream| made.run(stream, &samples, &mut workspace))?;
        for network in [&network, &other] {
            samples.replace(&network.dense()?)?;
            // SAFETY: network, samples and workspace live to the end of this turn, and only this stream uses them.
            unsafe { graph.replay(cx.stream)? };
            let (got, scores) = (workspace.inference(cx.stream)?, workspace.scores(cx.stream)?);
            let expected = run_on(cx, &made, &samples)?;
            same_bits("run, then replayed", &expected.scores, &scores, network.outputs())?;
            let expected = expected.inference;
            ensure!(got == expected, "{algorithm:?}: replayed {got:?}, but run {expected:?}");
        }
    }
    Ok(0.0)
}

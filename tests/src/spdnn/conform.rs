//! The check that nearly all cases share.
use anyhow::{Context as _, Result, ensure};
use lacuna::SparseNetwork;
use lacuna::spdnn::{Algorithm, DeviceFeatures, Inference, Layer, Options, Problem, Workspace, choose};
use lacuna_reference::SpdnnReference;

use super::Network;
use crate::expect::same_numbers;
use crate::{Context, Number};

/// The most inputs of a layer that the paper's second kernel can do.
const MAX_STAGED: usize = 1 << 16;

/// Elements before and behind the results that must stay.
const GUARD: usize = 7;

/// What a network makes of its samples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Sample by sample.
    pub(super) scores: Vec<f32>,
    pub(super) inference: Inference,
}

/// What the oracle says of a network: of kernels in `f32`, and of those that take tensor cores where weights allow it.
pub(super) struct References([SpdnnReference; 2]);

impl References {
    pub(super) fn of(network: &Network) -> Result<Self> {
        Ok(Self([network.reference()?, network.reference_by(true)?]))
    }

    /// That by which an algorithm is judged.
    pub(super) fn by(&self, network: &Network, algorithm: Algorithm) -> &SpdnnReference {
        &self.0[usize::from(may_take_tensor_cores(network, algorithm))]
    }
}

/// Checks a network against the oracle, by every kernel, with and without pruning; gives the largest error over its bound.
///
/// Kernels by groups give the same bits, whatever their shape, those on tensor cores apart; and pruning
/// changes none, unless the library chooses others for it.
///
/// # Errors
/// What is wrong, with the options.
pub fn conform(cx: &Context<'_>, network: &Network) -> Result<f64> {
    conform_by(cx, network, &algorithms(cx, network))
}

/// The same by some of the algorithms.
pub(super) fn conform_by(cx: &Context<'_>, network: &Network, algorithms: &[Algorithm]) -> Result<f64> {
    let references = References::of(network)?;
    let mut worst = 0.0_f64;
    let mut groups: Option<Vec<f32>> = None;
    for &algorithm in algorithms {
        let mut pruned: Option<Vec<f32>> = None;
        let by_tensor_cores = may_take_tensor_cores(network, algorithm);
        let reference = references.by(network, algorithm);
        let categories = reference.categories().ok();
        for options in with_and_without_pruning(algorithm) {
            let at = || format!("{options:?}");
            let Outcome { scores, inference } = run(cx, network, options).with_context(at)?;
            worst = worst.max(reference.check(&scores).with_context(at)?.worst_over_bound);
            if let Some(categories) = &categories {
                let got = inference.categories();
                ensure!(got == categories, "{}: categories {got:?}, not {categories:?}", at());
            }
            let width = network.outputs();
            if is_by_groups(algorithm) && !by_tensor_cores {
                same_numbers("first, then now", groups.get_or_insert(scores.clone()), &scores, width)
                    .with_context(at)?;
            }
            // Without pruning the library may choose other kernels, and then tensor cores or not.
            if algorithm == Algorithm::Auto && by_tensor_cores {
                continue;
            }
            same_numbers("with pruning, then without", pruned.get_or_insert(scores.clone()), &scores, width)
                .with_context(at)?;
        }
    }
    Ok(worst)
}

/// The library's choice, every kernel that it may choose, and the paper's, where they can do the network.
pub(super) fn algorithms(cx: &Context<'_>, network: &Network) -> Vec<Algorithm> {
    let mut problem = Problem::default();
    problem.sm = cx.device.info().sm;
    problem.multiprocessors = cx.device.info().multiprocessors;
    problem.block_shared_bytes = cx.device.info().block_shared_bytes;
    problem.exact_bf16 = network.is_exact();
    problem.inputs = network.layers.iter().map(Layer::inputs).max().unwrap_or(0);
    // A layer without outputs is not fused.
    let outputs = || network.layers.iter().map(Layer::outputs);
    problem.outputs = if outputs().min() == Some(0) { 0 } else { outputs().max().unwrap_or(0) };
    let mut algorithms = vec![Algorithm::Auto];
    algorithms.extend(choose(&problem).iter().map(|choice| choice.algorithm));
    algorithms.push(Algorithm::Baseline);
    if network.layers.iter().all(|layer| layer.inputs() <= MAX_STAGED) {
        algorithms.push(Algorithm::StagedEll);
    }
    algorithms
}

/// Those of them that tensor cores do, and the library's choice.
pub(super) fn on_tensor_cores(cx: &Context<'_>, network: &Network) -> Vec<Algorithm> {
    let mut algorithms = algorithms(cx, network);
    algorithms.retain(|&algorithm| may_take_tensor_cores(network, algorithm));
    algorithms
}

pub(super) fn with_and_without_pruning(algorithm: Algorithm) -> [Options; 2] {
    [true, false].map(|prune| Options::default().algorithm(algorithm).prune(prune))
}

/// Whether sums may be those of tensor cores.
fn may_take_tensor_cores(network: &Network, algorithm: Algorithm) -> bool {
    match algorithm {
        Algorithm::Auto => network.has_exact(),
        Algorithm::GroupMma | Algorithm::FusedLayers => true,
        _ => false,
    }
}

pub(super) fn is_by_groups(algorithm: Algorithm) -> bool {
    !matches!(algorithm, Algorithm::Baseline | Algorithm::StagedEll)
}

/// Runs a network of these options on its samples as dense ones; with pruning twice, which must give the same.
pub(super) fn run(cx: &Context<'_>, network: &Network, options: Options) -> Result<Outcome> {
    let on_device = SparseNetwork::new(cx.device, &network.layers, network.rows, options)?;
    ensure!([on_device.inputs(), on_device.outputs()] == [network.inputs(), network.outputs()], "widths");
    let samples = on_device.upload(cx.stream, &network.dense()?)?;
    let mut workspace = on_device.workspace(network.rows)?;
    let outcome = run_in(cx, &on_device, &samples, &mut workspace)?;
    expect_report(network, &on_device, &outcome.inference)?;
    if options.prune {
        // Which rows are alive must have been forgotten.
        let again = run_in(cx, &on_device, &samples, &mut workspace)?;
        let (first, second) = (&outcome.inference, again.inference);
        ensure!(*first == second, "the first run gave {first:?}, the second {second:?}");
        same_numbers("the first run, then the second", &outcome.scores, &again.scores, network.outputs())?;
    }
    Ok(outcome)
}

/// Runs a network on samples that are there, and checks all that holds for any network.
pub(super) fn run_on(cx: &Context<'_>, network: &SparseNetwork, samples: &DeviceFeatures) -> Result<Outcome> {
    run_in(cx, network, samples, &mut network.workspace(samples.rows())?)
}

/// As [`run_on`], in a workspace for at least as many samples.
pub(super) fn run_in(
    cx: &Context<'_>,
    network: &SparseNetwork,
    samples: &DeviceFeatures,
    workspace: &mut Workspace,
) -> Result<Outcome> {
    network.run(cx.stream, samples, workspace)?;
    let len = samples.rows() * network.outputs();
    let mut out = cx.device.upload(&vec![f32::CANARY; GUARD + len + GUARD])?;
    workspace.scores_into(cx.stream, out.slice_mut(GUARD..GUARD + len)?)?;
    let out = out.download(cx.stream)?;
    let (before, rest) = out.split_at(GUARD);
    let (scores, behind) = rest.split_at(len);
    let is_canary = |element: &f32| element.bits() == f32::CANARY.bits();
    ensure!(before.iter().chain(behind).all(is_canary), "written beside the results");
    let inference = workspace.inference(cx.stream)?;
    expect_inference(&inference, scores, samples.rows(), network.outputs())?;
    Ok(Outcome { scores: scores.to_vec(), inference })
}

/// Categories are the samples with a result other than zero, and ever fewer samples are alive.
fn expect_inference(inference: &Inference, scores: &[f32], rows: usize, width: usize) -> Result<()> {
    let score = |row: usize| &scores[row * width..][..width];
    let is_alive = |&row: &u32| score(row as usize).iter().any(|&score| score != 0.0);
    let nonzero: Vec<u32> = (0..rows as u32).filter(is_alive).collect();
    let (got, live) = (inference.categories(), inference.live());
    ensure!(got == nonzero, "categories {got:?}, but the scores have {nonzero:?}");
    ensure!(live.is_sorted_by(|a, b| a.0 < b.0 && a.1 >= b.1), "alive are {live:?}");
    let last = live.last().map(|&(_, count)| count);
    ensure!(last == Some(got.len()), "{} categories, but alive are {live:?}", got.len());
    ensure!(live[0].1 <= rows, "of {rows} samples {live:?} are alive");
    Ok(())
}

/// The report is of these layers, and samples were listed after the layers that it says.
fn expect_report(network: &Network, on_device: &SparseNetwork, inference: &Inference) -> Result<()> {
    let (report, options) = (on_device.report(), on_device.options());
    let last = network.layers.len() - 1;
    ensure!(report.len() == network.layers.len(), "{} layers are reported", report.len());
    for (layer, report) in network.layers.iter().zip(&report) {
        let (edges, kernel) = (layer.weights().nnz(), report.choice.algorithm);
        ensure!(report.edges == edges && report.stored >= edges, "{report:?} is of {edges} weights");
        ensure!(options.algorithm == Algorithm::Auto || options.algorithm == kernel, "chosen is {kernel:?}");
    }
    let lists = |&layer: &usize| layer == last || report[layer].prunes;
    let listed: Vec<usize> = (0..=last).filter(lists).collect();
    let live: Vec<usize> = inference.live().iter().map(|&(layer, _)| layer).collect();
    ensure!(live == listed, "samples are listed after {live:?}, but the report says {listed:?}");
    ensure!(options.prune || listed == [last], "samples are left out after {listed:?}");
    ensure!(!report[last].prunes, "nothing comes after the last layer");
    Ok(())
}

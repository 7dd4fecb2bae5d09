//! Layers of more work than the GPU holds blocks at once: blocks go on to what is left.
use anyhow::{Result, ensure};
use lacuna::matrix::{Csr, Pattern};
use lacuna::spdnn::{Activation, Algorithm, Bias, Layer};

use super::Network;
use super::conform::{algorithms, is_by_groups};
use super::host::{Expected, same_as_host};
use crate::{Case, Context, Effort};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spdnn/grids/groups", "more groups of outputs than warps", |cx| groups(cx, 7, true)),
        Case::new("spdnn/grids/all_groups", "the same, by all kernels", |cx| groups(cx, 13, false))
            .effort(Effort::Gpu),
        Case::new("spdnn/grids/baseline", "more samples than blocks", |cx| {
            rows(cx, Algorithm::Baseline, resident(cx) + 40)
        }),
        Case::new("spdnn/grids/staged", "more batches of 12 samples than blocks", |cx| {
            rows(cx, Algorithm::StagedEll, 12 * resident(cx) + 5)
        }),
    ]
}

/// The most blocks of 256 threads that the GPU holds.
fn resident(cx: &Context<'_>) -> usize {
    8 * cx.device.info().multiprocessors as usize
}

/// Each output has two inputs, which no other has, so that it is a group by itself: sums are exact.
fn network(outputs: usize, rows: usize) -> Result<Network> {
    let inputs = outputs + 1;
    let offsets = (0..=outputs as u32).map(|output| 2 * output).collect();
    let columns = (0..outputs as u32).flat_map(|output| [output, output + 1]).collect();
    let pattern = Pattern::new(outputs, inputs, offsets, columns)?;
    let values = (0..2 * outputs).map(|edge| [1.0, -2.0, 3.0][edge % 3]).collect();
    let weights = Csr::with_values(pattern, values)?;
    let layer = Layer::new(weights, Bias::Scalar(-4.0), Activation::Clamp { lo: 0.0, hi: 9.0 })?;
    let number = |at: usize| if at / inputs % 3 == 1 { 0.0 } else { (at * 5 % 7) as f32 };
    let samples = (0..rows * inputs).map(number).collect();
    Ok(Network { layers: vec![layer], rows, samples })
}

/// The smallest kernel, and those of another kind.
fn kinds(mut kinds: Vec<Algorithm>) -> Vec<Algorithm> {
    let is_known = |way: Algorithm| matches!(way, Algorithm::Auto | Algorithm::InputGroups { .. });
    kinds.retain(|&way| is_by_groups(way) && !is_known(way));
    kinds.push(Algorithm::InputGroups { outputs: 1, tiles: 1 });
    kinds
}

fn check(cx: &Context<'_>, network: &Network, algorithms: &[Algorithm]) -> Result<f64> {
    let alive = Expected::of(network).alive[0];
    ensure!(alive > 0 && alive < network.rows, "the case is not one: {alive} are alive");
    same_as_host(cx, network, algorithms)?;
    Ok(0.0)
}

/// Five tiles of samples, or two of four at once, and so many outputs for each multiprocessor: it holds 24 warps
/// at most.
fn groups(cx: &Context<'_>, outputs: usize, few: bool) -> Result<f64> {
    let multiprocessors = cx.device.info().multiprocessors as usize;
    let network = network(outputs * multiprocessors, 130)?;
    let algorithms = algorithms(cx, &network);
    check(cx, &network, &if few { kinds(algorithms) } else { algorithms })
}

fn rows(cx: &Context<'_>, algorithm: Algorithm, rows: usize) -> Result<f64> {
    check(cx, &network(3, rows)?, &[algorithm])
}

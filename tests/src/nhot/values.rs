//! Values that are not finite, in the table, the weights, and rows that nobody names.
use anyhow::Result;
use lacuna::matrix::generate;
use lacuna::{Bags, NHot, nhot};

use super::Problem;
use super::conform::conform_on;
use crate::expect::same_bits;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("nhot/values/table", "NaN, infinities and huge numbers in the table", table),
        Case::new("nhot/values/weights", "weights that are not finite, and zeros", weights),
        Case::new("nhot/values/unnamed", "NaN in rows that are padding, or that nobody names", unnamed),
        Case::new("nhot/values/replaced", "weights that are replaced under a plan", replaced),
    ]
}

const STRANGE: [f32; 5] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0];
const LENGTHS: [usize; 7] = [3, 0, 1, 40, 2, 2, 9];

/// Whatever is not finite flows into the bags that name it, and into no others.
fn table(cx: &Context<'_>) -> Result<f64> {
    let mut worst = 0.0_f64;
    for strange in STRANGE {
        let problem = Problem::of_lengths(&LENGTHS, 25, 8, cx.seed).weighted(cx.seed);
        let mut table = generate::random_values(25 * 8, cx.seed ^ 1);
        table.iter_mut().step_by(19).for_each(|value| *value = strange);
        let mut output_gradient = generate::random_values(LENGTHS.len() * 8, cx.seed ^ 2);
        output_gradient.iter_mut().step_by(11).for_each(|value| *value = strange);
        worst = worst.max(conform_on(cx, &problem, &table, &output_gradient)?);
    }
    Ok(worst)
}

fn weights(cx: &Context<'_>) -> Result<f64> {
    let mut worst = 0.0_f64;
    for strange in STRANGE {
        let mut problem = Problem::of_lengths(&LENGTHS, 25, 8, cx.seed).weighted(cx.seed);
        let weights = problem.weights.iter_mut().flatten();
        weights.step_by(6).for_each(|weight| *weight = strange);
        let table = generate::random_values(25 * 8, cx.seed ^ 1);
        let output_gradient = generate::random_values(LENGTHS.len() * 8, cx.seed ^ 2);
        worst = worst.max(conform_on(cx, &problem, &table, &output_gradient)?);
    }
    Ok(worst)
}

fn unnamed(cx: &Context<'_>) -> Result<f64> {
    let mut problem = Problem::of_lengths(&LENGTHS, 25, 8, cx.seed);
    problem.indices.iter_mut().for_each(|index| *index = *index / 2 * 2);
    let mut table = generate::random_values(25 * 8, cx.seed ^ 1);
    for row in [1, 3, 4, 23] {
        table[row * 8..][..8].fill(f32::NAN);
    }
    let output_gradient = generate::random_values(LENGTHS.len() * 8, cx.seed ^ 2);
    let problem = problem.with(|options| options.padding_index(Some(4)).mode(nhot::Mode::Mean));
    // A weight of the padding index does not count either.
    let weights = problem.indices.iter().map(|&index| if index == 4 { f32::NAN } else { 0.5 }).collect();
    let weighted = Problem { weights: Some(weights), ..problem.clone() };
    Ok(conform_on(cx, &problem, &table, &output_gradient)?.max(conform_on(
        cx,
        &weighted,
        &table,
        &output_gradient,
    )?))
}

fn replaced(cx: &Context<'_>) -> Result<f64> {
    let bags = Bags::<u32>::new(cx.device, 3, &[0, 2, 3], &[2, 0, 1])?;
    let mut weighted = bags.with_weights(&[f32::NAN; 3])?;
    let plan = NHot::<f32>::plan_with(&bags, 1, nhot::Options::default())?;
    let table = cx.device.upload(&[1.0, 10.0, 100.0])?;
    let mut out = cx.device.zeros(2)?;
    if let Some(mut weights) = weighted.weights_mut() {
        weights.upload(&[2.0, 3.0, 4.0])?;
    }
    plan.run(cx.stream, &weighted, table.as_slice(), out.as_slice_mut())?;
    same_bits("weighted", &[203.0, 40.0], &out.download(cx.stream)?, 1)?;
    // The same plan serves bags without weights, which share the indices.
    plan.run(cx.stream, &bags, table.as_slice(), out.as_slice_mut())?;
    same_bits("not weighted", &[101.0, 10.0], &out.download(cx.stream)?, 1)?;
    Ok(0.0)
}

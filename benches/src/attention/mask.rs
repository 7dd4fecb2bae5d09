//! How long it takes to make a mask ready for kernels by blocks: from its CSR pattern, and by its rule.
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use lacuna::attention::{Algorithm, Mask, MaskBlocks};
use lacuna::matrix::Pattern;
use lacuna::{CsrMatrix, Device, Index, SparseAttention};
use lacuna_cases::{Draw, Number, Problem};

use crate::record::MaskTimes;
use crate::timing::Timing;

/// How often each way is timed. The first time counts, too: it is the longest.
const SAMPLES: usize = 5;

/// The times, where the plan is by blocks.
pub(super) fn times<T: Number, I: Index>(
    device: &Device,
    problem: &Problem,
    plan: &SparseAttention<T, I>,
) -> Result<Option<MaskTimes>> {
    let choice = plan.choice().map(|choice| choice.algorithm);
    let Some(algorithm @ (Algorithm::WgmmaTile { .. } | Algorithm::MmaTile { .. })) = choice else {
        return Ok(None);
    };
    let (a, options) = (problem.sparse()?, plan.options().algorithm(algorithm));
    let csr = samples(|| {
        // A matrix whose pattern no plan has seen.
        let mask = CsrMatrix::<T, I>::with_index(device, &a.map_values(T::from_f32))?;
        let start = Instant::now();
        SparseAttention::plan_with(&mask, problem.width, options)?;
        Ok(microseconds(start))
    })?;
    let Some(mask) = by_rule(problem, a.pattern())? else { return Ok(Some(MaskTimes { csr, rule: None })) };
    let of_pattern = MaskBlocks::new(device, &Mask::from_pattern(Arc::clone(a.pattern())))?;
    let rule = samples(|| {
        let start = Instant::now();
        let blocks = MaskBlocks::new(device, &mask()?)?;
        let us = microseconds(start);
        let is_same = blocks.elements() == of_pattern.elements() && blocks.counts() == of_pattern.counts();
        ensure!(is_same, "{}: the rule is not the mask's", problem.name);
        Ok(us)
    })?;
    Ok(Some(MaskTimes { csr, rule: Some(rule) }))
}

fn samples(once: impl Fn() -> Result<f64>) -> Result<Timing> {
    Ok(Timing::of((0..SAMPLES).map(|_| once()).collect::<Result<_>>()?))
}

fn microseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

/// What makes a mask.
type Make = Box<dyn Fn() -> lacuna::Result<Mask>>;

/// What makes the mask of a problem by its rule, where there is one.
fn by_rule(problem: &Problem, pattern: &Pattern) -> Result<Option<Make>> {
    let tokens = pattern.rows();
    Ok(match problem.drawn {
        Some(Draw::Mask { sparsity: 0.0, .. }) => Some(Box::new(move || Mask::causal(tokens))),
        Some(Draw::Mask { sparsity: 1.0, band }) => {
            Some(Box::new(move || Mask::sliding_window(tokens, band)))
        }
        Some(Draw::Blocks { side, .. }) => {
            // A row of each block has the first key of all that are seen.
            let blocks = |row: usize| -> Vec<u32> {
                let firsts =
                    pattern.row_columns(row).iter().filter(|key| (**key as usize).is_multiple_of(side));
                firsts.map(|key| key / side as u32).collect()
            };
            let seen = Pattern::of_rows(tokens.div_ceil(side), (0..tokens).step_by(side).map(blocks))?;
            Some(Box::new(move || Mask::blocks(tokens, tokens, [side; 2], seen.clone())))
        }
        Some(Draw::Documents { length }) => Some(Box::new(move || {
            let lengths: Vec<usize> =
                (0..tokens).step_by(length).map(|start| length.min(tokens - start)).collect();
            Mask::documents(&lengths)?.and(&Mask::causal(tokens)?)
        })),
        _ => None,
    })
}

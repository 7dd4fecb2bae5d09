//! What is not finite reaches the gradients of what sees it, and no others.
use anyhow::{Result, ensure};
use half::f16;
use lacuna::attention::{Mask, MaskBlocks, Options};
use lacuna::{BlockAttention, Precision};

use super::{Pass, Problem, has_no_kernel, kernels};
use crate::{Context, Number};

/// Tokens 70, 100 and 120 have a key, a value, a query or a gradient that is not finite; each token sees five.
pub(super) fn unseen<T: Number>(cx: &Context<'_>, dim: usize) -> Result<f64> {
    if has_no_kernel::<T>(cx.device, dim) {
        return Ok(0.0);
    }
    let tokens = 140;
    let mask = Mask::sliding_window(tokens, 5)?;
    let mut problem = Problem::draw(mask.to_pattern()?, dim, 1, cx.seed);
    problem.key(70)[3] = f32::NAN;
    problem.value(100).fill(f32::INFINITY);
    problem.q[30 * dim] = f32::NEG_INFINITY;
    let problem = problem.rounded::<T>();
    let options = Options::default().precision(Precision::Tf32);
    let plan = BlockAttention::<T>::plan_with(&MaskBlocks::new(cx.device, &mask)?, dim, options)?;
    let mut pass = Pass::new(cx, &problem, &plan)?;
    pass.d_o[120 * dim + 1] = T::from_f32(f32::NAN);
    let mut worst = 0.0_f64;
    for names in kernels(&plan, dim)? {
        let (error, gradients) = pass.check(cx, &plan, names)?;
        worst = worst.max(error);
        let finite =
            |row: usize| gradients[0][row * dim..][..dim].iter().all(|slope| slope.wide().is_finite());
        ensure!(
            !finite(72) && !finite(102) && !finite(30) && !finite(120),
            "rows that see it are not finite"
        );
        ensure!(finite(69) && finite(75) && finite(99) && finite(31) && finite(119), "others are");
    }
    Ok(worst)
}

/// Two heads share keys of two documents, the second of which ends amid a block that all its queries see whole; a query of the second
/// head is not finite.
pub(super) fn unseen_of_groups(cx: &Context<'_>) -> Result<f64> {
    if has_no_kernel::<f16>(cx.device, 16) {
        return Ok(0.0);
    }
    let (tokens, dim) = (134, 16);
    let mask = Mask::documents(&[64, 70])?;
    let mut problem = Problem::draw(mask.to_pattern()?, dim, 2, cx.seed);
    problem.q[(tokens + 100) * dim] = f32::NEG_INFINITY;
    let problem = problem.rounded::<f16>();
    let options = Options::default().batch(2).kv_group(2);
    let plan = BlockAttention::<f16>::plan_with(&MaskBlocks::new(cx.device, &mask)?, dim, options)?;
    let pass = Pass::new(cx, &problem, &plan)?;
    let mut worst = 0.0_f64;
    for names in kernels(&plan, dim)? {
        let (error, [d_q, d_k, d_v]) = pass.check(cx, &plan, names)?;
        worst = worst.max(error);
        let finite = |of: &[f16], row: usize| of[row * dim..][..dim].iter().all(|slope| slope.is_finite());
        let of_queries = [100, tokens + 99, tokens + 100].map(|row| finite(&d_q, row));
        ensure!(of_queries == [true, true, false], "one query alone is not finite: {of_queries:?}");
        let of_keys = [0, 63, 64, 133].map(|row| [finite(&d_k, row), finite(&d_v, row)]);
        ensure!(
            of_keys == [[true; 2], [true; 2], [false; 2], [false; 2]],
            "its document's keys alone are not finite: {of_keys:?}"
        );
    }
    Ok(worst)
}

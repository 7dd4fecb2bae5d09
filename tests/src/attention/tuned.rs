//! Plans by measurement.
use anyhow::{Result, ensure};
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, SparseAttention};
use lacuna_reference::Heads;

use super::Problem;
use crate::expect::same_bits;
use crate::{Case, Context, tuned};

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new("attention/tuned/file", "a measured plan is right, and found again in its file", file)]
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let Problem { mask: pattern, dim, q, k, v, .. } =
        Problem::draw(generate::band_random(70, 24, 0.9, cx.seed)?, 32, 1, cx.seed);
    let ones = vec![1.0; pattern.nnz()];
    let mask = CsrMatrix::new(cx.device, &Csr::with_values(pattern.clone(), ones)?)?;
    let [first, second] =
        tuned::twice(cx, |tuner, stream| tuner.tune(stream, SparseAttention::plan(&mask, dim)?, &mask))?;
    ensure!(first.choice() == second.choice(), "{:?}, then {:?}", first.choice(), second.choice());
    let [q_on, k_on, v_on] = [&q, &k, &v].map(|operand| cx.device.upload(operand));
    let (q_on, k_on, v_on) = (q_on?, k_on?, v_on?);
    let mut results = Vec::new();
    for plan in [&first, &second] {
        let mut o = cx.device.upload(&vec![f32::NAN; plan.query_len()])?;
        plan.run(cx.stream, q_on.as_slice(), k_on.as_slice(), v_on.as_slice(), o.as_slice_mut())?;
        results.push(o.download(cx.stream)?);
    }
    same_bits("measured, then found", &results[0], &results[1], dim)?;
    let heads = Heads { q: &q, k: &k, v: &v, dim, scale: first.scale() };
    Ok(lacuna_reference::attention(&pattern, heads)?.check(&results[0])?.worst_over_bound)
}

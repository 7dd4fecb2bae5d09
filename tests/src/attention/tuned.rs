//! Plans by measurement.
use anyhow::Result;
use lacuna::matrix::{Csr, generate};
use lacuna::{Autotuner, CsrMatrix, SparseAttention, Stream};
use lacuna_reference::{Heads, ScoreMod};

use super::Problem;
use crate::{Case, Context, tuned};

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new("attention/tuned/file", "a measured plan is right, and found again in its file", file)]
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let Problem { mask: pattern, dim, q, k, v, .. } =
        Problem::draw(generate::band_random(70, 24, 0.9, cx.seed)?, 32, 1, cx.seed);
    let ones = vec![1.0; pattern.nnz()];
    let mask = CsrMatrix::new(cx.device, &Csr::with_values(pattern.clone(), ones)?)?;
    let tune =
        |tuner: &Autotuner, stream: &Stream| tuner.tune(stream, SparseAttention::plan(&mask, dim)?, &mask);
    let [q_on, k_on, v_on] = [&q, &k, &v].map(|operand| cx.device.upload(operand));
    let (q_on, k_on, v_on) = (q_on?, k_on?, v_on?);
    let run = |plan: &SparseAttention| {
        let mut o = cx.device.upload(&vec![f32::NAN; plan.query_len()])?;
        plan.run(cx.stream, q_on.as_slice(), k_on.as_slice(), v_on.as_slice(), o.as_slice_mut())?;
        Ok(o.download(cx.stream)?)
    };
    let (plan, o) = tuned::same(cx, tune, |plan| plan.choice().copied(), run, dim)?;
    let heads = Heads { q: &q, k: &k, v: &v, dim, scale: plan.scale(), score_mod: ScoreMod::default() };
    Ok(lacuna_reference::attention(&pattern, heads)?.check(&o)?.worst_over_bound)
}

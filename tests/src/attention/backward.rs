//! The gradients of Q, K and V.
use anyhow::{Context as _, Result};
use half::{bf16, f16};
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::{AttentionSteps, CsrMatrix, Index, attention};
use lacuna_reference::{Heads, ScoreMod};

use super::Problem;
use super::conform::precision;
use crate::{Case, Context, Number};
use lacuna_cases::number::rounded;
use lacuna_cases::pattern::of_rows;

/// Name, what it is, the mask, the dimension, and heads.
type Backward = (&'static str, &'static str, fn(u64) -> Result<Pattern>, usize, usize);

const CASES: [Backward; 3] = [
    (
        "causal_band",
        "the mask of SC 2020, small",
        |seed| Ok(generate::band_random(40, 12, 0.8, seed)?),
        16,
        1,
    ),
    ("heads", "3 heads, more keys than queries", |seed| Ok(generate::uniform(9, 30, 0.6, seed)?), 7, 3),
    (
        "empty",
        "queries without keys, and keys that nobody sees",
        |_| of_rows(6, &[vec![], vec![0, 4], vec![]]),
        8,
        2,
    ),
];

pub(super) fn cases() -> Vec<Case> {
    CASES
        .into_iter()
        .map(|(name, about, make, dim, heads)| {
            Case::new(format!("attention/backward/{name}"), about, move |cx| {
                let problem = Problem::draw(make(cx.seed)?, dim, heads, cx.seed);
                let f32s = check::<f32, u32>(cx, &problem).context("f32")?;
                let f16s = check::<f16, u16>(cx, &problem.rounded()).context("f16, u16")?;
                Ok(f32s.max(f16s).max(check::<bf16, u32>(cx, &problem.rounded()).context("bf16")?))
            })
        })
        .collect()
}

/// Forward and backward, twice in one workspace: the largest error of the gradients over its bound.
fn check<T: Number, I: Index>(cx: &Context<'_>, problem: &Problem<T>) -> Result<f64> {
    let Problem { mask, dim, heads, q, k, v, .. } = problem;
    let ones = vec![T::from_f32(1.0); mask.nnz()];
    let device_mask = CsrMatrix::<T, I>::with_index(cx.device, &Csr::with_values(mask.clone(), ones)?)?;
    let plan = AttentionSteps::plan(&device_mask, *dim, attention::Options::default().batch(*heads))?;
    let (mut p, mut workspace) = (plan.weights()?, plan.workspace(cx.stream)?);
    let d_o: Vec<T> = rounded(&generate::random_values(q.len(), cx.seed ^ 9));
    let upload = |contents: &[T]| cx.device.upload(contents);
    let (q_on, k_on, v_on, d_o_on) = (upload(q)?, upload(k)?, upload(v)?, upload(&d_o)?);
    let mut o = cx.device.zeros::<T>(q.len())?;
    let mut gradients = [q, k, v].map(|operand| vec![T::POISON; operand.len()]);
    for _ in 0..2 {
        plan.forward(cx.stream, q_on.as_slice(), k_on.as_slice(), v_on.as_slice(), &mut p, o.as_slice_mut())?;
        let [d_q, d_k, d_v] = gradients.each_ref().map(|poison| cx.device.upload(poison));
        let (mut d_q, mut d_k, mut d_v) = (d_q?, d_k?, d_v?);
        let pass = attention::BackwardOperands {
            q: q_on.as_slice(),
            k: k_on.as_slice(),
            v: v_on.as_slice(),
            p: &p,
            d_o: d_o_on.as_slice(),
            d_q: d_q.as_slice_mut(),
            d_k: d_k.as_slice_mut(),
            d_v: d_v.as_slice_mut(),
        };
        plan.backward(cx.stream, pass, &mut workspace)?;
        gradients = [d_q.download(cx.stream)?, d_k.download(cx.stream)?, d_v.download(cx.stream)?];
    }
    let scale = 1.0 / (*dim as f32).sqrt();
    let mut worst = 0.0_f64;
    for head in 0..*heads {
        let own = |of: &[T]| -> Vec<T> { of[of.len() / heads * head..][..of.len() / heads].to_vec() };
        let (q, k, v) = (own(q), own(k), own(v));
        let operands = Heads { q: &q, k: &k, v: &v, dim: *dim, scale, score_mod: ScoreMod::default() };
        let reference = lacuna_reference::attention_backward(mask, operands, &own(&d_o), precision::<T>())?;
        let [d_q, d_k, d_v] = gradients.each_ref().map(|gradient| own(gradient));
        let reports = [
            reference.check_q(&d_q).context("the gradient of Q")?,
            reference.check_k(&d_k).context("the gradient of K")?,
            reference.check_v(&d_v).context("the gradient of V")?,
        ];
        worst = reports.iter().map(|report| report.worst_over_bound).fold(worst, f64::max);
    }
    Ok(worst)
}

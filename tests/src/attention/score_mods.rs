//! Scores that are held within a soft cap, and lessened by distance.
use anyhow::{Context as _, Result};
use half::{bf16, f16};
use lacuna::attention::{Algorithm, Mask, Operands, Options};
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Error, Precision, SparseAttention};

use super::block_backward::check;
use super::rules::{blocks, documents};
use super::{Effort, Problem, case};
use crate::expect::refused;
use crate::{Case, Context};
use lacuna_cases::pattern::of_rows;

/// Name, what it is, and how the problem is made from a seed.
type Mods = (&'static str, &'static str, fn(u64) -> Result<Problem>);

/// Slopes of three heads: a large one, none, and one below 0.
const SLOPES: [f32; 3] = [7.25, 0.0, -0.2];

const FORWARD: [Mods; 8] = [
    ("cap", "scores of about ±10 within ±5", |seed| {
        let problem = Problem::draw(generate::band_random(80, 20, 0.6, seed)?, 64, 2, seed);
        Ok(Problem { scale: Some(1.5), softcap: Some(5.0), ..problem })
    }),
    ("slopes", "slopes of three heads, a band", |seed| {
        let problem = Problem::draw(generate::band_random(80, 20, 0.6, seed)?, 32, 3, seed);
        Ok(Problem { slopes: Some(SLOPES.into()), ..problem })
    }),
    ("both", "cap and slopes, more keys than stages hold, and fewer queries", |seed| {
        let rows: Vec<_> = (0..67).map(|row| (row % 5..330).collect()).collect();
        let problem = Problem::draw(of_rows(330, &rows)?, 64, 1, seed);
        Ok(Problem { softcap: Some(2.0), slopes: Some(vec![0.03]), ..problem })
    }),
    ("wide", "both, rows of 136 elements", |seed| {
        let problem = Problem::draw(generate::band_random(80, 20, 0.6, seed)?, 136, 1, seed);
        Ok(Problem { softcap: Some(2.0), slopes: Some(vec![0.03]), ..problem })
    }),
    ("more_queries", "more queries than keys, and a slope below 0", |seed| {
        let rows: Vec<_> = (0..130).map(|row| (0..=row.min(69)).collect()).collect();
        let problem = Problem::draw(of_rows(70, &rows)?, 40, 1, seed);
        Ok(Problem { slopes: Some(vec![-0.1]), ..problem })
    }),
    ("negative_scale", "a scale below zero, within a cap", |seed| {
        let problem = Problem::draw(generate::band_random(70, 9, 0.5, seed)?, 24, 1, seed);
        Ok(Problem { scale: Some(-0.7), softcap: Some(3.0), ..problem })
    }),
    ("infinite", "products that are ∞ are the cap; NaN that some queries do not see", |seed| {
        let keys = |row: u32| (0..130).filter(|key| row.is_multiple_of(2) || *key != 70).collect();
        let mut problem = Problem::draw(of_rows(130, &(0..68).map(keys).collect::<Vec<_>>())?, 64, 1, seed);
        problem.q[0] = 1.0;
        problem.key(3)[0] = f32::INFINITY;
        problem.key(5)[0] = f32::NEG_INFINITY;
        problem.key(70).fill(f32::NAN);
        problem.q.iter_mut().skip(64).step_by(64).for_each(|q| *q = q.abs().max(0.5));
        Ok(Problem { softcap: Some(30.0), slopes: Some(vec![0.25]), ..problem })
    }),
    ("nan_slope", "a slope that is NaN makes the rows of its head NaN", |seed| {
        let problem = Problem::draw(generate::band_random(70, 9, 0.5, seed)?, 16, 2, seed);
        Ok(Problem { slopes: Some(vec![f32::NAN, 1.0]), ..problem })
    }),
];

/// Name, what it is, the mask, the dimension, what else is asked for, and whether there are slopes.
type Backward = (&'static str, &'static str, fn() -> lacuna::Result<Mask>, usize, Options, bool);

pub(super) fn cases() -> Vec<Case> {
    let forward =
        |(name, about, make)| case(format!("attention/score_mods/{name}"), about, Effort::Quick, make);
    let mut cases: Vec<Case> = FORWARD.into_iter().map(forward).collect();
    let heads = |heads| Options::default().batch(heads);
    let backward: [Backward; 4] = [
        ("cap", "gradients within a cap", documents, 64, heads(1).scale(1.0).softcap(2.0), false),
        ("slopes", "gradients with slopes, keys that nobody sees", blocks, 72, heads(2), true),
        ("wide", "both, rows of 136 elements", documents, 136, heads(1).scale(0.5).softcap(2.0), true),
        (
            "groups",
            "both, heads that share K and V",
            || Mask::sliding_window(70, 9),
            16,
            heads(3).kv_group(3).scale(2.0).softcap(9.0),
            true,
        ),
    ];
    cases.extend(backward.map(|(name, about, mask, dim, options, has_slopes)| {
        Case::new(format!("attention/score_mods/backward_{name}"), about, move |cx| {
            let mask = mask()?;
            let problem = Problem::draw(mask.to_pattern()?, dim, options.batch, cx.seed);
            let slopes = has_slopes.then(|| SLOPES[..options.batch].into());
            let problem = Problem { softcap: options.softcap, slopes, ..problem };
            let f16s = check::<f16>(cx, &mask, &problem.rounded(), options, true).context("f16")?;
            let bf16s = check::<bf16>(cx, &mask, &problem.rounded(), options, false).context("bf16")?;
            let in_parts = options.precision(Precision::Tf32);
            let f32s = check::<f32>(cx, &mask, &problem.rounded(), in_parts, true).context("f32")?;
            Ok(f16s.max(bf16s).max(f32s))
        })
    }));
    cases.push(Case::new("attention/score_mods/refusals", "caps and slopes that are not taken", refusals));
    cases
}

fn refusals(cx: &Context<'_>) -> Result<f64> {
    let pattern = generate::uniform(6, 9, 0.5, 1)?;
    let values = vec![0.0; pattern.nnz()];
    let mask: CsrMatrix = CsrMatrix::new(cx.device, &Csr::with_values(pattern, values)?)?;
    let usual = Options::default().batch(2);
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { operation: "attention", .. });
    for softcap in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::MAX, f32::MIN_POSITIVE] {
        let plan = SparseAttention::plan_with(&mask, 8, usual.scale(1e9).softcap(softcap));
        refused("a cap", plan, is_parameter, &["the soft cap", "above 0"])?;
    }
    let plan = SparseAttention::plan_with(&mask, 8, usual.softcap(1.0).algorithm(Algorithm::ThreeSteps));
    refused("a cap", plan, is_parameter, &["the soft cap", "three steps"])?;

    let run = |options: Options, slopes: usize| -> lacuna::Result<()> {
        let plan = SparseAttention::plan_with(&mask, 8, options)?;
        let [q, k] = [plan.query_len(), plan.key_len()].map(|len| cx.device.zeros::<f32>(len));
        let (q, k, mut o) = (q?, k?, cx.device.zeros::<f32>(plan.output_len())?);
        let slopes = cx.device.zeros(slopes)?;
        let operands = Operands {
            q: q.as_slice(),
            k: k.as_slice(),
            v: k.as_slice(),
            o: o.as_slice_mut(),
            logsumexp: None,
            alibi_slopes: Some(slopes.as_slice()),
        };
        plan.run_with(cx.stream, operands)
    };
    run(usual, 2)?;
    let is_length = |error: &Error| matches!(error, Error::Length { operation: "attention", .. });
    for slopes in [1, 3] {
        refused("slopes", run(usual, slopes), is_length, &["the slopes", "one of each of 2 heads"])?;
    }
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: "attention", .. });
    let steps = usual.algorithm(Algorithm::ThreeSteps);
    refused("slopes", run(steps, 2), is_illegal, &["three steps take no slopes"])?;
    Ok(0.0)
}

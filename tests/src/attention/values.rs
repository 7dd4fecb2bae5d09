//! Values that are large, or not finite.
use anyhow::Result;

use super::{Effort, Problem, case};
use crate::Case;
use lacuna_cases::pattern::of_rows;

/// Name, what it is, and how the problem is made from a seed.
type Values = (&'static str, &'static str, fn(u64) -> Result<Problem>);

const DIM: usize = 24;
const KEYS: usize = 50;
/// The key that the first query alone does not see, and the one that it alone sees.
const HIDDEN: usize = 20;
const OWN: usize = 40;

const CASES: [Values; 13] = [
    ("large_scores", "scores of about ±10⁴", |seed| {
        let mut problem = problem(seed)?;
        problem.q.iter_mut().for_each(|q| *q *= 1e4);
        problem.scale = Some(1.0);
        Ok(problem)
    }),
    ("tiny", "elements of which a part may be too small for tensor cores", |seed| {
        let mut problem = problem(seed)?;
        problem.q.iter_mut().for_each(|q| *q *= 1e-33);
        problem.k.iter_mut().for_each(|k| *k *= 1e3);
        problem.v.iter_mut().for_each(|v| *v *= 1e-33);
        Ok(problem)
    }),
    ("huge", "a finite element that is infinite as bfloat16", |seed| {
        let mut problem = problem(seed)?;
        problem.q.iter_mut().step_by(DIM).for_each(|q| *q = 2e-38);
        problem.key(OWN)[0] = 3.4e38;
        Ok(problem)
    }),
    ("rising", "each key has a larger score than those before", |seed| {
        let mut problem = problem(seed)?;
        problem.q.fill(1.0);
        for key in 0..KEYS {
            problem.key(key).fill(key as f32 / 4.0);
        }
        Ok(problem)
    }),
    ("vanishing", "weights that are subnormal, or zero", |seed| {
        let mut problem = problem(seed)?;
        problem.q.fill(1.0);
        for key in 0..KEYS {
            problem.key(key).fill(-(key as f32));
        }
        Ok(problem)
    }),
    ("negative_scale", "a scale below zero", |seed| Ok(Problem { scale: Some(-0.7), ..problem(seed)? })),
    ("no_scale", "a scale of zero: all keys weigh the same", |seed| {
        Ok(Problem { scale: Some(0.0), ..problem(seed)? })
    }),
    ("hidden_nan", "NaN in a row of K and V that one query does not see, and its neighbours do", |seed| {
        let mut problem = problem(seed)?;
        problem.key(HIDDEN).fill(f32::NAN);
        problem.value(HIDDEN).fill(f32::NAN);
        Ok(problem)
    }),
    ("own_nan", "NaN in a row of V that one query sees, and its neighbours do not", |seed| {
        let mut problem = problem(seed)?;
        problem.value(OWN)[3] = f32::NAN;
        Ok(problem)
    }),
    ("own_infinity", "infinity in a row of V that one query sees, and its neighbours do not", |seed| {
        let mut problem = problem(seed)?;
        problem.value(OWN)[3] = f32::INFINITY;
        problem.value(OWN)[4] = f32::NEG_INFINITY;
        Ok(problem)
    }),
    ("positive_infinity", "a score of +∞ makes the row NaN", |seed| {
        let mut problem = problem(seed)?;
        problem.q[0] = 1.0;
        problem.key(OWN)[0] = f32::INFINITY;
        Ok(problem)
    }),
    ("negative_infinity", "scores of -∞ weigh nothing", |seed| {
        let mut problem = problem(seed)?;
        problem.q.iter_mut().step_by(DIM).for_each(|q| *q = 1.0);
        // All of the first 32 keys, so that the first scores of a row are all -∞.
        for key in 0..37 {
            problem.key(key)[0] = f32::NEG_INFINITY;
        }
        Ok(problem)
    }),
    ("all_negative_infinity", "a row whose scores are all -∞ is NaN", |seed| {
        let mut problem = problem(seed)?;
        problem.q[0] = 1.0;
        for key in 0..KEYS {
            problem.key(key)[0] = f32::NEG_INFINITY;
        }
        Ok(problem)
    }),
];

pub(super) fn cases() -> Vec<Case> {
    let make = |(name, about, make)| case(format!("attention/values/{name}"), about, Effort::Quick, make);
    CASES.into_iter().map(make).collect()
}

/// Six queries of 0 to 49 keys. The first sees all keys but [`HIDDEN`]; the others all but [`OWN`], or fewer.
fn problem(seed: u64) -> Result<Problem> {
    let all = |except: usize| (0..KEYS as u32).filter(move |&key| key as usize != except);
    let rows = [
        all(HIDDEN).collect(),
        all(OWN).collect(),
        all(OWN).filter(|key| key % 3 != 1).collect(),
        all(OWN).skip(36).collect(),
        vec![],
        all(OWN).step_by(5).collect(),
    ];
    Ok(Problem::draw(of_rows(KEYS, &rows)?, DIM, 1, seed))
}

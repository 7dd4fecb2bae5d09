//! Patterns of every form.
use anyhow::Result;
use lacuna::matrix::{Csr, Pattern, generate};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::conform;
use crate::{Case, Effort, Options};

/// Name, what it is, and how the pattern is made from a seed.
type Shape = (&'static str, &'static str, Effort, fn(u64) -> Result<Pattern>);

const CASES: [Shape; 20] = [
    ("no_rows", "M = 0", Effort::Quick, |_| of_rows(20, &[])),
    ("no_columns", "K = 0", Effort::Quick, |_| of_rows(0, &[&[], &[], &[]])),
    ("nothing_at_all", "M = K = 0", Effort::Quick, |_| of_rows(0, &[])),
    ("all_empty", "no nonzeros", Effort::Quick, |_| of_rows(9, &[&[], &[], &[], &[]])),
    ("single", "one nonzero", Effort::Quick, |_| of_rows(1, &[&[0]])),
    ("one_row", "1 × 300", Effort::Quick, |seed| Ok(generate::uniform(1, 300, 0.5, seed)?)),
    ("one_column", "300 × 1", Effort::Quick, |seed| Ok(generate::uniform(300, 1, 0.5, seed)?)),
    ("full_row", "one row of all 1500 columns", Effort::Quick, |_| {
        Ok(Pattern::new(3, 1500, vec![0, 0, 1500, 1500], (0..1500).collect())?)
    }),
    ("full_column", "one column in all 1500 rows", Effort::Quick, |_| {
        Ok(Pattern::new(1500, 3, (0..=1500).collect(), vec![1; 1500])?)
    }),
    ("empty_rows", "empty rows at the ends and between", Effort::Quick, |_| {
        of_rows(6, &[&[], &[], &[1, 5], &[], &[0, 1, 2], &[5], &[], &[]])
    }),
    ("empty_columns", "empty columns at the ends and between", Effort::Quick, |_| {
        of_rows(9, &[&[2, 6], &[2], &[3, 6], &[2, 3]])
    }),
    ("diagonal", "1000 × 1000, a nonzero a row and column", Effort::Quick, |_| {
        Ok(Pattern::new(1000, 1000, (0..=1000).collect(), (0..1000).rev().collect())?)
    }),
    ("dense", "every element is there", Effort::Quick, |seed| Ok(generate::uniform(33, 65, 0.0, seed)?)),
    ("wide", "20 × 5000: several columns a thread in the scan", Effort::Quick, |seed| {
        Ok(generate::uniform(20, 5000, 0.97, seed)?)
    }),
    ("tall", "5000 × 20", Effort::Quick, |seed| Ok(generate::uniform(5000, 20, 0.97, seed)?)),
    ("uniform", "300 × 400, 90 % zeros", Effort::Quick, |seed| Ok(generate::uniform(300, 400, 0.9, seed)?)),
    ("uneven", "rows of very different length", Effort::Quick, |seed| {
        Ok(generate::with_row_cov(200, 300, 20.0, 1.5, seed)?)
    }),
    ("graph", "1500 × 1500, row lengths by a power law", Effort::Slow, |seed| {
        Ok(generate::power_law(1500, 1500, 6.0, 2.1, seed)?)
    }),
    ("large", "8192 × 2048, 90 % zeros", Effort::Gpu, |seed| Ok(generate::uniform(8192, 2048, 0.9, seed)?)),
    ("large_graph", "400,000 × 400,000, row lengths by a power law: few chunks", Effort::Gpu, |seed| {
        Ok(generate::power_law(400_000, 400_000, 8.0, 2.1, seed)?)
    }),
];

/// Random patterns on the simulator, and on a GPU, unless asked for another number.
const RANDOM: [usize; 2] = [8, 100];

pub(super) fn cases(options: Options) -> Vec<Case> {
    let shapes = CASES.into_iter().map(|(name, about, effort, make)| {
        let check = move |cx: &crate::Context<'_>| conform(cx, &with_values(make(cx.seed)?, cx.seed)?);
        Case::new(format!("transpose/shapes/{name}"), about, check).effort(effort)
    });
    let check = |cx: &crate::Context<'_>| conform(cx, &with_values(random(cx.seed)?, cx.seed)?);
    let random = Case::random(options, RANDOM, "transpose/random", "a pattern drawn by the seed", check);
    shapes.chain(random).collect()
}

pub(super) fn with_values(pattern: Pattern, seed: u64) -> Result<Csr<f32>> {
    let values = generate::random_values(pattern.nnz(), seed ^ 1);
    Ok(Csr::with_values(pattern, values)?)
}

fn of_rows(cols: usize, rows: &[&[u32]]) -> Result<Pattern> {
    Ok(Pattern::of_rows(cols, rows)?)
}

fn random(seed: u64) -> Result<Pattern> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (rows, cols) = (random.random_range(1..=300), random.random_range(1..=300));
    let seed = random.random();
    Ok(if random.random() {
        generate::uniform(rows, cols, random.random_range(0.0..=1.0), seed)?
    } else {
        let mean = random.random_range(0.0..=0.3) * cols as f64;
        generate::with_row_cov(rows, cols, mean, random.random_range(0.0..=1.5), seed)?
    })
}

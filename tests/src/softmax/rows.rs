//! Rows of every length, starting anywhere.
use anyhow::Result;
use half::{bf16, f16};
use lacuna::matrix::{Csr, generate};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::conform::{batch, conform};
use super::{of_pattern, with_lengths};
use crate::{Case, Effort, Options};

/// Name, what it is, how long it takes, and how the matrix is made from a seed.
type Rows = (&'static str, &'static str, Effort, fn(u64) -> Result<Csr<f32>>);

const CASES: [Rows; 14] = [
    ("none", "M = 0", Effort::Quick, |seed| with_lengths(&[], seed)),
    ("all_empty", "no nonzeros: nothing is written", Effort::Quick, |seed| with_lengths(&[0; 9], seed)),
    ("single", "one nonzero: 1", Effort::Quick, |seed| with_lengths(&[1], seed)),
    ("empty", "empty rows at the ends and between", Effort::Quick, |seed| {
        with_lengths(&[0, 0, 3, 0, 1, 9, 0, 0], seed)
    }),
    ("every_length", "lengths 0 to 40: starts and ends at every alignment", Effort::Quick, |seed| {
        with_lengths(&(0..=40).collect::<Vec<_>>(), seed)
    }),
    ("every_length_down", "lengths 40 to 0", Effort::Quick, |seed| {
        with_lengths(&(0..=40).rev().collect::<Vec<_>>(), seed)
    }),
    ("singles", "a nonzero a row, more rows than a block has", Effort::Quick, |seed| {
        with_lengths(&[1; 40], seed)
    }),
    ("around_warps", "lengths about 32 and 128", Effort::Quick, |seed| {
        with_lengths(&[31, 32, 33, 1, 127, 128, 129, 2], seed)
    }),
    ("around_registers_of_a_part", "lengths about 256, which 8 or 16 lanes hold", Effort::Quick, |seed| {
        with_lengths(&[255, 256, 257, 1, 259, 262, 263, 264, 270, 271, 272], seed)
    }),
    ("around_registers_of_a_warp", "lengths about 1024, which a warp holds", Effort::Quick, |seed| {
        with_lengths(&[1023, 1024, 1025, 3, 1028, 1030, 1031, 1032, 1040], seed)
    }),
    ("around_registers_of_a_block", "lengths about 8192, which a block holds", Effort::Slow, |seed| {
        with_lengths(&[8191, 1, 8192, 8193, 8198, 8207], seed)
    }),
    ("long", "a row of 5000 and one of 20,000 among short ones", Effort::Slow, |seed| {
        with_lengths(&[3, 5000, 7, 20_000, 1], seed)
    }),
    ("uneven", "rows of very different length", Effort::Quick, |seed| {
        of_pattern(generate::with_row_cov(60, 300, 30.0, 1.5, seed)?, seed)
    }),
    ("large", "12,288 × 12,288, 95 % zeros", Effort::Gpu, |seed| {
        of_pattern(generate::uniform(12_288, 12_288, 0.95, seed)?, seed)
    }),
];

/// Random matrices on the simulator, and on a GPU, unless asked for another number.
const RANDOM: [usize; 2] = [4, 60];

pub(super) fn cases(options: Options) -> Vec<Case> {
    let rows = CASES.into_iter().map(|(name, about, effort, make)| {
        let check = move |cx: &crate::Context<'_>| conform(cx, &make(cx.seed)?);
        Case::new(format!("softmax/rows/{name}"), about, check).effort(effort)
    });
    let check = |cx: &crate::Context<'_>| conform(cx, &random(cx.seed)?);
    let random = Case::random(options, RANDOM, "softmax/random", "a matrix drawn by the seed", check);
    let batch = Case::new("softmax/rows/batch", "three matrices of one pattern at once", |cx| {
        let x = with_lengths(&[0, 5, 33, 300, 1, 1100, 8], cx.seed)?;
        batch::<f32>(cx, &x)?;
        batch::<bf16>(cx, &x)?;
        batch::<f16>(cx, &x)
    });
    rows.chain([batch]).chain(random).collect()
}

fn random(seed: u64) -> Result<Csr<f32>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (rows, cols) = (random.random_range(1..=50), random.random_range(1..=400));
    let mean = random.random_range(0.0..=0.3) * cols as f64;
    let pattern = generate::with_row_cov(rows, cols, mean, random.random_range(0.0..=1.5), random.random())?;
    of_pattern(pattern, random.random())
}

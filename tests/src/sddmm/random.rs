//! Problems drawn by the seed.
use anyhow::Result;
use lacuna::matrix::generate;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::{Problem, conform};
use crate::{Case, Context, Options};

/// Random problems on the simulator, and on a GPU, unless asked for another number.
const RANDOM: [usize; 2] = [8, 100];

pub(super) fn cases(options: Options) -> Vec<Case> {
    let check = |cx: &Context<'_>| conform(cx, &random(cx.seed)?);
    Case::random(options, RANDOM, "sddmm/random", "a problem drawn by the seed", check)
}

fn random(seed: u64) -> Result<Problem> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (rows, cols) = (random.random_range(1..=40), random.random_range(1..=40));
    let k = random.random_range(0..=150);
    let pattern = if random.random() {
        generate::uniform(rows, cols, random.random_range(0.5..=1.0), random.random())?
    } else {
        let mean = random.random_range(0.0..=0.3) * cols as f64;
        generate::with_row_cov(rows, cols, mean, random.random_range(0.0..=1.5), random.random())?
    };
    Problem::draw(pattern, k, seed)
}

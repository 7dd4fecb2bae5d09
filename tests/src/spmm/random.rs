//! Problems drawn at random: shapes, row lengths, N and alignment.
use anyhow::Result;
use lacuna::matrix::{Pattern, generate};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::{Placement, Problem, conform};
use crate::{Case, Context, Options};

/// How many there are unless asked for another number: on the simulator, and on a GPU.
const USUAL: [usize; 2] = [12, 300];

pub(super) fn cases(options: Options) -> Vec<Case> {
    Case::random(options, USUAL, "spmm/random", "a problem drawn by the seed", check)
}

fn check(cx: &Context<'_>) -> Result<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(cx.seed);
    let n = random.random_range(0..=160);
    let pattern = draw_pattern(&mut random)?;
    let placement = Placement::slices(random.random_range(0..8), random.random_range(0..8));
    let problem = Problem::draw(pattern, n, cx.seed)?;
    let shape =
        format!("M = {}, K = {}, N = {n}, {} nonzeros", problem.a.rows(), problem.a.cols(), problem.a.nnz());
    conform(cx, &problem, &[placement]).map_err(|error| error.context(shape))
}

fn draw_pattern(random: &mut Xoshiro256PlusPlus) -> Result<Pattern> {
    let (rows, cols) = (random.random_range(0..=90), random.random_range(1..=200));
    let mean = random.random_range(0.0..=0.3) * cols as f64;
    let seed = random.random();
    let pattern = match random.random_range(0..3) {
        0 => generate::uniform(rows, cols, random.random_range(0.0..=1.0), seed),
        1 => {
            // A mean of 30 % and less allows row lengths to vary this much.
            generate::with_row_cov(rows, cols, mean, random.random_range(0.0..=1.5), seed)
        }
        _ => generate::power_law(rows, cols, mean, random.random_range(1.5..=3.0), seed),
    };
    Ok(pattern?)
}

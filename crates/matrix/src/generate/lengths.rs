//! Rows of given lengths.

use super::random::Random;
use super::{GenerateError, expect};
use crate::Pattern;
use crate::error::{fit_u32, try_filled};
use rand_distr::{Beta, Distribution};

/// Below this sum of its two shapes a beta distribution is all but two points, 0 and 1.
const TWO_POINTS: f64 = 1e-3;

/// From this sum of its shapes on, it is all but its mean.
const ONE_POINT: f64 = 1e12;

/// A matrix whose row lengths have the mean `mean_row_len` and the coefficient of variation `cov` (standard
/// deviation over mean), as far as a sample of `rows` lengths and their rounding to integers allow. The columns
/// of a row are equally likely.
///
/// Lengths are `cols` times a beta distribution, which has every mean and variation that lengths of 0 to `cols`
/// can have. `cov` 0 gives rows of one length, or of two next to each other where the mean is no integer.
///
/// # Errors
/// If `mean_row_len` is not in [0, cols], if `cov` is negative or above `sqrt(cols / mean - 1)`, the variation
/// of rows that are wholly empty or full, or if rows, columns or nonzeros do not fit `u32`.
pub fn with_row_cov(
    rows: usize,
    cols: usize,
    mean_row_len: f64,
    cov: f64,
    seed: u64,
) -> Result<Pattern, GenerateError> {
    expect_mean("mean_row_len", mean_row_len, cols)?;
    let filled = if cols == 0 { 0.0 } else { mean_row_len / cols as f64 };
    let most = if filled == 0.0 { 0.0 } else { (1.0 / filled - 1.0).sqrt() };
    expect((0.0..=most).contains(&cov), "cov", format!("a number of 0 to {most} for this mean"), cov)?;
    let mut random = Random::new(seed);
    // The sum of the shapes, from the variance f(1 - f) / (sum + 1) of a beta distribution of mean f.
    let shapes = (most / cov).powi(2) - 1.0;
    let beta = Beta::new(filled * shapes, (1.0 - filled) * shapes);
    with_lengths(rows, cols, &mut random, |random| match &beta {
        _ if cov == 0.0 || shapes > ONE_POINT => mean_row_len,
        Ok(beta) if shapes > TWO_POINTS => cols as f64 * beta.sample(random.generator()),
        _ if random.real() < filled => cols as f64,
        _ => 0.0,
    })
}

/// A matrix whose row lengths follow a power law: a length of x is as likely as `x^-exponent`, from a shortest
/// length, chosen so that the mean is `mean`, up to `cols`, at which longer ones are cut. The columns of a row
/// are equally likely. Graphs have exponents of 2 to 3; a smaller one gives longer tails.
///
/// # Errors
/// If `mean` is not in [0, cols], if `exponent` is not in [1.1, 100], or if rows, columns or nonzeros do
/// not fit `u32`.
pub fn power_law(
    rows: usize,
    cols: usize,
    mean: f64,
    exponent: f64,
    seed: u64,
) -> Result<Pattern, GenerateError> {
    expect_mean("mean", mean, cols)?;
    expect((1.1..=100.0).contains(&exponent), "exponent", "a number of 1.1 to 100", exponent)?;
    let tail = exponent - 1.0;
    let shortest = shortest_for_mean(mean, tail, cols as f64);
    with_lengths(rows, cols, &mut Random::new(seed), |random| {
        // 1 - real() is in (0, 1]: never a division by 0.
        (shortest * (1.0 - random.real()).powf(-1.0 / tail)).min(cols as f64)
    })
}

/// The shortest length of a Pareto distribution with tail index `tail` whose mean is `mean` once lengths above
/// `cut` are cut to it.
fn shortest_for_mean(mean: f64, tail: f64, cut: f64) -> f64 {
    // The mean after cutting is s + the integral from s to the cut of (s / x)^tail.
    let mean_of = |s: f64| {
        let ratio = s / cut;
        let beyond = if (tail - 1.0).abs() < 1e-9 {
            -s * ratio.ln()
        } else {
            s * (1.0 - ratio.powf(tail - 1.0)) / (tail - 1.0)
        };
        s + beyond
    };
    let (mut low, mut high) = (0.0, cut);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if mean_of(middle) < mean { low = middle } else { high = middle }
    }
    low
}

/// A mean row length must lie in [0, cols].
fn expect_mean(parameter: &'static str, mean: f64, cols: usize) -> Result<(), GenerateError> {
    let good = (0.0..=cols as f64).contains(&mean);
    expect(good, parameter, format!("a number of 0 to the number of columns, {cols}"), mean)
}

/// A matrix with a row for each length drawn. What rounding a length adds or takes away is made up for by the
/// next row, so that the mean is kept even where lengths are below 1.
fn with_lengths(
    rows: usize,
    cols: usize,
    random: &mut Random,
    mut draw: impl FnMut(&mut Random) -> f64,
) -> Result<Pattern, GenerateError> {
    fit_u32("rows", rows)?;
    fit_u32("columns", cols)?;
    let mut row_offsets = try_filled(rows as u128 + 1, 0u32)?;
    let mut col_indices = Vec::new();
    let mut carried = 0.0;
    for end in &mut row_offsets[1..] {
        let wanted = draw(random) + carried;
        let length = wanted.round().clamp(0.0, cols as f64);
        carried = wanted - length;
        let nnz = fit_u32("nonzeros", col_indices.len() + length as usize)?;
        col_indices.extend(random.distinct_below(cols as u64, length as usize).iter().map(|&c| c as u32));
        *end = nnz;
    }
    Ok(Pattern::from_parts(rows, cols, row_offsets, col_indices))
}

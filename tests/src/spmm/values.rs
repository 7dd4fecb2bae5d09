//! Values that are not finite, or hardly numbers.
use anyhow::Result;

use super::problem::Problem;
use super::{Effort, case};
use crate::Case;
use lacuna_cases::pattern::spread;

/// Name, what it is, and how the problem is made from a seed.
type Values = (&'static str, &'static str, fn(u64) -> Result<Problem>);

const CASES: [Values; 11] = [
    ("nan_in_unused_first_row", "NaN and infinity in row 0 of B, which no nonzero meets", |seed| {
        unused_row(0, seed)
    }),
    ("nan_in_unused_last_row", "NaN and infinity in the last row of B, which no nonzero meets", |seed| {
        unused_row(K - 1, seed)
    }),
    ("nan_in_one_row", "a row of B is NaN: it reaches the one row of A that uses it", |seed| {
        let mut problem = problem(seed)?;
        problem.b[UNIQUE * N..][..N].fill(f32::NAN);
        Ok(problem)
    }),
    ("nan_in_a", "NaN among the values of A stays in its row", |seed| {
        let mut problem = problem(seed)?;
        problem.a.values_mut()[40] = f32::NAN;
        Ok(problem)
    }),
    ("infinite_a", "infinities of both signs in A", |seed| {
        let mut problem = problem(seed)?;
        problem.a.values_mut()[3] = f32::INFINITY;
        problem.a.values_mut()[50] = f32::NEG_INFINITY;
        Ok(problem)
    }),
    ("infinite_b", "infinities that cancel to NaN, and that do not", |seed| {
        let mut problem = problem(seed)?;
        problem.b[4 * N..][..N].fill(f32::INFINITY);
        problem.b[9 * N..][..N / 2].fill(f32::NEG_INFINITY);
        Ok(problem)
    }),
    ("infinity_times_zero", "0 in A meets infinity in B: NaN", |seed| {
        let mut problem = problem(seed)?;
        problem.a.values_mut().fill(0.0);
        problem.b[4 * N..][..N].fill(f32::INFINITY);
        Ok(problem)
    }),
    ("subnormal", "subnormal values and products are kept", |seed| {
        let mut problem = problem(seed)?;
        problem.a.values_mut().iter_mut().for_each(|value| *value *= 1e-20);
        problem.b.iter_mut().for_each(|value| *value *= 1e-20);
        Ok(problem)
    }),
    ("negative_zero", "zeros of both signs", |seed| {
        let mut problem = problem(seed)?;
        problem.a.values_mut().iter_mut().step_by(2).for_each(|value| *value = -0.0);
        problem.b.iter_mut().step_by(3).for_each(|value| *value = -0.0);
        Ok(problem)
    }),
    ("cancellation", "terms of 10^8 that cancel, beside terms of 1", |seed| {
        let mut problem = problem(seed)?;
        let values = problem.a.values_mut().iter_mut().enumerate();
        values.for_each(|(i, value)| *value = [1e8, 1.0, -1e8][i % 3]);
        problem.b.fill(1.0);
        Ok(problem)
    }),
    ("overflow", "products near the largest f32", |seed| {
        let mut problem = problem(seed)?;
        problem.a.values_mut().iter_mut().for_each(|value| *value *= 1e20);
        problem.b.iter_mut().for_each(|value| *value *= 4e18);
        Ok(problem)
    }),
];

/// Columns of A, and of B.
const K: usize = 61;
const N: usize = 20;
/// The column that one row alone uses.
const UNIQUE: usize = 30;

pub(super) fn cases() -> Vec<Case> {
    CASES
        .into_iter()
        .map(|(name, about, make)| case(format!("spmm/values/{name}"), about.into(), Effort::Quick, make))
        .collect()
}

/// Rows of 0 to 18 nonzeros. One row alone uses column [`UNIQUE`]; none uses the first or the last.
fn problem(seed: u64) -> Result<Problem> {
    let mut rows: Vec<Vec<u32>> = (0..19).map(|length| spread(length, K - 2)).collect();
    for columns in &mut rows {
        columns.retain(|&column| column != 0 && column as usize != UNIQUE);
    }
    rows[11].push(UNIQUE as u32);
    Problem::of_rows(K, &rows, N, seed)
}

fn unused_row(row: usize, seed: u64) -> Result<Problem> {
    let mut problem = problem(seed)?;
    problem.b[row * N..][..N].fill(f32::NAN);
    problem.b[row * N] = f32::INFINITY;
    Ok(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_b_are_used_as_the_cases_say() {
        let columns = problem(1).unwrap();
        let uses = |column: usize| columns.a.col_indices().iter().filter(|&&c| c as usize == column).count();
        assert_eq!((uses(0), uses(K - 1), uses(UNIQUE)), (0, 0, 1));
        assert!(uses(4) > 0 && uses(9) > 0);
    }
}

//! Values that tensor cores, or the parts of `f32` that they multiply, cannot hold; and those that must not spread.
use anyhow::Result;

use super::super::problem::Problem;
use super::{Types, case};
use crate::Case;
use lacuna_cases::pattern::spread;

/// Name, what it is, and how the problem is made from a seed.
type Values = (&'static str, &'static str, fn(u64) -> Result<Problem>);

const CASES: [Values; 16] = [
    ("nan_unused", "NaN and infinities in rows of B that no nonzero meets", |seed| {
        let mut problem = problem(seed)?;
        for row in UNUSED {
            problem.b[row * N..][..N].fill(f32::NAN);
            problem.b[row * N] = f32::INFINITY;
            problem.b[row * N + 1] = f32::NEG_INFINITY;
        }
        Ok(problem)
    }),
    ("nan_in_one_row", "a row of B is NaN: it reaches the one row of A that uses it", |seed| {
        let mut problem = problem(seed)?;
        problem.b[UNIQUE * N..][..N].fill(f32::NAN);
        Ok(problem)
    }),
    ("nan_in_one_column", "one NaN in B", |seed| {
        let mut problem = problem(seed)?;
        problem.b[70 * N + 5] = f32::NAN;
        Ok(problem)
    }),
    (
        "nan_in_parts",
        "NaN in parts of a tile that the second block of a cluster, and a second warpgroup, add up",
        |seed| {
            let rows = (0..105).map(|row| {
                let mut columns: Vec<u32> = (0..60).filter(|&column| (row + column) % 7 < 2).collect();
                columns.retain(|&column| column != PART as u32 || PART_ROWS.contains(&row));
                columns
            });
            let mut problem = Problem::of_rows(60, &rows.collect::<Vec<_>>(), PART_N, seed)?;
            for column in PART_COLUMNS {
                problem.b[PART * PART_N + column] = f32::NAN;
            }
            Ok(problem)
        },
    ),
    ("infinite_in_one_row", "a row of B is infinite, of both signs", |seed| {
        let mut problem = problem(seed)?;
        problem.b[UNIQUE * N..][..N].fill(f32::INFINITY);
        problem.b[UNIQUE * N + 3] = f32::NEG_INFINITY;
        Ok(problem)
    }),
    ("infinite_b", "infinities that cancel to NaN, and that do not", |seed| {
        let mut problem = problem(seed)?;
        problem.b[40 * N..][..N].fill(f32::INFINITY);
        problem.b[130 * N..][..N / 2].fill(f32::NEG_INFINITY);
        Ok(problem)
    }),
    ("nan_in_a", "NaN among the values of A stays in its row", |seed| {
        let mut problem = problem(seed)?;
        problem.a.values_mut()[300] = f32::NAN;
        Ok(problem)
    }),
    ("infinite_a", "infinities of both signs in A", |seed| {
        let mut problem = problem(seed)?;
        problem.a.values_mut()[3] = f32::INFINITY;
        problem.a.values_mut()[500] = f32::NEG_INFINITY;
        Ok(problem)
    }),
    ("infinity_times_zero", "0 in A meets infinity in B: NaN", |seed| {
        let mut problem = problem(seed)?;
        problem.a.values_mut().fill(0.0);
        problem.b[40 * N..][..N].fill(f32::INFINITY);
        Ok(problem)
    }),
    ("largest", "the largest f32, which bfloat16 rounds to infinity, in A and in B", |seed| {
        let mut problem = problem(seed)?;
        scale(&mut problem, 1.0, 2.0_f32.powi(-10));
        problem.a.values_mut()[77] = f32::MAX;
        problem.a.values_mut()[401] = -f32::MAX;
        let (a, b) = (&mut problem.a, &mut problem.b);
        b[UNIQUE * N..][..N].fill(f32::MAX);
        let unique = a.col_indices().iter().position(|&column| column as usize == UNIQUE);
        a.values_mut()[unique.unwrap_or_default()] = 0.25;
        Ok(problem)
    }),
    ("overflow", "products near the largest f32", |seed| {
        let mut problem = problem(seed)?;
        scale(&mut problem, 1e20, 4e18);
        Ok(problem)
    }),
    ("overflow_of_sums", "sums about the largest half, 65,504: below, above, and of either sign", |seed| {
        let rows: Vec<Vec<u32>> = (245..270).map(|length| spread(length, 280)).collect();
        let mut problem = Problem::of_rows(280, &rows, N, seed)?;
        problem.a.values_mut().fill(16.0);
        problem.b.fill(16.0);
        problem.b.iter_mut().step_by(3).for_each(|value| *value = -16.0);
        problem.b.chunks_mut(N).for_each(|row| row[0] = 16.0);
        Ok(problem)
    }),
    ("subnormal_products", "products below f32's normal numbers", |seed| {
        let mut problem = problem(seed)?;
        scale(&mut problem, 1e-20, 1e-20);
        Ok(problem)
    }),
    ("subnormal_operands", "subnormal f32 in A, and in B", |seed| {
        let mut problem = problem(seed)?;
        problem.a.values_mut().iter_mut().step_by(2).for_each(|value| *value *= 1e-39);
        problem.b.iter_mut().step_by(3).for_each(|value| *value *= 1e-39);
        Ok(problem)
    }),
    ("subnormal_halves", "halves, and sums of them, that are subnormal", |seed| {
        let mut problem = problem(seed)?;
        scale(&mut problem, 2.0_f32.powi(-16), 2.0_f32.powi(-3));
        Ok(problem)
    }),
    ("cancellation", "terms of 10^4 that cancel, beside terms of 1", |seed| {
        let mut problem = problem(seed)?;
        let values = problem.a.values_mut().iter_mut().enumerate();
        values.for_each(|(i, value)| *value = [1e4, 1.0, -1e4][i % 3]);
        problem.b.fill(1.0);
        Ok(problem)
    }),
];

/// Columns of A, and of B.
const K: usize = 193;
const N: usize = 16;
/// Columns that no row uses: the first, the last, and those about the edge of a chunk.
const UNUSED: [usize; 5] = [0, 31, 32, 95, K - 1];
/// The column that one row alone uses.
const UNIQUE: usize = 100;
/// Of `nan_in_parts`: the columns of B, the column of A whose row of B has NaN, the rows that use it, and where it has them. Of 64 rows and 128
/// the second halves have some, and of 64 columns and 128.
const PART_N: usize = 104;
const PART: usize = 26;
const PART_ROWS: [u32; 2] = [44, 100];
const PART_COLUMNS: [usize; 2] = [40, 100];

pub(super) fn cases() -> Vec<Case> {
    CASES.map(|(name, about, make)| case(name.into(), about.into(), Types::All, make)).into()
}

/// Rows of 160 nonzeros and more, but one that is empty and one that is short. One row alone uses column [`UNIQUE`]; none
/// uses those of [`UNUSED`].
fn problem(seed: u64) -> Result<Problem> {
    let mut rows: Vec<Vec<u32>> = (160..179).map(|length| spread(length, K)).collect();
    (rows[3], rows[8]) = (vec![], spread(20, K));
    for columns in &mut rows {
        columns.retain(|&column| !UNUSED.contains(&(column as usize)) && column as usize != UNIQUE);
    }
    rows[11].push(UNIQUE as u32);
    Problem::of_rows(K, &rows, N, seed)
}

/// Multiplies A and B by powers.
fn scale(problem: &mut Problem, a: f32, b: f32) {
    problem.a.values_mut().iter_mut().for_each(|value| *value *= a);
    problem.b.iter_mut().for_each(|value| *value *= b);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_b_are_used_as_the_cases_say() {
        let problem = problem(1).unwrap();
        let uses = |column: usize| problem.a.col_indices().iter().filter(|&&c| c as usize == column).count();
        assert!(UNUSED.into_iter().all(|column| uses(column) == 0));
        assert_eq!(uses(UNIQUE), 1);
        assert!([40, 70, 130].into_iter().all(|column| uses(column) > 0));
        assert!(problem.a.nnz() >= lacuna::LONG_ROWS * problem.a.rows());
    }

    #[test]
    fn nan_reaches_the_second_parts_of_tiles() {
        let (_, _, make) = CASES.into_iter().find(|(name, ..)| *name == "nan_in_parts").unwrap();
        let problem = make(1).unwrap();
        let uses = problem.a.col_indices().iter().filter(|&&column| column as usize == PART).count();
        assert_eq!(uses, PART_ROWS.len());
        assert!(
            PART_ROWS.iter().all(|row| row % 64 >= 32) && PART_COLUMNS.iter().all(|column| column % 64 >= 32)
        );
        assert!(PART_ROWS[1] >= 64 && PART_COLUMNS[1] >= 64);
    }
}

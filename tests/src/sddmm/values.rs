//! Values that are not finite, or hardly numbers.
use anyhow::Result;

use super::problem::Problem;
use super::{Effort, case};
use crate::Case;

/// Name, what it is, and how the problem is made from a seed.
type Values = (&'static str, &'static str, fn(u64) -> Result<Problem>);

/// Columns of A and B, which are several chunks of most kernels and enough for tensor cores, and of C.
const K: usize = 72;
const N: usize = 30;
/// A row of A that has no nonzero, and a row of B that no nonzero names.
const EMPTY: usize = 4;
const UNUSED: usize = 11;

const CASES: [Values; 10] = [
    ("nan_in_a", "a row of A is NaN: its results are, and no other", |seed| {
        let mut problem = problem(seed)?;
        problem.a[6 * K..][..K].fill(f32::NAN);
        Ok(problem)
    }),
    ("nan_in_b", "a row of B has NaN at its end: its column's results are, and no other", |seed| {
        let mut problem = problem(seed)?;
        problem.b[8 * K - 1] = f32::NAN;
        Ok(problem)
    }),
    ("unused", "NaN and infinity in rows that no nonzero meets, the first of B among them", |seed| {
        let mut problem = problem(seed)?;
        problem.a[EMPTY * K..][..K].fill(f32::NAN);
        for row in [0, UNUSED] {
            problem.b[row * K..][..K].fill(f32::INFINITY);
        }
        Ok(problem)
    }),
    ("infinite", "infinities that cancel to NaN, and that do not", |seed| {
        let mut problem = problem(seed)?;
        problem.a[2 * K + 3] = f32::INFINITY;
        problem.a[2 * K + 40] = f32::NEG_INFINITY;
        problem.b[9 * K + 5] = f32::NEG_INFINITY;
        Ok(problem)
    }),
    ("infinity_times_zero", "0 in A meets infinity in B: NaN", |seed| {
        let mut problem = problem(seed)?;
        problem.a.fill(0.0);
        problem.b[9 * K + 5] = f32::INFINITY;
        Ok(problem)
    }),
    ("nan_below_tf32", "NaN of bits that TF32 leaves out, as of infinity, in A and in B", |seed| {
        let mut problem = problem(seed)?;
        problem.a[2 * K + 3] = f32::from_bits(0x7f80_0001);
        problem.b[9 * K + 70] = f32::from_bits(0xff80_1000);
        Ok(problem)
    }),
    ("largest", "the largest f32, which bfloat16 rounds to infinity, in A and in B", |seed| {
        let mut problem = problem(seed)?;
        problem.a.iter_mut().chain(&mut problem.b).for_each(|value| *value *= 2.0_f32.powi(-10));
        problem.a[3 * K + 50] = f32::MAX;
        problem.a[7 * K + 3] = -f32::MAX;
        problem.b[9 * K + 20] = f32::MAX;
        Ok(problem)
    }),
    ("infinite_scale", "infinities and NaN among the values of C", |seed| {
        let mut problem = problem(seed)?;
        let values = problem.c.values_mut();
        (values[3], values[17], values[40]) = (f32::INFINITY, f32::NAN, f32::NEG_INFINITY);
        Ok(problem)
    }),
    ("subnormal", "subnormal values and products are kept", |seed| {
        let mut problem = problem(seed)?;
        problem.a.iter_mut().for_each(|value| *value *= 1e-20);
        problem.b.iter_mut().for_each(|value| *value *= 1e-20);
        Ok(problem)
    }),
    ("overflow", "products near the largest f32", |seed| {
        let mut problem = problem(seed)?;
        problem.a.iter_mut().for_each(|value| *value *= 1e20);
        problem.b.iter_mut().for_each(|value| *value *= 4e18);
        Ok(problem)
    }),
];

pub(super) fn cases() -> Vec<Case> {
    CASES
        .into_iter()
        .map(|(name, about, make)| case(format!("sddmm/values/{name}"), about.into(), Effort::Quick, make))
        .collect()
}

/// Rows of 0 to 11 nonzeros, so that what is loaded together has several rows.
fn problem(seed: u64) -> Result<Problem> {
    let row = |row: u32| -> Vec<u32> {
        let columns = (0..row).map(|i| (i * 5 + row) % N as u32);
        columns.filter(|&column| row as usize != EMPTY && ![0, UNUSED as u32].contains(&column)).collect()
    };
    let rows: Vec<_> = (0..12)
        .map(|i| {
            let mut columns = row(i);
            columns.sort_unstable();
            columns.dedup();
            columns
        })
        .collect();
    Problem::of_rows(N, &rows, K, seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_used_as_the_cases_say() {
        let c = problem(1).unwrap().c;
        let uses = |column: u32| c.col_indices().iter().filter(|&&c| c == column).count();
        assert_eq!((uses(0), uses(UNUSED as u32), c.row(EMPTY).0.len()), (0, 0, 0));
        assert!(uses(7) > 0 && uses(9) > 0 && !c.row(2).0.is_empty() && !c.row(6).0.is_empty());
        assert!(c.nnz() > 41);
    }
}

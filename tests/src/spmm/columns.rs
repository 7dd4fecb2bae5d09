//! Every kind of N, and columns at the limits of indices.
use super::problem::Problem;
use super::{Effort, case};
use crate::Case;
use lacuna_cases::pattern::spread;

/// Odd, even, multiples of 4; below, at and above tiles of columns.
const N: [usize; 18] = [0, 1, 2, 3, 4, 5, 6, 8, 12, 17, 20, 32, 33, 63, 64, 66, 128, 130];

/// Columns of A where peers go wrong: K%32 ≠ 0 with K%4 = 0, fewer than a warp's lanes, one, and primes.
const K: [usize; 7] = [1, 4, 28, 36, 97, 100, 132];

/// Columns of A just above what 15 bits can count; about 16 bits, the last of which marks what is no column of a row; and
/// well above. What 31 bits cannot count is in `huge`.
const WIDE: [usize; 5] = [32_769, 65_535, 65_536, 65_537, 70_000];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for n in N {
        cases.push(case(
            format!("spmm/columns/n{n}"),
            format!("M = 23, K = 53, N = {n}"),
            Effort::Quick,
            move |seed| Problem::generated(lacuna::matrix::generate::uniform(23, 53, 0.6, seed), n, seed),
        ));
    }
    for k in K {
        cases.push(case(
            format!("spmm/columns/k{k}"),
            format!("M = 9, K = {k}, N = 36, two in three elements are nonzero"),
            Effort::Quick,
            move |seed| {
                Problem::generated(lacuna::matrix::generate::uniform(9, k, 1.0 / 3.0, seed), 36, seed)
            },
        ));
    }
    for k in WIDE {
        cases.push(case(
            format!("spmm/columns/last_of_{k}"),
            format!("the last column of K = {k} in every row"),
            Effort::Quick,
            move |seed| Problem::of_rows(k, &[vec![k as u32 - 1], spread(9, k), spread(70, k)], 4, seed),
        ));
    }
    cases
}

//! Sizes around those of tiles, chunks and groups of rows.
use anyhow::Result;
use lacuna::matrix::generate;

use super::super::problem::Problem;
use super::{Types, case};
use crate::Case;
use lacuna_cases::pattern::spread;

/// Rows of A about groups of 8 and tiles of up to 128.
const M: [usize; 7] = [1, 7, 8, 9, 63, 65, 129];

/// Columns of B about tiles of 32 to 128: all multiples of 4, some of 8.
const N: [usize; 7] = [4, 8, 20, 40, 100, 132, 136];

/// Columns of A about chunks of 32 and 64, and many steps of them.
const K: [usize; 8] = [1, 31, 32, 33, 64, 65, 300, 577];

/// Columns of A for 4 to 41 steps of 32, and 2 to 21 of 64: fewer than there are stages, as many, and more. The last is for
/// stages of 256, which are used again after 1,024.
const STEPS: [usize; 7] = [100, 190, 250, 370, 448, 512, 1300];

/// Columns and parts of zeros for which stages of 256 are used again, where rows have fewer nonzeros than are loaded ahead; with
/// 2300 also where two blocks share a tile.
const SPARSE: [(usize, f64); 4] = [(1100, 0.8), (1100, 0.9), (1100, 0.97), (2300, 0.9)];

/// Name, what it is, and how the problem is made from a seed.
type Pattern = (&'static str, &'static str, fn(u64) -> Result<Problem>);

const PATTERNS: [Pattern; 7] = [
    ("full", "a full matrix", |seed| Problem::generated(generate::uniform(19, 160, 0.0, seed), 16, seed)),
    ("one", "one nonzero, the last", |seed| {
        let mut rows = vec![vec![]; 17];
        rows[16] = vec![99];
        Problem::of_rows(100, &rows, 8, seed)
    }),
    ("none", "no nonzeros: C is zero", |seed| Problem::of_rows(70, &vec![vec![]; 11], 8, seed)),
    ("empty_rows", "empty rows among full ones", |seed| {
        let rows: Vec<Vec<u32>> =
            (0..21).map(|row| spread(if row % 7 == 3 { 0 } else { 200 }, 200)).collect();
        Problem::of_rows(200, &rows, 16, seed)
    }),
    ("empty_chunks", "chunks and steps without nonzeros, of some rows and of all", |seed| {
        let row = |row: u32| {
            let columns = (0..420).filter(|column| !(64..224).contains(column));
            columns.filter(|column| !(column / 32 + row).is_multiple_of(3)).collect()
        };
        Problem::of_rows(420, &(0..13).map(row).collect::<Vec<_>>(), 16, seed)
    }),
    ("last_of_eight", "the last row of each group alone has nonzeros", |seed| {
        let row = |row: usize| if row % 8 == 7 { spread(row + 1, 90) } else { vec![] };
        Problem::of_rows(90, &(0..24).map(row).collect::<Vec<_>>(), 8, seed)
    }),
    ("every_start", "rows of 129 to 145, so that values start at any place", |seed| {
        let rows: Vec<Vec<u32>> = (129..146).map(|length| spread(length, 171)).collect();
        Problem::of_rows(171, &rows, 8, seed)
    }),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (turn, m) in M.into_iter().enumerate() {
        let about = format!("M = {m}, K = 200, N = 8");
        cases.push(case(format!("m{m}"), about, Types::in_turn(turn), move |seed| {
            Problem::generated(generate::uniform(m, 200, 0.3, seed), 8, seed)
        }));
    }
    for (turn, n) in N.into_iter().enumerate() {
        let about = format!("M = 9, K = 150, N = {n}");
        cases.push(case(format!("n{n}"), about, Types::in_turn(turn), move |seed| {
            Problem::generated(generate::uniform(9, 150, 0.1, seed), n, seed)
        }));
    }
    for (turn, k) in K.into_iter().enumerate() {
        for (other, (name, sparsity)) in [("few", 0.9), ("many", 0.2)].into_iter().enumerate() {
            let about = format!("M = 10, K = {k}, N = 16, zeros {sparsity}");
            cases.push(case(format!("k{k}_{name}"), about, Types::in_turn(turn + other), move |seed| {
                Problem::generated(generate::uniform(10, k, sparsity, seed), 16, seed)
            }));
        }
    }
    for (turn, k) in STEPS.into_iter().enumerate() {
        let about = format!("M = 10, K = {k}, N = 24, zeros 0.3");
        cases.push(case(format!("k{k}"), about, Types::in_turn(turn), move |seed| {
            Problem::generated(generate::uniform(10, k, 0.3, seed), 24, seed)
        }));
    }
    for (k, sparsity) in SPARSE {
        let about = format!("M = 12, K = {k}, N = 16, zeros {sparsity}");
        cases.push(case(format!("k{k}_{sparsity}"), about, Types::All, move |seed| {
            Problem::generated(generate::uniform(12, k, sparsity, seed), 16, seed)
        }));
    }
    cases.extend(PATTERNS.map(|(name, about, make)| case(name.into(), about.into(), Types::All, make)));
    cases
}

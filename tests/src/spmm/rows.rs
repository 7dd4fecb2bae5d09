//! Every kind of row: empty, long, and starting anywhere.
use anyhow::Result;

use super::problem::Problem;
use super::{Effort, case};
use crate::Case;
use lacuna_cases::pattern::spread;

/// Name, what it is, and how the problem is made from a seed.
type Row = (&'static str, &'static str, fn(u64) -> Result<Problem>);

const CASES: [Row; 14] = [
    ("none", "M = 0", |seed| Problem::of_rows(20, &[], 12, seed)),
    ("one", "M = 1", |seed| Problem::of_rows(50, &[spread(13, 50)], 12, seed)),
    ("no_columns", "K = 0: every row is empty", |seed| Problem::of_rows(0, &vec![vec![]; 7], 12, seed)),
    ("nothing_at_all", "M = K = N = 0", |seed| Problem::of_rows(0, &[], 0, seed)),
    ("all_empty", "no nonzeros: C is zero", |seed| Problem::of_rows(40, &vec![vec![]; 33], 20, seed)),
    ("first_empty", "the first rows are empty", |seed| with_lengths(&[0, 0, 0, 5, 9, 2], 12, seed)),
    ("last_empty", "the last rows are empty", |seed| with_lengths(&[7, 1, 12, 0, 0], 12, seed)),
    ("middle_empty", "empty rows among others", |seed| with_lengths(&[3, 0, 8, 0, 0, 31, 0, 1], 12, seed)),
    ("one_dense", "one full row among empty ones", |seed| {
        let mut rows = vec![vec![]; 40];
        rows[17] = spread(300, 300);
        Problem::of_rows(300, &rows, 12, seed)
    }),
    ("long", "a row of 5003, many stages, among short ones", |seed| {
        Problem::of_rows(6000, &[spread(3, 6000), spread(5003, 6000), spread(1, 6000)], 4, seed)
    }),
    ("every_length", "lengths 0 to 40: starts at every alignment", |seed| {
        with_lengths(&(0..=40).collect::<Vec<_>>(), 12, seed)
    }),
    ("every_length_down", "lengths 40 to 0", |seed| {
        with_lengths(&(0..=40).rev().collect::<Vec<_>>(), 10, seed)
    }),
    ("around_stages", "lengths about 128 and 256, after starts at every alignment", |seed| {
        with_lengths(&[1, 127, 128, 129, 1, 1, 130, 255, 256, 257, 3, 131], 9, seed)
    }),
    ("singles", "a nonzero a row, more rows than a block has", |seed| {
        let rows: Vec<Vec<u32>> = (0..301).map(|row| vec![row * 7 % 64]).collect();
        Problem::of_rows(64, &rows, 5, seed)
    }),
];

pub(super) fn cases() -> Vec<Case> {
    CASES
        .into_iter()
        .map(|(name, about, make)| case(format!("spmm/rows/{name}"), about.into(), Effort::Quick, make))
        .collect()
}

/// Rows of these lengths, their nonzeros spread over 300 columns.
fn with_lengths(lengths: &[usize], n: usize, seed: u64) -> Result<Problem> {
    let rows: Vec<Vec<u32>> = lengths.iter().map(|&length| spread(length, 300)).collect();
    Problem::of_rows(300, &rows, n, seed)
}

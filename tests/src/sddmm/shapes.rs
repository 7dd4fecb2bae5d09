//! Patterns of every form.
use anyhow::Result;
use lacuna::matrix::{Pattern, generate};
use lacuna_cases::pattern::{of_rows, spread};

use super::problem::Problem;
use super::{Effort, case};
use crate::Case;

/// Name, what it is, K, and how the pattern is made from a seed.
type Shape = (&'static str, &'static str, usize, Effort, fn(u64) -> Result<Pattern>);

const CASES: [Shape; 20] = [
    ("no_rows", "M = 0", 8, Effort::Quick, |_| of_lengths(5, &[])),
    ("no_columns", "N = 0", 8, Effort::Quick, |_| of_lengths(0, &[0, 0, 0])),
    ("nothing_at_all", "M = N = 0", 8, Effort::Quick, |_| of_lengths(0, &[])),
    ("all_empty", "no nonzeros", 8, Effort::Quick, |_| of_lengths(9, &[0, 0, 0, 0])),
    ("single", "one nonzero", 20, Effort::Quick, |_| of_lengths(1, &[1])),
    ("single_among_many", "one nonzero of 30 × 40", 20, Effort::Quick, |_| {
        Ok(Pattern::new(30, 40, (0..31).map(|row| u32::from(row > 17)).collect(), vec![39])?)
    }),
    ("full_row", "one row of all 300 columns", 12, Effort::Quick, |_| of_lengths(300, &[0, 300, 0])),
    ("full_column", "one column in all 300 rows", 12, Effort::Quick, |_| of_lengths(1, &[1; 300])),
    ("diagonal", "a nonzero a row and column", 36, Effort::Quick, |_| {
        Ok(Pattern::new(70, 70, (0..=70).collect(), (0..70).rev().collect())?)
    }),
    ("dense", "every element is there", 16, Effort::Quick, |_| of_lengths(13, &[13; 17])),
    ("empty_rows", "empty rows at the ends and between", 24, Effort::Quick, |_| {
        of_lengths(6, &[0, 0, 2, 0, 0, 6, 1, 0, 5, 0, 0])
    }),
    ("tile", "as many nonzeros as a tile", 4, Effort::Quick, |_| of_lengths(32, &[5, 27])),
    ("tile_and_one", "a nonzero more than a tile", 4, Effort::Quick, |_| of_lengths(32, &[5, 28])),
    ("block_less_one", "a nonzero less than a block", 4, Effort::Quick, |_| of_lengths(341, &[341; 3])),
    ("block_and_one", "a nonzero more than a block", 4, Effort::Quick, |_| of_lengths(345, &[340, 340, 345])),
    ("uneven", "rows of very different length", 20, Effort::Quick, |seed| {
        Ok(generate::with_row_cov(40, 60, 10.0, 1.5, seed)?)
    }),
    ("many_columns", "more columns than 16 bits count", 3, Effort::Quick, |_| {
        Ok(Pattern::new(2, 70_000, vec![0, 3, 5], vec![0, 40_000, 69_999, 65_535, 65_536])?)
    }),
    ("panels", "columns of several panels", 128, Effort::Quick, |_| of_lengths(600, &[300, 0, 290, 1, 256])),
    ("table", "8192 × 2048, 90 % zeros, K = 128", 128, Effort::Gpu, |seed| {
        Ok(generate::uniform(8192, 2048, 0.9, seed)?)
    }),
    ("attention", "12288 × 12288, 95 % zeros, K = 64", 64, Effort::Gpu, |seed| {
        Ok(generate::uniform(12288, 12288, 0.95, seed)?)
    }),
];

pub(super) fn cases() -> Vec<Case> {
    CASES
        .into_iter()
        .map(|(name, about, k, effort, pattern)| {
            let make = move |seed| Problem::draw(pattern(seed)?, k, seed);
            case(format!("sddmm/shapes/{name}"), about.into(), effort, make)
        })
        .collect()
}

/// Rows of so many nonzeros, spread over the columns.
fn of_lengths(cols: usize, lengths: &[usize]) -> Result<Pattern> {
    of_rows(cols, &lengths.iter().map(|&len| spread(len, cols)).collect::<Vec<_>>())
}

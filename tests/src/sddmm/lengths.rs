//! Every length of products: around vectors, chunks, and what a group of lanes has at once.
use super::problem::Problem;
use super::{Effort, case};
use crate::Case;

/// 36 and 100 are multiples of 4, but not of 32.
const LENGTHS: [usize; 20] = [0, 1, 2, 3, 4, 6, 8, 16, 31, 32, 33, 36, 48, 64, 100, 128, 129, 256, 260, 1000];

pub(super) fn cases() -> Vec<Case> {
    LENGTHS
        .into_iter()
        .map(|k| {
            let make = move |seed| Problem::of_rows(COLS, &rows(), k, seed);
            case(format!("sddmm/lengths/{k}"), format!("K = {k}"), Effort::Quick, make)
        })
        .collect()
}

const COLS: usize = 41;

/// 79 nonzeros: a long row, rows of one, an empty row, and rows that end inside of what is loaded together.
fn rows() -> Vec<Vec<u32>> {
    let row = |len: u32| (0..len).map(|i| i * COLS as u32 / len).collect();
    [37, 0, 1, 1, 1, 2, 3, 5, 6, 0, 7, 16].map(row).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tile_ends_with_the_last_nonzero() {
        let nnz: usize = rows().iter().map(Vec::len).sum();
        assert_eq!((nnz, nnz % 4, nnz % 32), (79, 3, 15));
    }
}

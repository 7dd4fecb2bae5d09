//! Bags transposed: for each row of a table that bags name, the places where they name it, in ascending order.
//!
//! Bags may name a row more than once, and in any order, so that the kernels for matrices do not do: these go by rows, and lanes
//! side by side have distinct columns. Here the nonzeros are sorted by the row that they name, digit by digit from the lowest one,
//! each time in the order that they had (a radix sort):
//!
//! ```text
//!   rows    7 2 9 2 │ 4 2 7 1     1. count: a warp owns a chunk of nonzeros, and a counter a digit in shared memory.
//!           chunk 0 │ chunk 1     2. scan: down the chunks, and along the digits (`ScanChunks`, `ScanColumns`).
//!   sorted  1 2 2 2 4 7 7 9       3. scatter: the warp reads its chunk again, and puts each nonzero where its counter says.
//!   places  7 1 3 5 4 0 6 2          Of 32 nonzeros, those of one digit find each other by ballots; their order is the lanes'.
//!   starts  0 1     4 5   7 8     4. rows: a row starts where a sorted nonzero differs from the one before.
//!   bags    ...                   5. bags: the bag of each place, by a search among the bags' offsets; and the longest row.
//! ```
//! Nothing is added atomically but a maximum: the result is the same in every run. Nonzeros of the padding index are sorted as if
//! they named a row after the last, and are then no row's.
mod digits;
mod rows;

pub use digits::{CountDigits, Digits, MAX_DIGIT_BITS, ScatterDigits, ScatterDigitsArgs};
pub use rows::{BagsOfPlaces, BagsOfPlacesArgs, CountRows, NamedRows, NamedRowsArgs, SortedRows};

use lacuna_gpu::WARP;

use super::Tile;

/// A block is one warp, with a chunk of nonzeros.
const TILE: Tile = Tile { block_items: 1 };

/// Where a warp's chunk of so many nonzeros ends.
#[inline(always)]
fn chunk_end(first: u32, chunk: u32, nnz: u32) -> u32 {
    if nnz - first < chunk { nnz } else { first + chunk }
}

/// The lanes below this one.
#[inline(always)]
fn lanes_below(lane: u32) -> u32 {
    (1 << (lane % WARP)) - 1
}

//! Aᵀ of a sparse A (CSR, M×K): its pattern once, its values as often as they change.
//!
//! ```text
//!        columns of A             counters, chunks × K        1. count: a warp owns a chunk of rows, and a row of
//!       ┌───────────┐            ┌───────────────────┐           counters; it counts its columns.
//! warp 0│ x   x   x │            │ 1   1   0   1   0 │        2. scan: down each column of the counters, so that a
//!       │ x         │  ──count─► ├───────────────────┤           warp knows how many of its column come before; and
//! warp 1│     x   x │            │ 0   1   0   2   0 │           along the columns' totals: the row offsets of Aᵀ.
//!       │         x │            └───────────────────┘        3. scatter: the warp reads its rows again, and puts
//!       └───────────┘              scan ▼ and ►                  each element where its counter says.
//! ```
//! Rows come in ascending order, inside a warp and from chunk to chunk, so each row of Aᵀ comes out sorted, and nothing
//! is sorted or added atomically: the result is the same in every run. Then, for each set of values,
//! 4. gather: `values_t[i] = values[permutation[i]]`.
//!
//! Bags of indices, which may name a column twice, go another way: [`bags`].
pub mod bags;
mod count_scatter;
mod gather;
mod list;
mod offsets;
mod scan;

pub use count_scatter::{Chunks, Count, CountArgs, Scatter, ScatterArgs};
pub use gather::{Gather, GatherArgs};
pub use offsets::{Offsets, OffsetsArgs};
pub use scan::{ScanArgs, ScanChunks, ScanColumns};

/// What the host must know of a kernel's shape: a grid is one dimension of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Items that a block works on: rows, chunks of rows, columns, or elements. Of [`ScanColumns`] as many as there are.
    pub block_items: u32,
}

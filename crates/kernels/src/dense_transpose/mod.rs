//! Transposes of dense matrices, a batch of them: out[c][r] = in[r][c], bit for bit.
//!
//! ```text
//!     in, a tile                  shared memory, a row a column of the tile               out, the tile's transpose
//!    ┌── 64 columns ──┐           ┌──── 32 words ────┬─┐                                 ┌─ 32 or 64 rows of in ─┐
//!  r │ warp w: row w  │ ── loads  │ c = 0: r 0 1 2 … │ │ pad      warp w: rows w, w + 8,  │ c = 0: r 0 1 2 3 …    │
//!    │ then row w + 8 │ ──────►   │ c = 1: r 0 1 2 … │ │ of one   … of shared memory, ──► │ c = 1: r 0 1 2 3 …    │
//!    └────────────────┘           └──────────────────┴─┘ word     which are rows of out   └───────────────────────┘
//! ```
//! 256 threads have a tile. A warp loads along a row of the input, 8 words a thread before the first one is stored, and puts them
//! down a column of shared memory; then it reads a row of that and stores it along a row of the result. Rows of shared memory are
//! 33 words apart, so both ways the 32 lanes meet 32 banks.
//!
//! A word is an element of 32 bits, or two of 16 bits from two rows of one column. These tiles have 64 rows. Where rows are aligned to
//! words, a thread loads words, two neighbours of a row, and makes of two rows' words those of two columns; a word of two neighbouring
//! rows is stored as it is. Where they are not, elements are loaded or stored one by one, and a word's two stand 32 apart, so that a
//! warp's 32 still are neighbours in memory.
//!
//! Lower bound: the bytes of the matrices, read once and written once, as a plain copy moves them. In shared memory a word takes one
//! wavefront of 32 to be written and one to be read.
mod kernel;
mod list;

pub use kernel::{DenseTranspose, DenseTransposeArgs};

/// What the host must know of a kernel's shape. A grid has the tiles down the rows along x, those along the columns along y, and the
/// matrices of the batch along z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Bits of an element.
    pub bits: u32,
    /// Rows of a block's tile of the input.
    pub rows: u32,
    /// Its columns.
    pub columns: u32,
}

//! Layer normalisation: out = (x − mean) / √(variance + ε) · weight + bias, over the features of each token.
//!
//! ```text
//!   Rows: rows × features              Channels: images × channels × pixels
//!            features ──►                        pixels ──►  32 of a block
//!   row r    │lane 0│lane 1│ … │lane 0│ …        channel 0   │ warp 0: a lane a pixel │
//!   row r+1  │ other lanes     │ …               channel 1   │ warp 1                 │
//!            LANES lanes share a row: a          …           │ …                      │
//!            warp or a block. A lane has         channel 8   │ warp 0                 │
//!            vectors of V features.              Warps add up through shared memory.
//! ```
//! Three passes over a token, of which the second and third meet the caches: 1. the mean m. 2. the sums of d = x − m and of d².
//! 3. the result. The second sum of d is what rounding left of the mean: it corrects both mean and variance (the *corrected two-pass
//! algorithm*: Chan, Golub, LeVeque, *Algorithms for Computing the Sample Variance*, The American Statistician 37, 1983). A formula
//! of one pass, the mean of x² less m², cancels. Each element is read by one thread, which writes it last of all: the result may take
//! the place of x.
//!
//! Lower bound: the bytes of x and of the result, once each, as a plain copy moves them.
//!
//! Source: Ba, Kiros, Hinton, *Layer Normalization* (2016, arXiv:1607.06450).
mod channels;
mod list;
mod moments;
mod rows;

pub use channels::{LayerNormChannels, LayerNormChannelsArgs};
pub use moments::Scale;
pub use rows::{LayerNormRows, LayerNormRowsArgs};

use crate::ValueType;

/// What the host must know of a kernel's shape. A grid is one dimension of blocks of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Type of the values.
    pub value: ValueType,
    /// How tokens lie.
    pub scheme: Scheme,
    /// Features that a thread loads at once.
    pub vector: u32,
    /// Tokens of a block.
    pub block_tokens: u32,
}

/// How tokens lie, and how threads share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// The features of a token beside each other.
    Rows {
        /// Threads that share a row.
        lanes: u32,
    },
    /// The features of a token a plane of pixels apart: the warps of a block share them.
    Channels,
}

/// Loads that a thread has under way at once while it adds up.
const CHUNK: usize = 4;
/// Threads of a block.
const THREADS: u32 = 256;

//! The N greatest values of each row of a dense matrix, with their indices, in falling order; as probabilities of the row's
//! softmax, as their logarithms, or as they are. A row is read once.
//!
//! ```text
//!   row  ┌──────┬──────┬──────┬──────┬── 16 bytes a load, all in registers     1. greatest m, and Σ exp(x − m)
//!        │ t0   │ t1   │ t2   │ t0   │                                         2. each thread's own greatest; a threshold that
//!        └──────┴──────┴──────┴──────┴──                                            at least N of these reach, and few more
//!   own     7      4      9     …         threshold: 7                          3. what reaches the threshold goes to shared memory
//!        └─ 7 ──────────── 9, 8 ─────┐                                         4. sorted there, first N written
//!   shared  8 7 9 ──sort──► 9 8 7 ───┴──► values, indices
//! ```
//! Order is that of *keys*: a value's bits, so turned that they compare as integers, above the complement of its index. No two
//! are equal, so that the result is one and the same however they were gathered. A threshold that too many reach, which takes many
//! equal values, is raised bit by bit over whole keys until they fit.
//!
//! Longer rows are gone through tile by tile ([`StreamingSelect`]): the threshold of the first tile lets few of the others
//! through, and Σ is kept relative to the greatest so far. Few rows are cut into chunks, a block each, and [`Finalize`]
//! selects from what these gathered. Where N is too large for that, chunks are sorted lists, which [`Merge`] makes one.
//!
//! Source: Argueta, Chiang, *Accelerating Sparse Matrix Operations in Neural Networks on Graphics Processing Units* (ACL
//! 2019), section 4.2: softmax and selection in one pass, on packed keys. Its own algorithm is [`Insertion`].
mod beam;
mod block;
mod candidates;
mod chunk;
mod filter;
mod finalize;
mod insertion;
mod key;
mod list;
mod merge;
mod output;
mod radix_select;
mod rank;
mod refine;
mod robust;
mod sort;
mod streaming_select;
mod sums;
mod threshold;

pub use beam::{Beam, BeamArgs};
pub use chunk::TopNArgs;
pub use finalize::{Finalize, FinalizeArgs};
pub use insertion::Insertion;
pub use merge::{Merge, MergeArgs};
pub use output::{Form, Output};
pub use radix_select::RadixSelect;
pub use streaming_select::StreamingSelect;

use crate::ValueType;

/// What the host must know of a kernel's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// What the kernel does.
    pub method: Method,
    /// Type of the logits; `None` where the kernel reads none.
    pub value: Option<ValueType>,
    /// Elements of a row, or of a chunk of it, that a block holds.
    pub capacity: u32,
    /// The greatest N.
    pub most: u32,
}

/// What a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Finds a threshold, gathers what reaches it, sorts.
    RadixSelect,
    /// Goes through a row of any length, and gathers what reaches a threshold that rises.
    StreamingSelect,
    /// Inserts each value into a sorted list by atomic maxima.
    Insertion,
    /// Makes one list of the sorted lists of a row's chunks.
    Merge,
    /// Selects from what was gathered of a row's chunks.
    Finalize,
    /// Makes the next beams of a search from what was found for each.
    Beam,
}

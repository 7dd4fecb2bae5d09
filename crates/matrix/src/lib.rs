//! Sparse and dense matrices on the host, for the kernels of Lacuna.
//!
//! - [`Pattern`] says where the nonzeros stand; [`Csr`] adds a value to each. [`Coo`] is the loose form that
//!   files and programs build matrices from, [`Dense`] a row-major dense matrix.
//! - Every constructor checks its input and answers with a [`FormatError`]. A value of these types is
//!   therefore always well formed, and nothing after construction needs to check again.
//! - [`io`] reads and writes `.smtx`, Matrix Market and `.npy` files.
//! - [`generate`] draws seeded random matrices, [`PatternStats`] describes a pattern in a few numbers.
//!
//! Rows, columns and nonzeros are counted in `usize` and must each fit `u32`, because the kernels index with
//! 32 bits. Indices start at 0. The columns of a row always ascend strictly: none stands twice, whatever the
//! pattern was made from.
//!
//! ```
//! use lacuna_matrix::Csr;
//!
//! // [ 1 0 2 ]
//! // [ 0 0 0 ]
//! let a = Csr::new(2, 3, vec![0, 2, 2], vec![0, 2], vec![1.0f32, 2.0])?;
//! assert_eq!(a.nnz(), 2);
//! assert_eq!(a.to_dense()?, [1.0, 0.0, 2.0, 0.0, 0.0, 0.0]);
//! # Ok::<(), lacuna_matrix::FormatError>(())
//! ```

mod block_diagonal;
mod coo;
mod csr;
mod dense;
mod error;
pub mod generate;
pub mod io;
mod pattern;
mod stats;

pub use coo::Coo;
pub use csr::Csr;
pub use dense::Dense;
pub use error::FormatError;
pub use pattern::{Pattern, rows_by_length};
pub use stats::PatternStats;

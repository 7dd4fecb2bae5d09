//! cuSPARSE: SpMM and SDDMM of a CSR matrix.

mod api;
mod descriptor;
mod sddmm;
mod spmm;

pub use sddmm::{Sddmm, SddmmProblem};
pub use spmm::{Spmm, SpmmAlgorithm, SpmmProblem};

/// The loaded library.
pub type CuSparse = crate::Loaded<api::Api>;

/// A cuSPARSE handle in one CUDA context; clones share it. Stays on its thread.
pub type Handle = crate::Handle<api::Api>;

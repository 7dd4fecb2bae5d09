//! cuBLAS: dense GEMM, one or a batch: what a sparse product has to beat.

mod api;
mod gemm;

pub use gemm::{Gemm, GemmProblem, Math, WORKSPACE_BYTES};

/// The loaded library.
pub type CuBlas = crate::Loaded<api::Api>;

/// A cuBLAS handle in one CUDA context; clones share it. Stays on its thread.
pub type Handle = crate::Handle<api::Api>;

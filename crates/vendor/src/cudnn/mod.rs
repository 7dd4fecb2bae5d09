//! cuDNN: convolution in two dimensions, alone or with a bias and ReLU in the same call.
//!
//! The library has parts, which it opens when it first needs them. They must lie beside it: where they are missing,
//! cuDNN 9 ends the process.

mod algorithm;
mod api;
mod convolution;
mod described;
mod descriptor;
mod shape;
mod status;

pub use algorithm::{Algorithm, Found, Math, MathType};
pub use convolution::Convolution;
pub use described::{Arrays, DescribedConv, WORKSPACE_BYTES};
pub use shape::{ConvProblem, ConvSizes};
pub(crate) use status::name as status_name;

/// The loaded library.
pub type CuDnn = crate::Loaded<api::Api>;

/// A cuDNN handle in one CUDA context; clones share it. Stays on its thread.
pub type Handle = crate::Handle<api::Api>;

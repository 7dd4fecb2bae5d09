//! NVIDIA's libraries, loaded at run time: cuSPARSE's SpMM and SDDMM ([`cusparse`]), cuBLAS's GEMM ([`cublas`]) and cuDNN's
//! convolution ([`cudnn`]), in each [`DataType`]; [`nvml`], which counts a GPU's energy; and [`driver`], which launches kernels bare.
//!
//! The library takes cuDNN where a plan asks for it, benchmarks all of them. Nothing is linked: the crate builds and its programs start with no
//! CUDA on the machine, and a library that is not there is a value, [`Missing`], that names what was looked for, where, and the fix.
//!
//! Addresses are raw device addresses and streams raw `CUstream` pointers, so that the crate depends on no
//! binding of the driver. Handles live in the CUDA context that is current when they are made.
//!
//! ```
//! use std::error::Error;
//!
//! use lacuna_vendor::cusparse::{CuSparse, SpmmAlgorithm, SpmmProblem};
//! use lacuna_vendor::{Search, Workspace};
//!
//! /// Runs `problem`, whose arrays are device arrays of the sizes it states, with each algorithm that can.
//! unsafe fn compare(
//!     problem: &SpmmProblem,
//!     allocate: impl Fn(usize) -> Result<Workspace, std::io::Error>,
//! ) -> Result<(), Box<dyn Error>> {
//!     let handle = CuSparse::load(&Search::from_env())?.handle()?;
//!     for algorithm in SpmmAlgorithm::ALL {
//!         // SAFETY: the caller answers for the arrays, which outlive `spmm`.
//!         let spmm = match unsafe { handle.spmm(problem, algorithm, &allocate) } {
//!             Err(error) if error.is_unsupported() => continue,
//!             other => other?,
//!         };
//!         spmm.preprocess()?;
//!         spmm.run()?;
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Why not a binding crate
//! About forty functions are needed, and their C interface has not changed since CUDA 11.4 and cuDNN 8. Declared
//! here, they work with every version since; bindings made for one version refuse to build, or to load, beside
//! another.

mod api;
mod check;
pub mod cublas;
pub mod cudnn;
pub mod cusparse;
mod data_type;
pub mod driver;
mod error;
mod library;
mod loaded;
pub mod nvml;
mod scalar;
mod search;
mod status;
mod workspace;

pub use data_type::DataType;
pub use error::Error;
pub use library::{LoadFailure, Missing, Version};
pub use loaded::{Handle, Loaded, VendorApi};
pub use search::Search;
pub use status::{Status, Vendor};
pub use workspace::Workspace;

use loaded::RawHandle;

//! Builds a crate of GPU kernels into PTX, checks it, and reports what it takes of a GPU.
//!
//! A build script or a tool describes the build with a [`Builder`]:
//!
//! ```no_run
//! use lacuna_ptx::{Builder, LaunchBounds, Target};
//!
//! # fn main() -> Result<(), lacuna_ptx::BuildError> {
//! let build = Builder::new("../kernels")
//!     .targets(&[Target::Sm70, Target::Sm80, Target::Sm90a])
//!     .launch_bounds(|entry| (entry == "axpy").then_some(LaunchBounds::threads(256)))
//!     .copy_to("target/ptx")
//!     .build()?;
//! for module in &build.modules {
//!     println!("{}: {} entries", module.target, module.entries.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!   sources ──compile──► one module a target ──split──► one module an entry ──bounds, checks──► files
//!            (cached by content)                                          └──ptxas──► resource table
//! ```
//!
//! The compiler is rustc itself, 1.96 or newer, with the sources of `core`; see [`DeviceCompiler::find`] for where
//! it is looked for. A machine without one gets an error that says how to get it. Nothing here needs a GPU or a
//! CUDA toolkit; with `ptxas` at hand the build also learns registers, shared memory and spills. An
//! [`Archive`] takes PTX from a machine with a compiler to those without.
mod archive;
mod bounds;
mod builder;
pub mod cache;
mod checks;
mod compile;
mod compiler;
mod error;
mod given;
mod module;
mod occupancy;
mod ptxas;
mod resources;
mod sources;
mod target;

pub use archive::{Archive, Identity};
pub use bounds::LaunchBounds;
pub use builder::{Build, Builder};
pub use cache::Cache;
pub use checks::{Barriers, count_barriers};
pub use compiler::{DeviceCompiler, MINIMUM_RUSTC, Source};
pub use error::BuildError;
pub use module::{EntryPtx, Module};
pub use occupancy::{Limiter, Occupancy};
pub use ptxas::Ptxas;
pub use resources::{ResourceTable, Resources};
pub use target::{ParseTargetError, SmLimits, Target};

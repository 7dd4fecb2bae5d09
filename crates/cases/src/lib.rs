//! Problems: what the conformance cases and the benchmarks work on.
//!
//! A [`Spec`] says how a problem is drawn, and a [`Problem`] is one that was drawn or read. Neither knows an operation:
//! the programs `lacuna-verify` and `lacuna-bench` do, and agree on what stands here. The same spec and seed always give
//! the same problem.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`data`] | real matrices, in folders and archives |
//! | [`device`] | names of devices on the command line |
//! | [`dlmc`] | the Deep Learning Matrix Collection |
//! | [`exit`] | exit codes |
//! | [`maps`] | feature maps in another order |
//! | [`number`] | the types of values |
//! | [`pattern`] | patterns by their rows |
pub mod conv;
pub mod data;
pub mod device;
pub mod dlmc;
pub mod exit;
pub mod maps;
pub mod number;
pub mod pattern;
pub mod pool;
mod problem;
mod spec;

pub use number::Number;
pub use problem::{Matrix, Problem};
pub use spec::{Draw, Size, Source, Spec, Values};

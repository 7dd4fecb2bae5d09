//! The benchmarks as a library: what the program `lacuna-bench` is made of.
//!
//! A [`suites`] lists problems; [`measure()`] measures one on a device, beside the vendor's libraries, or models it on the
//! simulator; the result is a [`record::Record`], one JSON object a line. A summary sets them beside the papers' numbers.
//!
//! Modules use only those above them in this list:
//!
//! | modules | what they have |
//! | --- | --- |
//! | [`timing`], `cold`, `energy`, [`types`], [`machine`], [`profile`] | what is measured with |
//! | [`record`], `model`, `picture` | what a measurement comes to |
//! | `fit` | constants of cost models from measurements |
//! | `peers`, `copies`, `dense`, [`session`] | what we are set against, and what one call of the program holds |
//! | [`operation`], [`measure()`] | what an operation is here, and measuring one |
//! | `spmm`, `sddmm`, … | the operations, a folder each; [`OPERATIONS`] is the list of them |
//! | [`operations`] | operations by name |
//! | [`suites`] | problems by name |
//! | [`networks`], [`decoder`] | whole networks, and a step of a translation decoder |
//! | [`allocations`], [`host`] | what calls take by the host's clock, and hold |
//! | [`table`], `summary`, `papers`, `expect` | records for people |
//! | [`cli`], [`commands`] | the program |
pub mod allocations;
mod arithmetic;
mod attention;
mod bias_act;
mod checked;
mod chosen;
pub mod cli;
mod cold;
pub mod commands;
pub mod conv;
mod copies;
pub mod decoder;
mod dense;
mod dense_transpose;
mod energy;
mod expect;
mod fit;
pub mod host;
mod layer_norm;
pub mod machine;
mod measure;
mod model;
pub mod networks;
mod nhot;
pub mod operation;
pub mod operations;
mod pages;
mod papers;
mod peers;
mod picture;
pub mod pointwise;
pub mod pool;
pub mod profile;
pub mod record;
mod sddmm;
pub mod session;
mod softmax;
pub mod spdnn;
pub mod spmm;
pub mod suites;
mod summary;
pub mod table;
pub mod timing;
mod topn;
pub mod transpose;
pub mod types;

pub use measure::measure;

/// All operations that suites and `run` know.
pub static OPERATIONS: &[operation::Op] = &[
    &attention::OPERATION,
    &bias_act::OPERATION,
    &dense_transpose::OPERATION,
    &layer_norm::OPERATION,
    &nhot::OPERATION,
    &sddmm::OPERATION,
    &softmax::OPERATION,
    &spmm::OPERATION,
    &topn::OPERATION,
];

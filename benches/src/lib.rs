//! The benchmarks as a library: what the program `lacuna-bench` is made of.
//!
//! A [`suites`] lists problems; [`measure()`] measures one on a device, beside the vendor's libraries, or models it on the
//! simulator; the result is a [`record::Record`], one JSON object a line. A summary sets them beside the papers' numbers.
mod arithmetic;
mod attention;
mod checked;
pub mod cli;
pub mod commands;
mod copies;
pub mod exit;
pub mod machine;
mod measure;
mod model;
mod nhot;
pub mod op;
mod pages;
mod papers;
mod peers;
pub mod problem;
pub mod profile;
pub mod record;
mod sddmm;
pub mod session;
mod softmax;
pub mod spmm;
pub mod suites;
mod summary;
pub mod table;
pub mod timing;
mod topn;
pub mod transpose;
pub mod types;

pub use measure::measure;

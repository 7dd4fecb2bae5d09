//! The benchmarks as a library: what the program `lacuna-bench` is made of.
//!
//! A [`suites`] lists problems; [`spmm`] measures one on a device, beside the vendor's libraries, or models it on the
//! simulator; the result is a [`record::Record`], one JSON object a line.
pub mod cli;
pub mod commands;
pub mod exit;
pub mod machine;
pub mod record;
pub mod spmm;
pub mod suites;
pub mod table;
pub mod timing;
pub mod transpose;

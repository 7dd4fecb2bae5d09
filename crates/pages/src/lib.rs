//! The Rust of README.md and of the pages in docs: each snippet is a doctest of this crate, so that `cargo test` compiles all
//! of them, and runs those that are not marked `no_run`. There is nothing else in it.
#[cfg(doctest)]
include!(concat!(env!("OUT_DIR"), "/pages.rs"));

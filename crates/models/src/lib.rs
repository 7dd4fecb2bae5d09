//! Networks to run and to measure, and what they are made of.
//!
//! [`challenge`] is the Sparse DNN Graph Challenge: its layers and its images, made here bit for bit or read from
//! its files. [`weights`] are the named tensors of a network, which [`files`] reads and writes and [`prune`] makes sparse.

pub mod challenge;
pub mod files;
pub mod prune;
pub mod weights;

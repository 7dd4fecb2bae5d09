//! Networks to run and to measure, and what they are made of.
//!
//! [`network`] has networks as data, [`networks`] those of papers, [`memory`] says where their values lie, [`model`] runs them
//! on a device, and [`oracle`] in `f64` on the host. [`weights`] are the named tensors of a network. [`decoder`] is a step of a
//! translation decoder.
//! [`challenge`] is the Sparse DNN Graph Challenge: its layers and its images, made here bit for bit or read from
//! its files. [`files`] reads and writes weights, [`import`] whole networks of others, and [`prune`] makes them sparse.

pub mod challenge;
pub mod decoder;
pub mod files;
pub mod import;
pub mod memory;
pub mod model;
pub mod network;
pub mod networks;
pub mod oracle;
pub mod prune;
pub mod weights;

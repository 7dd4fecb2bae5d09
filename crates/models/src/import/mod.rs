//! Networks with their weights, from files that others wrote.
//!
//! [`onnx`] reads ONNX, which most frameworks export.

pub mod onnx;

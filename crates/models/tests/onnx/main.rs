//! Networks from ONNX files that are made here, and from a real one.
mod build;
mod errors;
mod nodes;
mod real;
mod whole;

//! Weights from files that others wrote, and into files.
//!
//! | module | format | gives |
//! | --- | --- | --- |
//! | [`safetensors`] | containers of tensors, dense and sparse | [`Weights`](crate::weights::Weights), or all as an [`Archive`] |
//! | [`npy`] | one array of NumPy's | [`Tensor`](crate::weights::Tensor) |
//! | [`npz`] | several of them by name | [`Weights`](crate::weights::Weights) |
//! | [`tflite`] | networks of TensorFlow Lite, with their sparse tensors | [`tflite::Model`] |
//!
//! Readers trust nothing in a file: whatever its bytes are, there is a result or an error that names the file and the tensor, and memory
//! grows with the file, not with what it claims.

mod archive;
mod error;
pub mod npy;
pub mod npz;
pub mod safetensors;
pub mod tflite;

pub use archive::{Archive, Other};
pub use error::FileError;

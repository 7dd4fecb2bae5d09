//! safetensors: weights in a container of tensors.
//!
//! Read are `F32`, `F16`, `BF16` and `F64`, which is rounded; sparse tensors are made dense. Written is `F32`. An [`Archive`] keeps
//! sparse tensors sparse, the types, and tensors of integers.
//!
//! ```
//! use lacuna_models::files::safetensors;
//! use lacuna_models::weights::{Tensor, Weights};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut weights = Weights::new();
//! weights.insert("conv.weight", Tensor::new(vec![2, 1, 1, 1], vec![0.5, -1.0])?);
//! let bytes = safetensors::to_bytes(&weights)?;
//! assert_eq!(safetensors::from_bytes(&bytes)?, weights);
//! # Ok(())
//! # }
//! ```
use std::io;
use std::path::Path;

use lacuna_matrix::io::safetensors::{Container, Float, Tensors};

use super::{Archive, FileError};
use crate::weights::Weights;

/// Reads a container's bytes.
///
/// # Errors
/// [`FileError::Read`] where they are no container, or a tensor cannot be read; [`FileError::NotNumbers`] where a tensor is of
/// another type; [`FileError::Sparse`] where a sparse tensor cannot be made dense.
pub fn from_bytes(bytes: &[u8]) -> Result<Weights, FileError> {
    Archive::read(&Container::new(bytes)?, |_, _| {})?.into_weights()
}

/// Reads a file.
///
/// # Errors
/// As [`from_bytes`], with the path.
pub fn read(path: impl AsRef<Path>) -> Result<Weights, FileError> {
    let path = path.as_ref();
    Archive::open(path, |_, _| {})?.into_weights().map_err(|error| error.in_file(path))
}

/// Writes a container's bytes.
///
/// # Errors
/// Where a tensor has the name `__metadata__`, which the format keeps for itself.
pub fn to_bytes(weights: &Weights) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    tensors(weights).write(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file.
///
/// # Errors
/// [`FileError::Write`].
pub fn write(weights: &Weights, path: impl AsRef<Path>) -> Result<(), FileError> {
    Ok(tensors(weights).write_path(path)?)
}

fn tensors(weights: &Weights) -> Tensors<'_> {
    weights.iter().fold(Tensors::default(), |tensors, (name, tensor)| {
        tensors.dense(name, tensor.shape(), tensor.values(), Float::F32)
    })
}

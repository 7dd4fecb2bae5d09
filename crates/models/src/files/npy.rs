//! `.npy`: a tensor in a file of NumPy's.
//!
//! Read are arrays of `f32`, `f16` and `f64` (which is rounded), in C or Fortran order; written are arrays of `f32` in C order
//! ([`lacuna_matrix::io::npy`]).
use std::path::Path;

use lacuna_matrix::io::{npy, write_file};

use super::FileError;
use crate::weights::Tensor;

/// Reads a file.
///
/// # Errors
/// [`FileError::Read`] with the path, where the file cannot be read, or is of another kind.
pub fn read(path: impl AsRef<Path>) -> Result<Tensor, FileError> {
    let npy::Array { shape, values } = npy::read_array_path(&path)?;
    let tensor = path.as_ref().display().to_string();
    Tensor::new(shape, values).map_err(|source| FileError::Tensor { tensor, source })
}

/// Writes a file.
///
/// # Errors
/// [`FileError::Write`].
pub fn write(tensor: &Tensor, path: impl AsRef<Path>) -> Result<(), FileError> {
    Ok(write_file(path.as_ref(), |writer| npy::write_array(tensor.shape(), tensor.values(), writer))?)
}

//! What can go wrong with a file of weights.
use std::path::{Path, PathBuf};

use lacuna_matrix::io::{ReadError, WriteError};
use thiserror::Error;

use super::tflite::TfliteError;
use crate::weights::{SparseError, WeightsError};

/// Weights could not be read from a file, or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be read, or is not of the format.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Weights are numbers, and this tensor has others.
    #[error(
        "tensor {tensor} is of type {dtype}; expected F32, F16, BF16 or F64; leave it out of the file, or read an `Archive`, \
         which keeps it beside the weights"
    )]
    NotNumbers {
        /// The tensor.
        tensor: String,
        /// Its type, as safetensors names it.
        dtype: String,
    },
    /// A tensor's shape and values do not fit together.
    #[error("tensor {tensor}: {source}")]
    Tensor {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        source: WeightsError,
    },
    /// A sparse tensor cannot be made, or cannot be made dense.
    #[error("tensor {tensor}: {source}")]
    Sparse {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        source: SparseError,
    },
    /// A tensor is there as a dense and as a sparse one.
    #[error("tensor {tensor} is there twice, dense and sparse: keep one of them")]
    Twice {
        /// The tensor.
        tensor: String,
    },
    /// An `.npz` file is no zip file that can be read.
    #[error("expected a zip file of .npy files: {why}")]
    Zip {
        /// What is wrong.
        why: String,
    },
    /// An array of an `.npz` file cannot be read.
    #[error("tensor {tensor}: {source}")]
    Array {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        source: ReadError,
    },
    /// What is wrong with a TFLite file.
    #[error(transparent)]
    Tflite(#[from] TfliteError),
    /// What is wrong with the file of this path.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<FileError>,
    },
}

impl FileError {
    /// The same with the file's name, where it is not there yet.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Read(ReadError::File { .. }) | Self::Write(_) | Self::File { .. } => self,
            other => Self::File { path: path.to_owned(), source: Box::new(other) },
        }
    }
}

//! `.npz`: tensors by name, each as a `.npy` file, in a zip file of NumPy's (`numpy.savez`, also compressed).
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use lacuna_matrix::io::{ReadError, WriteError, npy};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::FileError;
use crate::weights::{Tensor, Weights};

/// What a name has in the zip file, and not in the weights.
const ENDING: &str = ".npy";
/// Bytes that a byte of a zip file can become: the most that its compression can do. Parts that lie over one another could be more.
const MOST_RATIO: u64 = 1032;

/// Reads a file: all arrays, of `f32`, `f16` or `f64` (which is rounded), in C or Fortran order.
///
/// # Errors
/// With the path: [`FileError::Read`] where the file cannot be opened, [`FileError::Zip`] where it is no zip file,
/// [`FileError::Array`] where an array is of another kind.
pub fn read(path: impl AsRef<Path>) -> Result<Weights, FileError> {
    let path = path.as_ref();
    let read = || {
        let failed = |source| ReadError::Io { place: None, source };
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        read_zip(BufReader::new(file), len)
    };
    read().map_err(|error: FileError| error.in_file(path))
}

/// Reads the bytes of a file.
///
/// # Errors
/// As [`read`].
pub fn from_bytes(bytes: &[u8]) -> Result<Weights, FileError> {
    read_zip(io::Cursor::new(bytes), bytes.len() as u64)
}

fn read_zip(reader: impl Read + io::Seek, len: u64) -> Result<Weights, FileError> {
    let zip = |source: ZipError| FileError::Zip { why: source.to_string() };
    let mut archive = ZipArchive::new(reader).map_err(zip)?;
    let mut weights = Weights::new();
    let mut left = len.saturating_mul(MOST_RATIO);
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(zip)?;
        let file = entry.name().map_err(zip)?.into_owned();
        let Some(name) = file.strip_suffix(ENDING) else { continue };
        let failed = |source| FileError::Array { tensor: name.to_owned(), source };
        let mut limited = entry.by_ref().take(left);
        let npy::Array { shape, values } = npy::read_array(BufReader::new(&mut limited)).map_err(failed)?;
        left = limited.limit();
        let tensor = Tensor::new(shape, values)
            .map_err(|source| FileError::Tensor { tensor: name.to_owned(), source })?;
        weights.insert(name, tensor);
    }
    Ok(weights)
}

/// Writes a file, as `f32` and without compression.
///
/// # Errors
/// [`FileError::Write`].
pub fn write(weights: &Weights, path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    let write = || {
        let mut zip = ZipWriter::new(BufWriter::new(File::create(path)?));
        // Beyond 4 GiB a file in a zip must say so before it is written.
        let options =
            SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
        for (name, tensor) in weights.iter() {
            zip.start_file(format!("{name}{ENDING}"), options)?;
            let mut buffered = BufWriter::new(&mut zip);
            npy::write_array(tensor.shape(), tensor.values(), &mut buffered)?;
            buffered.flush()?;
        }
        zip.finish()?.flush()
    };
    write().map_err(|source: io::Error| WriteError { path: path.to_owned(), source }.into())
}

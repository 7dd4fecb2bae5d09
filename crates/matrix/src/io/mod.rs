//! Readers and writers of matrix files.
//!
//! | module | format | gives |
//! | --- | --- | --- |
//! | [`smtx`] | `.smtx`, the patterns of the Deep Learning Matrix Collection | [`Pattern`](crate::Pattern) |
//! | [`mtx`] | Matrix Market, coordinate format | [`Csr<f32>`](crate::Csr) or [`Coo<f32>`](crate::Coo) |
//! | [`npy`] | NumPy arrays | [`Dense<f32>`](crate::Dense), or [`npy::Array`] |
//! | [`safetensors`] | containers of tensors; a matrix is PyTorch's three of CSR | [`Csr<f32>`](crate::Csr) |
//!
//! Readers take any [`BufRead`](std::io::BufRead), or a container's file or bytes, and trust nothing in it: a file that is cut short, wrong or
//! hostile gives a [`ReadError`] that names the place, what was expected there and what was found. Memory grows
//! with the data that was read, never with what a header claims. [`scan`] and [`write_file`] are for readers and
//! writers of further formats.

mod error;
pub mod mtx;
pub mod npy;
pub mod safetensors;
pub mod scan;
pub mod smtx;

pub use error::{Place, ReadError, WriteError};

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

/// The most elements to make room for on the word of a header; more room comes with the data.
const MAX_HINT: u64 = 1 << 16;

/// Rows that a file may have whatever its nonzeros; see [`check_rows`].
const MAX_FREE_ROWS: u64 = 1 << 22;

/// How much room to make at first for `claimed` elements.
fn capacity_hint(claimed: u64) -> usize {
    claimed.min(MAX_HINT) as usize
}

/// Refuses far more rows than a file has nonzeros: compressed rows take an offset each, so a file of a few bytes
/// could ask for gigabytes.
fn check_rows(rows: u64, nnz: u64) -> Result<(), ReadError> {
    if rows > MAX_FREE_ROWS && rows / 64 > nnz { Err(ReadError::MostlyEmpty { rows, nnz }) } else { Ok(()) }
}

/// Opens `path`, reads it, and puts its name into any error.
fn read_file<T>(
    path: &Path,
    read: impl FnOnce(BufReader<File>) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let with_path = |source| ReadError::File { path: path.to_owned(), source: Box::new(source) };
    let file = File::open(path).map_err(|source| with_path(ReadError::Io { place: None, source }))?;
    read(BufReader::new(file)).map_err(with_path)
}

/// Makes `path`, writes it, and puts its name into any error.
///
/// # Errors
/// If the file cannot be made or written.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), WriteError> {
    let write = || {
        let mut writer = BufWriter::new(File::create(path)?);
        write(&mut writer)?;
        writer.flush()
    };
    write().map_err(|source| WriteError { path: path.to_owned(), source })
}

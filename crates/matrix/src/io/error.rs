//! What can go wrong with a file.

use crate::FormatError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line of a text file, counted from 1.
    Line(u64),
    /// A byte of a binary file, counted from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// A file could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Reading the file at this path failed.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What failed.
        source: Box<ReadError>,
    },
    /// The operating system refused to open or read.
    #[error("{}{source}", place.map(|place| format!("{place}: ")).unwrap_or_default())]
    Io {
        /// How far the reader had come; `None` when the file did not open.
        place: Option<Place>,
        /// What the operating system says.
        source: io::Error,
    },
    /// Something else stands where a part of the format should stand.
    #[error("{place}: expected {expected}, got {got}")]
    Syntax {
        /// Where.
        place: Place,
        /// What should stand there.
        expected: String,
        /// What stands there, shortened.
        got: String,
    },
    /// There are more or fewer of something than announced; the file may be cut short.
    #[error("{place}: expected {expected} {what}, got {got}")]
    Count {
        /// Where it was noticed.
        place: Place,
        /// What was counted.
        what: &'static str,
        /// How many were announced.
        expected: u64,
        /// How many there are, or `more`.
        got: String,
    },
    /// The file is of a kind that this reader does not take.
    #[error("{place}: {got} is not supported; supported: {supported}")]
    Unsupported {
        /// Where it says so.
        place: Place,
        /// The kind of the file.
        got: String,
        /// What the reader takes.
        supported: &'static str,
    },
    /// The checksum of a part is another: some of its bytes have changed since they were written.
    #[error(
        "{place}: the checksum of {what} is another: the file is damaged; make it anew, or copy it again"
    )]
    Checksum {
        /// Where the part begins.
        place: Place,
        /// The part.
        what: String,
    },
    /// The file announces an absurd number of rows for its nonzeros.
    #[error(
        "{rows} rows for {nnz} nonzeros: refused, because compressed rows would take 4 bytes a row; \
         for Matrix Market, `read_coo` takes such a file"
    )]
    MostlyEmpty {
        /// Rows announced.
        rows: u64,
        /// Nonzeros of the file.
        nnz: u64,
    },
    /// The file was read, but its parts do not make up a matrix.
    #[error("{place}: {source}")]
    Format {
        /// Where the parts stand.
        place: Place,
        /// What is wrong with them.
        source: FormatError,
    },
}

/// A file could not be written.
#[derive(Debug, Error)]
#[error("cannot write {}: {source}; check that the folder exists and may be written", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the operating system says.
    pub source: io::Error,
}

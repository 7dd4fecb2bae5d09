//! MNIST's labels, in their files.

use super::idx;
use crate::challenge::gz::read_file;
use lacuna_matrix::io::{Place, ReadError};
use std::io::{self, BufRead, Write};
use std::path::Path;

/// What an idx file of bytes in one dimension begins with.
const MAGIC: u32 = 0x0000_0801;

/// Which digits images show: a number of 0 to 9 each, in the order of [`Digits`](super::Digits).
///
/// ```
/// use lacuna_models::challenge::images::Labels;
///
/// let file = [0, 0, 8, 1, /* three: */ 0, 0, 0, 3, /* they are: */ 5, 0, 4];
/// assert_eq!(Labels::read(&file[..])?.as_slice(), [5, 0, 4]);
/// # Ok::<(), lacuna_matrix::io::ReadError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    labels: Vec<u8>,
}

impl Labels {
    /// Digits that there are.
    pub const CLASSES: usize = 10;

    /// Reads an idx file: `u32`s 0x801 and labels, big-endian, and then a byte a label.
    ///
    /// # Errors
    /// If reading fails, the file is of another kind, it ends early or late, or a label is no digit.
    pub fn read(mut reader: impl BufRead) -> Result<Self, ReadError> {
        let [count] = idx::header(&mut reader, MAGIC, "labels")?;
        let labels = idx::elements::<1>(reader, count.into(), "labels")?;
        if let Some(at) = labels.iter().position(|&label| usize::from(label) >= Self::CLASSES) {
            return Err(ReadError::Syntax {
                place: Place::Byte(idx::header_bytes(1) + at as u64),
                expected: "a label of 0 to 9".into(),
                got: labels[at].to_string(),
            });
        }
        Ok(Self { labels })
    }

    /// Reads the labels in a file, which may be packed by gzip: MNIST's `train-labels-idx1-ubyte.gz`.
    ///
    /// # Errors
    /// As [`read`](Self::read), with the path.
    pub fn read_path(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        read_file(path.as_ref(), Self::read)
    }

    /// Writes an idx file, so that [`read`](Self::read) gives the same labels.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&self, mut writer: impl Write) -> io::Result<()> {
        // No more than a u32 counts were read.
        for word in [MAGIC, self.len() as u32] {
            writer.write_all(&word.to_be_bytes())?;
        }
        writer.write_all(&self.labels)
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The labels.
    pub fn as_slice(&self) -> &[u8] {
        &self.labels
    }
}

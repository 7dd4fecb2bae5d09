//! Packed networks in files.
//!
//! All numbers are little-endian; those of the head have 8 bytes each, `f32` and `f64` as their bits.
//!
//! ```text
//!   magic, version, bytes of the head's body
//!   body:  algorithm, its outputs and tiles, prune, layers
//!          of each layer: name of its kernel, inputs, outputs, edges, cost, lo, hi, keeps zeros, 3 sizes, words, SHA-256 of these
//!   SHA-256 of all before
//!   the words of each layer, one layer after another
//! ```
//! The head's sum covers those of the layers, so that all bytes are covered, and layers can be read and checked in parallel. A
//! layer's arrays lie as they do in memory. Where each begins follows from the sizes ([`layout`]), and is not in the file;
//! nor is what follows from the layers, such as after which of them rows are listed.
//!
//! Sums show damage. They do not show who wrote a file, and kernels trust their arrays. So the contents are checked as well,
//! array by array ([`check`]): whatever the bytes are, there is an error, or a network whose kernels stay inside their memory.
//!
//! A kernel whose arrays have another order, or other contents, has another name, or the format another version.
mod check;
mod head;
mod layout;
#[cfg(test)]
mod tests;
mod words;

use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use lacuna_matrix::io::{Place, ReadError, WriteError};
use rayon::prelude::*;
use tempfile::NamedTempFile;

use self::head::{Head, Record};
use super::PackedNetwork;
use super::network::Layers;
use super::packed::Arrays;
use crate::{Device, DeviceInfo, Error, Result};

impl PackedNetwork {
    /// Writes the network into a file, whole or not at all: what was there before stays until all is written.
    ///
    /// # Errors
    /// [`Error::Write`] if the file cannot be made or written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let written = || {
            let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
            let mut file = NamedTempFile::new_in(folder)?;
            self.write(&mut file)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        written().map_err(|source| WriteError { path: path.to_owned(), source }.into())
    }

    /// Writes the network. Sums are made before, on all cores; writes are of a megabyte.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&self, mut writer: impl Write) -> io::Result<()> {
        writer.write_all(&head::write(&self.layers, &self.arrays)?)?;
        self.arrays.iter().try_for_each(|arrays| words::write(&arrays.words, &mut writer))
    }

    /// Reads the network in a file, layers in parallel, for a device. It is checked as a whole: nothing in the file is trusted, so
    /// that any file can be opened. Memory holds the network once; of layers at work, up to once more while they grow.
    ///
    /// The network is the one that was saved: it gives the same bits. It was packed for the device and the number of samples of
    /// that time, which decided what kernels suit.
    ///
    /// # Errors
    /// [`Error::Read`] for a file that is damaged, cut, of another version or no network, or has a kernel that this version of the
    /// library does not have; [`Error::Unsupported`] for a kernel that the device cannot run.
    pub fn load(device: &Device, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        load(device.info(), path).map_err(|error| match error {
            Error::Read(source) => ReadError::File { path: path.to_owned(), source: Box::new(source) }.into(),
            other => other,
        })
    }

    /// As [`load`](Self::load), of a reader, one layer after another. All of the reader is read.
    ///
    /// # Errors
    /// As `load`.
    pub fn read(device: &Device, reader: impl Read) -> Result<Self> {
        read(device.info(), reader)
    }
}

fn read(info: &DeviceInfo, mut reader: impl Read) -> Result<PackedNetwork> {
    let Head { layers, records, end } = head::read(&mut reader, info)?;
    let arrays = (0..records.len())
        .map(|at| layer(&layers, at, &records[at], &mut reader))
        .collect::<std::result::Result<_, _>>()?;
    let more = words::up_to(&mut reader, 1, end)?;
    if !more.is_empty() {
        return Err(longer(end).into());
    }
    Ok(PackedNetwork { layers: Arc::new(layers), arrays })
}

fn load(info: &DeviceInfo, path: &Path) -> Result<PackedNetwork> {
    let failed = |source| ReadError::Io { place: None, source };
    // Others, such as pipes, cannot be read from several places.
    let meta = fs::metadata(path).map_err(failed)?;
    if !meta.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")).into());
    }
    let Head { layers, records, end } = head::read(&mut File::open(path).map_err(failed)?, info)?;
    if meta.len() < end {
        let (place, got) = (Place::Byte(meta.len()), meta.len().to_string());
        return Err(ReadError::Count { place, what: "bytes", expected: end, got }.into());
    }
    if meta.len() > end {
        return Err(longer(end).into());
    }
    // Each layer opens the file anew. Were another in its place by now, the sums would tell.
    let read = |at: usize| {
        let mut file = File::open(path).map_err(failed)?;
        file.seek(SeekFrom::Start(records[at].start)).map_err(failed)?;
        layer(&layers, at, &records[at], &mut file)
    };
    let arrays = (0..records.len()).into_par_iter().map(read).collect::<std::result::Result<_, _>>()?;
    Ok(PackedNetwork { layers: Arc::new(layers), arrays })
}

/// Reads the arrays of a layer, and checks them.
fn layer(
    layers: &Layers,
    at: usize,
    record: &Record,
    reader: &mut impl Read,
) -> std::result::Result<Arrays, ReadError> {
    let words = words::read(reader, at, record)?;
    let checked = check::arrays(&layers.layers[at], record.sizes, &words);
    checked.map_err(|fault| ReadError::Syntax {
        place: Place::Byte(record.start),
        expected: format!("in layer {at} {}", fault.expected),
        got: fault.got,
    })?;
    Ok(Arrays { words })
}

fn longer(end: u64) -> ReadError {
    let (place, expected) = (Place::Byte(end), "the end of the file".into());
    ReadError::Syntax { place, expected, got: "more".into() }
}

//! Files that may be packed by gzip, as the challenge and MNIST publish theirs.

use flate2::bufread::MultiGzDecoder;
use lacuna_matrix::io::ReadError;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The first two bytes of a gzip file. No other format of the challenge begins so.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// What `reader` gives, unpacked if it begins as a gzip file does.
///
/// Unpacking is done while reading, so a small file that unpacks to a large one takes the memory of what its reader
/// keeps. A damaged file fails there.
///
/// # Errors
/// If the first bytes cannot be read.
pub fn unpack<'a>(mut reader: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    if reader.fill_buf()?.starts_with(&MAGIC) {
        Ok(Box::new(BufReader::new(MultiGzDecoder::new(reader))))
    } else {
        Ok(Box::new(reader))
    }
}

/// Opens `path`, reads it, packed or not, and puts its name into any error.
pub(super) fn read_file<T>(
    path: &Path,
    read: impl FnOnce(Box<dyn BufRead>) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let open = || unpack(BufReader::new(File::open(path)?));
    let content = open().map_err(|source| ReadError::Io { place: None, source });
    content
        .and_then(read)
        .map_err(|source| ReadError::File { path: path.to_owned(), source: Box::new(source) })
}

//! idx files of bytes, MNIST's format: a header of big-endian `u32`s, and then a byte an element.

use lacuna_matrix::io::{Place, ReadError};
use std::io::{BufRead, Read};

/// Reads a header: a number that says of what kind the file is, and `N` sizes. `what` it is a file of goes into the error
/// that another kind gives.
pub(super) fn header<const N: usize>(
    reader: &mut impl BufRead,
    magic: u32,
    what: &str,
) -> Result<[u32; N], ReadError> {
    let bytes = header_bytes(N);
    let got = word(reader, 0, bytes)?;
    if got != magic {
        return Err(ReadError::Syntax {
            place: Place::Byte(0),
            expected: format!("0x{magic:08x}, of an idx file of {what}"),
            got: format!("0x{got:08x}"),
        });
    }
    let mut sizes = [0; N];
    for (index, size) in sizes.iter_mut().enumerate() {
        *size = word(reader, 4 + 4 * index as u64, bytes)?;
    }
    Ok(sizes)
}

/// Reads what follows a header of `N` sizes: so many bytes, and no more.
pub(super) fn elements<const N: usize>(
    reader: impl BufRead,
    expected: u64,
    what: &'static str,
) -> Result<Vec<u8>, ReadError> {
    let mut elements = Vec::new();
    // One more than announced, to see whether there is more.
    let read = reader.take(expected + 1).read_to_end(&mut elements);
    let got = elements.len() as u64;
    let place = Place::Byte(header_bytes(N) + got.min(expected));
    read.map_err(|source| ReadError::Io { place: Some(place), source })?;
    if got != expected {
        let got = if got > expected { "more".into() } else { got.to_string() };
        return Err(ReadError::Count { place, what, expected, got });
    }
    Ok(elements)
}

/// Bytes of a header with so many sizes.
pub(super) const fn header_bytes(sizes: usize) -> u64 {
    4 + 4 * sizes as u64
}

/// The number at this byte of a header.
fn word(reader: &mut impl BufRead, at: u64, header: u64) -> Result<u32, ReadError> {
    let mut word = Vec::new();
    let read = reader.take(4).read_to_end(&mut word);
    let place = Place::Byte(at + word.len() as u64);
    read.map_err(|source| ReadError::Io { place: Some(place), source })?;
    let word = word.try_into().map_err(|word: Vec<u8>| ReadError::Count {
        place,
        what: "bytes of a header",
        expected: header,
        got: (at + word.len() as u64).to_string(),
    })?;
    Ok(u32::from_be_bytes(word))
}

//! The words of a layer as bytes, and their sum.
use std::io::{self, Read, Write};

use lacuna_matrix::io::{Place, ReadError};
use sha2::{Digest as _, Sha256};

use super::head::Record;

/// What SHA-256 gives.
pub(super) type Sum = [u8; 32];

/// Bytes of a word.
const WORD: usize = 4;
/// Words that are read or written at once: a megabyte.
const CHUNK: usize = 1 << 18;

/// The sum of bytes.
pub(super) fn sum_of_bytes(bytes: &[u8]) -> Sum {
    Sha256::digest(bytes).into()
}

/// The sum of a layer's words.
pub(super) fn sum(words: &[u32]) -> Sum {
    let mut hash = Sha256::new();
    write(words, &mut hash).expect("a sum takes any bytes");
    hash.finalize().into()
}

/// Writes a layer's words, a megabyte at once.
pub(super) fn write(words: &[u32], writer: &mut impl Write) -> io::Result<()> {
    let mut bytes = vec![0; WORD * words.len().min(CHUNK)];
    for chunk in words.chunks(CHUNK) {
        let bytes = &mut bytes[..WORD * chunk.len()];
        for (to, word) in bytes.as_chunks_mut::<WORD>().0.iter_mut().zip(chunk) {
            *to = word.to_le_bytes();
        }
        writer.write_all(bytes)?;
    }
    Ok(())
}

/// Reads the words of a layer. Memory grows with what there is to read, and holds no more than the layer at the end.
pub(super) fn read(reader: &mut impl Read, layer: usize, record: &Record) -> Result<Vec<u32>, ReadError> {
    let mut words: Vec<u32> = Vec::new();
    let mut hash = Sha256::new();
    let mut at = record.start;
    let mut left = record.words;
    while left > 0 {
        let wanted = left.min(CHUNK as u64) as usize;
        let bytes = up_to(reader, wanted * WORD, at)?;
        at += bytes.len() as u64;
        if bytes.len() < wanted * WORD {
            let (place, got) = (Place::Byte(at), "less".to_owned());
            let expected = record.words.saturating_mul(WORD as u64);
            return Err(ReadError::Count { place, what: "bytes of a layer", expected, got });
        }
        hash.update(&bytes);
        if words.capacity() - words.len() < wanted {
            let more = left.min(words.len().max(wanted) as u64) as usize;
            let no_room = |_| ReadError::Io {
                place: Some(Place::Byte(record.start)),
                source: io::ErrorKind::OutOfMemory.into(),
            };
            words.try_reserve_exact(more).map_err(no_room)?;
        }
        words.extend(bytes.as_chunks::<WORD>().0.iter().map(|word| u32::from_le_bytes(*word)));
        left -= wanted as u64;
    }
    if Sum::from(hash.finalize()) != record.sum {
        return Err(ReadError::Checksum { place: Place::Byte(record.start), what: format!("layer {layer}") });
    }
    Ok(words)
}

/// The next `len` bytes, or fewer at the end.
pub(super) fn up_to(reader: &mut impl Read, len: usize, at: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let read = reader.take(len as u64).read_to_end(&mut bytes);
    read.map_err(|source| ReadError::Io { place: Some(Place::Byte(at)), source })?;
    Ok(bytes)
}

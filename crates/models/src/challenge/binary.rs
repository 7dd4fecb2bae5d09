//! Layers in binary, as the champion of 2020 reads them (Hidayetoğlu et al., "At-Scale Sparse Deep Neural Network
//! Inference With Efficient GPU Implementation", HPEC 2020).
//!
//! A layer of E edges is three arrays one after another, all little-endian, indices from 1:
//!
//! ```text
//! i32 output[E]   i32 input[E]   f32 value[E]
//! ```
//! A file has the layers of a network one after another, and nothing else, so readers are told E: 32 × neurons in the
//! challenge. Edges may stand in any order.

use super::gz::read_file;
use lacuna_matrix::io::{Place, ReadError, WriteError, write_file};
use lacuna_matrix::{Coo, Csr};
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

/// Bytes of a number of the format.
const WORD: usize = 4;

/// Reads one layer, with `edges` edges: rows are outputs, columns inputs. What follows is left in the reader.
///
/// # Errors
/// If reading fails or ends early, an index is not of 1 to `neurons`, a value is not finite, or an edge is given
/// twice. Bytes are counted from where the reader stood.
pub fn read_layer(reader: &mut impl BufRead, neurons: usize, edges: usize) -> Result<Csr<f32>, ReadError> {
    read_layer_at(reader, 0, neurons, edges)
}

/// Reads layers of `edges` edges each until the reader ends.
///
/// # Errors
/// As [`read_layer`].
pub fn read_layers(
    mut reader: impl BufRead,
    neurons: usize,
    edges: usize,
) -> Result<Vec<Csr<f32>>, ReadError> {
    let mut layers = Vec::new();
    let mut start = 0;
    loop {
        match reader.fill_buf() {
            Ok([]) => return Ok(layers),
            Ok(_) if edges == 0 => {
                let (place, got) = (Place::Byte(start), "more".into());
                return Err(ReadError::Count { place, what: "edges", expected: 0, got });
            }
            Ok(_) => layers.push(read_layer_at(&mut reader, start, neurons, edges)?),
            Err(source) => return Err(ReadError::Io { place: Some(Place::Byte(start)), source }),
        }
        start += 3 * array_bytes(edges);
    }
}

/// Reads all layers of a file, which may be packed by gzip.
///
/// # Errors
/// As [`read_layers`], with the path.
pub fn read_layers_path(
    path: impl AsRef<Path>,
    neurons: usize,
    edges: usize,
) -> Result<Vec<Csr<f32>>, ReadError> {
    read_file(path.as_ref(), |reader| read_layers(reader, neurons, edges))
}

fn read_layer_at(
    reader: &mut impl BufRead,
    start: u64,
    neurons: usize,
    edges: usize,
) -> Result<Csr<f32>, ReadError> {
    let array = array_bytes(edges);
    let index = |what: &str, place, bytes| {
        let got = i32::from_le_bytes(bytes);
        match usize::try_from(got) {
            Ok(index @ 1..) if index <= neurons => Ok(index as u32 - 1),
            _ => Err(syntax(place, format!("{what} of 1 to {neurons}"), got.to_string())),
        }
    };
    let outputs = read_array(reader, start, edges, |place, bytes| index("an output", place, bytes))?;
    let inputs = read_array(reader, start + array, edges, |place, bytes| index("an input", place, bytes))?;
    let values = read_array(reader, start + 2 * array, edges, |place, bytes| {
        let value = f32::from_le_bytes(bytes);
        if value.is_finite() {
            Ok(value)
        } else {
            Err(syntax(place, "a finite number".into(), value.to_string()))
        }
    })?;
    let layer = Coo::new(neurons, neurons, outputs, inputs, values).and_then(|coo| coo.to_csr());
    layer.map_err(|source| ReadError::Format { place: Place::Byte(start), source })
}

/// Bytes of an array. So many edges that this is not exact are more than any file has.
fn array_bytes(edges: usize) -> u64 {
    (edges as u64).saturating_mul(WORD as u64).min(1 << 60)
}

/// Reads `count` numbers from byte `start` on, and converts each. Memory grows with what there is to read.
fn read_array<T>(
    reader: &mut impl BufRead,
    start: u64,
    count: usize,
    convert: impl Fn(Place, [u8; WORD]) -> Result<T, ReadError>,
) -> Result<Vec<T>, ReadError> {
    let mut bytes = Vec::new();
    let read = reader.take(array_bytes(count)).read_to_end(&mut bytes);
    let end = Place::Byte(start + bytes.len() as u64);
    read.map_err(|source| ReadError::Io { place: Some(end), source })?;
    let (words, _) = bytes.as_chunks::<WORD>();
    if words.len() < count {
        let (expected, got) = (count as u64, words.len().to_string());
        return Err(ReadError::Count { place: end, what: "numbers", expected, got });
    }
    let place = |at: usize| Place::Byte(start + (WORD * at) as u64);
    words.iter().enumerate().map(|(at, word)| convert(place(at), *word)).collect()
}

fn syntax(place: Place, expected: String, got: String) -> ReadError {
    ReadError::Syntax { place, expected, got }
}

/// Writes a layer, sorted by output, then input, so that [`read_layer`] gives the same one.
///
/// # Errors
/// If the writer fails, or if the layer has more neurons than an `i32` counts.
pub fn write_layer(layer: &Csr<f32>, mut writer: impl Write) -> io::Result<()> {
    if layer.rows().max(layer.cols()) > i32::MAX as usize {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the format has at most 2147483647 neurons"));
    }
    for row in 0..layer.rows() {
        for _ in layer.row(row).0 {
            writer.write_all(&(row as i32 + 1).to_le_bytes())?;
        }
    }
    for column in layer.col_indices() {
        writer.write_all(&(*column as i32 + 1).to_le_bytes())?;
    }
    for value in layer.values() {
        writer.write_all(&value.to_le_bytes())?;
    }
    Ok(())
}

/// Writes layers into a file, one after another.
///
/// # Errors
/// As [`write_layer`], and if the file cannot be made.
pub fn write_layers_path(layers: &[Csr<f32>], path: impl AsRef<Path>) -> Result<(), WriteError> {
    write_file(path.as_ref(), |writer| layers.iter().try_for_each(|layer| write_layer(layer, &mut *writer)))
}

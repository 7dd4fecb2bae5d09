//! `.npy`, NumPy's array files: dense matrices of `f32`, and arrays of any dimensions.
//!
//! Read are arrays of little-endian `f32` (`'<f4'`), `f16` (`'<f2'`, which is exact) and `f64` (`'<f8'`, which is rounded to `f32`), in C
//! or Fortran order, in versions 1 to 3 of the format: [`read`] takes two dimensions, [`read_array`] any. What comes out is in C order.
//! Written is version 1 in C order, as `f32`.

mod header;

use super::error::{Place, ReadError, WriteError};
use super::scan::shorten;
use super::{MAX_HINT, read_file, write_file};
use crate::Dense;
use half::f16;
use header::Header;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

const MAGIC: &[u8] = b"\x93NUMPY";
const SUPPORTED: &str = "versions 1 to 3; '<f4', '<f2' and '<f8'; two dimensions where a matrix is read";

/// The longest header taken. NumPy writes less than 1 KiB for such arrays.
const MAX_HEADER: u64 = 1 << 16;

/// Data starts at a multiple of this many bytes.
const ALIGNMENT: usize = 64;

/// An array of any dimensions, in C order: the last index goes fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its elements.
    pub values: Vec<f32>,
}

/// Reads a matrix, and all of the file.
///
/// # Errors
/// If reading fails, or the bytes are not of the format, or are of a kind that is not supported.
pub fn read(reader: impl BufRead) -> Result<Dense<f32>, ReadError> {
    let mut source = Source { reader, at: 0 };
    let kind = read_header(&mut source)?;
    let [rows, cols] = *kind.shape else {
        return Err(kind.unsupported(format!("an array of {} dimensions", kind.shape.len())));
    };
    let place = source.place();
    let values = read_values(&mut source, &kind)?;
    Dense::new(rows, cols, values).map_err(|source| ReadError::Format { place, source })
}

/// Reads an array, and all of the file.
///
/// # Errors
/// As [`read`], but for the number of dimensions.
pub fn read_array(reader: impl BufRead) -> Result<Array, ReadError> {
    let mut source = Source { reader, at: 0 };
    let kind = read_header(&mut source)?;
    let values = read_values(&mut source, &kind)?;
    Ok(Array { shape: kind.shape, values })
}

/// The elements of an array of this kind, which end the file, in C order.
fn read_values<R: BufRead>(source: &mut Source<R>, kind: &Kind) -> Result<Vec<f32>, ReadError> {
    let values = match kind.element {
        Element::F16 => read_elements(source, &kind.shape, |bytes| f16::from_le_bytes(bytes).to_f32())?,
        Element::F32 => read_elements(source, &kind.shape, f32::from_le_bytes)?,
        Element::F64 => read_elements(source, &kind.shape, |bytes| f64::from_le_bytes(bytes) as f32)?,
    };
    Ok(if kind.fortran_order { in_c_order(&values, &kind.shape) } else { values })
}

/// The elements of an array of this shape, which end the file, in the order of the file.
fn read_elements<R: BufRead, const N: usize>(
    source: &mut Source<R>,
    shape: &[usize],
    convert: impl Fn([u8; N]) -> f32,
) -> Result<Vec<f32>, ReadError> {
    let elements = shape.iter().fold(1_u128, |product, &size| product.saturating_mul(size as u128));
    let place = source.place();
    let mut values = Vec::new();
    while (values.len() as u128) < elements {
        let missing = (elements - values.len() as u128).min(MAX_HINT.into()) as u64;
        let bytes = source.up_to(missing * N as u64)?;
        values.extend(bytes.as_chunks::<N>().0.iter().map(|bytes| convert(*bytes)));
        if (bytes.len() as u64) < missing * N as u64 {
            let expected = u64::try_from(elements).unwrap_or(u64::MAX);
            return Err(ReadError::Count {
                place,
                what: "elements",
                expected,
                got: values.len().to_string(),
            });
        }
    }
    let place = source.place();
    let extra = source.up_to(1)?;
    if extra.is_empty() {
        return Ok(values);
    }
    Err(ReadError::Syntax { place, expected: "the end of the file".into(), got: shorten(&extra) })
}

/// The elements of an array whose first index goes fastest, in the order in which the last one does.
fn in_c_order(values: &[f32], shape: &[usize]) -> Vec<f32> {
    let mut index = vec![0; shape.len()];
    let mut ordered = Vec::with_capacity(values.len());
    while ordered.len() < values.len() {
        let at = index.iter().zip(shape).rfold(0, |at, (&index, &size)| at * size + index);
        ordered.push(values[at]);
        for (index, &size) in index.iter_mut().zip(shape).rev() {
            *index += 1;
            if *index < size {
                break;
            }
            *index = 0;
        }
    }
    ordered
}

/// What a file holds.
struct Kind {
    element: Element,
    shape: Vec<usize>,
    /// Whether the first index goes fastest.
    fortran_order: bool,
    /// Where the header stands.
    place: Place,
}

/// The type of an element.
#[derive(Clone, Copy)]
enum Element {
    F16,
    F32,
    F64,
}

impl Kind {
    fn unsupported(&self, got: String) -> ReadError {
        ReadError::Unsupported { place: self.place, got, supported: SUPPORTED }
    }
}

/// What the header says.
fn read_header<R: BufRead>(source: &mut Source<R>) -> Result<Kind, ReadError> {
    let start = source.up_to(8)?;
    if start.len() < 8 || !start.starts_with(MAGIC) {
        let expected = "the start of an .npy file, `\\x93NUMPY` and a version".into();
        return Err(ReadError::Syntax { place: Place::Byte(0), expected, got: shorten(&start) });
    }
    let place = source.place();
    let len_bytes = match start[6] {
        1 => source.exactly(2)?,
        2 | 3 => source.exactly(4)?,
        version => {
            let got = format!("version {version}");
            return Err(ReadError::Unsupported { place: Place::Byte(6), got, supported: SUPPORTED });
        }
    };
    let len = len_bytes.iter().rfold(0, |len, &byte| len << 8 | u64::from(byte));
    if len > MAX_HEADER {
        let expected = format!("a header of at most {MAX_HEADER} bytes");
        return Err(ReadError::Syntax { place, expected, got: len.to_string() });
    }
    let place = source.place();
    let text = source.exactly(len)?;
    let header =
        header::parse(&text).map_err(|(expected, got)| ReadError::Syntax { place, expected, got })?;
    supported(&header, place)
}

/// The kind of an array, if its elements are numbers that are read.
fn supported(header: &Header, place: Place) -> Result<Kind, ReadError> {
    let missing = |key: &str| {
        let (expected, got) = (format!("an entry '{key}'"), "a header without it".into());
        ReadError::Syntax { place, expected, got }
    };
    let unsupported = |got| ReadError::Unsupported { place, got, supported: SUPPORTED };
    let descr = header.descr.as_deref().ok_or_else(|| missing("descr"))?;
    let fortran_order = header.fortran_order.ok_or_else(|| missing("fortran_order"))?;
    let shape = header.shape.as_deref().ok_or_else(|| missing("shape"))?;
    let element = match descr {
        "<f2" => Element::F16,
        "<f4" => Element::F32,
        "<f8" => Element::F64,
        _ => return Err(unsupported(format!("element type {}", shorten(descr.as_bytes())))),
    };
    let sizes: Result<Vec<usize>, _> = shape.iter().map(|&size| usize::try_from(size)).collect();
    let shape = sizes.map_err(|_| unsupported(format!("the shape {shape:?}")))?;
    Ok(Kind { element, shape, fortran_order, place })
}

/// A reader that knows how far it has come.
struct Source<R> {
    reader: R,
    at: u64,
}

impl<R: BufRead> Source<R> {
    fn place(&self) -> Place {
        Place::Byte(self.at)
    }

    /// The next `len` bytes, or fewer at the end of the file.
    fn up_to(&mut self, len: u64) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        let place = Some(self.place());
        let read = self.reader.by_ref().take(len).read_to_end(&mut bytes);
        read.map_err(|source| ReadError::Io { place, source })?;
        self.at += bytes.len() as u64;
        Ok(bytes)
    }

    /// The next `len` bytes of the header.
    fn exactly(&mut self, len: u64) -> Result<Vec<u8>, ReadError> {
        let place = self.place();
        let bytes = self.up_to(len)?;
        if bytes.len() as u64 == len {
            return Ok(bytes);
        }
        let (what, got) = ("bytes of header", bytes.len().to_string());
        Err(ReadError::Count { place, what, expected: len, got })
    }
}

/// Reads the matrix in a file.
///
/// # Errors
/// As [`read`], with the path.
pub fn read_path(path: impl AsRef<Path>) -> Result<Dense<f32>, ReadError> {
    read_file(path.as_ref(), read)
}

/// Reads the array in a file.
///
/// # Errors
/// As [`read_array`], with the path.
pub fn read_array_path(path: impl AsRef<Path>) -> Result<Array, ReadError> {
    read_file(path.as_ref(), read_array)
}

/// Writes a matrix. Small writes are many: give a buffered writer.
///
/// # Errors
/// If the writer fails.
pub fn write(matrix: &Dense<f32>, writer: impl Write) -> io::Result<()> {
    write_array(&[matrix.rows(), matrix.cols()], matrix.values(), writer)
}

/// Writes an array of this shape. Small writes are many: give a buffered writer.
///
/// # Errors
/// If the writer fails, or the shape has another number of elements, or more dimensions than a header of version 1 can hold.
pub fn write_array(shape: &[usize], values: &[f32], mut writer: impl Write) -> io::Result<()> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let elements = shape.iter().fold(1_u128, |product, &size| product.saturating_mul(size as u128));
    if elements != values.len() as u128 {
        return Err(invalid(format!(
            "an array of shape {shape:?}: expected {elements} elements, got {}",
            values.len()
        )));
    }
    // One dimension has a comma, as a tuple of Python's.
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let (sizes, comma) = (sizes.join(", "), if shape.len() == 1 { "," } else { "" });
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({sizes}{comma}), }}");
    // The magic, two bytes of version, two of length and a newline stand beside the text.
    let unpadded = MAGIC.len() + 2 + 2 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(ALIGNMENT) - unpadded));
    header.push('\n');
    let len = u16::try_from(header.len())
        .map_err(|_| invalid(format!("{} dimensions are too many", shape.len())))?;
    writer.write_all(MAGIC)?;
    writer.write_all(&[1, 0])?;
    writer.write_all(&len.to_le_bytes())?;
    writer.write_all(header.as_bytes())?;
    values.iter().try_for_each(|value| writer.write_all(&value.to_le_bytes()))
}

/// Writes a matrix into a file.
///
/// # Errors
/// If the file cannot be made or written.
pub fn write_path(matrix: &Dense<f32>, path: impl AsRef<Path>) -> Result<(), WriteError> {
    write_file(path.as_ref(), |writer| write(matrix, writer))
}

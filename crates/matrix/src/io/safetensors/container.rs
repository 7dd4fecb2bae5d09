//! Reading containers.

use super::super::error::{Place, ReadError};
use super::super::scan::shorten;
use super::{LENGTH, parts};
use crate::{Csr, FormatError};
use half::{bf16, f16};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The longest header that is read; the format's own limit.
const MOST_HEADER: u64 = 100_000_000;

/// A container that is read tensor by tensor: memory holds its header, and what is asked for. It can be read from several threads.
#[derive(Debug)]
pub struct Container<'b> {
    metadata: Metadata,
    /// Where the tensors begin, in bytes.
    start: u64,
    source: Source<'b>,
}

#[derive(Debug)]
enum Source<'b> {
    File(PathBuf),
    Bytes(&'b [u8]),
}

impl Container<'static> {
    /// Reads the header of a file. Each tensor opens the file anew.
    ///
    /// # Errors
    /// As [`new`](Container::new), with the path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let open = || {
            let failed = |source| ReadError::Io { place: None, source };
            let file = File::open(path).map_err(failed)?;
            let len = file.metadata().map_err(failed)?.len();
            let (metadata, start) = header(file, len)?;
            Ok(Self { metadata, start, source: Source::File(path.to_owned()) })
        };
        open().map_err(|source| in_file(path, source))
    }
}

impl<'b> Container<'b> {
    /// Reads the header of a container's bytes.
    ///
    /// # Errors
    /// If the header is not one, or tells of more or fewer bytes than there are.
    pub fn new(bytes: &'b [u8]) -> Result<Self, ReadError> {
        let (metadata, start) = header(bytes, bytes.len() as u64)?;
        Ok(Self { metadata, start, source: Source::Bytes(bytes) })
    }

    /// The names of the tensors, in the order of their bytes.
    pub fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    /// Whether there is a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.metadata.info(name).is_some()
    }

    /// The container's own remarks (`__metadata__`), such as `format: pt`.
    pub fn remarks(&self) -> BTreeMap<String, String> {
        self.metadata.metadata().iter().flatten().map(|(key, text)| (key.clone(), text.clone())).collect()
    }

    /// The type and the shape of a tensor, by the header alone.
    pub fn kind(&self, name: &str) -> Option<(Dtype, &[usize])> {
        self.metadata.info(name).map(|info| (info.dtype, &info.shape[..]))
    }

    /// Reads a tensor of numbers, of any dimensions, the last one's elements side by side: `F32`, `F16` or `BF16`, or `F64`, which is
    /// rounded.
    ///
    /// # Errors
    /// If it is missing, or of another type; if reading fails.
    pub fn numbers(&self, name: &str) -> Result<Vec<f32>, ReadError> {
        let numbers = self.info(name).and_then(|info| self.read_numbers(name, info));
        numbers.map_err(|source| self.in_file(source))
    }

    /// Reads the bytes of a tensor of any type.
    ///
    /// # Errors
    /// If it is missing, or if reading fails.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, ReadError> {
        let bytes = self.info(name).and_then(|info| self.elements(info, |[byte]: [u8; 1]| byte));
        bytes.map_err(|source| self.in_file(source))
    }

    /// Whether this is the name of a sparse matrix: whether there are its offsets, columns and values.
    pub fn is_csr(&self, name: &str) -> bool {
        let [offsets, columns, values, _] = parts(name);
        [offsets, columns, values].iter().all(|part| self.contains(part))
    }

    /// Reads a sparse tensor of one dimension or more, and its shape, which must be there. The matrix has the first dimension's rows;
    /// its columns are the other dimensions, the last one's elements side by side.
    ///
    /// # Errors
    /// As [`csr`](Self::csr).
    pub fn csr_tensor(&self, name: &str) -> Result<(Vec<usize>, Csr<f32>), ReadError> {
        self.read_csr_tensor(name).map_err(|source| self.in_file(source))
    }

    fn read_csr_tensor(&self, name: &str) -> Result<(Vec<usize>, Csr<f32>), ReadError> {
        let [offsets, .., shape] = &parts(name);
        let rows = self.rows(offsets)?;
        let found = self.integers(shape)?;
        let extents: Option<Vec<usize>> = found.iter().map(|&extent| usize::try_from(extent).ok()).collect();
        let extents = extents.filter(|extents| extents.first() == Some(&rows)).ok_or_else(|| {
            match self.info(shape) {
                Ok(info) => self.wrong(info, format!("`{shape}` of {rows} rows"), shorten_list(&found)),
                Err(error) => error,
            }
        })?;
        let cols = extents[1..].iter().fold(1, |product: usize, &extent| product.saturating_mul(extent));
        // More columns than 32 bits count are refused here, as there may be no nonzero that shows it.
        if u32::try_from(cols).is_err() {
            let source = FormatError::TooLarge { what: "columns", got: cols as u64 };
            return Err(ReadError::Format { place: self.place(self.info(shape)?), source });
        }
        Ok((extents, self.matrix(name, rows, cols)?))
    }

    /// The rows of a sparse matrix, by the header alone.
    ///
    /// # Errors
    /// If there is no such matrix, or its offsets have not one dimension and an element.
    pub fn csr_rows(&self, name: &str) -> Result<usize, ReadError> {
        let [offsets, ..] = parts(name);
        self.rows(&offsets).map_err(|source| self.in_file(source))
    }

    /// Reads a sparse matrix: rows, columns and nonzeros as its tensors have them. Where it has no shape, it has `cols` columns;
    /// where it has one, its columns must be `cols`, if that is given.
    ///
    /// # Errors
    /// If a tensor is missing, or is of another type or number of dimensions; if shapes contradict one another; if reading fails;
    /// [`ReadError::Format`] where the tensors do not make up a matrix, as [`Csr::from_signed`] says.
    pub fn csr(&self, name: &str, cols: Option<usize>) -> Result<Csr<f32>, ReadError> {
        self.read_csr(name, cols).map_err(|source| self.in_file(source))
    }

    /// Reads a vector of numbers: `F32`, `F16`, `BF16` or `F64`, of one dimension, or of none for one number.
    ///
    /// # Errors
    /// If it is missing, or of another type, or has more dimensions; if reading fails.
    pub fn vector(&self, name: &str) -> Result<Vec<f32>, ReadError> {
        let info = self.info(name).and_then(|info| match info.shape.len() {
            0 | 1 => Ok(info),
            _ => {
                Err(self.wrong(info, format!("`{name}` of at most one dimension"), shorten_list(&info.shape)))
            }
        });
        info.and_then(|info| self.read_numbers(name, info)).map_err(|source| self.in_file(source))
    }

    fn read_csr(&self, name: &str, cols: Option<usize>) -> Result<Csr<f32>, ReadError> {
        let [offsets, .., shape] = &parts(name);
        let rows = self.rows(offsets)?;
        let place = self.place(self.info(offsets)?);
        let cols = match (self.metadata.info(shape), cols) {
            (Some(_), wanted) => self.columns(shape, rows, wanted)?,
            (None, Some(cols)) => cols,
            (None, None) => {
                let expected = format!("`{shape}`, or columns that the caller gives");
                return Err(ReadError::Syntax { place, expected, got: "neither".into() });
            }
        };
        self.matrix(name, rows, cols)
    }

    /// The matrix of this size.
    fn matrix(&self, name: &str, rows: usize, cols: usize) -> Result<Csr<f32>, ReadError> {
        let [offsets, columns, values, _] = &parts(name);
        let place = self.place(self.info(offsets)?);
        let offsets = self.integers(offsets)?;
        let columns = self.integers(columns)?;
        let values = self.read_numbers(values, self.of_one_dimension(values)?)?;
        let matrix = Csr::from_signed(rows, cols, &offsets, &columns, values);
        matrix.map_err(|source| ReadError::Format { place, source })
    }

    /// The rows that offsets are of.
    fn rows(&self, offsets: &str) -> Result<usize, ReadError> {
        let info = self.of_one_dimension(offsets)?;
        let rows = info.shape[0].checked_sub(1);
        rows.ok_or_else(|| self.wrong(info, format!("`{offsets}` of at least one element"), "none".into()))
    }

    /// The columns of a matrix of so many rows, by its shape.
    fn columns(&self, name: &str, rows: usize, cols: Option<usize>) -> Result<usize, ReadError> {
        let shape = self.integers(name)?;
        let expected = || {
            let cols = cols.map_or_else(|| "any number of".to_owned(), |cols| cols.to_string());
            format!("`{name}` of {rows} rows and {cols} columns")
        };
        let found = match shape[..] {
            [first, second] if usize::try_from(first) == Ok(rows) => usize::try_from(second).ok(),
            _ => None,
        };
        let fits = found.filter(|&found| cols.is_none_or(|cols| found == cols));
        fits.map_or_else(|| Err(self.wrong(self.info(name)?, expected(), shorten_list(&shape))), Ok)
    }

    fn info(&self, name: &str) -> Result<&TensorInfo, ReadError> {
        self.metadata.info(name).ok_or_else(|| {
            let (place, expected) = (Place::Byte(LENGTH as u64), format!("a tensor `{name}`"));
            ReadError::Syntax { place, expected, got: "no such name".into() }
        })
    }

    fn of_one_dimension(&self, name: &str) -> Result<&TensorInfo, ReadError> {
        let info = self.info(name)?;
        match info.shape.len() {
            1 => Ok(info),
            _ => Err(self.wrong(info, format!("`{name}` of one dimension"), shorten_list(&info.shape))),
        }
    }

    fn integers(&self, name: &str) -> Result<Vec<i64>, ReadError> {
        let info = self.of_one_dimension(name)?;
        match info.dtype {
            Dtype::I32 => self.elements(info, |bytes| i32::from_le_bytes(bytes).into()),
            Dtype::I64 => self.elements(info, i64::from_le_bytes),
            _ => Err(self.unsupported(name, info, "I32 and I64")),
        }
    }

    fn read_numbers(&self, name: &str, info: &TensorInfo) -> Result<Vec<f32>, ReadError> {
        match info.dtype {
            Dtype::F32 => self.elements(info, f32::from_le_bytes),
            Dtype::F16 => self.elements(info, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Dtype::BF16 => self.elements(info, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            Dtype::F64 => self.elements(info, |bytes| f64::from_le_bytes(bytes) as f32),
            _ => Err(self.unsupported(name, info, "F32, F16, BF16 and F64")),
        }
    }

    /// The elements of a tensor of this type. Memory grows with what there is to read.
    fn elements<T, const N: usize>(
        &self,
        info: &TensorInfo,
        convert: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, ReadError> {
        let convert = |bytes: &[u8]| bytes.as_chunks::<N>().0.iter().map(|bytes| convert(*bytes)).collect();
        let (start, end) = info.data_offsets;
        match &self.source {
            // The header tells of as many bytes as there are.
            Source::Bytes(bytes) => Ok(convert(&bytes[self.start as usize..][start..end])),
            Source::File(path) => {
                let place = self.place(info);
                let failed = |source| ReadError::Io { place: Some(place), source };
                let mut file = File::open(path).map_err(failed)?;
                file.seek(SeekFrom::Start(self.start + start as u64)).map_err(failed)?;
                let mut bytes = Vec::new();
                file.take((end - start) as u64).read_to_end(&mut bytes).map_err(failed)?;
                if bytes.len() < end - start {
                    let (expected, got) = ((end - start) as u64, bytes.len().to_string());
                    return Err(ReadError::Count { place, what: "bytes of a tensor", expected, got });
                }
                Ok(convert(&bytes))
            }
        }
    }

    fn place(&self, info: &TensorInfo) -> Place {
        Place::Byte(self.start + info.data_offsets.0 as u64)
    }

    fn wrong(&self, info: &TensorInfo, expected: String, got: String) -> ReadError {
        ReadError::Syntax { place: self.place(info), expected, got }
    }

    fn unsupported(&self, name: &str, info: &TensorInfo, supported: &'static str) -> ReadError {
        let got = format!("`{name}` of type {}", info.dtype);
        ReadError::Unsupported { place: self.place(info), got, supported }
    }

    fn in_file(&self, source: ReadError) -> ReadError {
        match &self.source {
            Source::File(path) => in_file(path, source),
            Source::Bytes(_) => source,
        }
    }
}

fn in_file(path: &Path, source: ReadError) -> ReadError {
    ReadError::File { path: path.to_owned(), source: Box::new(source) }
}

/// The header of a container of so many bytes, and where the tensors begin.
fn header(mut reader: impl Read, len: u64) -> Result<(Metadata, u64), ReadError> {
    let syntax = |at, expected: &str, got| {
        let (place, expected) = (Place::Byte(at), expected.to_owned());
        ReadError::Syntax { place, expected, got }
    };
    let length = up_to(&mut reader, 0, LENGTH as u64)?;
    let Ok(length) = <[u8; LENGTH]>::try_from(&length[..]) else {
        return Err(syntax(0, "the length of a header, 8 bytes", shorten(&length)));
    };
    let length = u64::from_le_bytes(length);
    if length > MOST_HEADER {
        return Err(syntax(0, "a safetensors header of at most 100000000 bytes", length.to_string()));
    }
    let bytes = up_to(&mut reader, LENGTH as u64, length)?;
    if (bytes.len() as u64) < length {
        let (place, got) = (Place::Byte(LENGTH as u64), bytes.len().to_string());
        return Err(ReadError::Count { place, what: "bytes of header", expected: length, got });
    }
    let metadata: Metadata = serde_json::from_slice(&bytes)
        .map_err(|error| syntax(LENGTH as u64, "a safetensors header", error.to_string()))?;
    let start = LENGTH as u64 + length;
    match start.checked_add(metadata.data_len() as u64) {
        Some(end) if end == len => Ok((metadata, start)),
        end => {
            let (place, expected) = (Place::Byte(start), end.unwrap_or(u64::MAX));
            Err(ReadError::Count { place, what: "bytes of container", expected, got: len.to_string() })
        }
    }
}

/// The next `len` bytes, or fewer at the end.
fn up_to(reader: &mut impl Read, at: u64, len: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let read = reader.take(len).read_to_end(&mut bytes);
    read.map_err(|source| ReadError::Io { place: Some(Place::Byte(at)), source })?;
    Ok(bytes)
}

/// The first elements of a list, for a message.
fn shorten_list<T: Debug>(list: &[T]) -> String {
    const SHOWN: usize = 4;
    let dots = if list.len() > SHOWN { " and more" } else { "" };
    format!("{:?}{dots}", &list[..list.len().min(SHOWN)])
}

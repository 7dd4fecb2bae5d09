//! Writing containers.

use super::super::error::WriteError;
use super::super::write_file;
use super::{Float, LENGTH, parts};
use crate::Csr;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// What stands in a header for a container's own remarks.
const RESERVED: &str = "__metadata__";

/// Tensors that become a container. A later one of the same name takes the place of the first.
///
/// They are written as they lie in memory, one after another, without a copy of all.
#[derive(Clone, Debug, Default)]
pub struct Tensors<'t> {
    tensors: Vec<Entry<'t>>,
    remarks: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct Entry<'t> {
    name: String,
    shape: Vec<usize>,
    elements: Elements<'t>,
}

/// What a tensor holds.
#[derive(Clone, Debug)]
enum Elements<'t> {
    /// Indices that fit `I32`.
    Narrow(&'t [u32]),
    /// Others.
    Wide(&'t [u32]),
    Sizes(Vec<usize>),
    Numbers(Float, &'t [f32]),
    Bytes(Dtype, &'t [u8]),
}

impl Elements<'_> {
    fn dtype(&self) -> Dtype {
        match self {
            Self::Narrow(_) => Dtype::I32,
            Self::Wide(_) | Self::Sizes(_) => Dtype::I64,
            Self::Numbers(float, _) => float.dtype(),
            Self::Bytes(dtype, _) => *dtype,
        }
    }

    /// Bytes in the container.
    fn bytes(&self) -> usize {
        let elements = match self {
            Self::Narrow(indices) | Self::Wide(indices) => indices.len(),
            Self::Sizes(sizes) => sizes.len(),
            Self::Numbers(_, numbers) => numbers.len(),
            Self::Bytes(_, bytes) => return bytes.len(),
        };
        elements * self.dtype().bitsize() / 8
    }

    fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Narrow(indices) => indices.iter().try_for_each(|i| writer.write_all(&i.to_le_bytes())),
            Self::Wide(indices) => {
                indices.iter().try_for_each(|&i| writer.write_all(&i64::from(i).to_le_bytes()))
            }
            Self::Sizes(sizes) => {
                sizes.iter().try_for_each(|&size| writer.write_all(&(size as i64).to_le_bytes()))
            }
            Self::Numbers(float, numbers) => float.write(numbers, writer),
            Self::Bytes(_, bytes) => writer.write_all(bytes),
        }
    }
}

impl<'t> Tensors<'t> {
    /// Adds a sparse matrix: indices as `I32` where they fit, or else as `I64`, values as `F32`, and the shape.
    #[must_use]
    pub fn csr(self, name: &str, matrix: &'t Csr<f32>) -> Self {
        self.csr_tensor(name, &[matrix.rows(), matrix.cols()], matrix, Float::F32)
    }

    /// Adds a sparse tensor of this shape, whose matrix has the first dimension's rows, and its values in this type. A matrix of another
    /// size than the shape's is written, and refused when it is read.
    #[must_use]
    pub fn csr_tensor(self, name: &str, shape: &[usize], matrix: &'t Csr<f32>, float: Float) -> Self {
        let indices = |indices: &'t [u32]| {
            let fit = indices.iter().all(|&index| index <= i32::MAX as u32);
            if fit { Elements::Narrow(indices) } else { Elements::Wide(indices) }
        };
        let [offsets, columns, values, sizes] = parts(name);
        self.with(offsets, vec![matrix.rows() + 1], indices(matrix.row_offsets()))
            .with(columns, vec![matrix.nnz()], indices(matrix.col_indices()))
            .with(values, vec![matrix.nnz()], Elements::Numbers(float, matrix.values()))
            .with(sizes, vec![shape.len()], Elements::Sizes(shape.to_vec()))
    }

    /// Adds a vector of numbers, as `F32`.
    #[must_use]
    pub fn vector(self, name: &str, numbers: &'t [f32]) -> Self {
        self.dense(name, &[numbers.len()], numbers, Float::F32)
    }

    /// Adds a dense tensor of this shape and type. [`write`](Self::write) refuses one with another number of elements.
    #[must_use]
    pub fn dense(self, name: &str, shape: &[usize], numbers: &'t [f32], float: Float) -> Self {
        self.with(name.to_owned(), shape.to_vec(), Elements::Numbers(float, numbers))
    }

    /// Adds a tensor of any type by its bytes. [`write`](Self::write) refuses one with another number of bytes.
    #[must_use]
    pub fn bytes(self, name: &str, dtype: Dtype, shape: &[usize], bytes: &'t [u8]) -> Self {
        self.with(name.to_owned(), shape.to_vec(), Elements::Bytes(dtype, bytes))
    }

    /// Adds a remark of the container's own (`__metadata__`).
    #[must_use]
    pub fn remark(mut self, key: impl Into<String>, text: impl Into<String>) -> Self {
        self.remarks.insert(key.into(), text.into());
        self
    }

    fn with(mut self, name: String, shape: Vec<usize>, elements: Elements<'t>) -> Self {
        self.tensors.retain(|known| known.name != name);
        self.tensors.push(Entry { name, shape, elements });
        self
    }

    /// Writes the container. Small writes are many: give a buffered writer.
    ///
    /// # Errors
    /// If the writer fails, a tensor has the name `__metadata__`, or its shape has another number of elements.
    pub fn write(&self, mut writer: impl Write) -> io::Result<()> {
        if self.tensors.iter().any(|entry| entry.name == RESERVED) {
            let why =
                format!("a tensor cannot have the name `{RESERVED}`, which the format keeps for itself");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut tensors: Vec<_> = self.tensors.iter().collect();
        // Those of 8 bytes come first, so that each tensor is aligned to its elements.
        tensors.sort_by_key(|entry| std::cmp::Reverse(entry.elements.dtype().bitsize()));
        let mut end = 0;
        let infos = tensors.iter().map(|Entry { name, shape, elements }| {
            let start = end;
            end += elements.bytes();
            let info =
                TensorInfo { dtype: elements.dtype(), shape: shape.clone(), data_offsets: (start, end) };
            (name.clone(), info)
        });
        let remarks = Some(&self.remarks).filter(|remarks| !remarks.is_empty());
        let remarks = remarks.map(|remarks| remarks.clone().into_iter().collect());
        let metadata = Metadata::new(remarks, infos.collect()).map_err(io::Error::other)?;
        // By way of a value, whose keys are sorted: the same tensors give the same bytes.
        let mut header = serde_json::to_vec(&serde_json::to_value(&metadata)?)?;
        header.resize(header.len().next_multiple_of(LENGTH), b' ');
        writer.write_all(&(header.len() as u64).to_le_bytes())?;
        writer.write_all(&header)?;
        tensors.iter().try_for_each(|entry| entry.elements.write(&mut writer))
    }

    /// Writes the container into a file.
    ///
    /// # Errors
    /// If the file cannot be made or written.
    pub fn write_path(&self, path: impl AsRef<Path>) -> Result<(), WriteError> {
        write_file(path.as_ref(), |writer| self.write(writer))
    }
}

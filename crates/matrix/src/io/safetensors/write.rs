//! Writing containers.

use super::super::error::WriteError;
use super::super::write_file;
use super::{LENGTH, parts};
use crate::Csr;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

/// What stands in a header for a container's own remarks.
const RESERVED: &str = "__metadata__";

/// Tensors that become a container. A later one of the same name takes the place of the first.
///
/// They are written as they lie in memory, one after another, without a copy of all.
#[derive(Clone, Debug, Default)]
pub struct Tensors<'t> {
    tensors: Vec<(String, Elements<'t>)>,
}

/// What a tensor of one dimension holds.
#[derive(Clone, Debug)]
enum Elements<'t> {
    /// Indices that fit `I32`.
    Narrow(&'t [u32]),
    /// Others, and shapes.
    Wide(Cow<'t, [u32]>),
    Numbers(&'t [f32]),
}

impl Elements<'_> {
    fn dtype(&self) -> Dtype {
        match self {
            Self::Narrow(_) => Dtype::I32,
            Self::Wide(_) => Dtype::I64,
            Self::Numbers(_) => Dtype::F32,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Narrow(indices) => indices.len(),
            Self::Wide(indices) => indices.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }

    fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Narrow(indices) => indices.iter().try_for_each(|i| writer.write_all(&i.to_le_bytes())),
            Self::Wide(indices) => {
                indices.iter().try_for_each(|&i| writer.write_all(&i64::from(i).to_le_bytes()))
            }
            Self::Numbers(numbers) => numbers.iter().try_for_each(|x| writer.write_all(&x.to_le_bytes())),
        }
    }
}

impl<'t> Tensors<'t> {
    /// Adds a sparse matrix: indices as `I32` where they fit, or else as `I64`, values as `F32`, and the shape.
    #[must_use]
    pub fn csr(self, name: &str, matrix: &'t Csr<f32>) -> Self {
        let indices = |indices: &'t [u32]| {
            let fit = indices.iter().all(|&index| index <= i32::MAX as u32);
            if fit { Elements::Narrow(indices) } else { Elements::Wide(indices.into()) }
        };
        let [offsets, columns, values, shape] = parts(name);
        // Both fit, as a matrix has 32 bits for each.
        let sizes = vec![matrix.rows() as u32, matrix.cols() as u32];
        self.with(offsets, indices(matrix.row_offsets()))
            .with(columns, indices(matrix.col_indices()))
            .with(values, Elements::Numbers(matrix.values()))
            .with(shape, Elements::Wide(sizes.into()))
    }

    /// Adds a vector of numbers, as `F32`.
    #[must_use]
    pub fn vector(self, name: &str, numbers: &'t [f32]) -> Self {
        self.with(name.to_owned(), Elements::Numbers(numbers))
    }

    fn with(mut self, name: String, elements: Elements<'t>) -> Self {
        self.tensors.retain(|(known, _)| *known != name);
        self.tensors.push((name, elements));
        self
    }

    /// Writes the container. Small writes are many: give a buffered writer.
    ///
    /// # Errors
    /// If the writer fails, or a tensor has the name `__metadata__`.
    pub fn write(&self, mut writer: impl Write) -> io::Result<()> {
        if self.tensors.iter().any(|(name, _)| name == RESERVED) {
            let why =
                format!("a tensor cannot have the name `{RESERVED}`, which the format keeps for itself");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut tensors: Vec<_> = self.tensors.iter().collect();
        // Those of 8 bytes come first, so that each tensor is aligned to its elements.
        tensors.sort_by_key(|(_, elements)| std::cmp::Reverse(elements.dtype().bitsize()));
        let mut end = 0;
        let infos = tensors.iter().map(|(name, elements)| {
            let (dtype, shape, start) = (elements.dtype(), vec![elements.len()], end);
            end += elements.len() * dtype.bitsize() / 8;
            (name.clone(), TensorInfo { dtype, shape, data_offsets: (start, end) })
        });
        let metadata = Metadata::new(None, infos.collect()).map_err(io::Error::other)?;
        let mut header = serde_json::to_vec(&metadata)?;
        header.resize(header.len().next_multiple_of(LENGTH), b' ');
        writer.write_all(&(header.len() as u64).to_le_bytes())?;
        writer.write_all(&header)?;
        tensors.iter().try_for_each(|(_, elements)| elements.write(&mut writer))
    }

    /// Writes the container into a file.
    ///
    /// # Errors
    /// If the file cannot be made or written.
    pub fn write_path(&self, path: impl AsRef<Path>) -> Result<(), WriteError> {
        write_file(path.as_ref(), |writer| self.write(writer))
    }
}

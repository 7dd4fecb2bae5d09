//! All that a safetensors file has.
use std::collections::BTreeMap;
use std::path::Path;

use lacuna_matrix::io::safetensors::{Container, Dtype, Float, Tensors};

use super::FileError;
use crate::weights::{SparseError, SparseTensor, Tensor, Weights};

/// The parts of a sparse tensor, as the container names them.
const PARTS: [&str; 4] = [".values", ".crow_indices", ".col_indices", ".shape"];

/// A tensor of other than floating-point numbers, such as a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// Its type.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its elements, as they are in the file.
    pub bytes: Vec<u8>,
}

/// All that a safetensors file has: dense and sparse tensors, others beside them, and the container's remarks. What is written again is
/// what was read, in the same types; but `F64`, which becomes `F32`.
///
/// A sparse tensor `w` is [four tensors](lacuna_matrix::io::safetensors): `w.values`, `w.col_indices`, `w.crow_indices`, as PyTorch names
/// them, and `w.shape`, `I64`, with all dimensions. The matrix has the first dimension's rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Archive {
    /// Dense tensors.
    pub dense: Weights,
    /// Sparse tensors by name.
    pub sparse: BTreeMap<String, SparseTensor>,
    /// The types in which tensors are written, by name; those that are not here are `F32`.
    pub floats: BTreeMap<String, Float>,
    /// Tensors that are not of floating-point numbers.
    pub others: BTreeMap<String, Other>,
    /// The container's own remarks.
    pub remarks: BTreeMap<String, String>,
}

impl Archive {
    /// Reads a file. `seen` is told the name of each tensor when it is read, and how many there are.
    ///
    /// # Errors
    /// As [`read`](Self::read), with the path.
    pub fn open(path: impl AsRef<Path>, seen: impl FnMut(&str, usize)) -> Result<Self, FileError> {
        let path = path.as_ref();
        let read = || Self::read(&Container::open(path)?, seen);
        read().map_err(|error| error.in_file(path))
    }

    /// Reads all tensors of a container.
    ///
    /// # Errors
    /// [`FileError::Read`] where a tensor cannot be read, or a sparse one's parts do not make a matrix; [`FileError::Twice`].
    pub fn read(container: &Container<'_>, mut seen: impl FnMut(&str, usize)) -> Result<Self, FileError> {
        let names = container.names();
        let mut archive = Self { remarks: container.remarks(), ..Self::default() };
        for part in &names {
            seen(part, names.len());
            match sparse_name(container, part) {
                // Its values stand for the whole.
                Some(name) if part.ends_with(PARTS[0]) => archive.read_sparse(container, name, part)?,
                Some(_) => {}
                None => archive.read_dense(container, part)?,
            }
        }
        Ok(archive)
    }

    fn read_sparse(&mut self, container: &Container<'_>, name: &str, values: &str) -> Result<(), FileError> {
        let (shape, matrix) = container.csr_tensor(name)?;
        let tensor = SparseTensor::new(shape, matrix)
            .map_err(|source| FileError::Sparse { tensor: name.to_owned(), source })?;
        if container.contains(name) {
            return Err(FileError::Twice { tensor: name.to_owned() });
        }
        let float = container.kind(values).and_then(|(dtype, _)| Float::of(dtype)).unwrap_or_default();
        self.floats.insert(name.to_owned(), float);
        self.sparse.insert(name.to_owned(), tensor);
        Ok(())
    }

    fn read_dense(&mut self, container: &Container<'_>, name: &str) -> Result<(), FileError> {
        let Some((dtype, shape)) = container.kind(name) else { return Ok(()) };
        let shape = shape.to_vec();
        let Some(float) = Float::of(dtype) else {
            let bytes = container.bytes(name)?;
            self.others.insert(name.to_owned(), Other { dtype, shape, bytes });
            return Ok(());
        };
        let tensor = Tensor::new(shape, container.numbers(name)?)
            .map_err(|source| FileError::Tensor { tensor: name.to_owned(), source })?;
        self.dense.insert(name, tensor);
        self.floats.insert(name.to_owned(), float);
        Ok(())
    }

    /// Makes dense tensors sparse: those of these names.
    ///
    /// # Errors
    /// [`FileError::Sparse`] where a tensor has no rows, or does not fit 32 bits; then those before it are sparse.
    pub fn compress<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> Result<(), FileError> {
        for name in names {
            let Some(tensor) = self.dense.remove(name) else { continue };
            match SparseTensor::from_dense(&tensor) {
                Ok(sparse) => {
                    self.sparse.insert(name.to_owned(), sparse);
                }
                Err(source) => {
                    self.dense.insert(name, tensor);
                    return Err(FileError::Sparse { tensor: name.to_owned(), source });
                }
            }
        }
        Ok(())
    }

    /// Makes all sparse tensors dense.
    ///
    /// # Errors
    /// [`FileError::Sparse`], of [`SparseTensor::to_dense`]; then those before it are dense.
    pub fn decompress(&mut self) -> Result<(), FileError> {
        while let Some(entry) = self.sparse.first_entry() {
            let failed = |source: SparseError| FileError::Sparse { tensor: entry.key().clone(), source };
            let tensor = entry.get().to_dense().map_err(failed)?;
            let (name, _) = entry.remove_entry();
            self.dense.insert(name, tensor);
        }
        Ok(())
    }

    /// All tensors as dense weights.
    ///
    /// # Errors
    /// [`FileError::NotNumbers`] where there are others; [`FileError::Sparse`] as [`decompress`](Self::decompress).
    pub fn into_weights(mut self) -> Result<Weights, FileError> {
        if let Some((name, other)) = self.others.first_key_value() {
            let (tensor, dtype) = (name.clone(), other.dtype.to_string());
            return Err(FileError::NotNumbers { tensor, dtype });
        }
        self.decompress()?;
        Ok(self.dense)
    }

    /// The tensors, to be written.
    pub fn tensors(&self) -> Tensors<'_> {
        let float = |name: &str| self.floats.get(name).copied().unwrap_or_default();
        let mut tensors = Tensors::default();
        for (key, text) in &self.remarks {
            tensors = tensors.remark(key, text);
        }
        for (name, tensor) in self.dense.iter() {
            tensors = tensors.dense(name, tensor.shape(), tensor.values(), float(name));
        }
        for (name, tensor) in &self.sparse {
            tensors = tensors.csr_tensor(name, tensor.shape(), tensor.matrix(), float(name));
        }
        for (name, other) in &self.others {
            tensors = tensors.bytes(name, other.dtype, &other.shape, &other.bytes);
        }
        tensors
    }

    /// Writes a file.
    ///
    /// # Errors
    /// [`FileError::Write`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        Ok(self.tensors().write_path(path)?)
    }
}

/// The sparse tensor that a tensor is a part of.
fn sparse_name<'n>(container: &Container<'_>, part: &'n str) -> Option<&'n str> {
    PARTS.iter().find_map(|suffix| part.strip_suffix(suffix)).filter(|name| container.is_csr(name))
}

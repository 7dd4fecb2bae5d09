//! Named tensors of a network, on the host: dense ones, and sparse ones as matrices in CSR.

mod drawn;
mod folded;
mod sparse;
mod tensor;

use std::collections::BTreeMap;

use thiserror::Error;

pub use folded::Folded;
pub use sparse::{SparseError, SparseTensor};
pub(crate) use sparse::{fits_dense, matrix_size};
pub use tensor::Tensor;

/// What is wrong with a network's weights.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// A tensor has not as many values as its shape says.
    #[error("a tensor of shape {shape:?}: expected {expected} values, got {got}")]
    Values {
        /// The shape.
        shape: Vec<usize>,
        /// Values that it asks for.
        expected: usize,
        /// Values that there are.
        got: usize,
    },
    /// A tensor is not there.
    #[error("tensor {name}: expected, but the weights have no tensor of that name")]
    Missing {
        /// The name asked for.
        name: String,
    },
    /// A tensor has another shape than the network's.
    #[error("tensor {name}: expected shape {expected:?}, got {got:?}")]
    Shape {
        /// Its name.
        name: String,
        /// The network's shape.
        expected: Vec<usize>,
        /// The tensor's shape.
        got: Vec<usize>,
    },
    /// A batch norm cannot be folded into the filters before it.
    #[error("tensor {name}: the batch norm cannot be folded into filters: {why}")]
    Norm {
        /// The tensor of its variances.
        name: String,
        /// What stands against it.
        why: String,
    },
}

/// Tensors by name, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Weights {
    tensors: BTreeMap<String, Tensor>,
}

impl Weights {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor, in place of one that has this name.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        self.tensors.insert(name.into(), tensor);
    }

    /// Adds all tensors of others, in place of those that have their names.
    pub fn append(&mut self, mut others: Self) {
        self.tensors.append(&mut others.tensors);
    }

    /// Takes the tensor of this name out.
    pub fn remove(&mut self, name: &str) -> Option<Tensor> {
        self.tensors.remove(name)
    }

    /// The tensor of this name and shape.
    ///
    /// # Errors
    /// [`WeightsError::Missing`] and [`WeightsError::Shape`].
    pub fn get(&self, name: &str, shape: &[usize]) -> Result<&Tensor, WeightsError> {
        let tensor = self.tensors.get(name).ok_or_else(|| WeightsError::Missing { name: name.to_owned() })?;
        if tensor.shape() != shape {
            return Err(WeightsError::Shape {
                name: name.to_owned(),
                expected: shape.to_vec(),
                got: tensor.shape().to_vec(),
            });
        }
        Ok(tensor)
    }

    /// All tensors with their names, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Tensor)> {
        self.tensors.iter_mut().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// All tensors with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }
}

//! safetensors: containers of named tensors, in which a sparse matrix is three of them.
//!
//! The names are those of PyTorch's sparse CSR tensors. A matrix `w` is
//!
//! | tensor | type | shape |
//! | --- | --- | --- |
//! | `w.crow_indices` | `I32` or `I64` | rows + 1 |
//! | `w.col_indices` | `I32` or `I64` | nonzeros; ascending in each row |
//! | `w.values` | `F32`, `F16` or `BF16`, widened to `f32`, which is exact; `F64`, which is rounded | nonzeros |
//! | `w.shape`, which may be missing | `I64` | 2: rows and columns |
//!
//! A sparse tensor of another number of dimensions ([`Container::csr_tensor`]) is the matrix of its first dimension's rows, with all other
//! dimensions as columns; its `w.shape` has all dimensions, and must be there.
//!
//! ```
//! use lacuna_matrix::Csr;
//! use lacuna_matrix::io::safetensors::{Container, Tensors};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let matrix = Csr::new(2, 3, vec![0, 1, 2], vec![2, 0], vec![0.5_f32, 1.0])?;
//! let mut bytes = Vec::new();
//! Tensors::default().csr("w", &matrix).vector("b", &[1.0, 2.0]).write(&mut bytes)?;
//!
//! let container = Container::new(&bytes)?;
//! assert_eq!(container.csr("w", None)?, matrix);
//! assert_eq!(container.vector("b")?, [1.0, 2.0]);
//! # Ok(())
//! # }
//! ```

mod container;
mod float;
mod write;

pub use container::Container;
pub use float::Float;
pub use safetensors::Dtype;
pub use write::Tensors;

/// Bytes of the number that a container begins with: how long its header is.
const LENGTH: usize = 8;

/// The names of a matrix's tensors: offsets, columns, values, and the shape.
fn parts(name: &str) -> [String; 4] {
    ["crow_indices", "col_indices", "values", "shape"].map(|part| format!("{name}.{part}"))
}

//! Lacuna's operations on candle's tensors, with gradients.
//!
//! Tensors on a GPU are read and written where they are, on the stream of their device: nothing is copied. The first
//! call for a pattern and a shape plans, and the first gradient transposes the pattern, which may wait; later calls do not. A sparse matrix is a [`Pattern`], which is checked and put on the device once, and a tensor of values, which may be trained; or a
//! [`SparseMatrix`], whose values stay as they are, and which is itself a [`CustomOp1`](candle_core::CustomOp1).
//!
//! ```
//! use candle_core::{Device, Tensor, Var};
//! use lacuna::matrix::{Csr, generate};
//! use lacuna_candle::{Backend, Pattern};
//!
//! # fn main() -> candle_core::Result<()> {
//! // On a GPU: `Backend::of(&Device::new_cuda(0)?)?`.
//! let backend = Backend::simulator();
//! let host = generate::uniform(64, 128, 0.9, 1).expect("a share below 1");
//! let pattern = Pattern::new(&backend, host.clone())?;
//! let values = Var::from_tensor(&pattern.values(&generate::random_values(host.nnz(), 2))?)?;
//! let b = Tensor::randn(0.0_f32, 1.0, (128, 32), &Device::Cpu)?;
//!
//! let c = pattern.spmm(values.as_tensor(), &b)?; // 64×32
//! let gradients = c.sqr()?.sum_all()?.backward()?;
//! assert_eq!(gradients.get(&values).unwrap().dims(), values.dims());
//! # Ok(())
//! # }
//! ```
mod attention;
mod backend;
mod dense;
mod element;
mod frame;
mod linear;
mod matrix;
mod pattern;
mod plans;
mod sddmm;
mod softmax;
mod spmm;
mod transpose;

pub use backend::Backend;
pub use element::Element;
pub use linear::SparseLinear;
pub use matrix::SparseMatrix;
pub use pattern::Pattern;

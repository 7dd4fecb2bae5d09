//! C = clamp(alpha·A·B + beta·C + bias) with A sparse; also by the mean, the greatest or the least of each row's products.
//!
//! Source: Gale, Zaharia, Young, Elsen, *Sparse GPU Kernels for Deep Learning* (SC 2020).
mod bitmask;
mod choose;
mod cost;
mod gradient;
mod grid;
mod model;
mod options;
mod packed;
mod pieces;
mod plan;
mod prepacked;
mod reduce;
mod row_split;
mod rows;
mod run;
mod tiles;

pub use choose::{Algorithm, Choice, Problem, choose, choose_by};
pub use gradient::Winning;
pub use lacuna_kernels::Arithmetic;
pub use lacuna_kernels::spmm::NO_WINNER;
pub use lacuna_kernels::spmm::{Idea, Scheme, Tile};
pub use model::CostModel;
pub use options::{LONG_ROWS, MEDIUM_ROWS, Options, Precision};
pub use plan::{Operands, Spmm};
pub use reduce::Reduce;

pub use crate::op::{Constant, ModelFile, Provenance, Section};
pub use crate::pattern::RowLengths;

use lacuna_matrix::Csr;

use crate::{CsrMatrix, Device, Result, Value};

/// What errors call this operation.
const OPERATION: &str = "SpMM";

/// C = A·B once, on the best device: `b` is K×`n` and the result M×`n`, both row by row.
///
/// It moves everything to the device and back. Those who multiply often keep the matrix there, and a [`Spmm`] plan.
///
/// # Errors
/// Those of [`Device::best`], [`CsrMatrix::new`], [`Spmm::plan`] and [`Spmm::run`].
pub fn spmm<T: Value>(a: &Csr<T>, b: &[T], n: usize) -> Result<Vec<T>> {
    let device = Device::best()?;
    let stream = device.stream()?;
    let a = CsrMatrix::new(&device, a)?;
    let plan = Spmm::plan(&a, n)?;
    let b = device.upload(b)?;
    let mut c = device.uninitialized(plan.output_len())?;
    plan.run(&stream, &a, b.as_slice(), c.as_slice_mut())?;
    c.download(&stream)
}

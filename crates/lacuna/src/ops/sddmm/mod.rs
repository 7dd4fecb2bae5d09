//! D = (A·Bᵀ) ⊙ I\[C\] with C sparse, or scaled by C's values.
//!
//! Sources: Gale, Zaharia, Young, Elsen, *Sparse GPU Kernels for Deep Learning* (SC 2020), section VI; Yu, Dai, Huang, Wang,
//! Yang, *Exploiting Online Locality and Reduction Parallelism for Sampled Dense Matrix Multiplication on GPUs* (ICCD 2021).
mod choose;
mod cost;
mod model;
mod nonzero_split;
mod options;
mod panels;
mod plan;
mod splits;
mod subtiles;
mod transposed_b;

pub use crate::op::{Constant, ModelFile, Provenance, Section};
pub use choose::{Algorithm, Choice, Problem, choose};
pub use model::CostModel;
pub use options::{Options, Schedule};
pub use plan::{Operands, Sddmm};

use lacuna_matrix::Csr;

use crate::{CsrMatrix, Device, Result, Value};

/// What errors call this operation.
const OPERATION: &str = "SDDMM";

/// D = (A·Bᵀ) ⊙ I\[C\] once, on the best device: `a` is M×`k`, `b` is N×`k`, both row by row, and the result has a value for
/// each nonzero of `c`, in their order. The values of `c` do not count.
///
/// It moves everything to the device and back. Those who multiply often keep the pattern there, and a [`Sddmm`] plan.
///
/// # Errors
/// Those of [`Device::best`], [`CsrMatrix::new`], [`Sddmm::plan`] and [`Sddmm::run`].
pub fn sddmm<T: Value>(c: &Csr<T>, a: &[T], b: &[T], k: usize) -> Result<Vec<T>> {
    let device = Device::best()?;
    let stream = device.stream()?;
    let mut d = CsrMatrix::new(&device, c)?;
    let plan = Sddmm::plan(&d, k)?;
    let (a, b) = (device.upload(a)?, device.upload(b)?);
    plan.run(&stream, a.as_slice(), b.as_slice(), &mut d)?;
    d.values()?.download(&stream)
}

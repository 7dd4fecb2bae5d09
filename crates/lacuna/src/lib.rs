//! Sparse GPU kernels for deep learning.
//!
//! A host matrix is checked when it is made, put on a [`Device`], planned for once, and run as often as needed. The
//! same calls work on an NVIDIA GPU (feature `cuda`) and on the simulator, which runs the same kernels on the CPU and
//! checks every step they take.
//!
//! ```
//! use lacuna::matrix::{Csr, generate};
//! use lacuna::{CsrMatrix, Device, Spmm};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A 64×128 matrix with 90 % zeros, and a dense 128×32 one.
//! let pattern = generate::uniform(64, 128, 0.9, 1)?;
//! let values = generate::random_values(pattern.nnz(), 2);
//! let a = Csr::with_values(pattern, values)?;
//! let b = generate::random_values(128 * 32, 3);
//!
//! let device = Device::best()?;
//! let stream = device.stream()?;
//! let a = CsrMatrix::new(&device, &a)?;
//! let b = device.upload(&b)?;
//! let mut c = device.zeros::<f32>(64 * 32)?;
//!
//! let plan = Spmm::plan(&a, 32)?;
//! plan.run(&stream, &a, b.as_slice(), c.as_slice_mut())?;
//! let c: Vec<f32> = c.download(&stream)?;
//! assert_eq!(c.len(), 64 * 32);
//! # Ok(())
//! # }
//! ```
//!
//! Those who need one product once call [`spmm`](spmm()).
//!
//! The plans and what they work on stand here; what belongs to one operation (its options, its problem, its algorithms, the
//! heuristic that chooses among them) is in that operation's module.
mod backend;
mod buffer;
mod csr;
mod device;
mod element;
mod error;
mod host_buffer;
mod op;
mod ops;
mod pattern;
mod stream;
mod tune;
mod value;

pub use buffer::{Buffer, Slice, SliceMut};
pub use csr::CsrMatrix;
pub use device::{Device, DeviceInfo, SimulatedLaunch};
pub use element::Element;
pub use error::{Error, Result};
pub use host_buffer::HostBuffer;
pub use lacuna_kernels::{IndexType, ValueType};
pub use lacuna_matrix as matrix;
pub use lacuna_sim as sim;
pub use op::Choice;
pub use ops::*;
pub use pattern::RowOrder;
pub use stream::{Event, Graph, Stream};
pub use tune::{Autotuner, Tunable, TuneWarning, time};
pub use value::{Index, Value};

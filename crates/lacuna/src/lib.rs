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
mod attention;
mod backend;
mod buffer;
mod csr;
mod device;
mod element;
mod error;
mod layout;
mod masks;
mod nhot;
mod packs;
mod sddmm;
mod softmax;
mod spmm;
mod stream;
mod topn;
mod transpose;
mod tune;
mod value;

pub use attention::{
    AttentionAlgorithm, AttentionChoice, AttentionOperands, AttentionOptions, AttentionPass,
    AttentionProblem, AttentionSteps, AttentionWorkspace, SparseAttention, choose as choose_attention,
};
pub use buffer::{Buffer, Slice, SliceMut};
pub use csr::{CsrMatrix, RowOrder};
pub use device::{Device, DeviceInfo, SimulatedLaunch};
pub use element::Element;
pub use error::{Error, Result};
pub use lacuna_kernels::Arithmetic;
pub use lacuna_kernels::spmm::{Idea, Scheme, Tile};
pub use lacuna_kernels::{IndexType, ValueType};
pub use lacuna_matrix as matrix;
pub use lacuna_sim as sim;
pub use nhot::{
    BagIndex, Bags, NHot, NHotAlgorithm, NHotChoice, NHotLayout, NHotMode, NHotOptions, NHotProblem,
    choose_nhot, nhot,
};
pub use sddmm::{
    Sddmm, SddmmAlgorithm, SddmmChoice, SddmmOperands, SddmmOptions, SddmmOrder, SddmmProblem, choose_sddmm,
    sddmm,
};
pub use softmax::{
    RowLengths, SoftmaxAlgorithm, SoftmaxOptions, SoftmaxPart, SoftmaxProblem, SparseSoftmax, choose_softmax,
};
pub use spmm::{
    Choice, CostModel, LONG_ROWS, Precision, Problem, Spmm, SpmmAlgorithm, SpmmOperands, SpmmOptions, choose,
    choose_by, spmm,
};
pub use stream::{Event, Graph, Stream};
pub use topn::{
    BeamSearch, BeamState, TopN, TopNAlgorithm, TopNChoice, TopNOptions, TopNOutput, TopNProblem, choose_topn,
};
pub use transpose::TransposedPattern;
pub use tune::{Autotuner, TuneWarning};
pub use value::{Index, Value};

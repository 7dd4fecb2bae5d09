//! Sparse × dense: C = A·B with A in CSR, B and C row-major.

use std::error::Error as StdError;
use std::ffi::{c_int, c_void};
use std::fmt;

use super::Handle;
use super::api::NON_TRANSPOSE;
use super::descriptor::{Csr, Dense};
use crate::check::{self, Array, INDEX_BYTES};
use crate::data_type::DataType;
use crate::error::Error;
use crate::scalar::{ONE, ZERO, scalar};
use crate::workspace::Workspace;

/// cuSPARSE's algorithms for CSR matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpmmAlgorithm {
    /// The library's choice.
    Default,
    /// `CSR_ALG1`: made for column-major operands.
    Csr1,
    /// `CSR_ALG2`: made for row-major operands.
    Csr2,
    /// `CSR_ALG3`: deterministic, and gains from preprocessing.
    Csr3,
}

impl SpmmAlgorithm {
    /// All of them. The best of these is what a peer's time should mean.
    pub const ALL: [Self; 4] = [Self::Default, Self::Csr1, Self::Csr2, Self::Csr3];

    /// A short name for records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Csr1 => "csr_alg1",
            Self::Csr2 => "csr_alg2",
            Self::Csr3 => "csr_alg3",
        }
    }

    /// The number in `cusparseSpMMAlg_t`.
    fn raw(self) -> c_int {
        match self {
            Self::Default => 0,
            Self::Csr1 => 4,
            Self::Csr2 => 6,
            Self::Csr3 => 12,
        }
    }
}

/// C = A·B with sums in fp32: A is m × k in CSR, B is k × n and C is m × n, both row-major without gaps.
///
/// Addresses are device addresses.
#[derive(Clone, Copy, Debug)]
pub struct SpmmProblem {
    /// The type of the values of A, B and C.
    pub data_type: DataType,
    /// Rows of A and C.
    pub m: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Nonzeros of A.
    pub nnz: usize,
    /// `m + 1` offsets, 32-bit integers.
    pub row_offsets: u64,
    /// `nnz` column indices from 0, 32-bit integers.
    pub col_indices: u64,
    /// `nnz` values of A.
    pub values: u64,
    /// `k · n` values of B.
    pub b: u64,
    /// `m · n` values of C, overwritten.
    pub c: u64,
    /// The `CUstream` to run in; null is the default stream.
    pub stream: *mut c_void,
}

/// A problem bound to an algorithm and its workspace. Stays on its thread.
///
/// Each has descriptors of its own, because the library stores what an algorithm learnt in them.
pub struct Spmm {
    // Dropped in this order: the descriptors before the workspace that they know, the handle last.
    a: Csr,
    b: Dense,
    c: Dense,
    workspace: Option<Workspace>,
    workspace_bytes: usize,
    algorithm: SpmmAlgorithm,
    stream: *mut c_void,
    handle: Handle,
}

impl Handle {
    /// Binds `problem` to `algorithm`; `allocate` gives the workspace that the library asks for, in bytes,
    /// and is not called for none.
    ///
    /// # Errors
    /// A size that is 0 or past 2³¹ − 1, an impossible address, an output over an input, a failed allocation,
    /// or a refusal of the library; where [`Error::is_unsupported`] says so, try the next algorithm.
    ///
    /// # Safety
    /// As long as the returned value lives, and until the work that it put in the stream is done:
    /// - the arrays are device memory of this handle's context, with the lengths that [`SpmmProblem`] states,
    ///   and A is a valid CSR matrix;
    /// - the workspace is device memory of the bytes asked for, with no other user;
    /// - the stream belongs to this handle's context, and that context is current at every call
    ///   and at the drop.
    pub unsafe fn spmm<E: Into<Box<dyn StdError + Send + Sync>>>(
        &self,
        problem: &SpmmProblem,
        algorithm: SpmmAlgorithm,
        allocate: impl FnOnce(usize) -> Result<Workspace, E>,
    ) -> Result<Spmm, Error> {
        let m = check::size("m", problem.m)?;
        let k = check::size("k", problem.k)?;
        let n = check::size("n", problem.n)?;
        let nnz = check::size("nnz", problem.nnz)?;
        let offsets = check::size("m + 1", problem.m + 1)?;
        let data_type = problem.data_type;
        let bytes = data_type.bytes();
        let row_offsets = Array::new("row_offsets", problem.row_offsets, (offsets, 1), INDEX_BYTES)?;
        let col_indices = Array::new("col_indices", problem.col_indices, (nnz, 1), INDEX_BYTES)?;
        let values = Array::new("values", problem.values, (nnz, 1), bytes)?;
        let b = Array::new("b", problem.b, (k, n), bytes)?;
        let c = Array::new("c", problem.c, (m, n), bytes)?;
        c.disjoint_from(&[&row_offsets, &col_indices, &values, &b])?;

        let api = self.api();
        let mut spmm = Spmm {
            a: Csr::new(api, data_type, (m, k), nnz, &row_offsets, &col_indices, &values)?,
            b: Dense::new(api, data_type, k, n, &b)?,
            c: Dense::new(api, data_type, m, n, &c)?,
            workspace: None,
            workspace_bytes: 0,
            algorithm,
            stream: problem.stream,
            handle: self.clone(),
        };
        spmm.workspace_bytes = spmm.ask_workspace_bytes()?;
        spmm.workspace = Workspace::obtain(spmm.workspace_bytes, allocate)?;
        Ok(spmm)
    }
}

impl Spmm {
    /// The algorithm that it is bound to.
    pub fn algorithm(&self) -> SpmmAlgorithm {
        self.algorithm
    }

    /// The size of its workspace.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_bytes
    }

    /// Lets the algorithm study A's pattern, once, so that later runs are faster. Optional, and in stream
    /// order.
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status.
    pub fn preprocess(&self) -> Result<(), Error> {
        self.use_stream()?;
        // SAFETY: handle and descriptors are alive, `ONE` and `ZERO` are host scalars, and `Handle::spmm`'s
        // caller answers for the device memory.
        unsafe {
            self.handle.api().spmm_preprocess(
                self.handle.raw(),
                NON_TRANSPOSE,
                NON_TRANSPOSE,
                scalar(&ONE),
                self.a.raw,
                self.b.raw,
                scalar(&ZERO),
                self.c.raw,
                DataType::F32.raw(),
                self.algorithm.raw(),
                Workspace::pointer(&self.workspace),
            )
        }
    }

    /// Puts C = A·B in the stream and returns at once. May be captured in a CUDA graph.
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status. A fault in the kernel shows at the next wait for the stream.
    pub fn run(&self) -> Result<(), Error> {
        self.use_stream()?;
        // SAFETY: as in `preprocess`.
        unsafe {
            self.handle.api().spmm(
                self.handle.raw(),
                NON_TRANSPOSE,
                NON_TRANSPOSE,
                scalar(&ONE),
                self.a.raw,
                self.b.raw,
                scalar(&ZERO),
                self.c.raw,
                DataType::F32.raw(),
                self.algorithm.raw(),
                Workspace::pointer(&self.workspace),
            )
        }
    }

    fn ask_workspace_bytes(&self) -> Result<usize, Error> {
        self.use_stream()?;
        let mut bytes = 0;
        // SAFETY: as in `preprocess`, and `bytes` is a place for the answer.
        unsafe {
            self.handle.api().spmm_buffer_size(
                self.handle.raw(),
                NON_TRANSPOSE,
                NON_TRANSPOSE,
                scalar(&ONE),
                self.a.raw,
                self.b.raw,
                scalar(&ZERO),
                self.c.raw,
                DataType::F32.raw(),
                self.algorithm.raw(),
                &mut bytes,
            )
        }?;
        Ok(bytes)
    }

    /// The handle is shared, so that another problem may have left it on another stream.
    fn use_stream(&self) -> Result<(), Error> {
        // SAFETY: the handle is alive, and `Handle::spmm`'s caller answers for the stream.
        unsafe { self.handle.api().set_stream(self.handle.raw(), self.stream) }
    }
}

impl fmt::Debug for Spmm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spmm")
            .field("algorithm", &self.algorithm)
            .field("workspace_bytes", &self.workspace_bytes)
            .finish_non_exhaustive()
    }
}

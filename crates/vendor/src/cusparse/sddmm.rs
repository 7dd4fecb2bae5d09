//! Dense × dense where a sparse matrix has nonzeros: C = (A·Bᵀ) ∘ I[C], or (A·B) ∘ I[C], with A and B row-major, C in CSR.

use std::error::Error as StdError;
use std::ffi::{c_int, c_void};
use std::fmt;

use super::Handle;
use super::api::{NON_TRANSPOSE, SDDMM_DEFAULT, TRANSPOSE};
use super::descriptor::{Csr, Dense};
use crate::check::{self, Array, INDEX_BYTES};
use crate::data_type::DataType;
use crate::error::Error;
use crate::scalar::{ONE, ZERO, scalar};
use crate::workspace::Workspace;

/// C = (A·Bᵀ) ∘ I\[C\], or (A·B) ∘ I\[C\], with sums in fp32: A is m × k and B is n × k, or k × n, both row-major without gaps,
/// C is m × n in CSR and keeps its pattern.
///
/// Addresses are device addresses.
#[derive(Clone, Copy, Debug)]
pub struct SddmmProblem {
    /// The type of the values of A, B and C. The library may refuse those of 16 bits.
    pub data_type: DataType,
    /// Rows of A and C.
    pub m: usize,
    /// Columns of A: the length of a sum.
    pub k: usize,
    /// Columns of C.
    pub n: usize,
    /// Nonzeros of C.
    pub nnz: usize,
    /// `m · k` values of A.
    pub a: u64,
    /// `n · k` values of B.
    pub b: u64,
    /// Whether B is n × k, and counts transposed; else it is k × n.
    pub transposed_b: bool,
    /// `m + 1` offsets, 32-bit integers.
    pub row_offsets: u64,
    /// `nnz` column indices from 0, 32-bit integers.
    pub col_indices: u64,
    /// `nnz` values of C, overwritten.
    pub values: u64,
    /// The `CUstream` to run in; null is the default stream.
    pub stream: *mut c_void,
}

/// A problem bound to its workspace. The library has one algorithm. Stays on its thread.
///
/// Each has descriptors of its own, because the library stores what it learnt in them.
pub struct Sddmm {
    // Dropped in this order: the descriptors before the workspace that they know, the handle last.
    a: Dense,
    b: Dense,
    c: Csr,
    workspace: Option<Workspace>,
    workspace_bytes: usize,
    operation_b: c_int,
    stream: *mut c_void,
    handle: Handle,
}

impl Handle {
    /// Binds `problem`; `allocate` gives the workspace that the library asks for, in bytes, and is not called for none.
    ///
    /// # Errors
    /// A size that is 0 or past 2³¹ − 1, an impossible address, an output over an input, a failed allocation,
    /// or a refusal of the library; where [`Error::is_unsupported`] says so, it has no such operation.
    ///
    /// # Safety
    /// As long as the returned value lives, and until the work that it put in the stream is done:
    /// - the arrays are device memory of this handle's context, with the lengths that [`SddmmProblem`] states,
    ///   and C is a valid CSR matrix;
    /// - the workspace is device memory of the bytes asked for, with no other user;
    /// - the stream belongs to this handle's context, and that context is current at every call
    ///   and at the drop.
    pub unsafe fn sddmm<E: Into<Box<dyn StdError + Send + Sync>>>(
        &self,
        problem: &SddmmProblem,
        allocate: impl FnOnce(usize) -> Result<Workspace, E>,
    ) -> Result<Sddmm, Error> {
        let m = check::size("m", problem.m)?;
        let k = check::size("k", problem.k)?;
        let n = check::size("n", problem.n)?;
        let nnz = check::size("nnz", problem.nnz)?;
        let offsets = check::size("m + 1", problem.m + 1)?;
        let data_type = problem.data_type;
        let bytes = data_type.bytes();
        let a = Array::new("a", problem.a, (m, k), bytes)?;
        let ((b_rows, b_columns), operation_b) =
            if problem.transposed_b { ((n, k), TRANSPOSE) } else { ((k, n), NON_TRANSPOSE) };
        let b = Array::new("b", problem.b, (b_rows, b_columns), bytes)?;
        let row_offsets = Array::new("row_offsets", problem.row_offsets, (offsets, 1), INDEX_BYTES)?;
        let col_indices = Array::new("col_indices", problem.col_indices, (nnz, 1), INDEX_BYTES)?;
        let values = Array::new("values", problem.values, (nnz, 1), bytes)?;
        values.disjoint_from(&[&a, &b, &row_offsets, &col_indices])?;

        let api = self.api();
        let mut sddmm = Sddmm {
            a: Dense::new(api, data_type, m, k, &a)?,
            b: Dense::new(api, data_type, b_rows, b_columns, &b)?,
            c: Csr::new(api, data_type, (m, n), nnz, &row_offsets, &col_indices, &values)?,
            workspace: None,
            workspace_bytes: 0,
            operation_b,
            stream: problem.stream,
            handle: self.clone(),
        };
        sddmm.workspace_bytes = sddmm.ask_workspace_bytes()?;
        sddmm.workspace = Workspace::obtain(sddmm.workspace_bytes, allocate)?;
        Ok(sddmm)
    }
}

impl Sddmm {
    /// The size of its workspace.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_bytes
    }

    /// Lets the library study C's pattern, once, so that later runs are faster. Optional, and in stream order.
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status.
    pub fn preprocess(&self) -> Result<(), Error> {
        self.use_stream()?;
        // SAFETY: handle and descriptors are alive, `ONE` and `ZERO` are host scalars, and `Handle::sddmm`'s
        // caller answers for the device memory.
        unsafe {
            self.handle.api().sddmm_preprocess(
                self.handle.raw(),
                NON_TRANSPOSE,
                self.operation_b,
                scalar(&ONE),
                self.a.raw,
                self.b.raw,
                scalar(&ZERO),
                self.c.raw,
                DataType::F32.raw(),
                SDDMM_DEFAULT,
                Workspace::pointer(&self.workspace),
            )
        }
    }

    /// Puts the product in the stream and returns at once. May be captured in a CUDA graph.
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status. A fault in the kernel shows at the next wait for the stream.
    pub fn run(&self) -> Result<(), Error> {
        self.use_stream()?;
        // SAFETY: as in `preprocess`.
        unsafe {
            self.handle.api().sddmm(
                self.handle.raw(),
                NON_TRANSPOSE,
                self.operation_b,
                scalar(&ONE),
                self.a.raw,
                self.b.raw,
                scalar(&ZERO),
                self.c.raw,
                DataType::F32.raw(),
                SDDMM_DEFAULT,
                Workspace::pointer(&self.workspace),
            )
        }
    }

    fn ask_workspace_bytes(&self) -> Result<usize, Error> {
        self.use_stream()?;
        let mut bytes = 0;
        // SAFETY: as in `preprocess`, and `bytes` is a place for the answer.
        unsafe {
            self.handle.api().sddmm_buffer_size(
                self.handle.raw(),
                NON_TRANSPOSE,
                self.operation_b,
                scalar(&ONE),
                self.a.raw,
                self.b.raw,
                scalar(&ZERO),
                self.c.raw,
                DataType::F32.raw(),
                SDDMM_DEFAULT,
                &mut bytes,
            )
        }?;
        Ok(bytes)
    }

    /// The handle is shared, so that another problem may have left it on another stream.
    fn use_stream(&self) -> Result<(), Error> {
        // SAFETY: the handle is alive, and `Handle::sddmm`'s caller answers for the stream.
        unsafe { self.handle.api().set_stream(self.handle.raw(), self.stream) }
    }
}

impl fmt::Debug for Sddmm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sddmm").field("workspace_bytes", &self.workspace_bytes).finish_non_exhaustive()
    }
}

//! Dense × dense: C = A·B, all row-major, or with Bᵀ in memory; one product, or a batch of them.

use std::error::Error as StdError;
use std::ffi::{c_int, c_void};
use std::fmt;

use super::Handle;
use super::api::{COMPUTE_32F, GEMM_DEFAULT, NON_TRANSPOSE, TRANSPOSE};
use crate::check::{self, Array};
use crate::data_type::DataType;
use crate::error::Error;
use crate::scalar::{ONE, ZERO, scalar};
use crate::workspace::Workspace;

/// The workspace of a GEMM: what NVIDIA advises for Hopper, and more than enough before it.
///
/// With a workspace of its own a GEMM can be captured in a CUDA graph, and no other can disturb it.
pub const WORKSPACE_BYTES: usize = 32 << 20;

/// The arithmetic of the products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Math {
    /// Full fp32: cuBLAS's default mode, with every kernel it has. Products of fp32 values run on the FMA units, those
    /// of 16-bit values on tensor cores where the GPU has them, exactly and summed in fp32.
    ///
    /// From CUDA 12.9 on the variable `CUBLAS_EMULATE_SINGLE_PRECISION` can change that; leave it unset.
    Fp32,
    /// Inputs of fp32 rounded to TF32 (10 bits of mantissa), on tensor cores where the GPU has them.
    Tf32,
}

impl Math {
    /// A short name for records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
        }
    }

    /// The number in `cublasMath_t`.
    fn raw(self) -> c_int {
        match self {
            Self::Fp32 => 0,
            Self::Tf32 => 3,
        }
    }
}

/// C = A·B with sums in fp32: A is m × k, B is k × n and C is m × n, all row-major without gaps. Of a batch, the matrices
/// of each kind lie one behind the other.
///
/// Addresses are device addresses.
#[derive(Clone, Copy, Debug)]
pub struct GemmProblem {
    /// The type of the values of A, B and C.
    pub data_type: DataType,
    /// Rows of A and C.
    pub m: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Products.
    pub batch: usize,
    /// Whether B is in memory as its transpose: n × k, row-major.
    pub transposed_b: bool,
    /// Whether all products of the batch have one A.
    pub shared_a: bool,
    /// `batch · m · k` values of A, or `m · k` of one that is shared.
    pub a: u64,
    /// `batch · k · n` values of B.
    pub b: u64,
    /// `batch · m · n` values of C, overwritten.
    pub c: u64,
    /// The `CUstream` to run in; null is the default stream.
    pub stream: *mut c_void,
}

/// A problem bound to a math mode and a workspace. Stays on its thread.
pub struct Gemm {
    handle: Handle,
    data_type: DataType,
    m: c_int,
    k: c_int,
    n: c_int,
    batch: c_int,
    transposed_b: bool,
    shared_a: bool,
    a: Array,
    b: Array,
    c: Array,
    math: Math,
    stream: *mut c_void,
    workspace: Option<Workspace>,
}

impl Handle {
    /// Binds `problem` to `math`; `allocate` gives a workspace of [`WORKSPACE_BYTES`].
    ///
    /// # Errors
    /// A size that is 0 or past 2³¹ − 1, an impossible address, an output over an input, [`Math::Tf32`] for values that
    /// are not fp32, or a failed allocation.
    ///
    /// # Safety
    /// As long as the returned value lives, and until the work that it put in the stream is done:
    /// - the arrays are device memory of this handle's context, with the lengths that [`GemmProblem`] states;
    /// - the workspace is device memory of the bytes asked for, with no other user;
    /// - the stream belongs to this handle's context, and that context is current at every call
    ///   and at the drop.
    pub unsafe fn gemm<E: Into<Box<dyn StdError + Send + Sync>>>(
        &self,
        problem: &GemmProblem,
        math: Math,
        allocate: impl FnOnce(usize) -> Result<Workspace, E>,
    ) -> Result<Gemm, Error> {
        let m = check::size("m", problem.m)?;
        let k = check::size("k", problem.k)?;
        let n = check::size("n", problem.n)?;
        let batch = check::size("batch", problem.batch)?;
        let data_type = problem.data_type;
        if math == Math::Tf32 && data_type != DataType::F32 {
            return Err(Error::Math { math, data_type });
        }
        let bytes = data_type.bytes();
        let a = Array::batch("a", problem.a, if problem.shared_a { 1 } else { batch }, (m, k), bytes)?;
        let b = Array::batch("b", problem.b, batch, (k, n), bytes)?;
        let c = Array::batch("c", problem.c, batch, (m, n), bytes)?;
        c.disjoint_from(&[&a, &b])?;
        let workspace = Workspace::obtain(WORKSPACE_BYTES, allocate)?;
        let GemmProblem { transposed_b, shared_a, stream, .. } = *problem;
        let handle = self.clone();
        Ok(Gemm {
            handle,
            data_type,
            m,
            k,
            n,
            batch,
            transposed_b,
            shared_a,
            a,
            b,
            c,
            math,
            stream,
            workspace,
        })
    }
}

impl Gemm {
    /// The math mode that it is bound to.
    pub fn math(&self) -> Math {
        self.math
    }

    /// Puts C = A·B in the stream and returns at once. May be captured in a CUDA graph.
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status. A fault in the kernel shows at the next wait for the stream.
    pub fn run(&self) -> Result<(), Error> {
        let (api, handle) = (self.handle.api(), self.handle.raw());
        // The handle is shared, so its settings are made anew. The workspace comes after the stream, which
        // resets it.
        // SAFETY: the handle is alive, and `Handle::gemm`'s caller answers for the stream.
        unsafe { api.set_stream(handle, self.stream) }?;
        // SAFETY: the same caller answers for the workspace, which is of this size.
        unsafe { api.set_workspace(handle, Workspace::pointer(&self.workspace), WORKSPACE_BYTES) }?;
        // SAFETY: the handle is alive, and the mode is one of the library's.
        unsafe { api.set_math_mode(handle, self.math.raw()) }?;

        // cuBLAS is column-major, where our row-major matrices read as their transposes: so Cᵀ = Bᵀ·Aᵀ. A B that is in
        // memory as its transpose reads as B.
        let (n, m, k) = (self.n, self.m, self.k);
        let (a, b, c) = (self.a.pointer(), self.b.pointer(), self.c.pointer());
        let (op_b, leading_b) = if self.transposed_b { (TRANSPOSE, k) } else { (NON_TRANSPOSE, n) };
        let (op_a, data_type) = (NON_TRANSPOSE, self.data_type.raw());
        let (one, zero) = (scalar(&ONE), scalar(&ZERO));
        let elements = |rows: c_int, columns: c_int| i64::from(rows) * i64::from(columns);
        match self.data_type {
            // SAFETY: the scalars are on the host, and the caller of `Handle::gemm` answers for the device memory.
            DataType::F32 if self.batch == 1 => unsafe {
                let (a, b, c) = (a.cast(), b.cast(), c.cast());
                api.sgemm(handle, op_b, op_a, n, m, k, &ONE, b, leading_b, a, k, &ZERO, c, n)
            },
            // SAFETY: as above; the scalars are fp32, as the computation is.
            DataType::F16 | DataType::Bf16 if self.batch == 1 => unsafe {
                api.gemm_ex(
                    handle,
                    op_b,
                    op_a,
                    n,
                    m,
                    k,
                    one,
                    b,
                    data_type,
                    leading_b,
                    a,
                    data_type,
                    k,
                    zero,
                    c,
                    data_type,
                    n,
                    COMPUTE_32F,
                    GEMM_DEFAULT,
                )
            },
            // SAFETY: as above.
            _ => unsafe {
                api.gemm_strided_batched_ex(
                    handle,
                    op_b,
                    op_a,
                    n,
                    m,
                    k,
                    one,
                    b,
                    data_type,
                    leading_b,
                    elements(k, n),
                    a,
                    data_type,
                    k,
                    if self.shared_a { 0 } else { elements(m, k) },
                    zero,
                    c,
                    data_type,
                    n,
                    elements(m, n),
                    self.batch,
                    COMPUTE_32F,
                    GEMM_DEFAULT,
                )
            },
        }
    }
}

impl fmt::Debug for Gemm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gemm")
            .field("data_type", &self.data_type)
            .field("m", &self.m)
            .field("k", &self.k)
            .field("n", &self.n)
            .field("batch", &self.batch)
            .field("transposed_b", &self.transposed_b)
            .field("shared_a", &self.shared_a)
            .field("math", &self.math)
            .finish_non_exhaustive()
    }
}

//! The C functions of cuBLAS, as `cublas_api.h` has declared them since CUDA 11.4.

use std::ffi::{c_int, c_void};

use crate::api::api;
use crate::loaded::RawHandle;
use crate::status::Vendor;

/// `CUBLAS_OP_N`.
pub(crate) const NON_TRANSPOSE: c_int = 0;
/// `CUBLAS_OP_T`.
pub(crate) const TRANSPOSE: c_int = 1;
/// `CUBLAS_COMPUTE_32F`.
pub(crate) const COMPUTE_32F: c_int = 68;
/// `CUBLAS_GEMM_DEFAULT`.
pub(crate) const GEMM_DEFAULT: c_int = -1;

api! {
    Vendor::CuBlas;

    fn get_property = "cublasGetProperty"(property: c_int, value: *mut c_int);
    fn create = "cublasCreate_v2"(handle: *mut RawHandle);
    fn destroy = "cublasDestroy_v2"(handle: RawHandle);
    fn set_stream = "cublasSetStream_v2"(handle: RawHandle, stream: *mut c_void);
    fn set_workspace = "cublasSetWorkspace_v2"(handle: RawHandle, workspace: *mut c_void, bytes: usize);
    fn set_math_mode = "cublasSetMathMode"(handle: RawHandle, mode: c_int);
    fn sgemm = "cublasSgemm_v2"(
        handle: RawHandle, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int,
        alpha: *const f32, a: *const f32, leading_a: c_int, b: *const f32, leading_b: c_int,
        beta: *const f32, c: *mut f32, leading_c: c_int,
    );
    fn gemm_ex = "cublasGemmEx"(
        handle: RawHandle, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int,
        alpha: *const c_void, a: *const c_void, type_a: c_int, leading_a: c_int,
        b: *const c_void, type_b: c_int, leading_b: c_int,
        beta: *const c_void, c: *mut c_void, type_c: c_int, leading_c: c_int,
        compute_type: c_int, algorithm: c_int,
    );
    fn gemm_strided_batched_ex = "cublasGemmStridedBatchedEx"(
        handle: RawHandle, op_a: c_int, op_b: c_int, m: c_int, n: c_int, k: c_int,
        alpha: *const c_void, a: *const c_void, type_a: c_int, leading_a: c_int, stride_a: i64,
        b: *const c_void, type_b: c_int, leading_b: c_int, stride_b: i64,
        beta: *const c_void, c: *mut c_void, type_c: c_int, leading_c: c_int, stride_c: i64,
        batch: c_int, compute_type: c_int, algorithm: c_int,
    );
}

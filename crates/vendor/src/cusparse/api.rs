//! The C functions of cuSPARSE, as `cusparse.h` has declared them since CUDA 11.4.

use std::ffi::{c_int, c_void};

use crate::api::api;
use crate::loaded::RawHandle;
use crate::status::Vendor;

/// `cusparseSpMatDescr_t`, or its const twin of later versions.
pub(crate) type RawSparse = *mut c_void;
/// `cusparseDnMatDescr_t`, or its const twin of later versions.
pub(crate) type RawDense = *mut c_void;

/// `CUSPARSE_OPERATION_NON_TRANSPOSE`.
pub(crate) const NON_TRANSPOSE: c_int = 0;
/// `CUSPARSE_OPERATION_TRANSPOSE`.
pub(crate) const TRANSPOSE: c_int = 1;
/// `CUSPARSE_SDDMM_ALG_DEFAULT`.
pub(crate) const SDDMM_DEFAULT: c_int = 0;
/// `CUSPARSE_ORDER_ROW`.
pub(crate) const ORDER_ROW: c_int = 2;
/// `CUSPARSE_INDEX_32I`.
pub(crate) const INDEX_I32: c_int = 2;
/// `CUSPARSE_INDEX_BASE_ZERO`.
pub(crate) const BASE_ZERO: c_int = 0;

api! {
    Vendor::CuSparse;

    fn get_property = "cusparseGetProperty"(property: c_int, value: *mut c_int);
    fn create = "cusparseCreate"(handle: *mut RawHandle);
    fn destroy = "cusparseDestroy"(handle: RawHandle);
    fn set_stream = "cusparseSetStream"(handle: RawHandle, stream: *mut c_void);

    fn create_csr = "cusparseCreateCsr"(
        matrix: *mut RawSparse, rows: i64, columns: i64, nonzeros: i64,
        row_offsets: *mut c_void, column_indices: *mut c_void, values: *mut c_void,
        offset_type: c_int, index_type: c_int, base: c_int, value_type: c_int,
    );
    fn destroy_sparse = "cusparseDestroySpMat"(matrix: RawSparse);
    fn create_dense = "cusparseCreateDnMat"(
        matrix: *mut RawDense, rows: i64, columns: i64, leading: i64,
        values: *mut c_void, value_type: c_int, order: c_int,
    );
    fn destroy_dense = "cusparseDestroyDnMat"(matrix: RawDense);

    fn spmm_buffer_size = "cusparseSpMM_bufferSize"(
        handle: RawHandle, op_a: c_int, op_b: c_int,
        alpha: *const c_void, a: RawSparse, b: RawDense, beta: *const c_void, c: RawDense,
        compute_type: c_int, algorithm: c_int, bytes: *mut usize,
    );
    fn spmm_preprocess = "cusparseSpMM_preprocess"(
        handle: RawHandle, op_a: c_int, op_b: c_int,
        alpha: *const c_void, a: RawSparse, b: RawDense, beta: *const c_void, c: RawDense,
        compute_type: c_int, algorithm: c_int, workspace: *mut c_void,
    );
    fn spmm = "cusparseSpMM"(
        handle: RawHandle, op_a: c_int, op_b: c_int,
        alpha: *const c_void, a: RawSparse, b: RawDense, beta: *const c_void, c: RawDense,
        compute_type: c_int, algorithm: c_int, workspace: *mut c_void,
    );

    fn sddmm_buffer_size = "cusparseSDDMM_bufferSize"(
        handle: RawHandle, op_a: c_int, op_b: c_int,
        alpha: *const c_void, a: RawDense, b: RawDense, beta: *const c_void, c: RawSparse,
        compute_type: c_int, algorithm: c_int, bytes: *mut usize,
    );
    fn sddmm_preprocess = "cusparseSDDMM_preprocess"(
        handle: RawHandle, op_a: c_int, op_b: c_int,
        alpha: *const c_void, a: RawDense, b: RawDense, beta: *const c_void, c: RawSparse,
        compute_type: c_int, algorithm: c_int, workspace: *mut c_void,
    );
    fn sddmm = "cusparseSDDMM"(
        handle: RawHandle, op_a: c_int, op_b: c_int,
        alpha: *const c_void, a: RawDense, b: RawDense, beta: *const c_void, c: RawSparse,
        compute_type: c_int, algorithm: c_int, workspace: *mut c_void,
    );
}

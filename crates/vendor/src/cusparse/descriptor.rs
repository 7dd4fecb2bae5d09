//! Matrix descriptors, destroyed when dropped.

use std::sync::Arc;

use super::api::{Api, BASE_ZERO, INDEX_I32, ORDER_ROW, RawDense, RawSparse};
use crate::check::Array;
use crate::data_type::DataType;
use crate::error::Error;

/// A CSR matrix with 32-bit offsets and indices.
pub(super) struct Csr {
    api: Arc<Api>,
    pub(super) raw: RawSparse,
}

impl Csr {
    /// Describes a matrix of `shape` (rows, columns) with `nnz` nonzeros in the three arrays, of values of `data_type`.
    pub(super) fn new(
        api: &Arc<Api>,
        data_type: DataType,
        shape: (i32, i32),
        nnz: i32,
        row_offsets: &Array,
        col_indices: &Array,
        values: &Array,
    ) -> Result<Self, Error> {
        let mut raw: RawSparse = std::ptr::null_mut();
        // SAFETY: `raw` is a place for the descriptor; making one reads no device memory.
        unsafe {
            api.create_csr(
                &mut raw,
                shape.0.into(),
                shape.1.into(),
                nnz.into(),
                row_offsets.pointer(),
                col_indices.pointer(),
                values.pointer(),
                INDEX_I32,
                INDEX_I32,
                BASE_ZERO,
                data_type.raw(),
            )
        }?;
        Ok(Self { api: api.clone(), raw })
    }
}

impl Drop for Csr {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and this is its last use. A failure here leaves nothing to be done.
        let _ = unsafe { self.api.destroy_sparse(self.raw) };
    }
}

/// A dense matrix in row-major order without gaps.
pub(super) struct Dense {
    api: Arc<Api>,
    pub(super) raw: RawDense,
}

impl Dense {
    /// Describes `values`, of `data_type`, as `rows` × `columns`.
    pub(super) fn new(
        api: &Arc<Api>,
        data_type: DataType,
        rows: i32,
        columns: i32,
        values: &Array,
    ) -> Result<Self, Error> {
        let mut raw: RawDense = std::ptr::null_mut();
        let leading = columns.into();
        // SAFETY: `raw` is a place for the descriptor; making one reads no device memory.
        unsafe {
            api.create_dense(
                &mut raw,
                rows.into(),
                columns.into(),
                leading,
                values.pointer(),
                data_type.raw(),
                ORDER_ROW,
            )
        }?;
        Ok(Self { api: api.clone(), raw })
    }
}

impl Drop for Dense {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and this is its last use. A failure here leaves nothing to be done.
        let _ = unsafe { self.api.destroy_dense(self.raw) };
    }
}

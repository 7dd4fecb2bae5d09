//! DLPack capsules, read as they stand: the producer keeps its tensor, and whoever called holds the capsule.
//!
//! The crate `dlpark` reads them too, but takes them over: its tensors free the producer's when dropped, which must then come after
//! the stream's work. Here the caller's array stays the owner, as with PyTorch's tensors.
use std::ffi::c_void;
use std::slice;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::input;

/// `DLTensor` of DLPack 1 (`dlpack.h`).
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// An array: address, kind and number of its device, code and bits of its type, shape, and strides in elements, if it says so.
type Described = (u64, (i32, i32), (u8, u8), Vec<i64>, Option<Vec<i64>>);

/// What a capsule that nobody has taken holds. It stays as it is.
#[pyfunction]
pub(crate) fn inspect_dlpack(capsule: &Bound<'_, PyAny>) -> PyResult<Described> {
    // SAFETY: the object is live, and the name ends with a zero.
    let is_fresh = unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), c"dltensor".as_ptr()) } != 0;
    if !is_fresh {
        return Err(input(
            "the DLPack capsule was taken by another library, or is none; ask the array for a new one",
        ));
    }
    // SAFETY: it is a capsule of this name.
    let tensor = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dltensor".as_ptr()) };
    // SAFETY: capsules of this name hold a `DLManagedTensor`, which begins with a `DLTensor`, and is live until it is taken.
    let tensor =
        unsafe { tensor.cast::<DlTensor>().as_ref() }.ok_or_else(|| input("the DLPack capsule is empty"))?;
    if tensor.lanes != 1 {
        return Err(input(format!("the array has {} numbers an element, but 1 is expected", tensor.lanes)));
    }
    let ndim = usize::try_from(tensor.ndim).unwrap_or(0);
    let numbers = |first: *const i64| {
        // SAFETY: DLPack has `ndim` of them where there are any.
        (!first.is_null()).then(|| unsafe { slice::from_raw_parts(first, ndim) }.to_vec())
    };
    let address = (tensor.data as u64).wrapping_add(tensor.byte_offset);
    let (shape, strides) = (numbers(tensor.shape).unwrap_or_default(), numbers(tensor.strides));
    Ok((address, (tensor.device_type, tensor.device_id), (tensor.code, tensor.bits), shape, strides))
}

//! The factors of the vendors' products, on the host.

use std::ffi::c_void;

pub(crate) static ONE: f32 = 1.0;
pub(crate) static ZERO: f32 = 0.0;

/// A factor as the vendors' functions take one whose type is told apart.
pub(crate) fn scalar(value: &'static f32) -> *const c_void {
    std::ptr::from_ref(value).cast()
}

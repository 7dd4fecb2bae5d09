//! Tensor maps, which the driver encodes.
use std::ffi::c_void;
use std::{mem, ptr};

use lacuna_gpu::{Tensor, TensorMap};

use super::driver::check;
use super::ffi::{self, TensorMapEncodeTiled};
use crate::{Error, Result};

/// The driver's encoder; none where the driver is too old.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoder(Option<TensorMapEncodeTiled>);

/// A place as a `CUtensorMap` wants it.
#[repr(C, align(64))]
struct Place([u64; TensorMap::WORDS]);

impl Encoder {
    /// The driver's encoder. The driver is initialised.
    pub(super) fn find() -> Self {
        let found = ffi::find(ffi::TENSOR_MAP_ENCODE_TILED, ffi::TENSOR_MAP_ENCODE_TILED_SINCE);
        // SAFETY: the driver says that this is the function of that name.
        Self(found.map(|found| unsafe { mem::transmute::<*mut c_void, TensorMapEncodeTiled>(found) }))
    }

    /// The tensor's map. The context is current.
    pub(super) fn encode(self, tensor: &Tensor) -> Result<TensorMap> {
        let encode = self.0.ok_or_else(|| Error::Unsupported {
            device: "the driver".into(),
            what: "tensor maps, which are there from CUDA 12.0 on",
            instead: "update the driver, or name an algorithm without warpgroups",
        })?;
        let mut place = Place([0; TensorMap::WORDS]);
        let extent = tensor.extent.map(u64::from);
        let every = [1; 3];
        let [columns, rows] = tensor.box_dim;
        let swizzle = if tensor.row_bytes() == 128 { ffi::SWIZZLE_128 } else { ffi::SWIZZLE_64 };
        // SAFETY: the places are live, and have as many numbers as a tensor of three dimensions needs. The address is only kept.
        let status = unsafe {
            encode(
                ptr::from_mut(&mut place).cast(),
                ffi::TENSOR_OF_16_BITS,
                extent.len() as u32,
                ptr::with_exposed_provenance_mut(tensor.address as usize),
                extent.as_ptr(),
                tensor.stride_bytes.as_ptr(),
                [columns, rows, 1].as_ptr(),
                every.as_ptr(),
                ffi::NOT_INTERLEAVED,
                swizzle,
                ffi::PROMOTED_TO_256_BYTES,
                ffi::ZEROS_OUTSIDE,
            )
        };
        check("cuTensorMapEncodeTiled", status)?;
        Ok(TensorMap::from_words(place.0))
    }
}

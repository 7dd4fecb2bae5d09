//! Descriptors, destroyed when dropped.

use std::ffi::c_int;
use std::sync::Arc;

use super::api::{self, Api, CROSS_CORRELATION, IDENTITY, PROPAGATE_NAN, RELU, RawDescriptor};
use super::shape::Shape;
use crate::data_type::DataType;
use crate::error::Error;

/// A function that makes a descriptor of one kind.
type Create = unsafe fn(&Api, *mut RawDescriptor) -> Result<(), Error>;
/// The function that destroys descriptors of that kind.
type Destroy = unsafe fn(&Api, RawDescriptor) -> Result<(), Error>;

/// A descriptor of any kind.
pub(super) struct Descriptor {
    api: Arc<Api>,
    raw: RawDescriptor,
    destroy: Destroy,
}

impl Descriptor {
    /// A descriptor that says nothing yet; `create` and `destroy` are of one kind.
    fn new(api: &Arc<Api>, create: Create, destroy: Destroy) -> Result<Self, Error> {
        let mut raw: RawDescriptor = std::ptr::null_mut();
        // SAFETY: `raw` is a place for the descriptor.
        unsafe { create(api, &mut raw) }?;
        Ok(Self { api: api.clone(), raw, destroy })
    }

    /// Describes images of `data_type`: `batch`, `channels`, `height` and `width` in `format`, without gaps.
    pub(super) fn tensor(
        api: &Arc<Api>,
        format: c_int,
        data_type: DataType,
        [batch, channels, height, width]: [c_int; 4],
    ) -> Result<Self, Error> {
        let tensor = Self::new(api, Api::create_tensor, Api::destroy_tensor)?;
        let data_type = api::data_type(data_type);
        // SAFETY: the descriptor is a tensor's, and alive.
        unsafe { api.describe_tensor(tensor.raw, format, data_type, batch, channels, height, width) }?;
        Ok(tensor)
    }

    /// Describes weights of `data_type`: `filters`, `channels` of a group, `height` and `width` in `format`, without
    /// gaps.
    pub(super) fn filter(
        api: &Arc<Api>,
        format: c_int,
        data_type: DataType,
        [filters, channels, height, width]: [c_int; 4],
    ) -> Result<Self, Error> {
        let filter = Self::new(api, Api::create_filter, Api::destroy_filter)?;
        let data_type = api::data_type(data_type);
        // SAFETY: the descriptor is a filter's, and alive.
        unsafe { api.describe_filter(filter.raw, data_type, format, filters, channels, height, width) }?;
        Ok(filter)
    }

    /// Describes how the taps move over the images. Sums are in fp32.
    pub(super) fn convolution(api: &Arc<Api>, shape: &Shape) -> Result<Self, Error> {
        let convolution = Self::new(api, Api::create_convolution, Api::destroy_convolution)?;
        let ([padding_height, padding_width], [stride_height, stride_width]) = (shape.padding, shape.strides);
        // SAFETY: the descriptor is a convolution's, and alive.
        unsafe {
            api.describe_convolution(
                convolution.raw,
                padding_height,
                padding_width,
                stride_height,
                stride_width,
                1,
                1,
                CROSS_CORRELATION,
                api::data_type(DataType::F32),
            )
        }?;
        // SAFETY: as above.
        unsafe { api.set_group_count(convolution.raw, shape.groups) }?;
        Ok(convolution)
    }

    /// Describes ReLU, or nothing at all, after the bias.
    pub(super) fn activation(api: &Arc<Api>, relu: bool) -> Result<Self, Error> {
        let activation = Self::new(api, Api::create_activation, Api::destroy_activation)?;
        let mode = if relu { RELU } else { IDENTITY };
        // SAFETY: the descriptor is an activation's, and alive. Neither mode reads the coefficient.
        unsafe { api.describe_activation(activation.raw, mode, PROPAGATE_NAN, 0.0) }?;
        Ok(activation)
    }

    /// The descriptor itself, alive as long as `self`.
    pub(super) fn raw(&self) -> RawDescriptor {
        self.raw
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours, of the kind that `destroy` takes, and this is its last use. A failure here
        // leaves nothing to be done.
        let _ = unsafe { (self.destroy)(&self.api, self.raw) };
    }
}

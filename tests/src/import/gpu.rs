//! Memory and a stream of `cudarc`, which uses the primary context as PyTorch does.
use std::ffi::c_void;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr as _};
use lacuna::Device;

use super::lender::Lender;

/// A context of `cudarc`'s, and a stream of its own.
pub(super) struct Cudarc {
    stream: Arc<CudaStream>,
    lent: Vec<CudaSlice<u8>>,
}

impl Cudarc {
    /// On the GPU that is at this device's place on the bus.
    pub(super) fn new(device: &Device) -> Result<Self> {
        let wanted = device.info().pci.as_deref().context("a GPU has a place on the bus")?;
        for ordinal in 0..CudaContext::device_count()? as usize {
            let context = CudaContext::new(ordinal)?;
            let domain = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
            let bus = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
            let place = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
            if format!("{domain:08x}:{bus:02x}:{place:02x}.0") == wanted {
                return Ok(Self { stream: context.new_stream()?, lent: Vec::new() });
            }
        }
        anyhow::bail!("cudarc shows no GPU at {wanted}")
    }
}

impl Lender for Cudarc {
    fn stream(&self) -> *mut c_void {
        self.stream.cu_stream().cast()
    }
    fn lend(&mut self, contents: &[u8]) -> Result<u64> {
        let slice = self.stream.clone_htod(contents)?;
        let address = slice.device_ptr(&self.stream).0;
        self.lent.push(slice);
        Ok(address)
    }
    fn read(&self, which: usize) -> Result<Vec<u8>> {
        Ok(self.stream.clone_dtoh(&self.lent[which])?)
    }
}

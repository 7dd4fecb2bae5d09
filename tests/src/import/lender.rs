//! Who lends memory and a stream: another library on a GPU, the simulator itself there.
use std::ffi::c_void;

use anyhow::Result;
use lacuna::{Buffer, Device};

/// Another library's memory and stream, on the device under test.
pub(super) trait Lender {
    /// Its stream's handle.
    fn stream(&self) -> *mut c_void;
    /// The address of memory with these contents, written on its stream.
    fn lend(&mut self, contents: &[u8]) -> Result<u64>;
    /// The contents of what it lent at `which`th, after its stream's work.
    fn read(&self, which: usize) -> Result<Vec<u8>>;
}

/// The lender on this device.
pub(super) fn lender(device: &Device) -> Result<Box<dyn Lender>> {
    #[cfg(feature = "cuda")]
    if !device.is_simulator() {
        return Ok(Box::new(super::gpu::Cudarc::new(device)?));
    }
    Ok(Box::new(Simulated { device: device.clone(), lent: Vec::new() }))
}

/// Memory of the simulator: it works on no other.
struct Simulated {
    device: Device,
    lent: Vec<Buffer<u8>>,
}

impl Lender for Simulated {
    fn stream(&self) -> *mut c_void {
        std::ptr::null_mut()
    }
    fn lend(&mut self, contents: &[u8]) -> Result<u64> {
        self.lent.push(self.device.upload(contents)?);
        Ok(self.lent[self.lent.len() - 1].as_slice().address())
    }
    fn read(&self, which: usize) -> Result<Vec<u8>> {
        Ok(self.lent[which].download(&self.device.stream()?)?)
    }
}

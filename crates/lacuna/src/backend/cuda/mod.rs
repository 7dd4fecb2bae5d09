//! NVIDIA GPUs, through `cust` and the driver API. Nothing outside this module knows either.
mod cudnn;
mod driver;
mod ffi;
mod launch;
mod modules;
mod stream;
mod tensor_map;

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use cust::context::{Context, CurrentContext};
use cust::device::{Device, DeviceAttribute};
use cust::sys::CUcontext;
use lacuna_gpu::{Tensor, TensorMap};

use self::cudnn::CudnnConv;
use self::driver::check;
use self::launch::Launcher;
use self::modules::Modules;
use self::stream::CudaStream;
use self::tensor_map::Encoder;
use super::{Backend, BackendConv, BackendStream};
use crate::conv::Problem;
use crate::{DeviceInfo, Error, Result};

/// A GPU and its primary context.
#[derive(Debug)]
pub(crate) struct CudaDevice {
    shared: Arc<Shared>,
}

/// What a device and its streams share.
#[derive(Debug)]
struct Shared {
    info: DeviceInfo,
    context: Context,
    modules: Modules,
    launcher: Launcher,
    encoder: Encoder,
}

/// Makes the context that was current when it was made current again, when it goes: another GPU's, whose turn it still is where a
/// buffer of this one is dropped, by a collector of garbage, say.
struct Return(CUcontext);

impl Return {
    fn to_current() -> Self {
        let mut current = ptr::null_mut();
        // SAFETY: the place is live. Where the driver is not initialised, nothing is written.
        let _ = unsafe { ffi::cuCtxGetCurrent(&mut current) };
        Self(current)
    }
}

impl Drop for Return {
    fn drop(&mut self) {
        let mut current = ptr::null_mut();
        // SAFETY: the place is live; the context was current on this thread.
        unsafe {
            if !self.0.is_null() && ffi::cuCtxGetCurrent(&mut current) == ffi::SUCCESS && current != self.0 {
                let _ = ffi::cuCtxSetCurrent(self.0);
            }
        }
    }
}

impl Shared {
    /// Makes the context current on this thread, if it is not. Every call to the driver comes after it.
    fn enter(&self) -> Result<()> {
        let mut current = ptr::null_mut();
        // SAFETY: the place is live, and the driver is initialised.
        let status = unsafe { ffi::cuCtxGetCurrent(&mut current) };
        if status == ffi::SUCCESS && current == self.context.as_raw() {
            return Ok(());
        }
        CurrentContext::set_current(&self.context)
            .map_err(|error| driver::cust_error("cuCtxSetCurrent", error))
    }

    fn wait_for_all(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: the context is current.
        check("cuCtxSynchronize", unsafe { ffi::cuCtxSynchronize() })
    }
}

impl Drop for Shared {
    /// Unloads the kernels. Nothing of ours can launch one any more: devices, streams, events and graphs all hold this. What
    /// streams were given before may still run, so that it is waited for. Where that fails the context is gone, and the
    /// kernels with it, or it may be that some are running: they stay.
    fn drop(&mut self) {
        let _return = Return::to_current();
        if !self.modules.is_empty() && self.wait_for_all().is_ok() {
            self.modules.unload();
        }
    }
}

impl CudaDevice {
    pub(crate) fn new(index: usize) -> Result<Self> {
        // SAFETY: the driver's initialiser has no precondition. `cust::init` would hide what the driver answers.
        match unsafe { ffi::cuInit(0) } {
            ffi::SUCCESS => {}
            ffi::NO_DEVICE => return Err(Error::NoDevice { index, count: 0 }),
            ffi::STUB_LIBRARY => return Err(Error::NoDriver { why: driver::explain(ffi::STUB_LIBRARY) }),
            status => return Err(Error::BrokenDriver { why: driver::explain(status) }),
        }
        let broken =
            |error: cust::error::CudaError| Error::BrokenDriver { why: driver::explain(error as i32) };
        let count = Device::num_devices().map_err(broken)? as usize;
        if index >= count {
            return Err(Error::NoDevice { index, count });
        }
        let failed = |call| move |error| driver::cust_error(call, error);
        let device = Device::get_device(index as u32).map_err(failed("cuDeviceGet"))?;
        let attribute = |attribute| device.get_attribute(attribute).map_err(failed("cuDeviceGetAttribute"));
        let major = attribute(DeviceAttribute::ComputeCapabilityMajor)? as u32;
        let minor = attribute(DeviceAttribute::ComputeCapabilityMinor)? as u32;
        let mut block_shared_bytes = 0;
        // SAFETY: the driver is initialised, the device its own, and the place live.
        check("cuDeviceGetAttribute", unsafe {
            ffi::cuDeviceGetAttribute(
                &mut block_shared_bytes,
                ffi::MAX_SHARED_BYTES_PER_BLOCK,
                device.as_raw(),
            )
        })?;
        let name = device.name().map_err(failed("cuDeviceGetName"))?;
        let driver = cust::CudaApiVersion::get().map_err(failed("cuDriverGetVersion"))?;
        let info = DeviceInfo {
            sm: major * 10 + minor,
            multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)? as u32,
            block_shared_bytes: block_shared_bytes as u32,
            memory_bytes: device.total_memory().map_err(failed("cuDeviceTotalMem"))? as u64,
            l2_bytes: attribute(DeviceAttribute::L2CacheSize)? as u64,
            driver: format!("{}.{}", driver.major(), driver.minor()),
            pci: Some(format!(
                "{:08x}:{:02x}:{:02x}.0",
                attribute(DeviceAttribute::PciDomainId)?,
                attribute(DeviceAttribute::PciBusId)?,
                attribute(DeviceAttribute::PciDeviceId)?,
            )),
            name: name.clone(),
        };
        let modules = Modules::for_gpu(info.sm).ok_or_else(|| Error::OldGpu {
            name,
            major,
            minor,
            needed: Modules::oldest_target(),
        })?;
        // `cust` makes a new one current.
        let _return = Return::to_current();
        let context = Context::new(device).map_err(failed("cuDevicePrimaryCtxRetain"))?;
        Ok(Self {
            shared: Arc::new(Shared {
                info,
                context,
                launcher: Launcher::find(),
                encoder: Encoder::find(),
                modules,
            }),
        })
    }

    fn out_of_memory(&self, asked: usize) -> Error {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are live; the context is current.
        if check("cuMemGetInfo", unsafe { ffi::cuMemGetInfo_v2(&mut free, &mut total) }).is_err() {
            (free, total) = (0, 0);
        }
        Error::OutOfMemory {
            device: self.shared.info.name.clone(),
            asked: asked as u64,
            free: free as u64,
            total: total as u64,
        }
    }
}

impl Backend for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.shared.enter()?;
        let mut address = 0;
        // SAFETY: the pointer is live; the context is current.
        let status = unsafe { ffi::cuMemAlloc_v2(&mut address, bytes) };
        if status == ffi::OUT_OF_MEMORY {
            return Err(self.out_of_memory(bytes));
        }
        check("cuMemAlloc", status)?;
        Ok(address)
    }

    fn free(&self, address: u64) {
        let _return = Return::to_current();
        // A failure here is one of earlier work, which its stream reports, or of a context that is gone, and the
        // memory with it.
        if self.shared.enter().is_ok() {
            // SAFETY: the address came from `allocate`, and its buffer is being dropped.
            let _ = unsafe { ffi::cuMemFree_v2(address) };
        }
    }

    fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        self.shared.wait_for_all()?;
        // SAFETY: the buffer checked its length, and nothing on the device uses it now.
        check("cuMemcpyHtoD", unsafe {
            ffi::cuMemcpyHtoD_v2(to, from.as_ptr().cast::<c_void>(), from.len())
        })?;
        // The call may return before a small copy has arrived; streams of ours do not wait for it by themselves.
        self.shared.wait_for_all()
    }

    fn download(&self, from: u64, to: &mut [u8]) -> Result<()> {
        self.shared.wait_for_all()?;
        // SAFETY: the buffer checked its length.
        check("cuMemcpyDtoH", unsafe {
            ffi::cuMemcpyDtoH_v2(to.as_mut_ptr().cast::<c_void>(), from, to.len())
        })
    }

    fn fill_zero(&self, address: u64, bytes: usize) -> Result<()> {
        self.shared.wait_for_all()?;
        // SAFETY: the buffer checked its length.
        check("cuMemsetD8", unsafe { ffi::cuMemsetD8_v2(address, 0, bytes) })?;
        self.shared.wait_for_all()
    }

    fn allocate_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        self.shared.enter()?;
        let mut first = ptr::null_mut();
        // SAFETY: the pointer is live; the context is current.
        check("cuMemAllocHost", unsafe { ffi::cuMemAllocHost_v2(&mut first, bytes) })?;
        NonNull::new(first.cast())
            .ok_or_else(|| Error::Cuda { call: "cuMemAllocHost", why: "it gave no memory".into() })
    }

    fn free_host(&self, first: NonNull<u8>, _bytes: usize) {
        let _return = Return::to_current();
        // Where this fails copies may still be under way: the memory stays.
        if self.shared.wait_for_all().is_ok() {
            // SAFETY: it came from `allocate_host`, and nothing reads it any more.
            let _ = unsafe { ffi::cuMemFreeHost(first.as_ptr().cast()) };
        }
    }

    fn stream(&self) -> Result<Box<dyn BackendStream>> {
        Ok(Box::new(CudaStream::new(Arc::clone(&self.shared))?))
    }

    unsafe fn stream_from_raw(&self, raw: *mut c_void) -> Result<Box<dyn BackendStream>> {
        // SAFETY: as promised by the caller.
        Ok(Box::new(unsafe { CudaStream::borrowed(Arc::clone(&self.shared), raw.cast())? }))
    }

    fn tensor_map(&self, tensor: &Tensor) -> Result<TensorMap> {
        self.shared.enter()?;
        self.shared.encoder.encode(tensor)
    }

    fn conv(&self, problem: &Problem) -> Result<Box<dyn BackendConv>> {
        Ok(Box::new(CudnnConv::new(&self.shared, problem)?))
    }
}

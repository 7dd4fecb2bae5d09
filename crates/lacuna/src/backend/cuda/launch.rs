//! Launches, which begin early where the GPU can.
use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;

use cust::sys::CUstream;

use super::ffi::{self, LaunchAttribute, LaunchConfig, LaunchKernelEx};
use super::modules::Function;
use crate::backend::Launch;

/// How kernels are launched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launcher {
    /// Launches that begin while the kernel before them ends; none where the driver is too old.
    early: Option<LaunchKernelEx>,
}

impl Launcher {
    /// The driver's way. The driver is initialised.
    pub(super) fn find() -> Self {
        Self { early: launch_kernel_ex() }
    }

    /// Launches a function, and gives the driver's status.
    ///
    /// # Safety
    /// The context and the stream are live, the function is that of `launch.entry`, and `launch` is what its contract asks for.
    pub(super) unsafe fn launch(self, function: Function, launch: &Launch<'_>, stream: CUstream) -> c_int {
        let mut parameters = [ptr::from_ref(launch.args).cast_mut().cast::<c_void>()];
        let parameters = parameters.as_mut_ptr();
        let handle = function.handle;
        if let Some(launch_kernel_ex) = self.early
            && function.waits
        {
            let config = LaunchConfig {
                grid: launch.grid,
                block: [launch.entry.threads, 1, 1],
                shared_bytes: launch.entry.shared_bytes,
                stream,
                attributes: &LaunchAttribute::EARLY,
                attribute_count: 1,
            };
            // SAFETY: passed on to the caller; what `config` points to is live, and the kernel waits for the one before.
            return unsafe { launch_kernel_ex(&config, handle, parameters, ptr::null_mut()) };
        }
        let [x, y, z] = launch.grid;
        let (threads, shared) = (launch.entry.threads, launch.entry.shared_bytes);
        let extra = ptr::null_mut();
        // SAFETY: passed on to the caller.
        unsafe { ffi::cuLaunchKernel(handle, x, y, z, threads, 1, 1, shared, stream, parameters, extra) }
    }
}

/// `cuLaunchKernelEx`, where the driver has it.
fn launch_kernel_ex() -> Option<LaunchKernelEx> {
    let found = ffi::find(ffi::LAUNCH_KERNEL_EX, ffi::LAUNCH_KERNEL_EX_SINCE)?;
    // SAFETY: the driver says that this is the function of that name.
    Some(unsafe { mem::transmute::<*mut c_void, LaunchKernelEx>(found) })
}

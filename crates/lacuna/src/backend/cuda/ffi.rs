//! The driver's functions that are called directly, each with a number as its result.
//!
//! `cust` declares them too, but with a Rust enum of the results that CUDA 11 knew: a newer driver's new result would
//! not be a value of it, which Rust does not allow.
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

use cust::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUjit_option, CUmodule,
    CUstream,
};

/// Success.
pub(super) const SUCCESS: c_int = 0;
/// Device memory is used up.
pub(super) const OUT_OF_MEMORY: c_int = 2;
/// There is no driver: what the link library of `cargo xtask setup` answers.
pub(super) const STUB_LIBRARY: c_int = 34;
/// The driver shows no GPU.
pub(super) const NO_DEVICE: c_int = 100;
/// Captures of this thread alone are bound by what may not be recorded.
pub(super) const CAPTURE_THREAD_LOCAL: c_int = 1;
/// The handles of default streams, legacy and of a thread, are null and up to this.
pub(super) const LAST_DEFAULT_STREAM: usize = 2;
/// An attribute of a function: the dynamic shared memory that a launch of it may ask for.
pub(super) const MAX_DYNAMIC_SHARED_BYTES: c_int = 8;
/// An attribute of a device: the most shared memory that a block may opt in to.
pub(super) const MAX_SHARED_BYTES_PER_BLOCK: c_int = 97;

/// A function that drivers have from CUDA 11.8 on: it is not linked but asked for, so that older ones do.
pub(super) const LAUNCH_KERNEL_EX: &CStr = c"cuLaunchKernelEx";
/// The version of CUDA whose form of it is meant.
pub(super) const LAUNCH_KERNEL_EX_SINCE: c_int = 11_080;
/// What it is.
pub(super) type LaunchKernelEx = unsafe extern "C" fn(
    config: *const LaunchConfig,
    function: CUfunction,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> c_int;

/// A function that drivers have from CUDA 12.0 on.
pub(super) const TENSOR_MAP_ENCODE_TILED: &CStr = c"cuTensorMapEncodeTiled";
/// The version of CUDA whose form of it is meant.
pub(super) const TENSOR_MAP_ENCODE_TILED_SINCE: c_int = 12_000;
/// What it is.
pub(super) type TensorMapEncodeTiled = unsafe extern "C" fn(
    map: *mut c_void,
    data_type: c_int,
    rank: c_uint,
    address: *mut c_void,
    extent: *const u64,
    stride_bytes: *const u64,
    box_dim: *const c_uint,
    element_strides: *const c_uint,
    interleave: c_int,
    swizzle: c_int,
    promotion: c_int,
    fill: c_int,
) -> c_int;
/// `CU_TENSOR_MAP_DATA_TYPE_UINT16`
pub(super) const TENSOR_OF_16_BITS: c_int = 1;
/// `CU_TENSOR_MAP_INTERLEAVE_NONE`
pub(super) const NOT_INTERLEAVED: c_int = 0;
/// `CU_TENSOR_MAP_SWIZZLE_64B`
pub(super) const SWIZZLE_64: c_int = 2;
/// `CU_TENSOR_MAP_SWIZZLE_128B`
pub(super) const SWIZZLE_128: c_int = 3;
/// `CU_TENSOR_MAP_L2_PROMOTION_L2_256B`
pub(super) const PROMOTED_TO_256_BYTES: c_int = 3;
/// `CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE`
pub(super) const ZEROS_OUTSIDE: c_int = 0;

/// A function of the driver's, where it has one of that name since that version of CUDA. The driver is initialised.
pub(super) fn find(name: &CStr, since: c_int) -> Option<*mut c_void> {
    let mut found: *mut c_void = ptr::null_mut();
    // SAFETY: the name ends with a zero, and the place is live.
    let status = unsafe { cuGetProcAddress(name.as_ptr(), &mut found, since, 0) };
    (status == SUCCESS && !found.is_null()).then_some(found)
}

/// `CUlaunchConfig`.
#[repr(C)]
pub(super) struct LaunchConfig {
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared_bytes: c_uint,
    pub(super) stream: CUstream,
    pub(super) attributes: *const LaunchAttribute,
    pub(super) attribute_count: c_uint,
}

/// `CUlaunchAttribute`, whose value is a union of 64 bytes.
#[repr(C, align(8))]
pub(super) struct LaunchAttribute {
    id: c_int,
    padding: c_int,
    value: [c_int; 16],
}

impl LaunchAttribute {
    /// The launch may begin before the kernel before it in the stream has ended
    /// (`CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`).
    pub(super) const EARLY: Self = {
        let mut value = [0; 16];
        value[0] = 1;
        Self { id: 6, padding: 0, value }
    };
}

unsafe extern "C" {
    pub(super) fn cuInit(flags: c_uint) -> c_int;
    pub(super) fn cuGetProcAddress(
        name: *const c_char,
        function: *mut *mut c_void,
        version: c_int,
        flags: c_ulonglong,
    ) -> c_int;
    pub(super) fn cuCtxGetCurrent(context: *mut CUcontext) -> c_int;
    pub(super) fn cuCtxSetCurrent(context: CUcontext) -> c_int;
    pub(super) fn cuCtxSynchronize() -> c_int;

    pub(super) fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CUdevice) -> c_int;
    pub(super) fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int;
    pub(super) fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) -> c_int;
    pub(super) fn cuMemFree_v2(address: CUdeviceptr) -> c_int;
    pub(super) fn cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, bytes: usize) -> c_int;
    pub(super) fn cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize) -> c_int;
    pub(super) fn cuMemcpyHtoDAsync_v2(
        to: CUdeviceptr,
        from: *const c_void,
        bytes: usize,
        stream: CUstream,
    ) -> c_int;
    pub(super) fn cuMemAllocHost_v2(first: *mut *mut c_void, bytes: usize) -> c_int;
    pub(super) fn cuMemFreeHost(first: *mut c_void) -> c_int;
    pub(super) fn cuMemcpyDtoDAsync_v2(
        to: CUdeviceptr,
        from: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) -> c_int;
    pub(super) fn cuMemsetD8_v2(address: CUdeviceptr, value: u8, bytes: usize) -> c_int;

    pub(super) fn cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    ) -> c_int;
    pub(super) fn cuModuleUnload(module: CUmodule) -> c_int;
    pub(super) fn cuModuleGetFunction(
        function: *mut CUfunction,
        module: CUmodule,
        name: *const c_char,
    ) -> c_int;
    pub(super) fn cuFuncSetAttribute(function: CUfunction, attribute: c_int, value: c_int) -> c_int;
    pub(super) fn cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> c_int;

    pub(super) fn cuStreamGetCtx(stream: CUstream, context: *mut CUcontext) -> c_int;
    pub(super) fn cuStreamSynchronize(stream: CUstream) -> c_int;
    pub(super) fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint) -> c_int;
    pub(super) fn cuStreamBeginCapture_v2(stream: CUstream, mode: c_int) -> c_int;
    pub(super) fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph) -> c_int;

    pub(super) fn cuEventCreate(event: *mut CUevent, flags: c_uint) -> c_int;
    pub(super) fn cuEventRecord(event: CUevent, stream: CUstream) -> c_int;
    pub(super) fn cuEventSynchronize(event: CUevent) -> c_int;
    pub(super) fn cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent) -> c_int;
    pub(super) fn cuEventDestroy_v2(event: CUevent) -> c_int;

    pub(super) fn cuGraphInstantiateWithFlags(
        exec: *mut CUgraphExec,
        graph: CUgraph,
        flags: c_ulonglong,
    ) -> c_int;
    pub(super) fn cuGraphLaunch(exec: CUgraphExec, stream: CUstream) -> c_int;
    pub(super) fn cuGraphExecDestroy(exec: CUgraphExec) -> c_int;
    pub(super) fn cuGraphDestroy(graph: CUgraph) -> c_int;
}

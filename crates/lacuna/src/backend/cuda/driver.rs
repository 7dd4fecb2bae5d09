//! The driver's status codes as errors that say what to do.
use std::ffi::c_int;

use cust::error::CudaError;

use super::ffi;
use crate::{Error, Result};

/// An error unless `status` is success.
pub(super) fn check(call: &'static str, status: c_int) -> Result<()> {
    if status == ffi::SUCCESS { Ok(()) } else { Err(Error::Cuda { call, why: explain(status) }) }
}

/// The error of a call made through `cust`.
pub(super) fn cust_error(call: &'static str, error: CudaError) -> Error {
    Error::Cuda { call, why: explain(error as c_int) }
}

/// A status in words, with what to do where something can be done.
pub(super) fn explain(code: c_int) -> String {
    let (name, advice) = match code {
        1 => ("invalid value", "a bug in this library or in an address that was passed to it"),
        2 => ("out of memory", "free buffers, or split the problem"),
        3 => ("not initialised", "the driver could not start; see nvidia-smi"),
        34 => ("no driver was found", "install the NVIDIA driver; libcuda.so.1 must be on the loader's path"),
        35 => ("the driver is too old", "update the NVIDIA driver"),
        100 => ("no GPU", "see nvidia-smi and CUDA_VISIBLE_DEVICES"),
        200 | 218 => ("the driver does not accept the kernel", "rebuild the kernels"),
        201 => ("invalid context", "the GPU was reset; start the program again"),
        209 => ("the kernel was not built for this GPU", "build it for this GPU's target"),
        214 => ("uncorrectable memory error", "the GPU needs service; see nvidia-smi -q -d ECC"),
        222 => ("the driver is older than the kernel's PTX", "update the driver"),
        500 => ("not found", "the module lacks this entry point; rebuild the kernels"),
        600 => ("not ready", "synchronize before asking for the time between events"),
        700 => (
            "illegal address",
            "a kernel left its buffers; run the same call on Device::simulator() to see where",
        ),
        701 => ("not enough registers or shared memory", "take a smaller tile"),
        702 => ("the kernel ran longer than the display allows", "use a GPU without a display"),
        715 | 717 | 718 => {
            ("illegal instruction or address space", "rebuild the kernels; run on the simulator")
        }
        716 => ("misaligned address", "run the same call on Device::simulator() to see where"),
        719 => (
            "the kernel stopped: a trap, or a fault",
            "run the same call on Device::simulator() to see where",
        ),
        802 => ("the system is not ready", "wait for the fabric manager, or start it"),
        803 => ("driver and library versions differ", "reboot after the driver's update"),
        900..=909 => ("the stream is being recorded", "end the recording, or use another stream"),
        _ => ("see the CUDA driver API's list of results", "look the number up"),
    };
    format!("{name} (CUDA error {code}): {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_call_the_code_and_the_cure() {
        assert!(check("cuInit", ffi::SUCCESS).is_ok());
        let error = check("cuMemAlloc", 700).unwrap_err().to_string();
        assert!(
            error.contains("cuMemAlloc") && error.contains("700") && error.contains("simulator"),
            "{error}"
        );
    }
}

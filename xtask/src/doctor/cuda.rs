//! The CUDA driver and the vendor's libraries, looked at without linking them.
use std::ffi::{CStr, c_char, c_int};

use libloading::{Library, Symbol};

use super::Fix;

const DRIVER_FIX: &str = "install NVIDIA's driver; without a GPU the simulator does everything but measure";

/// The driver's version and its GPUs.
pub(super) fn driver() -> Result<String, Fix> {
    describe_driver().map_err(|wrong| Fix { wrong, fix: DRIVER_FIX })
}

fn describe_driver() -> Result<String, String> {
    // SAFETY: the driver's initialisers have no precondition.
    let library =
        unsafe { Library::new("libcuda.so.1") }.map_err(|_| "libcuda.so.1 is not there".to_owned())?;
    let driver = Driver(library);
    driver.call1("cuInit", 0)?;
    let version = driver.number("cuDriverGetVersion")?;
    let count = driver.number("cuDeviceGetCount")?;
    let names = (0..count).map(|ordinal| driver.device_name(ordinal)).collect::<Result<Vec<_>, _>>()?;
    let (major, minor) = (version / 1000, version % 1000 / 10);
    if names.is_empty() {
        return Err(format!("CUDA {major}.{minor}, and no GPU"));
    }
    Ok(format!("CUDA {major}.{minor}: {}", names.join(", ")))
}

struct Driver(Library);

impl Driver {
    fn function<T>(&self, name: &str) -> Result<Symbol<'_, T>, String> {
        // SAFETY: each caller names the type that the driver's documentation gives the function.
        unsafe { self.0.get(name.as_bytes()) }.map_err(|_| format!("the driver has no {name}"))
    }

    fn call1(&self, name: &str, argument: u32) -> Result<(), String> {
        let function = self.function::<unsafe extern "C" fn(u32) -> c_int>(name)?;
        // SAFETY: takes a number.
        check(name, unsafe { function(argument) })
    }

    fn number(&self, name: &str) -> Result<c_int, String> {
        let function = self.function::<unsafe extern "C" fn(*mut c_int) -> c_int>(name)?;
        let mut number = 0;
        // SAFETY: writes one number to a live place.
        check(name, unsafe { function(&mut number) })?;
        Ok(number)
    }

    /// The name of a GPU. Device handles of the driver are the ordinals themselves.
    fn device_name(&self, ordinal: c_int) -> Result<String, String> {
        let name = "cuDeviceGetName";
        let function = self.function::<unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int>(name)?;
        let mut buffer = [0_u8; 256];
        // SAFETY: writes at most as many bytes as it is told the buffer has.
        check(name, unsafe { function(buffer.as_mut_ptr().cast(), buffer.len() as c_int, ordinal) })?;
        let text = CStr::from_bytes_until_nul(&buffer).map_err(|_| format!("{name} gives no text"))?;
        Ok(text.to_string_lossy().into_owned())
    }
}

fn check(name: &str, code: c_int) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("{name} fails with CUDA error {code}")) }
}

//! NVML, the driver's library of counters: the energy that a GPU has used.

use std::ffi::{CString, c_char, c_int, c_ulonglong, c_void};
use std::fmt;
use std::path::{Path, PathBuf};

use libloading::Library;

/// The library's name: it comes with the driver, and lies where the system's loader looks.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Why there is no energy to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library cannot be opened.
    #[error("NVML was not loaded: {} does not serve: {why}. It comes with NVIDIA's driver; in a container ask for the driver's `utility` part", .path.display())]
    Missing {
        /// The file, or its bare name.
        path: PathBuf,
        /// The loader's reason, or the function that it lacks.
        why: String,
    },
    /// A function failed.
    #[error("{function} returned {code}: {}", explain(*.code))]
    Call {
        /// The function, as in `nvml.h`.
        function: &'static str,
        /// What it returned.
        code: i32,
    },
    /// The place of a GPU is no string for C.
    #[error("`{pci}` is no place on the PCI bus; expected one as in 00000000:3b:00.0")]
    Place {
        /// What was given.
        pci: String,
    },
}

/// What a status of `nvmlReturn_t` means here.
fn explain(code: i32) -> &'static str {
    match code {
        3 => "the GPU does not count energy; those of Volta and newer do, and not their MIG parts",
        4 => "no permission; ask the machine's administrator",
        6 => "there is no such GPU",
        9 => "the driver is not running",
        15 => "the GPU is lost; restart the machine",
        18 => "library and driver are of different versions; restart the machine after the driver's update",
        _ => "see nvmlReturn_t in NVIDIA's manual",
    }
}

// The types of the functions, as `nvml.h` has had them since CUDA 9.
type Call = unsafe extern "C" fn() -> c_int;
type FindDevice = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
type Total = unsafe extern "C" fn(*mut c_void, *mut c_ulonglong) -> c_int;

/// The energy counter of a GPU.
pub struct EnergyCounter {
    device: *mut c_void,
    total: Total,
    shutdown: Call,
}

impl EnergyCounter {
    /// That of the GPU at a place on the PCI bus, as in `00000000:3b:00.0`. It has been read once: the GPU counts.
    ///
    /// # Errors
    /// No library, no such GPU, or one that does not count.
    pub fn open(pci: &str) -> Result<Self, Error> {
        Self::open_library(Path::new(LIBRARY), pci)
    }

    /// The same by a library that is a file.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_library(path: &Path, pci: &str) -> Result<Self, Error> {
        let place = CString::new(pci).map_err(|_| Error::Place { pci: pci.into() })?;
        let missing = |why: String| Error::Missing { path: path.into(), why };
        // SAFETY: opening it runs its initialisers, which ask nothing; it is the driver's or the caller's choice.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            missing(std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        // SAFETY: the types are those of the header. The library is never closed, so that the pointers stay.
        let functions = unsafe {
            (
                function::<Call>(&library, "nvmlInit_v2"),
                function::<Call>(&library, "nvmlShutdown"),
                function::<FindDevice>(&library, "nvmlDeviceGetHandleByPciBusId_v2"),
                function::<Total>(&library, "nvmlDeviceGetTotalEnergyConsumption"),
            )
        };
        // Its threads may outlive what uses it.
        std::mem::forget(library);
        let (init, shutdown, find, total) = functions;
        let (init, shutdown, find, total) = (
            init.map_err(missing)?,
            shutdown.map_err(missing)?,
            find.map_err(missing)?,
            total.map_err(missing)?,
        );
        // SAFETY: it may be called at any time.
        check("nvmlInit_v2", unsafe { init() })?;
        // From here on its end is a drop's.
        let mut counter = Self { device: std::ptr::null_mut(), total, shutdown };
        // SAFETY: the library is initialised, the string ends with a zero, and the place for the handle is live.
        let found = unsafe { find(place.as_ptr(), &mut counter.device) };
        check("nvmlDeviceGetHandleByPciBusId_v2", found)?;
        counter.millijoules()?;
        Ok(counter)
    }

    /// Millijoules that the GPU has used since its driver was loaded. The counter moves a few times in a tenth of a second.
    ///
    /// # Errors
    /// [`Error::Call`] where the GPU does not count.
    pub fn millijoules(&self) -> Result<u64, Error> {
        let mut total = 0;
        // SAFETY: the library is initialised, and the handle its own.
        check("nvmlDeviceGetTotalEnergyConsumption", unsafe { (self.total)(self.device, &mut total) })?;
        Ok(total)
    }
}

impl fmt::Debug for EnergyCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NVML device {:p}", self.device)
    }
}

impl Drop for EnergyCounter {
    fn drop(&mut self) {
        // SAFETY: it was initialised once for this counter. A failure leaves nothing to be done.
        let _ = unsafe { (self.shutdown)() };
    }
}

/// # Safety
/// The type is that of the function, and the library stays open as long as it is called.
unsafe fn function<F: Copy>(library: &Library, name: &'static str) -> Result<F, String> {
    // SAFETY: the caller answers for the type.
    unsafe { library.get::<F>(name) }.map(|symbol| *symbol).map_err(|_| format!("it has no {name}"))
}

fn check(function: &'static str, code: c_int) -> Result<(), Error> {
    if code == 0 { Ok(()) } else { Err(Error::Call { function, code }) }
}

//! The CUDA driver's own launch of a kernel: what a call costs the host where nothing is around it.

use std::ffi::{c_int, c_uint, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::Library;

/// The library's name: it lies where the system's loader looks.
const LIBRARY: &str = "libcuda.so.1";
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`.
const THREAD_LOCAL: c_int = 1;

/// Why there is no launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library cannot be opened.
    #[error("the driver was not loaded: {} does not serve: {why}. Install NVIDIA's driver", .path.display())]
    Missing {
        /// The file, or its bare name.
        path: PathBuf,
        /// The loader's reason, or the function that it lacks.
        why: String,
    },
    /// A function failed.
    #[error("{function} returned {code}; see CUresult in NVIDIA's manual of the driver API")]
    Call {
        /// The function, as in `cuda.h`.
        function: &'static str,
        /// What it returned.
        code: i32,
    },
    /// The work was not done.
    #[error("the work that was to be recorded failed: {why}")]
    Work {
        /// What it says.
        why: String,
    },
}

/// `CUDA_KERNEL_NODE_PARAMS`, as before CUDA 12.
#[repr(C)]
#[derive(Clone, Copy)]
struct Kernel {
    function: *mut c_void,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
}

// The types of the functions, as `cuda.h` has had them since CUDA 11.4.
type BeginCapture = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
type EndCapture = unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int;
type Nodes = unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *mut usize) -> c_int;
type Parameters = unsafe extern "C" fn(*mut c_void, *mut Kernel) -> c_int;
type Destroy = unsafe extern "C" fn(*mut c_void) -> c_int;
type Launch = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> c_int;

/// The driver's functions that are used here.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    begin_capture: BeginCapture,
    end_capture: EndCapture,
    nodes: Nodes,
    parameters: Parameters,
    destroy: Destroy,
    launch: Launch,
}

impl Driver {
    /// The machine's driver.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn open() -> Result<Self, Error> {
        Self::open_library(Path::new(LIBRARY))
    }

    /// The same by a library that is a file.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_library(path: &Path) -> Result<Self, Error> {
        let missing = |why: String| Error::Missing { path: path.into(), why };
        // SAFETY: opening it runs its initialisers, which ask nothing; it is the driver's or the caller's choice.
        let library = unsafe { Library::new(path) }.map_err(|error| missing(error.to_string()))?;
        // SAFETY: the types are those of the header. The library is never closed, so that the pointers stay.
        let driver = unsafe {
            Self {
                begin_capture: function(&library, "cuStreamBeginCapture_v2").map_err(missing)?,
                end_capture: function(&library, "cuStreamEndCapture").map_err(missing)?,
                nodes: function(&library, "cuGraphGetNodes").map_err(missing)?,
                parameters: function(&library, "cuGraphKernelNodeGetParams").map_err(missing)?,
                destroy: function(&library, "cuGraphDestroy").map_err(missing)?,
                launch: function(&library, "cuLaunchKernel").map_err(missing)?,
            }
        };
        std::mem::forget(library);
        Ok(driver)
    }

    /// Has `work` give launches to a stream, and keeps these: they are recorded, and not done.
    ///
    /// # Errors
    /// [`Error::Work`] where `work` fails; [`Error::Call`], also for work that is not of kernels alone.
    ///
    /// # Safety
    /// The stream is live as long as the result, and so is all that the kernels use. Its context is current, and at the result's
    /// drop.
    pub unsafe fn record<E: fmt::Display>(
        &self,
        stream: *mut c_void,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<BareLaunches, Error> {
        // SAFETY: the caller answers for the stream.
        check("cuStreamBeginCapture", unsafe { (self.begin_capture)(stream, THREAD_LOCAL) })?;
        let done = work();
        let mut launches =
            BareLaunches { driver: *self, stream, graph: ptr::null_mut(), kernels: Vec::new() };
        // SAFETY: the stream is being recorded; the place for the graph is live.
        check("cuStreamEndCapture", unsafe { (self.end_capture)(stream, &mut launches.graph) })?;
        done.map_err(|error| Error::Work { why: error.to_string() })?;
        let mut count = 0;
        // SAFETY: without a place for them, the function counts the graph's nodes.
        let counted = unsafe { (self.nodes)(launches.graph, ptr::null_mut(), &mut count) };
        check("cuGraphGetNodes", counted)?;
        let mut nodes = vec![ptr::null_mut(); count];
        // SAFETY: there is room for as many nodes as it counted.
        check("cuGraphGetNodes", unsafe { (self.nodes)(launches.graph, nodes.as_mut_ptr(), &mut count) })?;
        for node in nodes {
            let null = ptr::null_mut();
            let (parameters, extra) = (ptr::null_mut(), ptr::null_mut());
            let mut kernel =
                Kernel { function: null, grid: [0; 3], block: [0; 3], shared_bytes: 0, parameters, extra };
            // SAFETY: the node is the graph's, and the place live. What the parameters point to is the graph's.
            check("cuGraphKernelNodeGetParams", unsafe { (self.parameters)(node, &mut kernel) })?;
            launches.kernels.push(kernel);
        }
        Ok(launches)
    }
}

/// Launches of kernels as they were recorded, each by one call of the driver.
pub struct BareLaunches {
    driver: Driver,
    stream: *mut c_void,
    /// It holds the kernels' arguments.
    graph: *mut c_void,
    kernels: Vec<Kernel>,
}

impl BareLaunches {
    /// How many kernels there are.
    pub fn count(&self) -> usize {
        self.kernels.len()
    }

    /// Gives the kernels to the stream, in the graph's order.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn launch(&self) -> Result<(), Error> {
        for kernel in &self.kernels {
            let ([x, y, z], [width, height, depth]) = (kernel.grid, kernel.block);
            // SAFETY: they are a launch's that the driver has recorded; who recorded it answers for what it uses.
            let code = unsafe {
                (self.driver.launch)(
                    kernel.function,
                    x,
                    y,
                    z,
                    width,
                    height,
                    depth,
                    kernel.shared_bytes,
                    self.stream,
                    kernel.parameters,
                    kernel.extra,
                )
            };
            check("cuLaunchKernel", code)?;
        }
        Ok(())
    }
}

impl fmt::Debug for BareLaunches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BareLaunches").field("kernels", &self.kernels.len()).finish_non_exhaustive()
    }
}

impl Drop for BareLaunches {
    fn drop(&mut self) {
        if !self.graph.is_null() {
            // SAFETY: the graph is ours, and this is its last use. A failure leaves nothing to be done.
            let _ = unsafe { (self.driver.destroy)(self.graph) };
        }
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

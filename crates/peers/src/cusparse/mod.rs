//! cuSPARSE: SpMM of a CSR matrix in fp32.

mod api;
mod descriptor;
mod spmm;

use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

pub use spmm::{Spmm, SpmmAlgorithm, SpmmProblem};

use crate::error::Error;
use crate::library::{self, Missing, Version};
use crate::search::Search;
use crate::status::Vendor;
use api::{Api, RawHandle};

/// The loaded library.
#[derive(Clone)]
pub struct CuSparse {
    api: Arc<Api>,
    path: PathBuf,
}

impl CuSparse {
    /// Loads cuSPARSE of CUDA 11.4 or newer. Needs neither a GPU nor a driver.
    ///
    /// # Errors
    /// [`Missing`] where no usable library is found.
    pub fn load(search: &Search) -> Result<Self, Missing> {
        let (api, path) = library::open(Vendor::CuSparse, search, Api::resolve)?;
        Ok(Self { api: Arc::new(api), path })
    }

    /// The file; a bare name where the system's loader found it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The library's version, for records.
    ///
    /// # Errors
    /// [`Error::Call`] where the library does not tell.
    pub fn version(&self) -> Result<Version, Error> {
        self.api.version()
    }

    /// A handle in the CUDA context that is current on this thread.
    ///
    /// Drop the handle, and all that was made with it, while that context is alive and current.
    ///
    /// # Errors
    /// [`Error::Call`] where no context is current, or the library does not suit the driver or the GPU.
    pub fn handle(&self) -> Result<Handle, Error> {
        let mut raw: RawHandle = std::ptr::null_mut();
        // SAFETY: `raw` is a place for the handle.
        unsafe { self.api.create(&mut raw) }?;
        Ok(Handle(Rc::new(OwnedHandle { api: self.api.clone(), raw })))
    }
}

impl fmt::Debug for CuSparse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CuSparse").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A cuSPARSE handle in one CUDA context; clones share it. Stays on its thread.
#[derive(Clone)]
pub struct Handle(Rc<OwnedHandle>);

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cusparse::Handle({:p})", self.0.raw)
    }
}

struct OwnedHandle {
    api: Arc<Api>,
    raw: RawHandle,
}

impl Drop for OwnedHandle {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and this is its last use. A failure here leaves nothing to be done.
        let _ = unsafe { self.api.destroy(self.raw) };
    }
}

//! A vendor library in memory, and its handles.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use libloading::Library;

use crate::error::Error;
use crate::library::{self, Missing, Version};
use crate::search::Search;
use crate::status::Vendor;

/// A vendor's handle, which is a pointer in all their libraries.
pub(crate) type RawHandle = *mut c_void;

/// What the libraries have in common. Only this crate implements it.
pub trait VendorApi: Sized {
    /// Whose library it is.
    const VENDOR: Vendor;

    /// Looks every function up.
    ///
    /// # Errors
    /// The function that the library lacks.
    fn resolve(library: &Library) -> Result<Self, String>;

    /// Asks for a part of the version: 0 is the major one, 1 the minor one, 2 the patch.
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status.
    fn property(&self, which: c_int) -> Result<c_int, Error>;

    /// Makes a handle in the CUDA context that is current.
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status.
    fn create_handle(&self) -> Result<*mut c_void, Error>;

    /// Destroys a handle.
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status.
    ///
    /// # Safety
    /// The handle is one of this library's and is not used again.
    unsafe fn destroy_handle(&self, handle: *mut c_void) -> Result<(), Error>;
}

/// A loaded library.
pub struct Loaded<A> {
    api: Arc<A>,
    path: PathBuf,
}

impl<A: VendorApi> Loaded<A> {
    /// Loads the library, of CUDA 11.4 or newer, or cuDNN 8 or newer. Needs neither a GPU nor a driver.
    ///
    /// # Errors
    /// [`Missing`] where no usable library is found.
    pub fn load(search: &Search) -> Result<Self, Missing> {
        let (api, path) = library::open(A::VENDOR, search, |library| {
            let api = A::resolve(library)?;
            let (got, oldest) = (api.property(0), A::VENDOR.oldest_major());
            match got {
                Ok(major) if major >= oldest => Ok(api),
                Ok(major) => Err(format!("it is too old: major version {major}, and {oldest} is needed")),
                Err(error) => Err(error.to_string()),
            }
        })?;
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
        let part = |which| Ok::<_, Error>(self.api.property(which)?.unsigned_abs());
        Ok(Version { major: part(0)?, minor: part(1)?, patch: part(2)? })
    }

    /// A handle in the CUDA context that is current on this thread.
    ///
    /// Drop the handle, and all that was made with it, while that context is alive and current.
    ///
    /// # Errors
    /// [`Error::Call`] where no context is current, or the library does not suit the driver or the GPU.
    pub fn handle(&self) -> Result<Handle<A>, Error> {
        let raw = self.api.create_handle()?;
        Ok(Handle(Rc::new(Owned { api: self.api.clone(), raw })))
    }
}

impl<A> Clone for Loaded<A> {
    fn clone(&self) -> Self {
        Self { api: self.api.clone(), path: self.path.clone() }
    }
}

impl<A: VendorApi> fmt::Debug for Loaded<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", A::VENDOR, self.path.display())
    }
}

/// A library's handle in one CUDA context; clones share it. Stays on its thread.
pub struct Handle<A: VendorApi>(Rc<Owned<A>>);

impl<A: VendorApi> Handle<A> {
    pub(crate) fn api(&self) -> &Arc<A> {
        &self.0.api
    }

    /// The handle itself, alive as long as `self`.
    pub(crate) fn raw(&self) -> RawHandle {
        self.0.raw
    }
}

impl<A: VendorApi> Clone for Handle<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<A: VendorApi> fmt::Debug for Handle<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} handle {:p}", A::VENDOR, self.0.raw)
    }
}

struct Owned<A: VendorApi> {
    api: Arc<A>,
    raw: RawHandle,
}

impl<A: VendorApi> Drop for Owned<A> {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and this is its last use. A failure here leaves nothing to be done.
        let _ = unsafe { self.api.destroy_handle(self.raw) };
    }
}

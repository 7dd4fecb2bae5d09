//! Scratch memory that a vendor's function asks for and the caller allocates.

use std::any::Any;
use std::error::Error as StdError;
use std::ffi::c_void;
use std::fmt;

use crate::check;
use crate::error::Error;

/// The alignment that the vendors ask of a workspace, in bytes; every allocation of the driver has it.
const ALIGNMENT: u64 = 256;

/// Device memory for a library's own use, with what keeps it allocated.
pub struct Workspace {
    address: u64,
    _owner: Box<dyn Any>,
}

impl Workspace {
    /// The memory at device address `address`, which stays allocated until `owner` is dropped.
    pub fn new(address: u64, owner: impl Any) -> Self {
        Self { address, _owner: Box::new(owner) }
    }

    /// Has the caller allocate `bytes`; nothing where none are needed.
    pub(crate) fn obtain<E: Into<Box<dyn StdError + Send + Sync>>>(
        bytes: usize,
        allocate: impl FnOnce(usize) -> Result<Workspace, E>,
    ) -> Result<Option<Self>, Error> {
        if bytes == 0 {
            return Ok(None);
        }
        let workspace =
            allocate(bytes).map_err(|source| Error::Allocation { bytes, source: source.into() })?;
        check::end("workspace", workspace.address, bytes as u64, ALIGNMENT)?;
        Ok(Some(workspace))
    }

    /// The address; 0 for none.
    pub(crate) fn address(workspace: &Option<Self>) -> u64 {
        workspace.as_ref().map_or(0, |workspace| workspace.address)
    }

    /// The address as the vendor's functions take it; null for none.
    pub(crate) fn pointer(workspace: &Option<Self>) -> *mut c_void {
        check::pointer(Self::address(workspace))
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workspace({:#x})", self.address)
    }
}

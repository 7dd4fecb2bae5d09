//! What a device must be able to do. Everything above this module is the same for all devices.
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod simulator;

use std::any::Any;
use std::ffi::c_void;
use std::fmt::Debug;
use std::ptr::NonNull;

use lacuna_gpu::{Tensor, TensorMap};
use lacuna_kernels::{Entry, EntryTaking};

use crate::conv::Problem;
use crate::{DeviceInfo, Result};

/// A launch, checked by the operation that asks for it.
pub(crate) struct Launch<'a> {
    entry: Entry<()>,
    grid: [u32; 3],
    /// The kernel's one argument, with its type: the simulator takes it so, the driver copies its bytes.
    args: &'a dyn Any,
}

impl<'a> Launch<'a> {
    /// A launch of `entry` with the argument that its kernel takes.
    pub(crate) fn new<A: Copy + Send + Sync + 'static>(
        entry: EntryTaking<A>,
        grid: [u32; 3],
        args: &'a A,
    ) -> Self {
        Self { entry: entry.entry(), grid, args }
    }
}

/// A device. Addresses are device addresses; streams belong to the device that made them.
pub(crate) trait Backend: Debug + Send + Sync {
    fn info(&self) -> &DeviceInfo;
    /// Room for `bytes` bytes (not 0), aligned to 256.
    fn allocate(&self, bytes: usize) -> Result<u64>;
    /// Gives back what `allocate` gave.
    fn free(&self, address: u64);
    /// Writes host bytes to the device, after all work given to the device so far.
    fn upload(&self, to: u64, from: &[u8]) -> Result<()>;
    /// Reads device bytes, after all work given to the device so far.
    fn download(&self, from: u64, to: &mut [u8]) -> Result<()>;
    fn fill_zero(&self, address: u64, bytes: usize) -> Result<()>;
    /// Page-locked memory of the host for `bytes` bytes (not 0), aligned to 16.
    fn allocate_host(&self, bytes: usize) -> Result<NonNull<u8>>;
    /// Waits for the device, and gives back what `allocate_host` gave for so many bytes.
    fn free_host(&self, first: NonNull<u8>, bytes: usize);
    fn stream(&self) -> Result<Box<dyn BackendStream>>;
    /// A stream of another library's, which is not destroyed.
    ///
    /// # Safety
    /// It is live as long as what this gives.
    unsafe fn stream_from_raw(&self, raw: *mut c_void) -> Result<Box<dyn BackendStream>>;
    /// How the device has a tensor of its memory for bulk copies.
    fn tensor_map(&self, tensor: &Tensor) -> Result<TensorMap>;
    /// Plans a convolution by a vendor's library.
    fn conv(&self, problem: &Problem) -> Result<Box<dyn BackendConv>>;
    /// The simulator behind this device, where it is one.
    fn as_simulator(&self) -> Option<&simulator::SimulatorDevice> {
        None
    }
}

/// A queue of work on a device.
pub(crate) trait BackendStream: Debug + Send + Sync {
    fn launch(&self, launch: &Launch<'_>) -> Result<()>;
    /// Copies `bytes` bytes (not 0) from one address of the device to another; the two do not overlap.
    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()>;
    /// Copies host bytes (not none) to the device.
    ///
    /// # Safety
    /// They are page-locked, and stay until the stream has come to this.
    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()>;
    fn synchronize(&self) -> Result<()>;
    /// Marks a point in the stream.
    fn event(&self) -> Result<Box<dyn BackendEvent>>;
    /// Lets later work of this stream wait until `event`, of the same device, has been passed.
    fn wait_for(&self, event: &dyn BackendEvent) -> Result<()>;
    /// The driver's handle, null where there is none.
    fn raw(&self) -> *mut c_void;
    /// Starts recording what is given to the stream.
    fn begin_capture(&self) -> Result<()>;
    /// Ends recording.
    fn end_capture(&self) -> Result<Box<dyn BackendGraph>>;
}

/// A convolution by a vendor's library, without what follows it.
pub(crate) trait BackendConv: Debug + Send + Sync {
    /// What the library's algorithm is called.
    fn algorithm(&self) -> &'static str;
    /// Bytes of the workspace of a run.
    fn workspace_bytes(&self) -> usize;
    /// Gives it to a stream of the device that planned it. It may be recorded. The addresses are of arrays of the lengths that were planned, and
    /// of a workspace that nobody else uses until the stream has come to this.
    fn run(
        &self,
        stream: &dyn BackendStream,
        input: u64,
        filters: u64,
        out: u64,
        workspace: u64,
    ) -> Result<()>;
}

/// A point in a stream.
pub(crate) trait BackendEvent: Any + Debug + Send + Sync {
    fn synchronize(&self) -> Result<()>;
    /// Microseconds from `earlier`, an event of the same device, to this.
    fn microseconds_since(&self, earlier: &dyn BackendEvent) -> Result<f64>;
}

impl dyn BackendEvent {
    /// The event as its device knows it.
    fn of<E: BackendEvent>(&self) -> &E {
        let event: &dyn Any = self;
        event.downcast_ref().expect("who uses events together has compared their devices")
    }
}

/// Recorded work.
pub(crate) trait BackendGraph: Debug + Send + Sync {
    fn replay(&mut self, stream: &dyn BackendStream) -> Result<()>;
}

//! Streams, events and graphs.
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use cust::stream::{Stream, StreamFlags};
use cust::sys::{CUevent_st, CUgraph_st, CUgraphExec_st};

use super::Shared;
use super::driver::{check, cust_error, explain};
use super::ffi;
use crate::backend::{BackendEvent, BackendGraph, BackendStream, Launch};
use crate::{Error, Result};

#[derive(Debug)]
pub(super) struct CudaStream {
    /// Dropped before `shared`, which holds the context it belongs to.
    inner: Stream,
    shared: Arc<Shared>,
}

// SAFETY: the driver's streams may be used from any thread; each call makes the context current first.
unsafe impl Send for CudaStream {}
// SAFETY: as above; the driver locks.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self> {
        shared.enter()?;
        let inner = Stream::new(StreamFlags::NON_BLOCKING, None);
        let inner = inner.map_err(|error| cust_error("cuStreamCreate", error))?;
        Ok(Self { shared, inner })
    }
}

impl BackendStream for CudaStream {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.shared.enter()?;
        let function = self.shared.modules.function(&launch.entry, &self.shared.info)?;
        // SAFETY: the operation checked the shapes and built the argument of the entry's type, which the driver copies
        // now; the buffers behind it are borrowed by the call, and their `Drop` waits for the device. The context is
        // current, and the function the entry's.
        let status = unsafe { self.shared.launcher.launch(function, launch, self.inner.as_inner()) };
        if status == ffi::SUCCESS {
            return Ok(());
        }
        Err(Error::launch(&launch.entry, launch.grid, explain(status)))
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.shared.enter()?;
        // SAFETY: the slices checked their lengths; their buffers are borrowed by the call, and their `Drop` waits for the
        // device. The stream is live.
        let status = unsafe { ffi::cuMemcpyDtoDAsync_v2(to, from, bytes, self.inner.as_inner()) };
        check("cuMemcpyDtoDAsync", status)
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        self.shared.enter()?;
        let source = from.as_ptr().cast();
        // SAFETY: the destination was checked, and its buffer's `Drop` waits for the device; the caller promises the same of
        // the source. The stream is live.
        let status = unsafe { ffi::cuMemcpyHtoDAsync_v2(to, source, from.len(), self.inner.as_inner()) };
        check("cuMemcpyHtoDAsync", status)
    }

    fn synchronize(&self) -> Result<()> {
        self.shared.enter()?;
        // SAFETY: the stream is live.
        check("cuStreamSynchronize", unsafe { ffi::cuStreamSynchronize(self.inner.as_inner()) })
    }

    fn event(&self) -> Result<Box<dyn BackendEvent>> {
        self.shared.enter()?;
        let mut event = Owned::none(&self.shared, ffi::cuEventDestroy_v2);
        // SAFETY: the pointer is live; the context is current.
        check("cuEventCreate", unsafe { ffi::cuEventCreate(&mut event.handle, 0) })?;
        // SAFETY: both handles are live.
        check("cuEventRecord", unsafe { ffi::cuEventRecord(event.handle, self.inner.as_inner()) })?;
        Ok(Box::new(event))
    }

    fn wait_for(&self, event: &dyn BackendEvent) -> Result<()> {
        self.shared.enter()?;
        let event = event.of::<CudaEvent>().handle;
        // SAFETY: both handles are live.
        let status = unsafe { ffi::cuStreamWaitEvent(self.inner.as_inner(), event, 0) };
        check("cuStreamWaitEvent", status)
    }

    fn raw(&self) -> *mut c_void {
        self.inner.as_inner().cast()
    }

    fn begin_capture(&self) -> Result<()> {
        self.shared.enter()?;
        let mode = ffi::CAPTURE_THREAD_LOCAL;
        // SAFETY: the stream is live.
        check("cuStreamBeginCapture", unsafe { ffi::cuStreamBeginCapture_v2(self.inner.as_inner(), mode) })
    }

    fn end_capture(&self) -> Result<Box<dyn BackendGraph>> {
        self.shared.enter()?;
        // A recording is not yet ready to run, and not needed any more once it is.
        let mut recording = Owned::<CUgraph_st>::none(&self.shared, ffi::cuGraphDestroy);
        // SAFETY: the stream is live; the pointer too.
        let status = unsafe { ffi::cuStreamEndCapture(self.inner.as_inner(), &mut recording.handle) };
        check("cuStreamEndCapture", status)?;
        let mut graph = Owned::none(&self.shared, ffi::cuGraphExecDestroy);
        // SAFETY: the recording was just made; the pointer is live.
        let status = unsafe { ffi::cuGraphInstantiateWithFlags(&mut graph.handle, recording.handle, 0) };
        check("cuGraphInstantiate", status)?;
        Ok(Box::new(graph))
    }
}

/// An object of the driver's, destroyed when dropped.
#[derive(Debug)]
struct Owned<T> {
    /// Null until it is made.
    handle: *mut T,
    destroy: unsafe extern "C" fn(*mut T) -> c_int,
    shared: Arc<Shared>,
}

// SAFETY: the driver's events and graphs may be used from any thread; each call makes the context current first.
unsafe impl<T> Send for Owned<T> {}
// SAFETY: as above; the driver locks events, and graphs are only replayed, which takes them mutably.
unsafe impl<T> Sync for Owned<T> {}

impl<T> Owned<T> {
    /// Room for one, and how such objects are destroyed.
    fn none(shared: &Arc<Shared>, destroy: unsafe extern "C" fn(*mut T) -> c_int) -> Self {
        Self { handle: ptr::null_mut(), destroy, shared: Arc::clone(shared) }
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if !self.handle.is_null() && self.shared.enter().is_ok() {
            // SAFETY: the object is ours alone, and of the kind that `destroy` is for.
            let _ = unsafe { (self.destroy)(self.handle) };
        }
    }
}

type CudaEvent = Owned<CUevent_st>;
type CudaGraph = Owned<CUgraphExec_st>;

impl BackendEvent for CudaEvent {
    fn synchronize(&self) -> Result<()> {
        self.shared.enter()?;
        // SAFETY: the event is live.
        check("cuEventSynchronize", unsafe { ffi::cuEventSynchronize(self.handle) })
    }

    fn microseconds_since(&self, earlier: &dyn BackendEvent) -> Result<f64> {
        self.shared.enter()?;
        let earlier = earlier.of::<Self>();
        let mut milliseconds = 0.0;
        // SAFETY: both events are live; the pointer too.
        let status = unsafe { ffi::cuEventElapsedTime(&mut milliseconds, earlier.handle, self.handle) };
        check("cuEventElapsedTime", status)?;
        Ok(f64::from(milliseconds) * 1e3)
    }
}

impl BackendGraph for CudaGraph {
    fn replay(&mut self, stream: &dyn BackendStream) -> Result<()> {
        self.shared.enter()?;
        // SAFETY: both handles are live; the caller of `Graph::replay` keeps what the work uses alive.
        check("cuGraphLaunch", unsafe { ffi::cuGraphLaunch(self.handle, stream.raw().cast()) })
    }
}

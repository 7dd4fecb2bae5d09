//! Streams, events and graphs.
use std::any::Any;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cust::stream::{Stream, StreamFlags};
use cust::sys::{CUevent, CUgraph, CUgraphExec};

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
        let function = self.shared.modules.function(launch.entry, &self.shared.info)?;
        // SAFETY: the operation checked the shapes and built the argument of the entry's type, which the driver copies
        // now; the buffers behind it are borrowed by the call, and their `Drop` waits for the device. The context is
        // current, and the function the entry's.
        let status = unsafe { self.shared.launcher.launch(function, launch, self.inner.as_inner()) };
        if status == ffi::SUCCESS {
            return Ok(());
        }
        Err(Error::Launch {
            entry: launch.entry.into(),
            grid: launch.grid,
            threads: launch.threads,
            why: explain(status),
        })
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
        let mut event = CudaEvent { handle: ptr::null_mut(), shared: Arc::clone(&self.shared) };
        // SAFETY: the pointer is live; the context is current.
        check("cuEventCreate", unsafe { ffi::cuEventCreate(&mut event.handle, 0) })?;
        // SAFETY: both handles are live.
        check("cuEventRecord", unsafe { ffi::cuEventRecord(event.handle, self.inner.as_inner()) })?;
        Ok(Box::new(event))
    }

    fn wait_for(&self, event: &dyn BackendEvent) -> Result<()> {
        self.shared.enter()?;
        let event = event.as_any().downcast_ref::<CudaEvent>().ok_or_else(|| other_device(&self.shared))?;
        // SAFETY: both handles are live.
        let status = unsafe { ffi::cuStreamWaitEvent(self.inner.as_inner(), event.handle, 0) };
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
        let mut graph = Graph(ptr::null_mut());
        // SAFETY: the stream is live; the pointer too.
        let status = unsafe { ffi::cuStreamEndCapture(self.inner.as_inner(), &mut graph.0) };
        check("cuStreamEndCapture", status)?;
        let mut exec: CUgraphExec = ptr::null_mut();
        // SAFETY: the graph was just made.
        check("cuGraphInstantiate", unsafe { ffi::cuGraphInstantiateWithFlags(&mut exec, graph.0, 0) })?;
        Ok(Box::new(CudaGraph { shared: Arc::clone(&self.shared), exec }))
    }
}

fn other_device(expected: &Shared) -> Error {
    Error::OtherDevice {
        operation: "events",
        what: "the event",
        expected: expected.info.name.clone(),
        got: "another kind of device".into(),
    }
}

#[derive(Debug)]
struct CudaEvent {
    handle: CUevent,
    shared: Arc<Shared>,
}

// SAFETY: the driver's events may be used from any thread; each call makes the context current first.
unsafe impl Send for CudaEvent {}
// SAFETY: as above; the driver locks.
unsafe impl Sync for CudaEvent {}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if !self.handle.is_null() && self.shared.enter().is_ok() {
            // SAFETY: the event is ours alone.
            let _ = unsafe { ffi::cuEventDestroy_v2(self.handle) };
        }
    }
}

impl BackendEvent for CudaEvent {
    fn synchronize(&self) -> Result<()> {
        self.shared.enter()?;
        // SAFETY: the event is live.
        check("cuEventSynchronize", unsafe { ffi::cuEventSynchronize(self.handle) })
    }

    fn microseconds_since(&self, earlier: &dyn BackendEvent) -> Result<f64> {
        self.shared.enter()?;
        let earlier = earlier.as_any().downcast_ref::<Self>().ok_or_else(|| other_device(&self.shared))?;
        let mut milliseconds = 0.0;
        // SAFETY: both events are live; the pointer too.
        let status = unsafe { ffi::cuEventElapsedTime(&mut milliseconds, earlier.handle, self.handle) };
        check("cuEventElapsedTime", status)?;
        Ok(f64::from(milliseconds) * 1e3)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A recording that is not yet ready to run; destroyed when dropped.
struct Graph(CUgraph);

impl Drop for Graph {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the graph is ours alone.
            let _ = unsafe { ffi::cuGraphDestroy(self.0) };
        }
    }
}

#[derive(Debug)]
struct CudaGraph {
    shared: Arc<Shared>,
    exec: CUgraphExec,
}

// SAFETY: the driver's graphs may be used from any thread, one at a time: `replay` takes the graph mutably.
unsafe impl Send for CudaGraph {}
// SAFETY: as above; there is nothing to do with a shared reference.
unsafe impl Sync for CudaGraph {}

impl BackendGraph for CudaGraph {
    fn replay(&mut self, stream: &dyn BackendStream) -> Result<()> {
        self.shared.enter()?;
        // SAFETY: both handles are live; the caller of `Graph::replay` keeps what the work uses alive.
        check("cuGraphLaunch", unsafe { ffi::cuGraphLaunch(self.exec, stream.raw().cast()) })
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        if self.shared.enter().is_ok() {
            // SAFETY: the graph is ours alone.
            let _ = unsafe { ffi::cuGraphExecDestroy(self.exec) };
        }
    }
}

//! Streams, events and graphs.
use std::any::Any;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cust::event::{Event, EventFlags};
use cust::stream::{Stream, StreamFlags};
use cust::sys::{self, CUgraph, CUgraphExec, CUstreamCaptureMode};

use super::Shared;
use super::driver::{check, cust_error, explain};
use crate::backend::{BackendEvent, BackendGraph, BackendStream, Launch};
use crate::{Error, Result};

#[derive(Debug)]
pub(super) struct CudaStream {
    shared: Arc<Shared>,
    inner: Stream,
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
        let mut parameters = [launch.args_pointer.cast_mut()];
        let [x, y, z] = launch.grid;
        // SAFETY: the operation checked the shapes and built the argument of the entry's type, which the driver copies
        // now; the buffers behind it are borrowed by the call, and their `Drop` waits for the device.
        let status = unsafe {
            sys::cuLaunchKernel(
                function,
                x,
                y,
                z,
                launch.threads,
                1,
                1,
                launch.shared_bytes,
                self.inner.as_inner(),
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        if status == sys::CUresult::CUDA_SUCCESS {
            return Ok(());
        }
        Err(Error::Launch {
            entry: launch.entry.into(),
            grid: launch.grid,
            threads: launch.threads,
            why: explain(status as u32),
        })
    }

    fn synchronize(&self) -> Result<()> {
        self.shared.enter()?;
        self.inner.synchronize().map_err(|error| cust_error("cuStreamSynchronize", error))
    }

    fn event(&self) -> Result<Box<dyn BackendEvent>> {
        self.shared.enter()?;
        let event = Event::new(EventFlags::DEFAULT).map_err(|error| cust_error("cuEventCreate", error))?;
        event.record(&self.inner).map_err(|error| cust_error("cuEventRecord", error))?;
        Ok(Box::new(CudaEvent { shared: Arc::clone(&self.shared), inner: event }))
    }

    fn raw(&self) -> *mut c_void {
        self.inner.as_inner().cast()
    }

    fn begin_capture(&self) -> Result<()> {
        self.shared.enter()?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is live.
        check("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(self.inner.as_inner(), mode) })
    }

    fn end_capture(&self) -> Result<Box<dyn BackendGraph>> {
        let mut graph = Graph(ptr::null_mut());
        // SAFETY: the stream is live; the pointer too.
        let status = unsafe { sys::cuStreamEndCapture(self.inner.as_inner(), &mut graph.0) };
        check("cuStreamEndCapture", status)?;
        let mut exec: CUgraphExec = ptr::null_mut();
        // SAFETY: the graph was just made.
        check("cuGraphInstantiate", unsafe { sys::cuGraphInstantiateWithFlags(&mut exec, graph.0, 0) })?;
        Ok(Box::new(CudaGraph { shared: Arc::clone(&self.shared), exec }))
    }
}

#[derive(Debug)]
struct CudaEvent {
    shared: Arc<Shared>,
    inner: Event,
}

// SAFETY: the driver's events may be used from any thread; each call makes the context current first.
unsafe impl Send for CudaEvent {}
// SAFETY: as above; the driver locks.
unsafe impl Sync for CudaEvent {}

impl BackendEvent for CudaEvent {
    fn synchronize(&self) -> Result<()> {
        self.shared.enter()?;
        self.inner.synchronize().map_err(|error| cust_error("cuEventSynchronize", error))
    }

    fn microseconds_since(&self, earlier: &dyn BackendEvent) -> Result<f64> {
        self.shared.enter()?;
        let earlier = earlier.as_any().downcast_ref::<Self>().ok_or_else(|| Error::OtherDevice {
            operation: "elapsed time",
            what: "the earlier event",
            expected: self.shared.info.name.clone(),
            got: "another kind of device".into(),
        })?;
        let milliseconds = self.inner.elapsed_time_f32(&earlier.inner);
        let milliseconds = milliseconds.map_err(|error| cust_error("cuEventElapsedTime", error))?;
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
            let _ = unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}

#[derive(Debug)]
struct CudaGraph {
    shared: Arc<Shared>,
    exec: CUgraphExec,
}

// SAFETY: the driver's graphs may be used from any thread, one at a time, and `replay` only reads the handle.
unsafe impl Send for CudaGraph {}
// SAFETY: as above.
unsafe impl Sync for CudaGraph {}

impl BackendGraph for CudaGraph {
    fn replay(&self, stream: &dyn BackendStream) -> Result<()> {
        self.shared.enter()?;
        // SAFETY: both handles are live; `Stream::capture`'s caller keeps what the work uses alive.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.exec, stream.raw().cast()) })
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        if self.shared.enter().is_ok() {
            // SAFETY: the graph is ours alone.
            let _ = unsafe { sys::cuGraphExecDestroy(self.exec) };
        }
    }
}

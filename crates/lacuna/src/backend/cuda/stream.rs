//! Streams, events and graphs.
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use cust::stream::{Stream, StreamFlags};
use cust::sys::{CUevent_st, CUgraph_st, CUgraphExec_st, CUstream};

use super::Shared;
use super::driver::{check, cust_error, explain};
use super::ffi;
use crate::backend::{BackendEvent, BackendGraph, BackendStream, Launch};
use crate::{Error, Result};

#[derive(Debug)]
pub(super) struct CudaStream {
    /// Dropped before `shared`, which holds the context it belongs to.
    inner: Handle,
    shared: Arc<Shared>,
}

/// Whose a stream is.
#[derive(Debug)]
enum Handle {
    /// Ours, destroyed when dropped.
    Owned(Stream),
    /// Another library's.
    Borrowed(CUstream),
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
        Ok(Self { shared, inner: Handle::Owned(inner) })
    }

    /// A stream of another library's.
    ///
    /// # Safety
    /// It is live as long as what this gives.
    pub(super) unsafe fn borrowed(shared: Arc<Shared>, raw: CUstream) -> Result<Self> {
        shared.enter()?;
        // The default streams (0 to 2) belong to whichever context is current.
        if raw as usize > ffi::LAST_DEFAULT_STREAM {
            let mut context = ptr::null_mut();
            // SAFETY: the caller says that the stream is live; the place is.
            check("cuStreamGetCtx", unsafe { ffi::cuStreamGetCtx(raw, &mut context) })?;
            let expected = || format!("a stream of the primary context of {}", shared.info.name);
            let is_ours = context == shared.context.as_raw();
            Error::expect(is_ours, "a foreign stream", "the stream", expected, "one of another context")?;
        }
        Ok(Self { shared, inner: Handle::Borrowed(raw) })
    }

    fn handle(&self) -> CUstream {
        match &self.inner {
            Handle::Owned(stream) => stream.as_inner(),
            Handle::Borrowed(handle) => *handle,
        }
    }
}

impl BackendStream for CudaStream {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.shared.enter()?;
        let function = self.shared.modules.function(&launch.entry, &self.shared.info)?;
        // SAFETY: the operation checked the shapes and built the argument of the entry's type, which the driver copies
        // now; the buffers behind it are borrowed by the call, and their `Drop` waits for the device. The context is
        // current, and the function the entry's.
        let status = unsafe { self.shared.launcher.launch(function, launch, self.handle()) };
        if status == ffi::SUCCESS {
            return Ok(());
        }
        Err(Error::launch(&launch.entry, launch.grid, explain(status)))
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.shared.enter()?;
        // SAFETY: the slices checked their lengths; their buffers are borrowed by the call, and their `Drop` waits for the
        // device. The stream is live.
        let status = unsafe { ffi::cuMemcpyDtoDAsync_v2(to, from, bytes, self.handle()) };
        check("cuMemcpyDtoDAsync", status)
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        self.shared.enter()?;
        let source = from.as_ptr().cast();
        // SAFETY: the destination was checked, and its buffer's `Drop` waits for the device; the caller promises the same of
        // the source. The stream is live.
        let status = unsafe { ffi::cuMemcpyHtoDAsync_v2(to, source, from.len(), self.handle()) };
        check("cuMemcpyHtoDAsync", status)
    }

    fn synchronize(&self) -> Result<()> {
        self.shared.enter()?;
        // SAFETY: the stream is live.
        check("cuStreamSynchronize", unsafe { ffi::cuStreamSynchronize(self.handle()) })
    }

    fn event(&self) -> Result<Box<dyn BackendEvent>> {
        self.shared.enter()?;
        let mut event = Owned::none(&self.shared, ffi::cuEventDestroy_v2);
        // SAFETY: the pointer is live; the context is current.
        check("cuEventCreate", unsafe { ffi::cuEventCreate(&mut event.handle, 0) })?;
        // SAFETY: both handles are live.
        check("cuEventRecord", unsafe { ffi::cuEventRecord(event.handle, self.handle()) })?;
        Ok(Box::new(event))
    }

    fn wait_for(&self, event: &dyn BackendEvent) -> Result<()> {
        self.shared.enter()?;
        let event = event.of::<CudaEvent>().handle;
        // SAFETY: both handles are live.
        let status = unsafe { ffi::cuStreamWaitEvent(self.handle(), event, 0) };
        check("cuStreamWaitEvent", status)
    }

    fn raw(&self) -> *mut c_void {
        self.handle().cast()
    }

    fn begin_capture(&self) -> Result<()> {
        self.shared.enter()?;
        let mode = ffi::CAPTURE_THREAD_LOCAL;
        // SAFETY: the stream is live.
        check("cuStreamBeginCapture", unsafe { ffi::cuStreamBeginCapture_v2(self.handle(), mode) })
    }

    fn end_capture(&self) -> Result<Box<dyn BackendGraph>> {
        self.shared.enter()?;
        // A recording is not yet ready to run, and not needed any more once it is.
        let mut recording = Owned::<CUgraph_st>::none(&self.shared, ffi::cuGraphDestroy);
        // SAFETY: the stream is live; the pointer too.
        let status = unsafe { ffi::cuStreamEndCapture(self.handle(), &mut recording.handle) };
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

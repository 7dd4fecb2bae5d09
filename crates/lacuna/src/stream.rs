//! Queues of work, points in them, and work recorded to be done again.
use std::ffi::c_void;

use crate::backend::{BackendEvent, BackendGraph, BackendStream, Launch};
use crate::{Device, Element, Error, Result, Slice, SliceMut};

/// A queue of work on a device: what is given to one stream is done in order.
///
/// Two streams are not ordered. Work on one stream that uses what work on another writes must wait for it, by
/// [`wait_for`](Stream::wait_for) or [`synchronize`](Stream::synchronize): the borrow of a buffer ends when its work has
/// been given to the stream, not when it is done.
#[derive(Debug)]
pub struct Stream {
    /// Dropped first: it belongs to the device's context.
    inner: Box<dyn BackendStream>,
    device: Device,
}

impl Stream {
    pub(crate) fn new(device: Device, inner: Box<dyn BackendStream>) -> Self {
        Self { device, inner }
    }

    /// A stream that another library made, by the driver's handle (`CUstream`, which is the runtime's `cudaStream_t`): PyTorch's
    /// current stream, say. It is borrowed, and never destroyed. Null (or 1) is the legacy default stream, and 2 is the
    /// default stream of the calling thread. On the simulator there is one handle, null, which is any stream of it.
    ///
    /// # Safety
    /// The stream is live as long as this is, and every event of it.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a stream of another context than the primary one of `device`, and on the simulator for a handle
    /// that is not null; what the driver says.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<Self> {
        // SAFETY: as promised by the caller.
        let inner = unsafe { device.backend().stream_from_raw(raw)? };
        Ok(Self::new(device.clone(), inner))
    }

    /// The device that works on it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until all work given so far is done.
    ///
    /// # Errors
    /// What that work failed with.
    pub fn synchronize(&self) -> Result<()> {
        self.inner.synchronize()
    }

    /// Marks this point in the stream.
    ///
    /// # Errors
    /// What the driver says.
    pub fn event(&self) -> Result<Event> {
        Ok(Event { device: self.device.clone(), inner: self.inner.event()? })
    }

    /// Lets all work given to this stream from now on wait until `event`, of another stream of the same device, has been
    /// passed. Returns at once.
    ///
    /// # Errors
    /// [`Error::OtherDevice`] for an event of another device; what the driver says.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        self.device.expect_same("wait", "the event", &event.device)?;
        self.inner.wait_for(&*event.inner)
    }

    /// Copies elements from one buffer to another of the same device. Returns at once; may be recorded.
    ///
    /// # Errors
    /// [`Error::Length`] where the two are not equally long; [`Error::OtherDevice`] where one is of another device; what the
    /// driver says.
    pub fn copy<T: Element>(&self, from: Slice<'_, T>, to: SliceMut<'_, T>) -> Result<()> {
        self.device.expect_same("copy", "the destination", to.device())?;
        let shape = || "as long as the destination".into();
        self.device.expect_operand("copy", "the source", from, shape, to.len())?;
        if from.is_empty() {
            return Ok(());
        }
        self.inner.copy(to.address(), from.address(), from.len() * size_of::<T>())
    }

    /// The driver's handle, for other libraries on the same GPU; null on the simulator.
    ///
    /// Kernels are unloaded when the last of a device, its buffers, streams, events and graphs is dropped. A graph that was
    /// recorded by this handle, not by [`capture`](Self::capture), does not keep them: keep the device as long as it.
    pub fn as_raw(&self) -> *mut c_void {
        self.inner.raw()
    }

    /// Records the work that `work` gives to this stream instead of doing it. What that work needs (buffers, plans)
    /// must outlive every replay; sizes and addresses are those of the recording. Run a plan once before recording it:
    /// its kernel is then loaded. `work` must neither make nor drop buffers and devices, which the driver refuses while it
    /// records.
    ///
    /// Plans are made before a recording: the first of a pattern may work on the device.
    ///
    /// # Errors
    /// Those of `work`; [`Error::Unsupported`] on the simulator; what the driver says of
    /// work that cannot be recorded.
    pub fn capture<E: From<Error>>(
        &self,
        work: impl FnOnce(&Self) -> std::result::Result<(), E>,
    ) -> std::result::Result<Graph, E> {
        /// Ends a recording that a panic cuts short, so that the stream can be used again.
        struct Recording<'s>(Option<&'s dyn BackendStream>);
        impl Drop for Recording<'_> {
            fn drop(&mut self) {
                if let Some(stream) = self.0.take() {
                    drop(stream.end_capture());
                }
            }
        }

        self.inner.begin_capture()?;
        let mut recording = Recording(Some(&*self.inner));
        let result = work(self);
        recording.0 = None;
        let graph = self.inner.end_capture();
        result?;
        Ok(Graph { inner: graph?, device: self.device.clone() })
    }

    /// Copies host bytes (not none) to the device.
    ///
    /// # Safety
    /// They are in a host buffer of this device.
    pub(crate) unsafe fn upload_raw(&self, to: u64, from: &[u8]) -> Result<()> {
        // SAFETY: as promised by the caller: host buffers are page-locked, and wait for the device before they go.
        unsafe { self.inner.upload(to, from) }
    }

    pub(crate) fn backend(&self) -> &dyn BackendStream {
        &*self.inner
    }

    pub(crate) fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.inner.launch(launch)
    }
}

/// A point in a stream.
#[derive(Debug)]
pub struct Event {
    /// Dropped first: it belongs to the device's context.
    inner: Box<dyn BackendEvent>,
    device: Device,
}

impl Event {
    /// Waits until the stream has come to this point.
    ///
    /// # Errors
    /// What the work before it failed with.
    pub fn synchronize(&self) -> Result<()> {
        self.inner.synchronize()
    }

    /// Microseconds from `earlier` to this, both passed. On the simulator: time spent simulating.
    ///
    /// # Errors
    /// [`Error::OtherDevice`] for events of two devices; what the driver says, for example that
    /// one has not been passed.
    pub fn microseconds_since(&self, earlier: &Self) -> Result<f64> {
        self.device.expect_same("elapsed time", "the earlier event", &earlier.device)?;
        self.inner.microseconds_since(&*earlier.inner)
    }
}

/// Recorded work.
#[derive(Debug)]
pub struct Graph {
    /// Dropped first: it belongs to the device's context.
    inner: Box<dyn BackendGraph>,
    device: Device,
}

impl Graph {
    /// Does the recorded work on `stream`.
    ///
    /// # Safety
    /// Every buffer that the recorded work uses is still alive, and nothing else uses what it writes until the stream
    /// has done it.
    ///
    /// # Errors
    /// [`Error::OtherDevice`] for a stream of another device; what the driver says.
    pub unsafe fn replay(&mut self, stream: &Stream) -> Result<()> {
        self.device.expect_same("replay", "the stream", &stream.device)?;
        self.inner.replay(&*stream.inner)
    }
}

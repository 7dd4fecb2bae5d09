//! Queues of work, points in them, and work recorded to be done again.
use std::ffi::c_void;

use crate::backend::{BackendEvent, BackendGraph, BackendStream, Launch};
use crate::{Device, Result};

/// A queue of work on a device: what is given to one stream is done in order.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    inner: Box<dyn BackendStream>,
}

impl Stream {
    pub(crate) fn new(device: Device, inner: Box<dyn BackendStream>) -> Self {
        Self { device, inner }
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
        Ok(Event { inner: self.inner.event()? })
    }

    /// The driver's handle, for other libraries on the same GPU; null on the simulator.
    pub fn as_raw(&self) -> *mut c_void {
        self.inner.raw()
    }

    /// Records the work that `work` gives to this stream instead of doing it. What that work needs (buffers, plans)
    /// must outlive every replay; sizes and addresses are those of the recording.
    ///
    /// # Errors
    /// Those of `work`; [`Error::Unsupported`](crate::Error::Unsupported) on the simulator; what the driver says of
    /// work that cannot be recorded.
    pub fn capture<E: From<crate::Error>>(
        &self,
        work: impl FnOnce(&Self) -> std::result::Result<(), E>,
    ) -> std::result::Result<Graph, E> {
        self.inner.begin_capture()?;
        let result = work(self);
        let graph = self.inner.end_capture();
        result?;
        Ok(Graph { inner: graph? })
    }

    pub(crate) fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.inner.launch(launch)
    }
}

/// A point in a stream.
#[derive(Debug)]
pub struct Event {
    inner: Box<dyn BackendEvent>,
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
    /// What the driver says, for example that one has not been passed.
    pub fn microseconds_since(&self, earlier: &Self) -> Result<f64> {
        self.inner.microseconds_since(&*earlier.inner)
    }
}

/// Recorded work.
#[derive(Debug)]
pub struct Graph {
    inner: Box<dyn BackendGraph>,
}

impl Graph {
    /// Does the recorded work on `stream`.
    ///
    /// # Safety
    /// Every buffer that the recorded work uses is still alive, and nothing else uses what it writes until the stream
    /// has done it.
    ///
    /// # Errors
    /// What the driver says.
    pub unsafe fn replay(&self, stream: &Stream) -> Result<()> {
        self.inner.replay(&*stream.inner)
    }
}

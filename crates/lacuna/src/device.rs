//! Devices.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::Backend;
use crate::backend::simulator::SimulatorDevice;
use crate::{Buffer, Element, Error, Result, Slice, Stream};

/// A GPU, or the simulator. Clones are the same device.
#[derive(Clone, Debug)]
pub struct Device {
    backend: Arc<dyn Backend>,
    /// Bytes of live buffers.
    buffer_bytes: Arc<AtomicU64>,
}

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its name, as the driver gives it.
    pub name: String,
    /// Compute capability as one number: 90 is 9.0. The simulator has the newest that kernels are built for.
    pub sm: u32,
    /// Streaming multiprocessors; on the simulator those of the GPU it stands for.
    pub multiprocessors: u32,
    /// The most bytes of shared memory that a block may have.
    pub block_shared_bytes: u32,
    /// Bytes of memory; 0 on the simulator.
    pub memory_bytes: u64,
    /// Bytes of the L2 cache; 0 on the simulator, which has none.
    pub l2_bytes: u64,
    /// The newest CUDA that the driver offers, as in `13.0`; `none` on the simulator.
    pub driver: String,
    /// Where it is on the PCI bus, as in `00000000:3b:00.0` (domain, bus, device, function): other libraries find the GPU by it
    /// whatever it is numbered. None on the simulator.
    pub pci: Option<String>,
}

/// What the simulator counted in one launch.
#[derive(Clone, Debug)]
pub struct SimulatedLaunch {
    /// The entry point.
    pub entry: &'static str,
    /// Its counters.
    pub report: lacuna_sim::Report,
}

impl Device {
    /// A GPU, by the driver's index, with its primary context: the one that the CUDA runtime, PyTorch and `cudarc` use, so that
    /// memory and streams of theirs can be used ([`Slice::from_raw`], [`Stream::from_raw`]). It is retained, and never reset; each
    /// call into the library makes it current on the calling thread, and leaves it so.
    ///
    /// Each call makes a device of its own, and buffers of one cannot be used with another:
    /// clone a device to share it. Each loads the kernels that it launches for itself, and unloads them when the last of its
    /// clones, buffers, streams, events and graphs is dropped, which waits for the GPU.
    ///
    /// # Errors
    /// [`Error::NoCuda`] in a build without feature `cuda`; [`Error::NoDriver`], [`Error::BrokenDriver`],
    /// [`Error::NoDevice`] and [`Error::OldGpu`] for what is missing.
    pub fn cuda(index: usize) -> Result<Self> {
        #[cfg(feature = "cuda")]
        {
            Ok(Self::of(Arc::new(crate::backend::cuda::CudaDevice::new(index)?)))
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = index;
            Err(Error::NoCuda)
        }
    }

    /// A new simulator with memory of its own.
    pub fn simulator() -> Self {
        Self::of(Arc::new(SimulatorDevice::new()))
    }

    fn of(backend: Arc<dyn Backend>) -> Self {
        Self { backend, buffer_bytes: Arc::default() }
    }

    /// The first GPU, or else the simulator; a new device each time, as for [`cuda`](Device::cuda).
    ///
    /// # Errors
    /// A GPU that is there but cannot be used is an error; only its absence leads to the simulator.
    pub fn best() -> Result<Self> {
        match Self::cuda(0) {
            Err(Error::NoCuda | Error::NoDriver { .. } | Error::NoDevice { .. }) => Ok(Self::simulator()),
            other => other,
        }
    }

    /// What this device is.
    pub fn info(&self) -> &DeviceInfo {
        self.backend.info()
    }

    /// Whether this is the simulator.
    pub fn is_simulator(&self) -> bool {
        self.backend.as_simulator().is_some()
    }

    /// A new stream.
    ///
    /// # Errors
    /// What the driver says.
    pub fn stream(&self) -> Result<Stream> {
        Ok(Stream::new(self.clone(), self.backend.stream()?))
    }

    /// A new buffer with these contents.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or what the driver says.
    pub fn upload<T: Element>(&self, contents: &[T]) -> Result<Buffer<T>> {
        let mut buffer = self.uninitialized(contents.len())?;
        buffer.upload(contents)?;
        Ok(buffer)
    }

    /// A new buffer of `len` zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or what the driver says.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = self.uninitialized::<T>(len)?;
        buffer.as_slice_mut().fill_zero()?;
        Ok(buffer)
    }

    /// A new buffer of `len` elements with any contents. Reading them before they are written gives any value, and
    /// on the simulator a finding.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or what the driver says.
    pub fn uninitialized<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::new(self.clone(), len)
    }

    /// Runs `work`, and gives what the simulator counted in each launch; nothing on a GPU. A device keeps one record: a
    /// call within another, or at the same time, ends the first one's.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn record<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<(R, Vec<SimulatedLaunch>)> {
        let Some(simulator) = self.backend.as_simulator() else {
            return Ok((work()?, Vec::new()));
        };
        simulator.start_record();
        let result = work();
        let launches = simulator.take_record();
        Ok((result?, launches))
    }

    /// Bytes of all live buffers of this device and its clones: the program's, and those of matrices, plans and what was worked
    /// out for them. The driver rounds each up, and has memory of its own.
    ///
    /// ```
    /// # fn main() -> lacuna::Result<()> {
    /// let device = lacuna::Device::simulator();
    /// let buffer = device.zeros::<f32>(10)?;
    /// assert_eq!(device.buffer_bytes(), 40);
    /// drop(buffer);
    /// assert_eq!(device.buffer_bytes(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes.load(Ordering::Relaxed)
    }

    /// A buffer of so many bytes was made.
    pub(crate) fn count_made(&self, bytes: usize) {
        self.buffer_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A buffer of so many bytes is gone.
    pub(crate) fn count_gone(&self, bytes: usize) {
        self.buffer_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Whether both are the same device.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }

    /// An error unless `other` is this device.
    pub(crate) fn expect_same(
        &self,
        operation: &'static str,
        what: &'static str,
        other: &Self,
    ) -> Result<()> {
        if self.same_as(other) {
            return Ok(());
        }
        let name = |device: &Self| device.info().name.clone();
        let (expected, mut got) = (name(self), name(other));
        if expected == got {
            got = format!("another {got}");
        }
        Err(Error::OtherDevice { operation, what, expected, got })
    }

    /// An error unless `operand` is on this device and has as many elements as its shape asks for.
    pub(crate) fn expect_operand<T: Element>(
        &self,
        operation: &'static str,
        what: &'static str,
        operand: Slice<'_, T>,
        shape: impl FnOnce() -> String,
        expected: usize,
    ) -> Result<()> {
        self.expect_same(operation, what, operand.device())?;
        Error::expect_len(operation, what, shape, expected, operand.len())
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }
}

//! The simulator as a device. Its streams work at once: a call returns when its work is done.
use std::alloc::{self, Layout};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use lacuna_gpu::{Tensor, TensorMap};
use lacuna_sim::{MemoryError, Simulator};

use super::{Backend, BackendConv, BackendEvent, BackendGraph, BackendStream, Launch};
use crate::conv::Problem;
use crate::{DeviceInfo, Error, Result, SimulatedLaunch};

#[derive(Debug)]
pub(crate) struct SimulatorDevice {
    info: DeviceInfo,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    simulator: Simulator,
    /// What was launched since recording began; none while nobody records.
    record: Mutex<Option<Vec<SimulatedLaunch>>>,
}

impl SimulatorDevice {
    pub(crate) fn new() -> Self {
        let info = DeviceInfo {
            name: "simulator".into(),
            sm: 90,
            multiprocessors: 132,
            block_shared_bytes: lacuna_sim::MAX_SHARED_BYTES,
            memory_bytes: 0,
            l2_bytes: 0,
            driver: "none".into(),
            pci: None,
        };
        Self { info, shared: Arc::new(Shared { simulator: Simulator::new(), record: Mutex::new(None) }) }
    }

    /// Begins a record of launches.
    pub(crate) fn start_record(&self) {
        *self.shared.record.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
    }

    /// Ends the record, and gives it.
    pub(crate) fn take_record(&self) -> Vec<SimulatedLaunch> {
        self.shared.record.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

impl Backend for SimulatorDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.shared.simulator.alloc(bytes as u64).map_err(|error| match error {
            MemoryError::OutOfMemory { .. } | MemoryError::HostMemory { .. } => {
                let total = self.shared.simulator.limits().memory_bytes;
                let free = total.saturating_sub(self.shared.simulator.used_bytes());
                Error::OutOfMemory { device: self.info.name.clone(), asked: bytes as u64, free, total }
            }
            other => other.into(),
        })
    }
    fn free(&self, address: u64) {
        let freed = self.shared.simulator.free(address);
        debug_assert!(freed.is_ok(), "a buffer frees what it allocated");
    }
    fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        self.shared.simulator.synchronize();
        Ok(self.shared.simulator.write(to, from)?)
    }
    fn download(&self, from: u64, to: &mut [u8]) -> Result<()> {
        self.shared.simulator.synchronize();
        Ok(self.shared.simulator.read(from, to)?)
    }
    fn fill_zero(&self, address: u64, bytes: usize) -> Result<()> {
        Ok(self.shared.simulator.fill(address, bytes as u64, 0)?)
    }
    fn allocate_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        let too_large = || Error::too_large("a host buffer, in bytes,", isize::MAX as usize, bytes);
        let layout = host_layout(bytes).ok_or_else(too_large)?;
        // SAFETY: the layout has bytes.
        NonNull::new(unsafe { alloc::alloc(layout) }).ok_or_else(|| Error::no_room_on_host(bytes))
    }
    fn free_host(&self, first: NonNull<u8>, bytes: usize) {
        self.shared.simulator.synchronize();
        if let Some(layout) = host_layout(bytes) {
            // SAFETY: it came from `allocate_host`, with this layout.
            unsafe { alloc::dealloc(first.as_ptr(), layout) };
        }
    }
    fn stream(&self) -> Result<Box<dyn BackendStream>> {
        Ok(Box::new(SimulatorStream { shared: Arc::clone(&self.shared) }))
    }
    unsafe fn stream_from_raw(&self, raw: *mut c_void) -> Result<Box<dyn BackendStream>> {
        let expected = || "null: the simulator's streams have no handles";
        Error::expect(raw.is_null(), "a foreign stream", "the handle", expected, format_args!("{raw:?}"))?;
        self.stream()
    }
    fn tensor_map(&self, tensor: &Tensor) -> Result<TensorMap> {
        Ok(TensorMap::of(tensor))
    }
    fn conv(&self, _problem: &Problem) -> Result<Box<dyn BackendConv>> {
        Err(Error::Unsupported {
            device: "the simulator".into(),
            what: "a convolution by cuDNN, which needs an NVIDIA GPU",
            instead: "plan on Device::cuda, or leave the choice of the algorithm to Lacuna",
        })
    }
    fn as_simulator(&self) -> Option<&SimulatorDevice> {
        Some(self)
    }
}

/// How host buffers lie.
fn host_layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, HOST_ALIGNED).ok()
}

/// Bytes to which host buffers are aligned.
const HOST_ALIGNED: usize = 16;

#[derive(Debug)]
struct SimulatorStream {
    shared: Arc<Shared>,
}

impl BackendStream for SimulatorStream {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        let Launch { entry, grid, args } = *launch;
        let none = || Error::launch(&entry, grid, "the simulator has no kernel of this name");
        let kernel = lacuna_sim::find(entry.name).ok_or_else(none)?;
        let report = kernel.launch(&self.shared.simulator, grid, args)?;
        if let Some(record) = &mut *self.shared.record.lock().unwrap_or_else(PoisonError::into_inner) {
            record.push(SimulatedLaunch { entry: entry.name, report });
        }
        Ok(())
    }
    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        Ok(self.shared.simulator.copy(to, from, bytes as u64)?)
    }
    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        Ok(self.shared.simulator.write(to, from)?)
    }
    fn synchronize(&self) -> Result<()> {
        self.shared.simulator.synchronize();
        Ok(())
    }
    fn event(&self) -> Result<Box<dyn BackendEvent>> {
        Ok(Box::new(SimulatorEvent(Instant::now())))
    }
    fn wait_for(&self, _event: &dyn BackendEvent) -> Result<()> {
        // Every event has been passed when it exists: streams work at once.
        Ok(())
    }
    fn raw(&self) -> *mut c_void {
        ptr::null_mut()
    }
    fn begin_capture(&self) -> Result<()> {
        Err(no_graphs())
    }
    fn end_capture(&self) -> Result<Box<dyn BackendGraph>> {
        Err(no_graphs())
    }
}

fn no_graphs() -> Error {
    Error::Unsupported { device: "the simulator".into(), what: "graphs", instead: "call the plan again" }
}

/// The host's clock: on the simulator it tells how long simulating took.
#[derive(Debug)]
struct SimulatorEvent(Instant);

impl BackendEvent for SimulatorEvent {
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
    fn microseconds_since(&self, earlier: &dyn BackendEvent) -> Result<f64> {
        Ok(self.0.saturating_duration_since(earlier.of::<Self>().0).as_secs_f64() * 1e6)
    }
}

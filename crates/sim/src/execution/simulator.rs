//! The simulator itself: a device with memory, on which kernels are launched.
use std::any::type_name;
use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};

use corosensei::stack::DefaultStack;
use lacuna_kernels::Kernel;
use rayon::prelude::*;

use crate::execution::block::{self, Body};
use crate::execution::error::LaunchError;
use crate::execution::launch::{Geometry, Launch};
use crate::execution::pool::Pool;
use crate::execution::trap;
use crate::execution::worker::Worker;
use crate::memory::allocation::{Memory, MemoryError};
use crate::report::Report;

/// Most threads of a block.
const MAX_THREADS: u32 = 1024;
/// Blocks of a cluster that every GPU with clusters can hold.
const MAX_CLUSTER: u32 = 8;
/// Most shared memory of a block in bytes: that of the largest device, Hopper.
pub const MAX_SHARED_BYTES: u32 = 227 * 1024;
/// Most blocks of a grid along x, y and z.
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Bytes that a copy within device memory moves at once.
const COPY_CHUNK: u64 = 64 * 1024;
/// Most blocks in all: they are numbered with 32 bits.
const MAX_BLOCKS: u64 = u32::MAX as u64 - 1;

/// Limits of a simulated device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of device memory. The host spends 9 bytes for every 8, and more while a kernel runs.
    pub memory_bytes: u64,
    /// Memory and synchronisation operations of one thread in one launch; arithmetic ([`fma`](lacuna_gpu::Gpu::fma)
    /// and the approximate functions) does not count. A thread that passes it probably loops for ever: its block ends,
    /// and blocks that have not started are skipped. A loop without such operations cannot be seen.
    pub steps_per_thread: u64,
}

impl Default for Limits {
    /// 16 GiB, and 50 million operations.
    fn default() -> Self {
        Self { memory_bytes: 16 << 30, steps_per_thread: 50_000_000 }
    }
}

/// A simulated GPU. Clones are handles of the same device; it may be used from several threads.
///
/// Addresses are numbers that mean nothing to the host. Buffers lie at least 4 GiB apart, and an address comes back
/// only after tens of thousands of others were used, so a stray access is seen for what it is.
#[derive(Clone, Debug)]
pub struct Simulator {
    memory: Arc<Mutex<Memory>>,
    limits: Limits,
}

impl Default for Simulator {
    fn default() -> Self {
        Self::new()
    }
}

impl Simulator {
    /// A device with the default [`Limits`].
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// A device with these limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self { memory: Arc::new(Mutex::new(Memory::new(limits.memory_bytes))), limits }
    }

    /// The limits that the device was made with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether both handles are of one device.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Allocates `bytes` bytes, never written; gives their address, a multiple of 256.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`] past the limit, [`MemoryError::HostMemory`] when the host cannot hold it,
    /// [`MemoryError::OutOfAddresses`] when no addresses are left.
    pub fn alloc(&self, bytes: u64) -> Result<u64, MemoryError> {
        self.memory().alloc(bytes, None)
    }

    /// As [`alloc`](Self::alloc), with a name for findings.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc).
    pub fn alloc_named(&self, name: &str, bytes: u64) -> Result<u64, MemoryError> {
        self.memory().alloc(bytes, Some(name))
    }

    /// Frees an allocation. Later accesses by kernels are findings.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] unless `address` is the start of a live allocation.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        self.memory().free(address)
    }

    /// Bytes of device memory in use.
    pub fn used_bytes(&self) -> u64 {
        self.memory().used()
    }

    /// Copies `from` to device memory.
    ///
    /// # Errors
    /// [`MemoryError::BadRange`] unless the range lies in one live allocation.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let (allocation, offset) = self.range(address, from.len() as u64)?;
        allocation.storage.write(offset, from);
        Ok(())
    }

    /// Copies device memory to `to`. Bytes that were never written read as zero.
    ///
    /// # Errors
    /// [`MemoryError::BadRange`] unless the range lies in one live allocation.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        let (allocation, offset) = self.range(address, to.len() as u64)?;
        allocation.storage.read(offset, to);
        Ok(())
    }

    /// Sets `bytes` bytes of device memory to `value`.
    ///
    /// # Errors
    /// [`MemoryError::BadRange`] unless the range lies in one live allocation.
    pub fn fill(&self, address: u64, bytes: u64, value: u8) -> Result<(), MemoryError> {
        let (allocation, offset) = self.range(address, bytes)?;
        allocation.storage.fill(offset, bytes, value);
        Ok(())
    }

    /// Says that the host has waited for all launches and copies so far: from now on kernels that look ahead may read what these
    /// have written.
    pub fn synchronize(&self) {
        for allocation in self.memory().snapshot() {
            allocation.settle();
        }
    }

    /// Copies `bytes` bytes within device memory, as if through a third place. They count as written afterwards.
    ///
    /// # Errors
    /// [`MemoryError::BadRange`] unless both ranges lie in live allocations.
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), MemoryError> {
        let (source, source_offset) = self.range(from, bytes)?;
        let (target, target_offset) = self.range(to, bytes)?;
        let mut through = vec![0; bytes.min(COPY_CHUNK) as usize];
        let chunks = bytes.div_ceil(COPY_CHUNK);
        for step in 0..chunks {
            // Towards higher addresses from the end, so that an overlap is read before it is overwritten.
            let chunk = if to > from { chunks - 1 - step } else { step };
            let start = chunk * COPY_CHUNK;
            let through = &mut through[..(bytes - start).min(COPY_CHUNK) as usize];
            source.storage.read(source_offset + start, through);
            target.storage.write(target_offset + start, through);
        }
        target.unsettle();
        Ok(())
    }

    fn range(
        &self,
        address: u64,
        bytes: u64,
    ) -> Result<(Arc<crate::memory::allocation::Allocation>, u64), MemoryError> {
        let memory = self.memory();
        let (allocation, offset) = memory.range(address, bytes)?;
        Ok((allocation.clone(), offset))
    }

    /// Runs kernel `K` with a grid of `grid` blocks (x, y, z) of [`Kernel::THREADS`] threads, and waits for it.
    ///
    /// Blocks run in parallel on rayon's current thread pool. The report does not depend on how many threads it has, nor
    /// on their speed, with the exceptions that the [crate's documentation](crate) lists.
    ///
    /// # Errors
    /// A geometry that no GPU would launch, no memory on the host, or [`LaunchError::Findings`] with the report if the
    /// kernel did anything wrong; what it wrote until then is in memory.
    pub fn launch<K: Kernel>(&self, grid: [u32; 3], args: K::Args) -> Result<Report, LaunchError> {
        self.launch_named::<K>(type_name::<K>(), grid, args)
    }

    /// As [`launch`](Self::launch), under a name of the caller's choice.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    pub fn launch_named<K: Kernel>(
        &self,
        name: &str,
        grid: [u32; 3],
        args: K::Args,
    ) -> Result<Report, LaunchError> {
        let geometry =
            Geometry { grid, threads: K::THREADS, shared_bytes: K::SHARED_BYTES, cluster: K::CLUSTER };
        check(name, &geometry)?;
        // SAFETY: whether the contract holds is not known here. `Kernel::run` lets an implementation rely on it only for
        // accesses through `gpu`; a `SimThread` checks each of those, and a broken promise is a finding.
        let body = move |thread: crate::execution::thread::SimThread<'_, '_>| unsafe { K::run(thread, args) };
        self.run(name, geometry, K::EARLY_PROLOGUE, &body)
    }

    fn run(
        &self,
        name: &str,
        geometry: Geometry,
        looks_ahead: bool,
        body: &Body<'_>,
    ) -> Result<Report, LaunchError> {
        trap::install_hook();
        let launch = Launch::new(geometry, looks_ahead, self.limits, &self.memory);
        let blocks = geometry.blocks().unwrap_or(u64::MAX);
        // Workers are lent to whichever host thread has a block to run, and outlive it: their tables are big.
        let idle: Mutex<Vec<Vec<RefCell<Worker<'_>>>>> = Mutex::default();
        let lend = || idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let clusters = blocks as u32 / geometry.cluster;
        (0..clusters).into_par_iter().try_for_each(|cluster| {
            if launch.stopped.load(Relaxed) {
                return Ok(());
            }
            let new = || (0..geometry.cluster).map(|_| RefCell::new(Worker::new(&launch))).collect();
            let workers: Vec<_> = lend().pop().unwrap_or_else(new);
            let first = u64::from(cluster) * u64::from(geometry.cluster);
            let mut stacks = STACKS.take();
            let result = block::run(&workers, &mut stacks, body, first);
            STACKS.give(stacks);
            lend().push(workers);
            result.map_err(|source| LaunchError::NoStack { kernel: name.to_owned(), source })
        })?;
        if launch.is_starved() {
            return Err(LaunchError::HostMemory { kernel: name.to_owned() });
        }
        let workers = idle.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let contexts = workers.into_iter().flatten().map(|worker| worker.into_inner().end());
        let report = Report::new(name, &launch, contexts);
        if report.findings.is_empty() { Ok(report) } else { Err(LaunchError::Findings(Box::new(report))) }
    }
}

/// Stacks of simulated threads that have ended, for those of later blocks and launches.
static STACKS: Pool<Vec<DefaultStack>> = Pool::new();

fn check(kernel: &str, geometry: &Geometry) -> Result<(), LaunchError> {
    let Geometry { grid, threads, shared_bytes, cluster } = *geometry;
    let kernel = || kernel.to_owned();
    let in_limits = grid.iter().zip(MAX_GRID).all(|(&blocks, limit)| (1..=limit).contains(&blocks));
    if !in_limits || geometry.blocks().is_none_or(|blocks| blocks > MAX_BLOCKS) {
        return Err(LaunchError::Grid { kernel: kernel(), grid });
    }
    if !(1..=MAX_CLUSTER).contains(&cluster) || !grid[0].is_multiple_of(cluster) {
        return Err(LaunchError::Cluster { kernel: kernel(), cluster, grid, limit: MAX_CLUSTER });
    }
    if !(1..=MAX_THREADS).contains(&threads) {
        return Err(LaunchError::Threads { kernel: kernel(), threads, limit: MAX_THREADS });
    }
    if shared_bytes > MAX_SHARED_BYTES {
        let limit = MAX_SHARED_BYTES;
        return Err(LaunchError::SharedMemory { kernel: kernel(), bytes: shared_bytes, limit });
    }
    Ok(())
}

//! The trait of a kernel: its arguments, its constants and its body; and the host's entry for it.
use core::any::TypeId;
use core::marker::PhantomData;

use lacuna_gpu::Gpu;

/// A kernel with all its constants fixed: what one entry point runs.
pub trait Kernel: 'static {
    /// The one parameter of the entry point: a `#[repr(C)]` struct of numbers and device pointers.
    type Args: Copy + Send + Sync + 'static;
    /// What the operation's heuristic needs to know of this kernel's shape.
    type Tile: Copy + Send + Sync + 'static;

    /// The constants, for the host.
    const TILE: Self::Tile;
    /// Threads of a block (x only).
    const THREADS: u32;
    /// Bytes of dynamic shared memory of a block.
    const SHARED_BYTES: u32 = 0;
    /// What ptxas may rely on when it gives out registers.
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 0 };
    /// Lowest target that can run it, as in `sm_70`; 90 stands for `sm_90a`, which is also the highest ([`runs_on`]).
    const MIN_SM: u32 = 70;

    /// Blocks of a cluster, neighbours along x, 1 to 8: they run at the same time, and reach each other's shared memory. The grid's
    /// x is a multiple of it. More than 1 needs `sm_90a`.
    const CLUSTER: u32 = 1;

    /// Whether the next launch may place its blocks while these run, where the GPU can (compute capability 9.0). It hides more
    /// of the next one's start. It is for kernels of which a block fills a multiprocessor: beside smaller ones the next
    /// blocks would crowd where there happens to be room, and stay there.
    const LAUNCHES_DEPENDENTS: bool = false;

    /// Whether it waits by itself ([`Gpu::grid_dependency_wait`]) for the launch before it in the stream, and its entry point does
    /// not. Before it waits it may read what nothing in a stream ever writes while plans use it, the pattern, and may
    /// write shared memory only.
    const EARLY_PROLOGUE: bool = false;

    /// Whether it has the address of shared memory computed first of all, if that is measured to pay: where accesses are conditional,
    /// each may compute it for itself.
    const HOLDS_SHARED_ADDRESS: bool = Self::HAS_MAP;

    /// Whether the argument begins with a [`TensorMap`](lacuna_gpu::TensorMap). A GPU copies by the map where it lies, among the kernel's
    /// parameters: so these are aligned for it, and [`with_map_at`](Kernel::with_map_at) tells the kernel the address.
    const HAS_MAP: bool = false;

    /// The argument with the map's address in place of the map.
    #[inline(always)]
    fn with_map_at(args: Self::Args, _address: u64) -> Self::Args {
        args
    }

    /// The body, run by every thread of the grid.
    ///
    /// # Safety
    /// The arguments describe live device memory as the operation's `Args` requires; the grid is the one its
    /// host side computes, with blocks of [`THREADS`](Kernel::THREADS) threads. An implementation may rely on this only
    /// for accesses through `gpu`: the simulator, which checks those, runs kernels on any arguments.
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args);
}

/// Whether a GPU of compute capability `sm` (90 for 9.0) runs what is built for `target`. Targets are for newer GPUs, too;
/// but 90 stands for `sm_90a`, whose products of warpgroups only compute capability 9.0 has.
pub const fn runs_on(target: u32, sm: u32) -> bool {
    if target == 90 { sm == 90 } else { target <= sm }
}

/// What ptxas may rely on when it gives out registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Threads of a block at most. With more than the kernel has, ptxas is freer: it aims at less occupancy.
    pub max_threads: u32,
    /// Blocks of `max_threads` that must fit on an SM together; 0 asks for nothing. With a number, ptxas takes as many
    /// registers as that leaves; without, it keeps to few by itself.
    pub min_blocks: u32,
}

/// A line of the host's table of entry points.
#[derive(Clone, Copy, Debug)]
pub struct Entry<Tile> {
    /// Name of the entry point in the PTX.
    pub name: &'static str,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// What ptxas may rely on.
    pub bounds: Bounds,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Whether the argument begins with a tensor map.
    pub has_map: bool,
    /// Lowest target that can run it, as in `sm_70`; see [`runs_on`](Entry::runs_on).
    pub min_sm: u32,
    /// The constants of the kernel.
    pub tile: Tile,
    /// The type of its kernel.
    kernel: TypeId,
    /// The type of its argument.
    args: TypeId,
}

/// An entry point whose kernel takes an `Args`. Only an [`Entry`] of such a kernel becomes one, so
/// that a launch cannot pair it with another argument.
#[derive(Clone, Copy, Debug)]
pub struct EntryTaking<Args> {
    entry: Entry<()>,
    args: PhantomData<fn(Args)>,
}

impl<Args> EntryTaking<Args> {
    /// The entry point.
    pub const fn entry(&self) -> Entry<()> {
        self.entry
    }
}

impl<Tile: Copy> Entry<Tile> {
    /// The line of kernel `K`.
    pub const fn of<K: Kernel<Tile = Tile>>(name: &'static str) -> Self {
        Self {
            name,
            threads: K::THREADS,
            shared_bytes: K::SHARED_BYTES,
            bounds: K::BOUNDS,
            cluster: K::CLUSTER,
            has_map: K::HAS_MAP,
            min_sm: K::MIN_SM,
            tile: K::TILE,
            kernel: TypeId::of::<K>(),
            args: TypeId::of::<K::Args>(),
        }
    }

    /// Whether it runs kernel `K`.
    pub fn runs<K: Kernel>(&self) -> bool {
        self.kernel == TypeId::of::<K>()
    }

    /// This entry point as one that takes an `Args`; `None` where its kernel takes another argument.
    pub fn taking<Args: 'static>(&self) -> Option<EntryTaking<Args>> {
        let takes = self.args == TypeId::of::<Args>();
        takes.then(|| EntryTaking { entry: self.erased(), args: PhantomData })
    }

    /// Whether a GPU of compute capability `sm` (90 for 9.0) can run it: the PTX for that GPU has it.
    pub const fn runs_on(&self, sm: u32) -> bool {
        runs_on(self.min_sm, sm)
    }

    /// The line without its tile.
    pub const fn erased(&self) -> Entry<()> {
        Entry {
            name: self.name,
            threads: self.threads,
            shared_bytes: self.shared_bytes,
            bounds: self.bounds,
            cluster: self.cluster,
            has_map: self.has_map,
            min_sm: self.min_sm,
            tile: (),
            kernel: self.kernel,
            args: self.args,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_for_9_0_runs_there_alone() {
        let gpus = [70, 75, 80, 89, 90, 100, 120];
        let runs = |target| gpus.map(|sm| runs_on(target, sm));
        assert_eq!(runs(70), [true; 7]);
        assert_eq!(runs(80), [false, false, true, true, true, true, true]);
        assert_eq!(runs(90), [false, false, false, false, true, false, false]);
    }

    /// A GPU gets the PTX of the newest target that it runs. That has every entry that the GPU runs.
    #[test]
    fn the_newest_target_of_a_gpu_has_all_that_it_runs() {
        for sm in 70..=130 {
            let newest = [70, 80, 90].into_iter().rfind(|&target| runs_on(target, sm)).unwrap();
            for min_sm in [70, 80, 90] {
                assert_eq!(runs_on(min_sm, sm), runs_on(min_sm, newest), "{min_sm} on {sm}");
            }
        }
    }
}

//! Selection from a row, or a chunk of it, that a thread block holds in registers.
//!
//! Each thread loads its vectors of the row, and finds its own greatest value. The block finds a threshold that at least N of
//! these reach, and few more ([`filter`](super::filter)). What reaches the threshold goes to shared memory as keys; if it is too much, the
//! threshold is raised bit by bit ([`refine`](super::refine)). The keys are sorted there, and the first N written. The sum of
//! exponentials comes from the same registers.
use core::marker::PhantomData;

use lacuna_gpu::Gpu;

use super::candidates::{Candidates, Fragment};
use super::chunk::Chunk;
use super::sort::sort;
use super::{Method, Tile, TopNArgs, block, output};
use crate::{Bounds, DeviceValue, Kernel};

/// The N greatest of a row, or of a chunk of it: `THREADS` threads hold it, each `VECTORS` vectors of `V` values of `T`. Up to
/// `KEYS` keys are gathered and sorted.
#[derive(Debug)]
pub struct RadixSelect<T, const V: usize, const THREADS: u32, const VECTORS: usize, const KEYS: u32>(
    PhantomData<T>,
);

impl<T: DeviceValue, const V: usize, const THREADS: u32, const VECTORS: usize, const KEYS: u32> Kernel
    for RadixSelect<T, V, THREADS, VECTORS, KEYS>
{
    type Args = TopNArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(KEYS.is_power_of_two() && KEYS >= 32, "the keys fill runs of a warp, and pairs of runs");
        assert!(THREADS.is_power_of_two() && THREADS >= 32 && THREADS <= 1024, "whole warps");
        let capacity = Candidates::<T, V, THREADS, VECTORS>::CAPACITY;
        Tile { method: Method::RadixSelect, value: Some(T::TYPE), capacity, most: KEYS }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = block::shared_bytes(2 * KEYS);
    /// 1024 threads a multiprocessor, with 64 registers each; 768, with 80, where a thread holds 40 values.
    const BOUNDS: Bounds = block::bounds(THREADS, if V * VECTORS > 32 { 768 } else { 1024 });

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TopNArgs<T>) {
        let chunk = Chunk::of(gpu, &args);
        if gpu.thread_idx_x() == 0 {
            // SAFETY: the counters are this thread's until the next barrier.
            unsafe { gpu.shared_store(block::counter(0), [0, 0]) };
        }
        // SAFETY: the chunk has as many elements, and the host chose a kernel that holds them.
        let candidates: Candidates<T, V, THREADS, VECTORS> =
            unsafe { Fragment::<T, V, THREADS>::of(gpu, chunk.values, chunk.len).load_first(gpu) };
        let own = candidates.greatest(gpu);
        let ends = |a: [f32; 2], b: [f32; 2]| [a[0].max(b[0]), a[1].min(b[1])];
        block::reduce_warp(gpu, 0, [own, own], ends);
        gpu.sync_threads();
        let [greatest, least] = block::reduce_block::<G, THREADS>(gpu, 0, ends);
        let sum = candidates.sum(gpu, output::base(greatest), args.output.exponent_scale);
        let plus = |a: [f32; 2], b: [f32; 2]| [a[0] + b[0], 0.0];
        block::reduce_warp(gpu, 1, [sum, 0.0], plus);

        let threshold = candidates.threshold(gpu, chunk.n, KEYS, [own, greatest, least]);
        gpu.sync_threads();
        let [sum, _] = block::reduce_block::<G, THREADS>(gpu, 1, plus);
        // SAFETY: each counter is used once, and there is room for `KEYS`.
        unsafe {
            let count = candidates.gather::<G, KEYS>(gpu, &chunk, threshold, sum);
            // Joined again: kept through the gathering, they would take registers that are needed there.
            let [greatest, _] = block::reduce_block::<G, THREADS>(gpu, 0, ends);
            let [sum, _] = block::reduce_block::<G, THREADS>(gpu, 1, plus);
            let keys = sort::<G, THREADS>(gpu, block::keys(), block::keys().add(KEYS), count);
            chunk.write::<G, THREADS>(gpu, &args, keys, greatest, sum);
        }
    }
}

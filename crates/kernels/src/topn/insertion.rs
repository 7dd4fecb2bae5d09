//! Selection by insertion into a sorted list in shared memory, as the ACL 2019 paper has it.
use core::marker::PhantomData;

use lacuna_gpu::{Gpu, SharedPtr};

use super::candidates::{Candidates, Fragment};
use super::chunk::Chunk;
use super::key::key;
use super::{Method, Tile, TopNArgs, block, output};
use crate::common::strided;
use crate::{Bounds, DeviceValue, Kernel};

/// The N greatest of a row, or of a chunk of it, by *parallel insertion* (ACL 2019, section 4.2, algorithm 4): a sorted list
/// in shared memory, in which each value, packed with its index, goes from place to place by an atomic maximum that leaves
/// the greater there and takes the smaller on. The constants are those of [`RadixSelect`](super::RadixSelect); `MOST` is the
/// greatest N.
///
/// Beyond the paper, a value that the last place refuses at first is not taken through the list: places only grow.
#[derive(Debug)]
pub struct Insertion<T, const V: usize, const THREADS: u32, const VECTORS: usize, const MOST: u32>(
    PhantomData<T>,
);

impl<T: DeviceValue, const V: usize, const THREADS: u32, const VECTORS: usize, const MOST: u32> Kernel
    for Insertion<T, V, THREADS, VECTORS, MOST>
{
    type Args = TopNArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        let capacity = Candidates::<T, V, THREADS, VECTORS>::CAPACITY;
        Tile { method: Method::Insertion, value: Some(T::TYPE), capacity, most: MOST }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = block::shared_bytes(MOST);
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 1024 / THREADS };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TopNArgs<T>) {
        let chunk = Chunk::of(gpu, &args);
        // SAFETY: the chunk has as many elements, and the host chose a kernel that holds them.
        let candidates: Candidates<T, V, THREADS, VECTORS> =
            unsafe { Fragment::<T, V, THREADS>::of(gpu, chunk.values, chunk.len).load_first(gpu) };
        let max = |a: [f32; 2], b: [f32; 2]| [a[0].max(b[0]), 0.0];
        block::reduce_warp(gpu, 0, [candidates.greatest(gpu), 0.0], max);
        gpu.sync_threads();
        let [greatest, _] = block::reduce_block::<G, THREADS>(gpu, 0, max);
        let sum = candidates.sum(gpu, output::base(greatest), args.output.exponent_scale);
        let plus = |a: [f32; 2], b: [f32; 2]| [a[0] + b[0], 0.0];
        block::reduce_warp(gpu, 1, [sum, 0.0], plus);

        let list = block::keys();
        // SAFETY: the list has n places; from the barrier on it is used by atomics alone, until the next.
        unsafe {
            strided(gpu.thread_idx_x(), chunk.n, THREADS, |place| gpu.shared_store(list.add(place), [0]));
            gpu.sync_threads();
            let [sum, _] = block::reduce_block::<G, THREADS>(gpu, 1, plus);
            candidates.for_each(gpu, |x, index| insert(gpu, list, chunk.n, key(x, chunk.first + index)));
            gpu.sync_threads();
            chunk.write::<G, THREADS>(gpu, &args, list, greatest, sum);
        }
    }
}

/// Takes a key through the list.
///
/// # Safety
/// The list has `n` places, at least one, that are used by atomics alone.
#[inline(always)]
unsafe fn insert<G: Gpu>(gpu: G, list: SharedPtr<u64>, n: u32, mut key: u64) {
    // SAFETY: as promised by the caller.
    unsafe {
        if key <= gpu.shared_atomic_max(list.add(n - 1), 0) {
            return;
        }
        let mut place = 0;
        // A key of 0 is that of a place which was free.
        while place < n && key != 0 {
            key = key.min(gpu.shared_atomic_max(list.add(place), key));
            place += 1;
        }
    }
}

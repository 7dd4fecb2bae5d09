//! Selection by a bar.
use core::marker::PhantomData;

use lacuna_gpu::Gpu;

use super::held::Held;
use super::key::{key, number, ordered};
use super::part::Part;
use super::sort::sort;
use super::{Method, Tile, TopNArgs, bar, block, output};
use crate::{Bounds, DeviceValue, Kernel};

/// The N greatest of a row, or of a chunk of it: `THREADS` threads hold it, each `VECTORS` vectors of `V` values of `T`. Up to
/// `KEYS` keys are gathered and sorted.
#[derive(Debug)]
pub struct Select<T, const V: usize, const THREADS: u32, const VECTORS: usize, const KEYS: u32>(
    PhantomData<T>,
);

impl<T, const V: usize, const THREADS: u32, const VECTORS: usize, const KEYS: u32> Kernel
    for Select<T, V, THREADS, VECTORS, KEYS>
where
    T: DeviceValue,
{
    type Args = TopNArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(KEYS.is_power_of_two() && KEYS >= 32, "the keys fill runs of a warp, and pairs of runs");
        assert!(THREADS.is_power_of_two() && THREADS >= 32 && THREADS <= 1024, "whole warps");
        let capacity = Held::<T, V, THREADS, VECTORS>::CAPACITY;
        Tile { method: Method::Select, value: Some(T::TYPE), capacity, most: KEYS }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = block::shared_bytes(2 * KEYS);
    /// 1024 threads a multiprocessor, with 64 registers each: what a thread holds, and a third more.
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 1024 / THREADS };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TopNArgs<T>) {
        let part = Part::of(gpu, &args);
        if gpu.thread_idx_x() == 0 {
            // SAFETY: the counters are this thread's until the next barrier.
            unsafe { gpu.shared_store(block::gathered(0), [0, 0]) };
        }
        // SAFETY: the chunk has as many elements, and the host chose a kernel that holds them.
        let held = unsafe { Held::<T, V, THREADS, VECTORS>::load(gpu, part.values, part.len) };
        let own = held.greatest(gpu);
        let ends = |a: [f32; 2], b: [f32; 2]| [a[0].max(b[0]), a[1].min(b[1])];
        block::give(gpu, 0, [own, own], ends);
        gpu.sync_threads();
        let [greatest, least] = block::joined::<G, THREADS>(gpu, 0, ends);
        let sum = held.sum(gpu, output::base(greatest), args.output.exponent_scale);
        let plus = |a: [f32; 2], b: [f32; 2]| [a[0] + b[0], 0.0];
        block::give(gpu, 1, [sum, 0.0], plus);

        let n = part.n;
        let (low, high) = (ordered(least), ordered(greatest));
        let bar = if n <= THREADS / 4 * 3 {
            // The greatest of N threads are N values.
            let own = ordered(own);
            let first = high - (high - low) / 2;
            bar::between(low, high, first, n, n + n / 8 + 4, |bar, _| gpu.sync_threads_count(own >= bar))
        } else {
            let lowest = ordered(f32::NEG_INFINITY);
            bar::between(lowest, high, low, n, KEYS.min(n + n / 4), |bar, step| {
                let (bar, mut reach) = (number(bar), 0);
                held.for_each(gpu, |x, _| reach += u32::from(x >= bar));
                block::total::<G, THREADS>(gpu, step, reach)
            })
        };
        gpu.sync_threads();
        let [sum, _] = block::joined::<G, THREADS>(gpu, 1, plus);
        // SAFETY: each counter is used once, and there is room for `KEYS`.
        unsafe {
            let mut count = u32::MAX;
            // NaN is greater than all else, but reaches no bar of numbers.
            if !sum.is_nan() {
                let bar = number(bar);
                count = gather::<G, _, V, THREADS, VECTORS, KEYS>(gpu, 0, part.first, &held, |x, _| x >= bar);
            }
            if count > KEYS {
                let bar = bar::of_keys(n, KEYS.min(2 * n), |bar, step| {
                    let mut reach = 0;
                    held.for_each(gpu, |x, index| reach += u32::from(key(x, part.first + index) >= bar));
                    block::total::<G, THREADS>(gpu, step, reach)
                });
                let reaches = |x, index| key(x, part.first + index) >= bar;
                count = gather::<G, _, V, THREADS, VECTORS, KEYS>(gpu, 1, part.first, &held, reaches);
            }
            let keys = sort::<G, THREADS>(gpu, block::keys(), block::keys().add(KEYS), count);
            part.write::<G, THREADS>(gpu, &args, keys, greatest, sum);
        }
    }
}

/// Puts the keys of those that reach the bar into shared memory, as far as there is room for them, and says how many reach it.
///
/// # Safety
/// The counter of this turn is 0; whatever was read of the keys was read before a barrier.
#[inline(always)]
unsafe fn gather<
    G: Gpu,
    T: DeviceValue,
    const V: usize,
    const THREADS: u32,
    const VECTORS: usize,
    const KEYS: u32,
>(
    gpu: G,
    turn: u32,
    first: u32,
    held: &Held<T, V, THREADS, VECTORS>,
    reaches: impl Fn(f32, u32) -> bool,
) -> u32 {
    let counter = block::gathered(turn);
    let mut count = 0;
    held.for_each(gpu, |x, index| count += u32::from(reaches(x, index)));
    // SAFETY: as promised by the caller; places are one thread's each.
    unsafe {
        let mut place = block::places(gpu, counter, count);
        if count > 0 {
            held.for_each(gpu, |x, index| {
                if reaches(x, index) {
                    if place < KEYS {
                        gpu.shared_store(block::keys().add(place), [key(x, first + index)]);
                    }
                    place += 1;
                }
            });
        }
        gpu.sync_threads();
        let [gathered] = gpu.shared_load(counter);
        gathered
    }
}

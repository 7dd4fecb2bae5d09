//! The filter: of a row's first tile, the values that may be among its greatest.
use lacuna_gpu::{Gpu, SharedPtr};

use super::candidates::Candidates;
use super::chunk::Chunk;
use super::key::{LEAST, Threshold, from_ordered, key, ordered};
use super::{block, threshold};
use crate::DeviceValue;

impl<T: DeviceValue, const V: usize, const THREADS: u32, const VECTORS: usize>
    Candidates<T, V, THREADS, VECTORS>
{
    /// A threshold, as the bits of an ordered number, that at least `n` values of the tile reach: found among the threads' own
    /// greatest where they are enough, else among all. `ends` are the thread's own greatest, the block's, and the least that a
    /// thread has as its own.
    #[inline(always)]
    pub(super) fn threshold<G: Gpu>(&self, gpu: G, n: u32, room: u32, ends: [f32; 3]) -> u32 {
        let [own, high, low] = ends.map(ordered);
        if n <= THREADS / 4 * 3 {
            // The greatest of N threads are N values.
            let first = high - (high - low) / 2;
            threshold::between(low, high, first, n, n + n / 8 + 4, |threshold, _| {
                gpu.sync_threads_count(own >= threshold)
            })
        } else {
            let lowest = ordered(f32::NEG_INFINITY);
            threshold::between(lowest, high, low, n, room.min(n + n / 4), |threshold, step| {
                let (threshold, mut reach) = (from_ordered(threshold), 0);
                self.for_each(gpu, |x, _| reach += u32::from(x >= threshold));
                block::sum::<G, THREADS>(gpu, step, reach)
            })
        }
    }

    /// Gathers what reaches `threshold`; if that is more than there is room for, or the row has NaN, as `sum` tells, what reaches
    /// a higher threshold, found among all keys. How many these are.
    ///
    /// # Safety
    /// The counters 0 and 1 are 0, by a store before the last barrier, and used here alone.
    #[inline(always)]
    pub(super) unsafe fn gather<G: Gpu, const KEYS: u32>(
        &self,
        gpu: G,
        chunk: &Chunk<T>,
        threshold: u32,
        sum: f32,
    ) -> u32 {
        // SAFETY: as promised by the caller.
        unsafe {
            // NaN is greater than all else, but reaches no threshold of numbers.
            if !sum.is_nan() {
                let (least, mut reach) = (from_ordered(threshold), 0);
                self.for_each(gpu, |x, _| reach += u32::from(x >= least));
                let (threshold, counter) = (u64::from(threshold) << 32, block::counter(0));
                let count = self.put::<G, KEYS>(gpu, counter, chunk.first, (threshold, reach));
                if count <= KEYS {
                    return count;
                }
            }
            let threshold = threshold::of_keys(LEAST, chunk.n, KEYS.min(2 * chunk.n), |threshold, step| {
                block::sum::<G, THREADS>(gpu, step, self.reach(gpu, Threshold::at(threshold), chunk.first))
            });
            let counter = block::counter(1);
            let reach = self.reach(gpu, Threshold::at(threshold), chunk.first);
            self.put::<G, KEYS>(gpu, counter, chunk.first, (threshold, reach))
        }
    }

    /// Puts the keys of those that reach a threshold, `count` of this thread, into shared memory, as far as there is room for
    /// them, and says how many they are in all.
    ///
    /// # Safety
    /// The counter is 0; whatever was read of the keys was read before a barrier.
    #[inline(always)]
    unsafe fn put<G: Gpu, const KEYS: u32>(
        &self,
        gpu: G,
        counter: SharedPtr<u32>,
        first: u32,
        (threshold, count): (u64, u32),
    ) -> u32 {
        // SAFETY: as promised by the caller; places are one thread's each.
        unsafe {
            let mut place = block::reserve(gpu, counter, count);
            if count > 0 {
                self.for_each(gpu, |x, index| {
                    let key = key(x, first + index);
                    if key >= threshold {
                        if place < KEYS {
                            gpu.shared_store(block::keys().add(place), [key]);
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
}

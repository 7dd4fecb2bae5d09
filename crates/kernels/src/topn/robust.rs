//! The robust variant: a pass that is right for every row, however skewed, and slower.
//!
//! ```text
//!   a vector a thread ──any that reaches the threshold?──no──► next
//!         └─yes─► number by number: a key a thread ──fits?──yes──► room
//!                                      └─no─► higher threshold, room and keys ──► other room, half full at most
//! ```
use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

use super::candidates::{Candidates, Fragment};
use super::chunk::Chunk;
use super::key::{LEAST, key};
use super::{block, output, refine, sums, threshold};
use crate::DeviceValue;
use crate::common::strided;

/// What a pass found: where the keys are, and how many; a threshold that at least N reach, as the bits of an ordered number;
/// the greatest value, and the sum.
pub(super) struct Found {
    pub(super) room: u32,
    pub(super) count: u32,
    pub(super) threshold: u32,
    pub(super) sums: [f32; 2],
}

/// Keys in one of two rooms, `KEYS` places each.
struct KeptKeys<const THREADS: u32, const KEYS: u32> {
    /// How many are wanted.
    n: u32,
    room: u32,
    count: u32,
    /// All keys that were seen and reach it are there.
    threshold: u64,
}

/// Goes through a part a vector a thread at a time, and keeps what reaches a threshold, which rises as often as that becomes
/// more than there is room for. Keys are compared, of which no two are equal: it ends for every row.
///
/// # Safety
/// The part has its elements; the block comes here after a barrier, and uses rooms and counters here alone. N, and the threads, are
/// half of `KEYS` at most.
#[inline(always)]
pub(super) unsafe fn pass<G: Gpu, T: DeviceValue, const V: usize, const THREADS: u32, const KEYS: u32>(
    gpu: G,
    chunk: &Chunk<T>,
    scale: f32,
) -> Found {
    // SAFETY: as promised by the caller.
    unsafe {
        // Its own index, told by a shuffle, so that nothing that follows from it is kept since the pass before.
        let thread = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x(), gpu.lane_id(), WARP);
        let fragment = Fragment::<T, V, THREADS>::of_thread(thread, chunk.values, chunk.len);
        let mut kept = KeptKeys::<THREADS, KEYS> { n: chunk.n, room: 0, count: 0, threshold: LEAST };
        kept.clear(gpu);
        let (edge, index) = fragment.load_edge(gpu);
        let mut next: Candidates<T, V, THREADS, 1> = fragment.load(gpu, 0);
        let mut sums = sums::join(gpu, scale, [f32::NEG_INFINITY, 0.0], [edge, 1.0]);
        kept.offer(gpu, if index == u32::MAX { 0 } else { key(edge, chunk.first + index) });
        let mut skipped = 0;
        while skipped < fragment.whole {
            let candidates = next;
            skipped += THREADS;
            next = fragment.load(gpu, skipped);
            let mut reaches = false;
            candidates.for_each(gpu, |x, index| reaches |= key(x, chunk.first + index) >= kept.threshold);
            let greatest = sums[0].max(candidates.greatest(gpu));
            let base = output::base(greatest);
            let before = sums[1] * gpu.exp2_approx((sums[0] - base) * scale);
            sums = [greatest, before + candidates.sum(gpu, base, scale)];
            if gpu.sync_threads_or(reaches) {
                // From 0, but by what memory says: this loop must not be unrolled, it is long.
                let [mut bit] = gpu.shared_load(block::counter(2));
                while bit < V as u32 {
                    let (x, offset) = candidates.number_of(gpu, bit);
                    let key = key(x, chunk.first + candidates.first + offset);
                    kept.offer(gpu, if candidates.vectors == 0 { 0 } else { key });
                    bit += 1;
                }
            }
        }
        let sums = sums::of_block::<G, THREADS>(gpu, 0, sums, |own, all| (own - output::base(all)) * scale);
        Found { room: kept.room, count: kept.count, threshold: (kept.threshold >> 32) as u32, sums }
    }
}

impl<const THREADS: u32, const KEYS: u32> KeptKeys<THREADS, KEYS> {
    const COUNTER: SharedPtr<u32> = block::counter(1);

    /// # Safety
    /// The block comes here after a barrier, and goes on after one.
    #[inline(always)]
    unsafe fn clear<G: Gpu>(&self, gpu: G) {
        if gpu.thread_idx_x() == 0 {
            // SAFETY: as promised by the caller.
            unsafe { gpu.shared_store(Self::COUNTER, [0]) };
        }
        gpu.sync_threads();
    }

    /// Puts the thread's key, 0 where it has none, into the room if it reaches the threshold.
    ///
    /// # Safety
    /// Rooms and counter are used here alone; the block comes here together.
    #[inline(always)]
    unsafe fn offer<G: Gpu>(&mut self, gpu: G, key: u64) {
        let more = gpu.sync_threads_count(key >= self.threshold);
        // SAFETY: as promised by the caller; there is room.
        unsafe {
            if self.count + more > KEYS {
                self.raise(gpu, key);
            } else {
                self.count += more;
                self.put(gpu, key);
            }
        }
    }

    /// # Safety
    /// There is a place for it, if it reaches the threshold.
    #[inline(always)]
    unsafe fn put<G: Gpu>(&self, gpu: G, key: u64) {
        if key >= self.threshold {
            // SAFETY: as promised by the caller; the counter gives each key a slot of its own.
            unsafe {
                let place = gpu.shared_atomic_add(Self::COUNTER, 1);
                gpu.shared_store(block::keys().add(self.room + place), [key]);
            }
        }
    }

    /// Each of the thread's keys of a room.
    ///
    /// # Safety
    /// Nobody writes the room.
    #[inline(always)]
    unsafe fn for_each<G: Gpu>(&self, gpu: G, room: u32, mut work: impl FnMut(u64)) {
        strided(gpu.thread_idx_x(), self.count, THREADS, |place| {
            // SAFETY: as promised by the caller.
            let [key] = unsafe { gpu.shared_load(block::keys().add(room + place)) };
            work(key);
        });
    }

    /// Finds a threshold that at least N reach, of the room and of the threads' keys, and at most half of the room; these are
    /// in the other room then.
    ///
    /// # Safety
    /// The block comes here after a barrier, which is after the last key was put into the room.
    #[inline(always)]
    unsafe fn raise<G: Gpu>(&mut self, gpu: G, key: u64) {
        // SAFETY: as promised by the caller; a barrier is before and after the counter is cleared, and before it is read.
        unsafe {
            self.threshold = self.higher(gpu, key);
            self.clear(gpu);
            let from = self.room;
            self.room ^= KEYS;
            self.put(gpu, key);
            self.for_each(gpu, from, |key| self.put(gpu, key));
            gpu.sync_threads();
            [self.count] = gpu.shared_load(Self::COUNTER);
        }
    }

    /// That threshold: among values first, which takes few steps, and then, if too many are equal, among keys.
    ///
    /// # Safety
    /// Nobody writes the room.
    #[inline(always)]
    unsafe fn higher<G: Gpu>(&self, gpu: G, key: u64) -> u64 {
        let reach = |threshold: u64| {
            let mut reach = u32::from(key >= threshold);
            // SAFETY: as promised by the caller.
            unsafe { self.for_each(gpu, self.room, |key| reach += u32::from(key >= threshold)) };
            reach
        };
        let mut greatest = key;
        // SAFETY: likewise.
        unsafe { self.for_each(gpu, self.room, |key| greatest = greatest.max(key)) };
        let (ends, own) = ([(self.threshold >> 32) as u32, u32::MAX], (greatest >> 32) as u32);
        let threshold = refine::threshold::<G, THREADS>(gpu, self.n, ends, own, |threshold| {
            reach(u64::from(threshold) << 32)
        });
        let threshold = self.threshold.max(u64::from(threshold) << 32);
        gpu.sync_threads();
        if block::sum::<G, THREADS>(gpu, 0, reach(threshold)) <= KEYS / 2 {
            return threshold;
        }
        threshold::of_keys(threshold, self.n, KEYS / 2, |threshold, step| {
            block::sum::<G, THREADS>(gpu, step ^ 1, reach(threshold))
        })
    }
}

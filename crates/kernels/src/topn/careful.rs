//! The walk that is right for every row, at its leisure.
use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

use super::held::{Held, Share};
use super::key::{Bar, LEAST, key, ordered};
use super::part::Part;
use super::{bar, block, narrow, output, sums};
use crate::DeviceValue;

/// What a walk found: where the keys are, and how many; a bar that at least N reach, as the bits of an ordered number; the greatest
/// value, and the sum.
pub(super) struct Found {
    pub(super) room: u32,
    pub(super) count: u32,
    pub(super) bar: u32,
    pub(super) sums: [f32; 2],
}

/// Keys in one of two rooms, `KEYS` places each.
struct Kept<const THREADS: u32, const KEYS: u32> {
    /// How many are wanted.
    n: u32,
    room: u32,
    count: u32,
    /// All keys that were seen and reach it are there.
    bar: u64,
    counter: SharedPtr<u32>,
}

/// Goes through a part a vector a thread at a time, and keeps what reaches a bar, which rises as often as that becomes more than
/// there is room for. Keys are compared, of which no two are equal: it ends for every row.
///
/// # Safety
/// The part has its elements; the block comes here after a barrier, and uses rooms and counters here alone. N is half of `KEYS`
/// at most.
#[inline(always)]
pub(super) unsafe fn walk<
    G: Gpu,
    T: DeviceValue,
    const V: usize,
    const THREADS: u32,
    const KEYS: u32,
>(
    gpu: G,
    part: &Part<T>,
    scale: f32,
) -> Found {
    // SAFETY: as promised by the caller.
    unsafe {
        // Its own index, told by a shuffle, so that nothing that follows from it is kept since the walk before.
        let thread = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x(), gpu.lane_id(), WARP);
        let share = Share::<T, V, THREADS>::of_thread(thread, part.values, part.len);
        let counter = block::gathered(1);
        let mut kept = Kept::<THREADS, KEYS> { n: part.n, room: 0, count: 0, bar: LEAST, counter };
        kept.clear(gpu);
        let mut sums = [f32::NEG_INFINITY, 0.0];
        let mut next: Held<T, V, THREADS, 1> = share.load_first(gpu);
        let (mut skipped, mut turn) = (0, 0);
        loop {
            let held = next;
            skipped += THREADS;
            next = share.load(gpu, skipped);
            let greatest = sums[0].max(held.greatest(gpu));
            let base = output::base(greatest);
            sums = [
                greatest,
                sums[1] * gpu.exp2_approx((sums[0] - base) * scale) + held.sum(gpu, base, scale),
            ];
            kept.take(gpu, part.first, &held, turn);
            turn ^= 1;
            if skipped >= share.whole {
                break;
            }
        }
        let sums = sums::of_block::<G, THREADS>(gpu, 0, sums, |own, all| (own - output::base(all)) * scale);
        Found { room: kept.room, count: kept.count, bar: (kept.bar >> 32) as u32, sums }
    }
}

impl<const THREADS: u32, const KEYS: u32> Kept<THREADS, KEYS> {
    /// # Safety
    /// The block comes here after a barrier, and goes on after one.
    #[inline(always)]
    unsafe fn clear<G: Gpu>(&self, gpu: G) {
        if gpu.thread_idx_x() == 0 {
            // SAFETY: as promised by the caller.
            unsafe { gpu.shared_store(self.counter, [0]) };
        }
        gpu.sync_threads();
    }

    /// Keeps what reaches the bar.
    ///
    /// # Safety
    /// Rooms and counter are used here alone; calls in a row have different parities of `turn`.
    #[inline(always)]
    unsafe fn take<G: Gpu, T: DeviceValue, const V: usize>(
        &mut self,
        gpu: G,
        first: u32,
        held: &Held<T, V, THREADS, 1>,
        turn: u32,
    ) {
        let reach = held.reach(gpu, Bar::at(self.bar), first);
        let more = block::total::<G, THREADS>(gpu, turn, reach);
        if more == 0 {
            return;
        }
        // SAFETY: as promised by the caller; the room is read after a barrier.
        unsafe {
            if self.count + more <= KEYS {
                self.put(gpu, first, held, reach, None);
                self.count += more;
            } else {
                gpu.sync_threads();
                self.raise(gpu, first, held);
            }
        }
    }

    /// How many of the thread's keys, in the room and held, reach a bar.
    ///
    /// # Safety
    /// Nobody writes the room.
    #[inline(always)]
    unsafe fn reach<G: Gpu, T: DeviceValue, const V: usize>(
        &self,
        gpu: G,
        first: u32,
        held: &Held<T, V, THREADS, 1>,
        bar: u64,
    ) -> u32 {
        let mut reach = held.reach(gpu, Bar::at(bar), first);
        let mut place = gpu.thread_idx_x();
        while place < self.count {
            // SAFETY: as promised by the caller.
            let [key] = unsafe { gpu.shared_load(block::keys().add(self.room + place)) };
            reach += u32::from(key >= bar);
            place += THREADS;
        }
        reach
    }

    /// Puts those held that reach the bar, `reach` of this thread, into the room; before these, what reaches it of the keys of
    /// another room.
    ///
    /// # Safety
    /// There are places for them.
    #[inline(always)]
    unsafe fn put<G: Gpu, T: DeviceValue, const V: usize>(
        &self,
        gpu: G,
        first: u32,
        held: &Held<T, V, THREADS, 1>,
        reach: u32,
        from: Option<u32>,
    ) {
        // SAFETY: as promised by the caller; each place is one thread's.
        unsafe {
            let mut to = self.room + block::places(gpu, self.counter, reach);
            let mut keep = |key: u64| {
                if key >= self.bar {
                    gpu.shared_store(block::keys().add(to), [key]);
                    to += 1;
                }
            };
            if let Some(from) = from {
                let mut place = gpu.thread_idx_x();
                while place < self.count {
                    let [key] = gpu.shared_load(block::keys().add(from + place));
                    keep(key);
                    place += THREADS;
                }
            }
            held.for_each(gpu, |x, index| keep(key(x, first + index)));
        }
    }

    /// A bar that at least N reach, of the room and of those held, and at most half of the room.
    ///
    /// # Safety
    /// Nobody writes the room.
    #[inline(always)]
    unsafe fn higher<G: Gpu, T: DeviceValue, const V: usize>(
        &self,
        gpu: G,
        first: u32,
        held: &Held<T, V, THREADS, 1>,
    ) -> u64 {
        // SAFETY: as promised by the caller.
        let reach = |bar: u64| unsafe { self.reach(gpu, first, held, bar) };
        let (mut own, mut place) = (0, gpu.thread_idx_x());
        held.for_each(gpu, |x, _| own = ordered(x).max(own));
        while place < self.count {
            // SAFETY: likewise.
            let [key] = unsafe { gpu.shared_load(block::keys().add(self.room + place)) };
            own = own.max((key >> 32) as u32);
            place += THREADS;
        }
        // Among values first, which takes few steps, and then, if too many are equal, among keys.
        let ends = [(self.bar >> 32) as u32, u32::MAX];
        let bar = narrow::bar::<G, THREADS>(gpu, self.n, ends, own, |bar| reach(u64::from(bar) << 32));
        let bar = self.bar.max(u64::from(bar) << 32);
        gpu.sync_threads();
        if block::total::<G, THREADS>(gpu, 0, reach(bar)) <= KEYS / 2 {
            return bar;
        }
        bar::of_keys(bar, self.n, KEYS / 2, |bar, step| block::total::<G, THREADS>(gpu, step ^ 1, reach(bar)))
    }

    /// Finds a bar that at least N reach, of the room and of those held, and at most half of the room; these are in the other room
    /// then.
    ///
    /// # Safety
    /// The block comes here after a barrier.
    #[inline(always)]
    unsafe fn raise<G: Gpu, T: DeviceValue, const V: usize>(
        &mut self,
        gpu: G,
        first: u32,
        held: &Held<T, V, THREADS, 1>,
    ) {
        // SAFETY: as promised by the caller; the last keys were put into the room before that barrier.
        unsafe {
            self.bar = self.higher(gpu, first, held);
            let reach = self.reach(gpu, first, held, self.bar);
            gpu.sync_threads();
            self.clear(gpu);
            let from = self.room;
            self.room ^= KEYS;
            self.put(gpu, first, held, reach, Some(from));
            gpu.sync_threads();
            [self.count] = gpu.shared_load(self.counter);
            gpu.sync_threads();
        }
    }
}

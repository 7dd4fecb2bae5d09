//! Selection from what was gathered of a row's chunks.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::output::{Output, Row};
use super::sort::sort;
use super::sums::of_parts;
use super::{Method, Tile, bar, block};
use crate::{Bounds, Kernel};

/// The results of rows from what [`Stream`](super::Stream) gathered of their chunks: `THREADS` threads take a row, and have room
/// for `KEYS` keys. A bar is found as among values.
#[derive(Debug)]
pub struct Finish<const THREADS: u32, const KEYS: u32>;

/// What [`Finish`] takes. The grid is a block for each row, along x.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FinishArgs {
    /// `room` places for the keys of each chunk of each row.
    pub keys: GlobalPtr<u64>,
    /// The keys of each chunk.
    pub counts: GlobalPtr<u32>,
    /// The greatest value of each chunk, and its sum.
    pub sums: GlobalPtr<f32>,
    /// The results.
    pub output: Output,
    /// Places of a chunk.
    pub room: u32,
    /// Chunks of a row: up to 32.
    pub chunks: u32,
    /// How many are wanted of a row, not more than it has.
    pub n: u32,
}

/// The keys of a row, wherever they lie: chunk after chunk.
#[derive(Clone, Copy)]
struct Lists {
    keys: GlobalPtr<u64>,
    room: u32,
    /// This lane's chunk: keys up to its end.
    end: u32,
    total: u32,
}

impl Lists {
    /// # Safety
    /// The arguments have the row's counts. Whole warps come here.
    #[inline(always)]
    unsafe fn of<G: Gpu>(gpu: G, args: &FinishArgs, row: usize) -> Self {
        let lane = gpu.lane_id();
        let first = row * args.chunks as usize;
        let mut end = 0;
        if lane < args.chunks {
            // SAFETY: as promised by the caller.
            [end] = unsafe { gpu.load_readonly(args.counts.add(first + lane as usize)) };
        }
        let mut distance = 1;
        while distance < WARP {
            let below = gpu.warp_shuffle_up(FULL_WARP, end, distance, WARP);
            end += if lane >= distance { below } else { 0 };
            distance *= 2;
        }
        let total = gpu.warp_shuffle_idx(FULL_WARP, end, WARP - 1, WARP);
        Self { keys: args.keys.add(first * args.room as usize), room: args.room, end, total }
    }

    /// Each of the row's keys, by one of the threads.
    ///
    /// # Safety
    /// The lists have their keys. Whole warps come here.
    #[inline(always)]
    unsafe fn for_each<G: Gpu, const THREADS: u32>(&self, gpu: G, mut work: impl FnMut(u32, u64)) {
        let mut place = gpu.thread_idx_x();
        // Warps stay whole: all their lanes take part in the shuffles.
        while place / WARP * WARP < self.total {
            let (mut list, mut step) = (0, WARP / 2);
            while step > 0 {
                let end = gpu.warp_shuffle_idx(FULL_WARP, self.end, list + step - 1, WARP);
                list += if place >= end { step } else { 0 };
                step /= 2;
            }
            let before = gpu.warp_shuffle_idx(FULL_WARP, self.end, list.wrapping_sub(1) % WARP, WARP);
            if place < self.total {
                let start = if list == 0 { 0 } else { before };
                let at = list as usize * self.room as usize + (place - start) as usize;
                // SAFETY: as promised by the caller.
                let [key] = unsafe { gpu.load_readonly(self.keys.add(at)) };
                work(place, key);
            }
            place += THREADS;
        }
    }
}

impl<const THREADS: u32, const KEYS: u32> Kernel for Finish<THREADS, KEYS> {
    type Args = FinishArgs;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(KEYS.is_power_of_two() && KEYS >= 32, "the keys fill runs of a warp, and pairs of runs");
        Tile { method: Method::Finish, value: None, capacity: 0, most: KEYS / 2 }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = block::shared_bytes(2 * KEYS);
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 1 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: FinishArgs) {
        let row = gpu.block_idx_x() as usize;
        let (keys, other) = (block::keys(), block::keys().add(KEYS));
        if gpu.thread_idx_x() == 0 {
            // SAFETY: the counters are this thread's until the next barrier.
            unsafe { gpu.shared_store(block::gathered(0), [0, 0]) };
        }
        gpu.sync_threads();
        // SAFETY: there are as many keys as the chunks say, and room for those that are kept.
        unsafe {
            let lists = Lists::of(gpu, &args, row);
            let sums = args.sums.add(2 * row * args.chunks as usize);
            let [greatest, sum] = of_parts(gpu, args.output.exponent_scale, sums, args.chunks);
            let mut count = lists.total;
            if count <= KEYS {
                lists.for_each::<G, THREADS>(gpu, |place, key| gpu.shared_store(keys.add(place), [key]));
            } else {
                let bar = bar::of_keys(args.n, KEYS, |bar, step| {
                    let mut reach = 0;
                    lists.for_each::<G, THREADS>(gpu, |_, key| reach += u32::from(key >= bar));
                    block::total::<G, THREADS>(gpu, step, reach)
                });
                lists.for_each::<G, THREADS>(gpu, |_, key| {
                    if key >= bar {
                        let place = gpu.shared_atomic_add(block::gathered(0), 1);
                        gpu.shared_store(keys.add(place), [key]);
                    }
                });
                gpu.sync_threads();
                [count] = gpu.shared_load(block::gathered(0));
            }
            gpu.sync_threads();
            let (mut from, mut to) = (keys, other);
            if count > 2 * args.n && args.n <= THREADS / 4 * 3 {
                let kept = narrowed::<G, THREADS>(gpu, args.n, (from, count), to);
                if kept < count {
                    (from, to, count) = (to, from, kept);
                }
            }
            let keys = sort::<G, THREADS>(gpu, from, to, count);
            let output = Row::of(gpu, &args.output, greatest, sum);
            let mut place = gpu.thread_idx_x();
            while place < args.n {
                let [key] = gpu.shared_load(keys.add(place));
                output.write(gpu, row * args.n as usize + place as usize, key);
                place += THREADS;
            }
            if gpu.thread_idx_x() == 0 {
                output.write_log_sum(gpu, row);
            }
        }
    }
}

/// Puts what reaches a bar that few of `count` keys do into the other room, and says how many these are.
///
/// # Safety
/// The block comes here after a barrier; the counter 1 is 0.
#[inline(always)]
unsafe fn narrowed<G: Gpu, const THREADS: u32>(
    gpu: G,
    n: u32,
    (keys, count): (SharedPtr<u64>, u32),
    to: SharedPtr<u64>,
) -> u32 {
    // SAFETY: as promised by the caller; the counter gives each key a place of its own.
    unsafe {
        let thread = gpu.thread_idx_x();
        let (mut own, mut place) = (0, thread);
        while place < count {
            let [key] = gpu.shared_load(keys.add(place));
            own = own.max((key >> 32) as u32);
            place += THREADS;
        }
        let first = 1 << 31;
        let bar =
            bar::between(0, u32::MAX, first, n, n + n / 8 + 4, |bar, _| gpu.sync_threads_count(own >= bar));
        let mut place = thread;
        while place < count && own >= bar {
            let [key] = gpu.shared_load(keys.add(place));
            if (key >> 32) as u32 >= bar {
                let free = gpu.shared_atomic_add(block::gathered(1), 1);
                gpu.shared_store(to.add(free), [key]);
            }
            place += THREADS;
        }
        gpu.sync_threads();
        let [kept] = gpu.shared_load(block::gathered(1));
        kept
    }
}

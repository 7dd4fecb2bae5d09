//! The second pass of rows that were cut into chunks: it selects from what was gathered of each chunk.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, WARP};

use super::key::{LEAST, ordered};
use super::output::{Output, RowSoftmax};
use super::sort::sort;
use super::sums::{of_chunk, of_lane_chunks};
use super::{Method, Tile, block, rank, refine, threshold};
use crate::common::strided;
use crate::{Bounds, Kernel};

/// Keys of a row that fit into the block's registers; more are read once for each step of the search for a threshold.
pub(super) const FINALIZE_KEYS: u32 = 4096;

/// The results of rows from what [`StreamingSelect`](super::StreamingSelect) gathered of their chunks: `THREADS` threads take
/// a row, `OWN` keys each at once. A threshold is found as among values.
#[derive(Debug)]
pub struct Finalize<const THREADS: u32, const OWN: usize>;

/// What [`Finalize`] takes. The grid is a block for each row, along x.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FinalizeArgs {
    /// `room` places for the keys of each chunk of each row.
    pub keys: GlobalPtr<u64>,
    /// The number of keys of each chunk, and a threshold that n of them reach, or 0.
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

/// The keys of a row, chunk after chunk.
#[derive(Clone, Copy)]
struct ChunkKeys {
    keys: GlobalPtr<u64>,
    room: u32,
    /// Lanes that have a chunk each: a power of two.
    lanes: u32,
    /// This lane's chunk: keys up to its end.
    end: u32,
    total: u32,
    /// A threshold that at least n of the row reach, as the bits of an ordered number.
    threshold: u32,
}

impl ChunkKeys {
    /// # Safety
    /// The arguments have the row's counts. Whole warps come here.
    #[inline(always)]
    unsafe fn of<G: Gpu>(gpu: G, args: &FinalizeArgs, row: usize) -> Self {
        let (lane, lanes) = (gpu.lane_id(), args.chunks.next_power_of_two());
        let first = row * args.chunks as usize;
        let (mut end, mut threshold) = (0, 0);
        if lane < args.chunks {
            // SAFETY: as promised by the caller.
            [end, threshold] = unsafe { gpu.load_readonly(args.counts.add(2 * (first + lane as usize))) };
        }
        let mut distance = 1;
        while distance < lanes {
            let below = gpu.warp_shuffle_up(FULL_WARP, end, distance, WARP);
            end += if lane >= distance { below } else { 0 };
            threshold = threshold.max(gpu.warp_shuffle_xor(FULL_WARP, threshold, distance, WARP));
            distance *= 2;
        }
        let total = gpu.warp_shuffle_idx(FULL_WARP, end, lanes - 1, WARP);
        let threshold = gpu.warp_shuffle_idx(FULL_WARP, threshold, 0, WARP);
        Self {
            keys: args.keys.add(first * args.room as usize),
            room: args.room,
            lanes,
            end,
            total,
            threshold,
        }
    }

    /// Key `place` of the row, or 0 beyond the last.
    ///
    /// # Safety
    /// The lists have their keys. Whole warps come here.
    #[inline(always)]
    unsafe fn at<G: Gpu>(&self, gpu: G, place: u32) -> u64 {
        let (mut list, mut step) = (0, self.lanes / 2);
        while step > 0 {
            let end = gpu.warp_shuffle_idx(FULL_WARP, self.end, list + step - 1, WARP);
            list += if place >= end { step } else { 0 };
            step /= 2;
        }
        let before = gpu.warp_shuffle_idx(FULL_WARP, self.end, list.wrapping_sub(1) % WARP, WARP);
        if place >= self.total {
            return 0;
        }
        let start = if list == 0 { 0 } else { before };
        let at = list as usize * self.room as usize + (place - start) as usize;
        // SAFETY: as promised by the caller.
        let [key] = unsafe { gpu.load_readonly(self.keys.add(at)) };
        key
    }

    /// Each of the row's keys, by one of the threads.
    ///
    /// # Safety
    /// As for [`at`](Self::at).
    #[inline(always)]
    unsafe fn for_each<G: Gpu, const THREADS: u32>(&self, gpu: G, mut work: impl FnMut(u64)) {
        let mut place = gpu.thread_idx_x();
        // Warps stay whole: all their lanes take part in the shuffles.
        while place / WARP * WARP < self.total {
            // SAFETY: as promised by the caller.
            let key = unsafe { self.at(gpu, place) };
            if key != 0 {
                work(key);
            }
            place += THREADS;
        }
    }
}

impl<const THREADS: u32, const OWN: usize> Finalize<THREADS, OWN> {
    /// Keys that there is room for.
    const KEYS: u32 = THREADS * OWN as u32;
}

impl<const THREADS: u32, const OWN: usize> Kernel for Finalize<THREADS, OWN> {
    type Args = FinalizeArgs;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(Self::KEYS == FINALIZE_KEYS, "as many as passes leave");
        Tile { method: Method::Finalize, value: None, capacity: 0, most: FINALIZE_KEYS / 2 }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = block::shared_bytes(2 * Self::KEYS);
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 1 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: FinalizeArgs) {
        let row = gpu.block_idx_x() as usize;
        let (keys, counter) = (block::keys(), block::counter(0));
        if gpu.thread_idx_x() == 0 {
            // SAFETY: the counter is this thread's until the next barrier.
            unsafe { gpu.shared_store(counter, [0]) };
        }
        // SAFETY: there are as many keys as the chunks say, and room for those that are kept; the counter gives each of these a
        // place of its own, after a barrier.
        unsafe {
            let pair = of_chunk(gpu, args.sums.add(2 * row * args.chunks as usize), args.chunks);
            let lists = ChunkKeys::of(gpu, &args, row);
            let mut own = [0; OWN];
            let fit = lists.total <= Self::KEYS;
            if fit {
                for (i, own) in own.iter_mut().enumerate() {
                    if i as u32 * THREADS < lists.total {
                        *own = lists.at(gpu, gpu.thread_idx_x() + i as u32 * THREADS);
                    }
                }
            }
            let [greatest, sum] = of_lane_chunks(gpu, args.output.exponent_scale, pair, args.chunks);
            gpu.sync_threads();
            let keep = |key: u64| gpu.shared_store(keys.add(gpu.shared_atomic_add(counter, 1)), [key]);
            if fit {
                let mut threshold = 0;
                if lists.total > 2 * args.n {
                    let high = |key: u64| (key >> 32) as u32;
                    let most = own.iter().fold(0, |most, &key| high(key).max(most));
                    let reach = |threshold| {
                        own.iter().fold(0, |reach, &key| reach + u32::from(high(key) >= threshold))
                    };
                    threshold = refine::threshold::<G, THREADS>(
                        gpu,
                        args.n,
                        [lists.threshold, ordered(greatest)],
                        most,
                        reach,
                    );
                }
                for &key in &own {
                    if key != 0 && (key >> 32) as u32 >= threshold {
                        keep(key);
                    }
                }
            } else {
                let threshold = threshold::of_keys(LEAST, args.n, Self::KEYS, |threshold, step| {
                    let mut reach = 0;
                    lists.for_each::<G, THREADS>(gpu, |key| reach += u32::from(key >= threshold));
                    block::sum::<G, THREADS>(gpu, step, reach)
                });
                lists.for_each::<G, THREADS>(gpu, |key| {
                    if key >= threshold {
                        keep(key);
                    }
                });
            }
            gpu.sync_threads();
            let [count] = gpu.shared_load(counter);
            let output = RowSoftmax::of(gpu, &args.output, greatest, sum);
            let write = |place: u32, key: u64| {
                output.write(gpu, row * args.n as usize + place as usize, key);
            };
            if count <= rank::max_keys(THREADS) {
                rank::for_each_by_rank::<G, THREADS>(gpu, keys, count, |place, key| {
                    if place < args.n {
                        write(place, key);
                    }
                });
            } else {
                let keys = sort::<G, THREADS>(gpu, keys, keys.add(Self::KEYS), count);
                strided(gpu.thread_idx_x(), args.n, THREADS, |place| {
                    let [key] = gpu.shared_load(keys.add(place));
                    write(place, key);
                });
            }
            if gpu.thread_idx_x() == 0 {
                output.write_log_sum(gpu, row);
            }
        }
    }
}

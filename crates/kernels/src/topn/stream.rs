//! Selection from rows of any length, in one walk.
use core::marker::PhantomData;

use lacuna_gpu::{Gpu, SharedPtr};

use super::first::Gathered;
use super::held::{Held, Share};
use super::key::{Bar, key, value_of};
use super::part::Part;
use super::sort::sort;
use super::{Method, Tile, TopNArgs, bar, block, first, output, sums};
use crate::{Bounds, DeviceValue, Kernel};

/// The N greatest of a row, or of a chunk of it, of any length: `THREADS` threads take tiles of `VECTORS` vectors of `V` values of
/// `T` each, the next under way while one is used. `FIRST` is twice `VECTORS`: the first tile is as large as two. There is room
/// for `KEYS` keys, and for N up to half of that.
///
/// What reaches the bar of the first tile is gathered from all. If that becomes more than there is room for, a bar is found that
/// few of these reach, and the others are dropped.
#[derive(Debug)]
pub struct Stream<
    T,
    const V: usize,
    const THREADS: u32,
    const VECTORS: usize,
    const FIRST: usize,
    const KEYS: u32,
>(PhantomData<T>);

impl<T, const V: usize, const THREADS: u32, const VECTORS: usize, const FIRST: usize, const KEYS: u32> Kernel
    for Stream<T, V, THREADS, VECTORS, FIRST, KEYS>
where
    T: DeviceValue,
{
    type Args = TopNArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(FIRST == 2 * VECTORS, "the first tile fills the registers of two");
        assert!(VECTORS * V <= 32, "a bit for each value of a thread's tile");
        assert!(
            KEYS.is_power_of_two() && KEYS >= 64 && KEYS.is_multiple_of(THREADS),
            "places for all threads"
        );
        let capacity = Held::<T, V, THREADS, FIRST>::CAPACITY;
        assert!(KEYS / 2 <= capacity, "the first tile of a longer row has N values");
        Tile { method: Method::Stream, value: Some(T::TYPE), capacity, most: KEYS / 2 }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = block::shared_bytes(2 * KEYS);
    /// With 64 registers a thread, GPUs before 9.0 are one short.
    const MIN_SM: u32 = if size_of::<T>() == 4 && V * FIRST == 16 { 90 } else { 70 };
    /// How many threads of a multiprocessor leave each the registers for two tiles and what goes with them.
    const BOUNDS: Bounds = block::bounds(
        THREADS,
        match (size_of::<T>(), V * FIRST) {
            (4, 16) => 1024,
            (_, 32) => 512,
            _ => 768,
        },
    );

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TopNArgs<T>) {
        let part = Part::of(gpu, &args);
        let scale = args.output.exponent_scale;
        if gpu.thread_idx_x() == 0 {
            // SAFETY: the counters are this thread's until the next barrier.
            unsafe { gpu.shared_store(block::gathered(0), [0, 0]) };
        }
        let share = Share::<T, V, THREADS>::of(gpu, part.values, part.len);
        // SAFETY: the chunk has its elements.
        let held: Held<T, V, THREADS, FIRST> = unsafe { share.load_first(gpu) };
        let own = held.greatest(gpu);
        let ends = |a: [f32; 2], b: [f32; 2]| [a[0].max(b[0]), a[1].min(b[1])];
        block::give(gpu, 0, [own, own], ends);
        gpu.sync_threads();
        let [greatest, least] = block::joined::<G, THREADS>(gpu, 0, ends);
        let own_sum = held.sum(gpu, output::base(greatest), scale);
        let plus = |a: [f32; 2], b: [f32; 2]| [a[0] + b[0], 0.0];
        block::give(gpu, 1, [own_sum, 0.0], plus);
        let bar = first::bar::<G, _, V, THREADS, FIRST>(gpu, part.n, KEYS, &held, [own, greatest, least]);
        gpu.sync_threads();
        let [sum, _] = block::joined::<G, THREADS>(gpu, 1, plus);

        // SAFETY: each counter is used once; there is room for `KEYS` in each of two places; tiles lie in the chunk.
        unsafe {
            let mut gathered = first::gather::<G, _, V, THREADS, FIRST, KEYS>(gpu, &part, &held, bar, sum);
            // Which of the two rooms has the keys.
            let mut room = 0;
            let mut sums = [greatest, own_sum];
            let mut next = FIRST as u32 * THREADS;
            let mut tile: Held<T, V, THREADS, VECTORS> = share.load(gpu, next);
            gpu.sync_threads();
            while next < share.whole {
                next += VECTORS as u32 * THREADS;
                let mut following = share.load(gpu, next);
                let greatest = tile.greatest(gpu);
                let higher = output::base(sums[0].max(greatest));
                let own_sum = tile.sum(gpu, higher, scale);
                sums =
                    [sums[0].max(greatest), sums[1] * gpu.exp2_approx((sums[0] - higher) * scale) + own_sum];
                let least = value_of(gathered.bar);
                // NaN reaches every bar, and is seen in the sum.
                let mut lost = 0;
                if greatest >= least || own_sum.is_nan() {
                    let mut bit = 1;
                    tile.for_each(gpu, |x, index| {
                        let key = key(x, part.first + index);
                        if (x >= least || x.is_nan()) && key >= gathered.bar {
                            let place = gpu.shared_atomic_add(gathered.counter, 1);
                            if place < KEYS {
                                gpu.shared_store(block::keys().add(room + place), [key]);
                            } else {
                                lost |= bit;
                            }
                        }
                        bit <<= 1;
                    });
                }
                if gpu.sync_threads_or(lost != 0) {
                    let full = Full { room: block::keys().add(room), tile: &tile, lost, first: part.first };
                    gathered =
                        full.raised::<G, KEYS>(gpu, part.n, block::keys().add(room ^ KEYS), gathered.counter);
                    room ^= KEYS;
                    // Loaded once more, so that it takes no registers meanwhile.
                    following = share.load(gpu, next);
                }
                tile = following;
            }
            block::give(gpu, 0, sums, |a, b| sums::join(gpu, scale, a, b));
            gpu.sync_threads();
            let [greatest, sum] = block::joined::<G, THREADS>(gpu, 0, |a, b| sums::join(gpu, scale, a, b));
            let [count] = gpu.shared_load(gathered.counter);
            let (keys, other) = (block::keys().add(room), block::keys().add(room ^ KEYS));
            if args.chunks > 1 {
                part.write_gathered::<G, THREADS, KEYS>(gpu, &args, (keys, count), [greatest, sum]);
            } else {
                let keys = sort::<G, THREADS>(gpu, keys, other, count);
                part.write::<G, THREADS>(gpu, &args, keys, greatest, sum);
            }
        }
    }
}

/// A full room, and those values of a tile that found none: a bit each.
struct Full<'t, T, const V: usize, const THREADS: u32, const VECTORS: usize> {
    room: SharedPtr<u64>,
    tile: &'t Held<T, V, THREADS, VECTORS>,
    lost: u32,
    first: u32,
}

impl<T: DeviceValue, const V: usize, const THREADS: u32, const VECTORS: usize>
    Full<'_, T, V, THREADS, VECTORS>
{
    /// How many of this thread's reach a bar.
    ///
    /// # Safety
    /// The room has `KEYS` keys, and nobody writes it.
    #[inline(always)]
    unsafe fn reach<G: Gpu, const KEYS: u32>(&self, gpu: G, bar: u64) -> u32 {
        let mut reach = self.tile.reach(gpu, Bar::at(bar), self.first, Some(self.lost));
        for i in 0..KEYS / THREADS {
            // SAFETY: as promised by the caller.
            let [key] = unsafe { gpu.shared_load(self.room.add(gpu.thread_idx_x() + i * THREADS)) };
            reach += u32::from(key >= bar);
        }
        reach
    }

    /// Moves what reaches a bar that at least `n` do, and at most half of the room, to the other room.
    ///
    /// # Safety
    /// The block comes here after a barrier; the rooms and the counter are used here alone.
    #[inline(always)]
    unsafe fn raised<G: Gpu, const KEYS: u32>(
        &self,
        gpu: G,
        n: u32,
        to: SharedPtr<u64>,
        counter: SharedPtr<u32>,
    ) -> Gathered {
        // SAFETY: as promised by the caller; barriers are before and after the counter is cleared; each place is one thread's.
        unsafe {
            let bar = bar::of_keys(n, KEYS / 2, |bar, step| {
                block::total::<G, THREADS>(gpu, step, self.reach::<G, KEYS>(gpu, bar))
            });
            let reach = self.reach::<G, KEYS>(gpu, bar);
            gpu.sync_threads();
            if gpu.thread_idx_x() == 0 {
                gpu.shared_store(counter, [0]);
            }
            gpu.sync_threads();
            let mut place = block::places(gpu, counter, reach);
            let mut keep = |key: u64| {
                if key >= bar {
                    gpu.shared_store(to.add(place), [key]);
                    place += 1;
                }
            };
            for i in 0..KEYS / THREADS {
                let [key] = gpu.shared_load(self.room.add(gpu.thread_idx_x() + i * THREADS));
                keep(key);
            }
            let mut bit = 1;
            self.tile.for_each(gpu, |x, index| {
                if self.lost & bit != 0 {
                    keep(key(x, self.first + index));
                }
                bit <<= 1;
            });
            gpu.sync_threads();
            let [count] = gpu.shared_load(counter);
            gpu.sync_threads();
            Gathered { count, bar, counter }
        }
    }
}

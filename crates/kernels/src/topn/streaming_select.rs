//! Selection from rows of any length, in a single pass.
//!
//! The thread block goes through the row tile by tile. The first tile gives a threshold, as in
//! [`RadixSelect`](super::RadixSelect). Of later tiles, values that reach the threshold go to shared memory as keys; when the
//! room is full, the threshold is raised. The sum of exponentials is kept relative to the greatest value so far. A row in which
//! too many values reach the threshold, such as a rising one, is done once more by the robust variant ([`robust`]).
use core::marker::PhantomData;

use lacuna_gpu::Gpu;

use super::candidates::{Candidates, Fragment};
use super::chunk::Chunk;
use super::finalize::FINALIZE_KEYS;
use super::key::{from_ordered, key, ordered};
use super::robust::{self, Found};
use super::sort::sort;
use super::{Method, Tile, TopNArgs, block, output, refine, sums};
use crate::{Bounds, DeviceValue, Kernel};

/// The N greatest of a row, or of a chunk of it, of any length: `THREADS` threads take tiles of `VECTORS` vectors of `V` values of
/// `T` each, two under way. There is room for `KEYS` keys, and for N up to a quarter of that.
///
/// What reaches the threshold of the first tile is gathered from all, and no barrier is between tiles. The host cuts chunks
/// so that what is expected fits. A row that has more than that, one that rises, say, and one that is not finite is read
/// once more, by the robust variant (topn/robust.rs).
#[derive(Debug)]
pub struct StreamingSelect<T, const V: usize, const THREADS: u32, const VECTORS: usize, const KEYS: u32>(
    PhantomData<T>,
);

impl<T: DeviceValue, const V: usize, const THREADS: u32, const VECTORS: usize, const KEYS: u32> Kernel
    for StreamingSelect<T, V, THREADS, VECTORS, KEYS>
{
    type Args = TopNArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(
            KEYS.is_power_of_two() && KEYS >= 2 * THREADS,
            "two rooms, a bit apart, each for two keys a thread"
        );
        assert!(VECTORS * V <= 32, "a bit for each value of a thread's tile");
        let capacity = Candidates::<T, V, THREADS, VECTORS>::CAPACITY;
        assert!(KEYS / 4 <= capacity, "the first tile of a longer row has N values");
        Tile { method: Method::StreamingSelect, value: Some(T::TYPE), capacity, most: KEYS / 4 }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = block::shared_bytes(2 * KEYS);
    /// With 64 registers a thread, GPUs before 8.0 are one or two short. What is for these has 80.
    const MIN_SM: u32 = if VECTORS > 1 { 80 } else { 70 };
    const BOUNDS: Bounds = block::bounds(THREADS, if VECTORS > 1 { 1024 } else { 768 });

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TopNArgs<T>) {
        if gpu.thread_idx_x() == 0 {
            // SAFETY: the counters are this thread's until the next barrier.
            unsafe { gpu.shared_store(block::counter(0), [0, 0, 0, gpu.block_idx_x()]) };
        }
        // SAFETY: as promised by the caller; the robust pass begins after a barrier.
        unsafe {
            let mut found = Self::pass(gpu, &args);
            // Told by shared memory, so that what follows from it is found once more, and takes no registers meanwhile.
            let [index] = gpu.shared_load(block::counter(3));
            let chunk = Chunk::of_block(&args, index);
            if found.count > KEYS || found.count < chunk.n {
                found = robust::pass::<G, T, V, THREADS, KEYS>(gpu, &chunk, args.output.exponent_scale);
            }
            let Found { room, mut count, threshold, sums } = found;
            let (mut keys, mut other) = (block::keys().add(room), block::keys().add(room ^ KEYS));
            // Before the sort, and where those of all chunks would be more than the finish takes at once.
            let most = if args.chunks > 1 { FINALIZE_KEYS / args.chunks } else { 2 * chunk.n };
            if count > most {
                count = refine::compact::<G, THREADS>(
                    gpu,
                    chunk.n,
                    [threshold, ordered(sums[0])],
                    (keys, count),
                    other,
                );
                (keys, other) = (other, keys);
            }
            if args.chunks > 1 {
                chunk.write_gathered::<G, THREADS, KEYS>(gpu, &args, (keys, count), threshold, sums);
                return;
            }
            let keys = sort::<G, THREADS>(gpu, keys, other, count);
            chunk.write::<G, THREADS>(gpu, &args, keys, sums[0], sums[1]);
        }
    }
}

/// What exponents are relative to, where this is the greatest value: powers of two, so that exponents are one fused step each. −∞
/// and what is far below 0 have one base, so that their exponents are −∞.
#[inline(always)]
fn base(greatest: f32, scale: f32) -> f32 {
    (greatest * scale).max(-FAR)
}

/// Bases up to this far from 0 are less than 2⁶ from what they stand for: sums relative to them are in range.
const FAR: f32 = (1u32 << 31) as f32;

/// A pass under way, of one thread.
struct Pass {
    /// Index in the row of the first element of the thread's first vector.
    first: u32,
    scale: f32,
    /// What is greater than this value is gathered.
    threshold: f32,
    /// The greatest value so far, or one of another thread, and the sum relative to its [`base`].
    sums: [f32; 2],
}

/// Gathers a value, where there is room. The counter counts it in any case.
///
/// # Safety
/// From one barrier to the next the room and the counter are used by this alone.
#[inline(always)]
unsafe fn gather<G: Gpu, const KEYS: u32>(gpu: G, x: f32, index: u32) {
    // SAFETY: as promised by the caller; the counter gives each key a slot of its own.
    unsafe {
        let place = gpu.shared_atomic_add(block::counter(0), 1);
        if place < KEYS {
            gpu.shared_store(block::keys().add(place), [key(x, index)]);
        }
    }
}

impl Pass {
    /// Adds a sum to the sum: of values up to `greatest`, relative to a base.
    #[inline(always)]
    fn add<G: Gpu>(&mut self, gpu: G, greatest: f32, sum: impl FnOnce(f32) -> f32) {
        let higher = self.sums[0].max(greatest);
        let (before, base) = (base(self.sums[0], self.scale), base(higher, self.scale));
        self.sums = [higher, self.sums[1] * gpu.exp2_flush(before - base) + sum(base)];
    }
}

impl<T: DeviceValue, const V: usize, const THREADS: u32, const VECTORS: usize, const KEYS: u32>
    StreamingSelect<T, V, THREADS, VECTORS, KEYS>
{
    /// Goes through a part without care for rows that are not as expected: a count of more than `KEYS` tells that it is one.
    ///
    /// # Safety
    /// The part has its elements; the counter is 0, by a store before.
    #[inline(always)]
    unsafe fn pass<G: Gpu>(gpu: G, args: &TopNArgs<T>) -> Found {
        let (chunk, scale) = (Chunk::of(gpu, args), args.output.exponent_scale);
        let step = VECTORS as u32 * THREADS;
        // SAFETY: as promised by the caller. Between the barriers of the first reduction and of the last only `gather` uses the room.
        unsafe {
            let fragment = Fragment::<T, V, THREADS>::of(gpu, chunk.values, chunk.len);
            let mut tile: Candidates<T, V, THREADS, VECTORS> = fragment.load(gpu, 0);
            let mut other: Candidates<T, V, THREADS, VECTORS> = fragment.load(gpu, step);
            let own = tile.greatest(gpu);
            let ends = |a: [f32; 2], b: [f32; 2]| [a[0].max(b[0]), a[1].min(b[1])];
            block::reduce_warp(gpu, 0, [own, own], ends);
            gpu.sync_threads();
            let [greatest, least] = block::reduce_block::<G, THREADS>(gpu, 0, ends);
            let threshold = tile.threshold(gpu, chunk.n, KEYS / 2, [own, greatest, least]);
            // Of what is equal to the threshold that of the first tile comes before others; if it is all or most of that, the first
            // suffice, which are enough where more are wanted than is above the threshold.
            let ties = if threshold == ordered(least) { KEYS / 4 } else { u32::MAX };
            let threshold = from_ordered(threshold);
            let first = chunk.first + tile.first;
            if own >= threshold {
                let end = chunk.first + ties.min(fragment.tail);
                let mut hits = tile.which(gpu, |x| x >= threshold);
                while hits != 0 {
                    let (x, offset) = tile.number_of(gpu, hits.trailing_zeros());
                    if x > threshold || first + offset < end {
                        gather::<G, KEYS>(gpu, x, first + offset);
                    }
                    hits &= hits - 1;
                }
            }
            // The edge is no part of the tile by which the threshold is found: it may be the last of the row.
            let (edge, edge_index) = fragment.load_edge(gpu);
            let mut pass = Pass { first, scale, threshold, sums: [greatest, 0.0] };
            pass.add(gpu, greatest, |base| tile.sum_from(gpu, scale, base));
            pass.add(gpu, edge, |base| gpu.exp2_flush(gpu.fma(edge, scale, -base)));
            if edge > threshold || edge == threshold && edge_index < ties {
                gather::<G, KEYS>(gpu, edge, chunk.first + edge_index);
            }

            let mut next = step;
            while next < fragment.whole {
                tile = fragment.load(gpu, next + step);
                Self::take(&mut pass, gpu, &other, next);
                next += step;
                if next >= fragment.whole {
                    break;
                }
                other = fragment.load(gpu, next + step);
                Self::take(&mut pass, gpu, &tile, next);
                next += step;
            }
            let exponent = |own, all| base(own, scale) - base(all, scale);
            let [greatest, sum] = sums::of_block::<G, THREADS>(gpu, 1, pass.sums, exponent);
            let [mut count] = gpu.shared_load(block::counter(0));
            // From the base to the greatest itself, which others reckon by.
            let base = base(greatest, scale);
            let beyond = gpu.fma(output::base(greatest), scale, -base);
            let is_near = (greatest * scale).abs() <= FAR || greatest == f32::NEG_INFINITY;
            if !is_near || sum.is_nan() {
                count = u32::MAX;
            }
            Found {
                room: 0,
                count,
                threshold: ordered(pass.threshold),
                sums: [greatest, sum * gpu.exp2_approx(-beyond)],
            }
        }
    }

    /// Takes a tile that is not the first, of vectors from `next` on: its exponentials, and what is above the threshold.
    ///
    /// # Safety
    /// As for [`gather`].
    #[inline(always)]
    unsafe fn take<G: Gpu>(pass: &mut Pass, gpu: G, tile: &Candidates<T, V, THREADS, VECTORS>, next: u32) {
        let greatest = tile.greatest(gpu);
        let scale = pass.scale;
        pass.add(gpu, greatest, |base| tile.sum_from(gpu, scale, base));
        if greatest > pass.threshold {
            let mut hits = tile.which(gpu, |x| x > pass.threshold);
            while hits != 0 {
                let (x, offset) = tile.number_of(gpu, hits.trailing_zeros());
                // SAFETY: as promised by the caller.
                unsafe { gather::<G, KEYS>(gpu, x, pass.first + next * V as u32 + offset) };
                hits &= hits - 1;
            }
        }
    }
}

//! Queries in fours.
//!
//! ```text
//!            keys of the mask              entries of the quad: key, and who sees it
//!   query 0 │ x x x     x    │              ┌───────────────────────┐     A warp owns four neighbouring queries, and
//!   query 1 │ x x x x        │   ─plan─►    │ 0  1  2  3  5  8      │     loads what any of them sees once for all:
//!   query 2 │   x x x x      │              │ ▀▄ ▀▀ █▀ ▄█ …  4 bits │     in a band neighbours share nearly all keys.
//!   query 3 │     x x x x    │              └───────────────────────┘
//! ```
//! Otherwise as [`Rows`](super::Rows): 32 entries at a time, groups of lanes side by side, and four softmaxes that go along.
//! Four weights of a key pass through shared memory together. A query's scores of keys that it does not see are left out.
//! With V their weights of 0 are multiplied: so a row that comes out not finite is worked out again without them.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::lanes::{ABSENT, Part, dot, load_whole, transpose_sums, widen};
use super::online::{Online, weigh_all};
use super::row::{Head, Keys, are_finite, attend, store};
use super::{QuadArgs, Scheme, Tile};
use crate::spmm::RowRecord;
use crate::{Bounds, DeviceValue, Kernel};

/// Queries of a quad.
pub const QUERIES: usize = 4;
/// The most keys that entries can count.
pub const MAX_KEYS: u32 = (ABSENT >> QUERIES as u32) - 1;

/// A key that some of a quad's queries see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuadEntry {
    /// The key, below [`MAX_KEYS`].
    pub key: u32,
    /// A bit for each query, the first the lowest.
    pub seen_by: u32,
}

impl QuadEntry {
    /// The entry as memory holds it.
    pub const fn to_word(self) -> u32 {
        self.key << QUERIES | self.seen_by
    }
    /// The entry that memory holds; [`ABSENT`] is one that nobody sees.
    #[inline(always)]
    const fn from_word(word: u32) -> Self {
        if word == ABSENT {
            return Self { key: ABSENT, seen_by: 0 };
        }
        Self { key: word >> QUERIES, seen_by: word % (1 << QUERIES) }
    }
    /// Whether query `query` of the quad sees the key.
    #[inline(always)]
    const fn is_seen_by(self, query: u32) -> bool {
        self.seen_by >> query & 1 != 0
    }
}

/// Attention by quads of queries; constants as for [`Rows`](super::Rows), and `BLOCKS` of an SM at least.
#[derive(Debug)]
pub struct Quads<
    T,
    const V: usize,
    const LANES: usize,
    const CHUNKS: usize,
    const U: usize,
    const BLOCKS: u32,
>(PhantomData<T>);

/// Warps of a block. They never wait for each other.
const WARPS: u32 = 4;
/// Bytes of a key's weights.
const WEIGHTS: u32 = QUERIES as u32 * 4;

impl<T, const V: usize, const LANES: usize, const CHUNKS: usize, const U: usize, const BLOCKS: u32> Kernel
    for Quads<T, V, LANES, CHUNKS, U, BLOCKS>
where
    T: DeviceValue,
{
    type Args = QuadArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V.is_power_of_two() && V * size_of::<T>() <= 16, "a lane loads 16 bytes at most");
        assert!(LANES.is_power_of_two() && LANES <= WARP as usize, "lanes pair up in shuffles");
        assert!(U <= LANES && LANES.is_multiple_of(U), "rounds come in whole batches");
        Tile {
            value: T::TYPE,
            vector: V as u32,
            lanes: LANES as u32,
            dimension: (V * LANES * CHUNKS) as u32,
            block_rows: WARPS,
            scheme: Scheme::Quads,
        }
    };
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = WARPS * WARP * WEIGHTS;
    const BOUNDS: Bounds = Bounds { max_threads: WARPS * WARP, min_blocks: BLOCKS };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: QuadArgs<T>) {
        let warp = gpu.thread_idx_x() / WARP;
        let index = gpu.block_idx_x() * WARPS + warp;
        if index >= args.quads {
            return;
        }
        let lane = gpu.lane_id();
        let head = Head::of(&args.operands, gpu.block_idx_y());
        let part = Part::<V, LANES, CHUNKS>::of(lane % LANES as u32, head.dim);
        // SAFETY: the table has a record for each of `args.quads`, each for queries of its own, of which those below
        // `args.operands.rows` are there; the weights of a warp are its own.
        unsafe {
            let record = gpu.load_readonly(args.quad_table.add(index as usize * RowRecord::WORDS));
            let RowRecord { row: first, start, end } = RowRecord::from_words(record);
            let quad = Quad {
                keys: QuadKeys { entries: args.entries, end, query: 0 },
                weights: SharedPtr::from_offset(warp * WARP * WEIGHTS),
                part,
            };
            let left = args.operands.rows - first;
            let there = if left < QUERIES as u32 { (1 << left) - 1 } else { (1 << QUERIES) - 1 };
            let fast = start < end && head.is_whole((V * LANES * CHUNKS) as u32);
            let mut again =
                if fast { quad.attend::<_, _, U>(gpu, &head, first, start, there) } else { there };
            while again != 0 {
                let query = again.trailing_zeros();
                again &= again - 1;
                let keys = QuadKeys { query, ..quad.keys };
                attend::<_, _, _, V, LANES, CHUNKS, U>(gpu, &head, first + query, keys, [start, end]);
            }
        }
    }
}

/// What a lane knows of its warp's quad.
struct Quad<const V: usize, const LANES: usize, const CHUNKS: usize> {
    keys: QuadKeys,
    /// Four weights for each of 32 keys.
    weights: SharedPtr<f32>,
    part: Part<V, LANES, CHUNKS>,
}

impl<const V: usize, const LANES: usize, const CHUNKS: usize> Quad<V, LANES, CHUNKS> {
    /// Works out the queries from `first` on that are `there`, a bit each, from the entries at `start` and on; gives those
    /// whose row of O is not finite, and not stored. The head [is whole](Head::is_whole).
    ///
    /// # Safety
    /// As for [`attend`]; the weights are this warp's alone, and there is an entry.
    #[inline(always)]
    unsafe fn attend<G: Gpu, T: DeviceValue, const U: usize>(
        &self,
        gpu: G,
        head: &Head<T>,
        first: u32,
        start: u32,
        there: u32,
    ) -> u32 {
        let mut q = [[[0.0; V]; CHUNKS]; QUERIES];
        let mut online = [Online::NEW; QUERIES];
        let mut again = 0;
        // SAFETY: as promised by the caller; queries that are not there have no row.
        unsafe {
            for (query, q) in q.iter_mut().enumerate() {
                let row = if there >> query & 1 != 0 { first + query as u32 } else { ABSENT };
                *q = widen(gpu, &self.part.load(gpu, head.q, row));
            }
            let seen_by = self.walk::<_, _, U>(gpu, head, &q, start, &mut online);
            for (query, &online) in online.iter().enumerate() {
                let any_keys = gpu.warp_any(FULL_WARP, seen_by >> query & 1 != 0);
                let (o, logsumexp) = online.finish(gpu, LANES as u32, any_keys);
                let bit = 1 << query;
                if are_finite(gpu, &o) {
                    if there & bit != 0 {
                        store(gpu, head, self.part, first + query as u32, &o, logsumexp);
                    }
                } else {
                    again |= there & bit;
                }
            }
        }
        again
    }

    /// Takes all entries from place `start` on; gives the queries that see one of this lane's.
    ///
    /// # Safety
    /// As for [`attend`](Self::attend).
    #[inline(always)]
    unsafe fn walk<G: Gpu, T: DeviceValue, const U: usize>(
        &self,
        gpu: G,
        head: &Head<T>,
        q: &[[[f32; V]; CHUNKS]; QUERIES],
        start: u32,
        online: &mut [Online<V, CHUNKS>; QUERIES],
    ) -> u32 {
        let lane = gpu.lane_id();
        let first = (lane % LANES as u32 * V as u32) as usize;
        let (k, v) = (head.k.add(first), head.v.add(first));
        let row_bytes = head.dim * size_of::<T>() as u32;
        let (mut base, mut seen_by) = (start, 0);
        // SAFETY: as promised by the caller. Weights are read between two barriers after they were written.
        unsafe {
            let mut next = self.keys.entry(gpu, base + lane);
            while base < self.keys.end {
                let entry = next;
                let left = self.keys.end - base;
                base += WARP;
                next = self.keys.entry(gpu, base + lane);
                seen_by |= entry.seen_by;
                let mut bytes = entry.key.wrapping_mul(row_bytes);
                if left < WARP {
                    // In place of the entries that are not there the first is loaded again, and nobody sees it.
                    let first = gpu.warp_shuffle_idx(FULL_WARP, bytes, 0, WARP);
                    bytes = if lane < left { bytes } else { first };
                }
                let mut rows = [0; LANES];
                for (i, row) in rows.iter_mut().enumerate() {
                    *row = gpu.warp_shuffle_idx(FULL_WARP, bytes, i as u32, LANES as u32);
                }

                let mut sums = [[0.0; LANES]; QUERIES];
                for first in (0..LANES).step_by(U) {
                    let mut loaded = [[[T::default(); V]; CHUNKS]; U];
                    for (i, loaded) in loaded.iter_mut().enumerate() {
                        *loaded = load_whole::<_, _, V, LANES, CHUNKS>(gpu, k, rows[first + i]);
                    }
                    for (i, loaded) in loaded.iter().enumerate() {
                        let k = widen(gpu, loaded);
                        for (sums, q) in sums.iter_mut().zip(q) {
                            sums[first + i] = dot(gpu, q, &k);
                        }
                    }
                }
                let (mut scores, mut present) = ([0.0; QUERIES], [false; QUERIES]);
                for (score, sums) in scores.iter_mut().zip(&sums) {
                    *score = transpose_sums(gpu, *sums) * head.scale;
                }
                for (query, present) in present.iter_mut().enumerate() {
                    *present = entry.is_seen_by(query as u32);
                }
                let weights = weigh_all(gpu, online, scores, present);
                gpu.shared_store(self.weights.add(lane * QUERIES as u32), weights);
                gpu.sync_warp(FULL_WARP);
                for first in (0..LANES).step_by(U) {
                    let mut loaded = [[[T::default(); V]; CHUNKS]; U];
                    for (i, loaded) in loaded.iter_mut().enumerate() {
                        *loaded = load_whole::<_, _, V, LANES, CHUNKS>(gpu, v, rows[first + i]);
                    }
                    for (i, loaded) in loaded.iter().enumerate() {
                        let place = lane / LANES as u32 * LANES as u32 + (first + i) as u32;
                        let weights: [f32; QUERIES] =
                            gpu.shared_load(self.weights.add(place * QUERIES as u32));
                        let v = widen(gpu, loaded);
                        for (online, &weight) in online.iter_mut().zip(&weights) {
                            online.add(gpu, weight, &v);
                        }
                    }
                }
                gpu.sync_warp(FULL_WARP);
            }
        }
        seen_by
    }
}

/// The entries of a quad, which end at `end`; as keys, those of one query.
#[derive(Clone, Copy)]
struct QuadKeys {
    entries: GlobalPtr<u32>,
    end: u32,
    query: u32,
}

impl QuadKeys {
    /// The entry at place `index`; past the end one that nobody sees.
    ///
    /// # Safety
    /// As for [`Keys::column`].
    #[inline(always)]
    unsafe fn entry<G: Gpu>(self, gpu: G, index: u32) -> QuadEntry {
        if index >= self.end {
            return QuadEntry::from_word(ABSENT);
        }
        // SAFETY: the place is one of the list's.
        let [word] = unsafe { gpu.load_readonly(self.entries.add(index as usize)) };
        QuadEntry::from_word(word)
    }
}

impl Keys for QuadKeys {
    #[inline(always)]
    unsafe fn column<G: Gpu>(self, gpu: G, index: u32) -> u32 {
        // SAFETY: as promised by the caller.
        let entry = unsafe { self.entry(gpu, index) };
        if entry.is_seen_by(self.query) { entry.key } else { ABSENT }
    }
}

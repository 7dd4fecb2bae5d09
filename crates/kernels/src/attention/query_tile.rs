//! Tiles of four queries.
//!
//! ```text
//!            keys of the mask              entries of the tile: key, and who sees it
//!   query 0 │ x x x     x    │              ┌───────────────────────┐     A warp owns four neighbouring queries, and
//!   query 1 │ x x x x        │   ─plan─►    │ 0  1  2  3  5  8      │     loads what any of them sees once for all:
//!   query 2 │   x x x x      │              │ ▀▄ ▀▀ █▀ ▄█ …  4 bits │     in a band neighbours share nearly all keys.
//!   query 3 │     x x x x    │              └───────────────────────┘
//! ```
//! Otherwise as [`Rows`](super::Rows): 32 entries at a time, groups of lanes side by side, and four softmaxes that go along.
//! Keys that are seen by chance are seldom seen by both pairs of queries. So the host makes batches of 32 in which one pair
//! sees keys, or both do, and a warp that finds only one works out no products for the other. Neighbouring tiles run on
//! one SM together: block by block they go along the same keys, which L1 has when the first of them came by.
//! A query's scores of keys that it does not see are left out. With V their weights of 0 are multiplied: so a row that comes
//! out not finite is recomputed without them.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, WARP};

use super::lanes::{ABSENT, Fragment, TransposedSum, dot, of_group};
use super::online::{OnlineSoftmax, weigh_all};
use super::row::{Head, Keys, are_finite};
use super::{Operands, QueryTileArgs, Scheme, Tile};
use crate::common::widened;
use crate::{Bounds, DeviceValue, Kernel, RowRecord};

/// Queries of a tile.
pub const QUERIES: usize = 4;
/// The most keys that entries can count.
pub const MAX_KEYS: u32 = (ABSENT >> QUERIES as u32) - 1;

/// A key that some of a tile's queries see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryTileEntry {
    /// The key, below [`MAX_KEYS`].
    pub key: u32,
    /// A bit for each query, the first the lowest.
    pub seen_by: u32,
}

impl QueryTileEntry {
    /// The entry as memory holds it.
    pub const fn to_word(self) -> u32 {
        self.key << QUERIES | self.seen_by
    }
    /// The entry that memory holds.
    #[inline(always)]
    const fn from_word(word: u32) -> Self {
        Self { key: word >> QUERIES, seen_by: word % (1 << QUERIES) }
    }
    /// Whether query `query` of the tile sees the key.
    #[inline(always)]
    const fn is_seen_by(self, query: u32) -> bool {
        self.seen_by >> query & 1 != 0
    }
}

/// Attention by tiles of four queries; constants as for [`Rows`](super::Rows), but that `PAIR_U` takes the place of `U` where one
/// pair sees keys. A block has `WARPS`, as many as registers allow an SM; they never wait for each other.
#[derive(Debug)]
pub struct QueryTiles<
    T,
    const V: usize,
    const LANES: usize,
    const CHUNKS: usize,
    const U: usize,
    const PAIR_U: usize,
    const WARPS: u32,
    const MODIFIES: bool,
>(PhantomData<T>);

impl<
    T: DeviceValue,
    const V: usize,
    const LANES: usize,
    const CHUNKS: usize,
    const U: usize,
    const PAIR_U: usize,
    const WARPS: u32,
    const MODIFIES: bool,
> Kernel for QueryTiles<T, V, LANES, CHUNKS, U, PAIR_U, WARPS, MODIFIES>
{
    type Args = QueryTileArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V.is_power_of_two() && V * size_of::<T>() <= 16, "a lane loads 16 bytes at most");
        assert!(LANES.is_power_of_two() && LANES <= WARP as usize, "lanes pair up in shuffles");
        assert!(LANES.is_multiple_of(U) && LANES.is_multiple_of(PAIR_U), "rounds come in whole batches");
        Tile {
            value: T::TYPE,
            vector: V as u32,
            lanes: LANES as u32,
            dimension: (V * LANES * CHUNKS) as u32,
            block_rows: WARPS,
            scheme: if MODIFIES { Scheme::ModifiedQueryTile } else { Scheme::QueryTile },
        }
    };
    const THREADS: u32 = WARPS * WARP;
    const BOUNDS: Bounds = Bounds { max_threads: WARPS * WARP, min_blocks: 1 };
    const LAUNCHES_DEPENDENTS: bool = true;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: QueryTileArgs<T>) {
        let warp = gpu.thread_idx_x() / WARP;
        let index = gpu.block_idx_x() * WARPS + warp;
        if index >= args.tiles {
            return;
        }
        let lane = gpu.lane_id();
        // SAFETY: the table has a record for each of `args.tiles`, each for queries of its own, of which those below
        // `args.operands.shape.rows` are there.
        unsafe {
            let head = Head::of::<G, MODIFIES>(gpu, &args.operands, gpu.block_idx_y());
            let fragment = Fragment::<V, LANES, CHUNKS>::of(lane % LANES as u32, head.dim);
            let RowRecord { row: first, start, end } = RowRecord::load(gpu, args.tile_table, index as usize);
            let tile = QueryTile { keys: TileKeys { entries: args.entries, end, query: 0 }, fragment };
            let mut non_finite = if start < end && head.is_whole((V * LANES * CHUNKS) as u32) {
                tile.attend::<_, _, U, PAIR_U, MODIFIES>(gpu, &args.operands, &head, first, start)
            } else {
                let left = args.operands.shape.rows - first;
                if left < QUERIES as u32 { (1 << left) - 1 } else { (1 << QUERIES) - 1 }
            };
            while non_finite != 0 {
                let query = non_finite.trailing_zeros();
                non_finite &= non_finite - 1;
                let keys = TileKeys { query, ..tile.keys };
                let head = recomputed_head::<_, _, MODIFIES>(gpu, &args.operands);
                Fragment::<V, LANES, CHUNKS>::attend::<_, _, U, MODIFIES>(
                    gpu,
                    &head,
                    first + query,
                    keys,
                    [start, end],
                );
            }
        }
    }
}

/// The head of this block, recomputed in a way that the compiler cannot recognise as the first: so that no register holds its
/// pointers while the keys are processed.
///
/// # Safety
/// As for [`Head::of`].
#[inline(always)]
unsafe fn recomputed_head<G: Gpu, T: DeviceValue, const MODIFIES: bool>(
    gpu: G,
    operands: &Operands<T>,
) -> Head<T> {
    let head = gpu.warp_shuffle_idx(FULL_WARP, gpu.block_idx_y(), 0, WARP);
    // SAFETY: as promised by the caller.
    unsafe { Head::of::<G, MODIFIES>(gpu, operands, head) }
}

/// What a lane knows of its warp's tile.
struct QueryTile<const V: usize, const LANES: usize, const CHUNKS: usize> {
    keys: TileKeys,
    fragment: Fragment<V, LANES, CHUNKS>,
}

impl<const V: usize, const LANES: usize, const CHUNKS: usize> QueryTile<V, LANES, CHUNKS> {
    /// Works out the queries from `first` on, as far as there are any, from the entries at `start` and on; gives a bit for each
    /// whose row of O is not finite, and not stored. The head [is whole](Head::is_whole).
    ///
    /// # Safety
    /// As for [`Fragment::attend`], and there is an entry.
    #[inline(always)]
    unsafe fn attend<G: Gpu, T: DeviceValue, const U: usize, const PAIR_U: usize, const MODIFIES: bool>(
        &self,
        gpu: G,
        operands: &Operands<T>,
        head: &Head<T>,
        first: u32,
        start: u32,
    ) -> u32 {
        let last = operands.shape.rows - 1;
        let mut q = [[[0.0; V]; CHUNKS]; QUERIES];
        let mut online = [OnlineSoftmax::NEW; QUERIES];
        let mut non_finite = 0;
        // SAFETY: as promised by the caller.
        unsafe {
            for (query, q) in q.iter_mut().enumerate() {
                // In place of a query that is not there the last is computed once more, and not stored.
                let row = (first + query as u32).min(last);
                *q = widened(gpu, &self.fragment.load(gpu, head.q, head.q_stride, row));
            }
            self.pass::<_, _, U, PAIR_U, MODIFIES>(gpu, head, &q, [first, start], &mut online);
            let head = recomputed_head::<_, _, MODIFIES>(gpu, operands);
            for (query, &online) in online.iter().enumerate() {
                // Without keys it is 0/0, not finite, and recomputed by the caller.
                let (o, logsumexp) = online.finish(gpu, LANES as u32, true);
                let row = first + query as u32;
                if row <= last {
                    if are_finite(gpu, &o) {
                        self.fragment.store_row(gpu, &head, row, &o, logsumexp);
                    } else {
                        non_finite |= 1 << query;
                    }
                }
            }
        }
        non_finite
    }

    /// Processes all entries from `start` on, of the queries from `first` on.
    ///
    /// # Safety
    /// As for [`attend`](Self::attend).
    #[inline(always)]
    unsafe fn pass<G: Gpu, T: DeviceValue, const U: usize, const PAIR_U: usize, const MODIFIES: bool>(
        &self,
        gpu: G,
        head: &Head<T>,
        q: &[[[f32; V]; CHUNKS]; QUERIES],
        [first, start]: [u32; 2],
        online: &mut [OnlineSoftmax<V, CHUNKS>; QUERIES],
    ) {
        let lane = gpu.lane_id();
        let mut base = start;
        // SAFETY: as promised by the caller.
        unsafe {
            let mut next = self.keys.word(gpu, base + lane);
            while base < self.keys.end {
                let entry = QueryTileEntry::from_word(next);
                base += WARP;
                next = self.keys.word(gpu, base + lane);
                let first_pair = gpu.warp_any(FULL_WARP, entry.seen_by & 0b0011 != 0);
                let second_pair = gpu.warp_any(FULL_WARP, entry.seen_by & 0b1100 != 0);
                let bytes = entry.key * head.kv_stride;
                let rows = of_group(gpu, bytes);
                if !second_pair {
                    self.batch::<_, _, PAIR_U, 0, 2, MODIFIES>(gpu, head, q, &rows, (first, entry), online);
                } else if !first_pair {
                    self.batch::<_, _, PAIR_U, 2, 2, MODIFIES>(gpu, head, q, &rows, (first, entry), online);
                } else {
                    self.batch::<_, _, U, 0, QUERIES, MODIFIES>(gpu, head, q, &rows, (first, entry), online);
                }
            }
        }
    }

    /// Takes an entry of each lane, which only the `COUNT` queries from `FIRST` on see. Rows of `U` keys of each group of
    /// lanes are under way together.
    ///
    /// # Safety
    /// As for [`attend`](Self::attend); the entries' keys are rows of K and V.
    #[inline(always)]
    unsafe fn batch<
        G: Gpu,
        T: DeviceValue,
        const U: usize,
        const FIRST: usize,
        const COUNT: usize,
        const MODIFIES: bool,
    >(
        &self,
        gpu: G,
        head: &Head<T>,
        q: &[[[f32; V]; CHUNKS]; QUERIES],
        rows: &[u32; LANES],
        (first_query, entry): (u32, QueryTileEntry),
        online: &mut [OnlineSoftmax<V, CHUNKS>; QUERIES],
    ) {
        let first = (gpu.lane_id() % LANES as u32 * V as u32) as usize;
        let (k, v) = (head.k.add(first), head.v.add(first));
        let Some(own) = online.split_at_mut(FIRST).1.first_chunk_mut::<COUNT>() else { return };
        // SAFETY: as promised by the caller.
        unsafe {
            let mut sums = [TransposedSum::<LANES>::NEW; COUNT];
            for first in (0..LANES).step_by(U) {
                let loaded = Fragment::<V, LANES, CHUNKS>::load_whole_rows::<_, _, U>(gpu, k, rows, first);
                for (i, loaded) in loaded.iter().enumerate() {
                    let k = widened(gpu, loaded);
                    for (query, sum) in sums.iter_mut().enumerate() {
                        sum.push(gpu, first + i, dot(gpu, &q[FIRST + query], &k));
                    }
                }
            }
            // The first rows of V are on their way while the softmax is worked out, and then always the next.
            let mut loaded = Fragment::<V, LANES, CHUNKS>::load_whole_rows::<_, _, U>(gpu, v, rows, 0);
            let (mut scores, mut present) = ([0.0; COUNT], [false; COUNT]);
            for query in 0..COUNT {
                let row = first_query + (FIRST + query) as u32;
                scores[query] = head.score.of_pair::<G, MODIFIES>(gpu, sums[query].get(), row, entry.key);
                present[query] = entry.is_seen_by((FIRST + query) as u32);
            }
            let weights = weigh_all(gpu, own, scores, present);
            for first in (0..LANES).step_by(U) {
                let rows_now = loaded;
                if first + U < LANES {
                    loaded =
                        Fragment::<V, LANES, CHUNKS>::load_whole_rows::<_, _, U>(gpu, v, rows, first + U);
                }
                for (i, row) in rows_now.iter().enumerate() {
                    let v = widened(gpu, row);
                    for (own, &weight) in own.iter_mut().zip(&weights) {
                        let of_key =
                            gpu.warp_shuffle_idx(FULL_WARP, weight, (first + i) as u32, LANES as u32);
                        own.add(gpu, of_key, &v);
                    }
                }
            }
        }
    }
}

/// The entries of a tile, which end at `end`; as keys, those of one query.
#[derive(Clone, Copy)]
struct TileKeys {
    entries: GlobalPtr<u32>,
    end: u32,
    query: u32,
}

impl TileKeys {
    /// The entry at place `index`, as memory holds it; past the end the last, which nobody sees then.
    ///
    /// # Safety
    /// The list is live, and has an entry.
    #[inline(always)]
    unsafe fn word<G: Gpu>(self, gpu: G, index: u32) -> u32 {
        let last = self.end - 1;
        // SAFETY: the place is one of the list's.
        let [word] = unsafe { gpu.load_readonly(self.entries.add(index.min(last) as usize)) };
        if index > last { word >> QUERIES << QUERIES } else { word }
    }
}

impl Keys for TileKeys {
    #[inline(always)]
    unsafe fn column<G: Gpu>(self, gpu: G, index: u32) -> u32 {
        if index >= self.end {
            return ABSENT;
        }
        // SAFETY: as promised by the caller.
        let entry = QueryTileEntry::from_word(unsafe { self.word(gpu, index) });
        if entry.is_seen_by(self.query) { entry.key } else { ABSENT }
    }
}

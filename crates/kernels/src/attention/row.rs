//! One query, by a warp.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, Real, WARP};

use super::Operands;
use super::lanes::{ABSENT, Fragment, dot, of_group};
use super::online::OnlineSoftmax;
use super::score::Score;
use crate::common::{self, add_across_lanes, transpose_sums, widened};

/// Q, K, V, O and the logarithms of one head.
#[derive(Clone, Copy)]
pub(super) struct Head<T> {
    pub(super) q: GlobalPtr<T>,
    pub(super) k: GlobalPtr<T>,
    pub(super) v: GlobalPtr<T>,
    pub(super) o: GlobalMut<T>,
    logsumexp: GlobalMut<f32>,
    pub(super) dim: u32,
    /// Bytes from row to row of Q, of K and V, and of O.
    pub(super) q_stride: u32,
    pub(super) kv_stride: u32,
    pub(super) o_stride: u32,
    pub(super) score: Score,
    /// Rows of K and V.
    pub(super) cols: u32,
}

impl<T: Real> Head<T> {
    /// The head of this number.
    ///
    /// # Safety
    /// It has a slope, where there are any.
    #[inline(always)]
    pub(super) unsafe fn of<G: Gpu, const MODIFIES: bool>(gpu: G, args: &Operands<T>, head: u32) -> Self {
        let shape = &args.shape;
        let group = (args.first_of_group + head) / shape.group_heads;
        let of_keys = u64::from(group) * shape.kv_batch_stride;
        let queries = u64::from(head) * u64::from(shape.rows);
        let wanted = args.logsumexp.address() != 0;
        Self {
            q: args.q.add((u64::from(head) * shape.q_batch_stride) as usize),
            k: args.k.add(of_keys as usize),
            v: args.v.add(of_keys as usize),
            o: args.o.add((u64::from(head) * shape.o_batch_stride) as usize),
            logsumexp: if wanted { args.logsumexp.add(queries as usize) } else { args.logsumexp },
            dim: shape.dim,
            q_stride: shape.q_stride_bytes,
            kv_stride: shape.kv_stride_bytes,
            o_stride: shape.o_stride_bytes,
            // SAFETY: as promised by the caller.
            score: unsafe { Score::of::<G, MODIFIES>(gpu, shape, args.slopes, head) },
            cols: shape.cols,
        }
    }

    /// Whether rows have `dimension` elements, and 32 bits count the bytes of K.
    #[inline(always)]
    pub(super) fn is_whole(&self, dimension: u32) -> bool {
        self.dim == dimension && u64::from(self.cols) * u64::from(self.kv_stride) <= u64::from(u32::MAX)
    }

    /// Writes a row's logarithm, if it is wanted.
    ///
    /// # Safety
    /// The row is one of the head's, and this lane's alone.
    #[inline(always)]
    pub(super) unsafe fn store_logsumexp<G: Gpu>(&self, gpu: G, row: u32, logsumexp: f32) {
        if self.logsumexp.address() != 0 {
            // SAFETY: as promised by the caller.
            unsafe { gpu.store(self.logsumexp.add(row as usize), [logsumexp]) };
        }
    }
}

/// The keys of a query.
pub(super) trait Keys: Copy {
    /// The column at index `index` of the list, or [`ABSENT`].
    ///
    /// # Safety
    /// The list is live; `index` is below its end, or less than two warps beyond.
    unsafe fn column<G: Gpu>(self, gpu: G, index: u32) -> u32;
}

impl<const V: usize, const LANES: usize, const CHUNKS: usize> Fragment<V, LANES, CHUNKS> {
    /// Works out row `row` of a head by one warp, from the keys at the places `start..end` of a list.
    ///
    /// Groups of `LANES` lanes take a key each, `U` keys one after another whose loads are under way together.
    ///
    /// # Safety
    /// The head and the keys are live, and no other warp writes this row.
    #[inline(always)]
    pub(super) unsafe fn attend<G: Gpu, T: Real, const U: usize, const MODIFIES: bool>(
        gpu: G,
        head: &Head<T>,
        row: u32,
        keys: impl Keys,
        [start, end]: [u32; 2],
    ) {
        let groups = WARP / LANES as u32;
        let lane = gpu.lane_id();
        let fragment = Self::of(lane % LANES as u32, head.dim);
        // Of 32 keys group g takes g, g + groups, …: so few keys are few rounds. Its lane i has the i-th of these.
        let own = lane % LANES as u32 * groups + lane / LANES as u32;
        let mut online = OnlineSoftmax::<V, CHUNKS>::NEW;
        let mut any_keys = false;
        let mut base = start;
        // SAFETY: as promised by the caller; columns that are not absent are keys of the head.
        unsafe {
            let q = widened(gpu, &fragment.load(gpu, head.q, head.q_stride, row));
            let mut next = keys.column(gpu, base + own);
            while base < end {
                let column = next;
                let left = end - base;
                base += WARP;
                any_keys |= column != ABSENT;
                next = keys.column(gpu, base + own);

                let mut sums = [0.0; LANES];
                for first in (0..LANES).step_by(U) {
                    if first as u32 * groups < left {
                        let rows = fragment.load_rows::<_, _, U>(gpu, head.k, head.kv_stride, column, first);
                        for (i, row) in rows.iter().enumerate() {
                            sums[first + i] = dot(gpu, &q, &widened(gpu, row));
                        }
                    }
                }
                let sum = transpose_sums(gpu, FULL_WARP, gpu.lane_id(), LANES as u32, sums);
                let score = head.score.of_pair::<G, MODIFIES>(gpu, sum, row, column);
                let weight = online.weigh(gpu, score, column != ABSENT);
                for first in (0..LANES).step_by(U) {
                    if first as u32 * groups < left {
                        let rows = fragment.load_rows::<_, _, U>(gpu, head.v, head.kv_stride, column, first);
                        for (i, row) in rows.iter().enumerate() {
                            let lane = (first + i) as u32;
                            let weight = gpu.warp_shuffle_idx(FULL_WARP, weight, lane, LANES as u32);
                            online.add(gpu, weight, &widened(gpu, row));
                        }
                    }
                }
            }
            let any_keys = gpu.warp_any(FULL_WARP, any_keys);
            let (o, logsumexp) = online.finish(gpu, LANES as u32, any_keys);
            fragment.store_row(gpu, head, row, &o, logsumexp);
        }
    }

    /// As [`attend`](Self::attend), one key after another by the whole warp: slower, but it takes few registers.
    ///
    /// # Safety
    /// As for `attend`.
    #[inline(always)]
    pub(super) unsafe fn attend_one_by_one<G: Gpu, T: Real, const MODIFIES: bool>(
        gpu: G,
        head: &Head<T>,
        row: u32,
        keys: impl Keys,
        [start, end]: [u32; 2],
    ) {
        const { assert!(LANES == WARP as usize, "the whole warp shares a row") };
        let lane = gpu.lane_id();
        let fragment = Self::of(lane, head.dim);
        let mut online = OnlineSoftmax::<V, CHUNKS>::NEW;
        let mut any_keys = false;
        let mut base = start;
        // SAFETY: as promised by the caller; columns that are not absent are keys of the head.
        unsafe {
            let q = widened(gpu, &fragment.load(gpu, head.q, head.q_stride, row));
            while base < end {
                let column = keys.column(gpu, base + lane);
                base += WARP;
                let mut left = gpu.warp_ballot(FULL_WARP, column != ABSENT);
                any_keys |= left != 0;
                while left != 0 {
                    let column = gpu.warp_shuffle_idx(FULL_WARP, column, left.trailing_zeros(), WARP);
                    left &= left - 1;
                    let k = widened(gpu, &fragment.load(gpu, head.k, head.kv_stride, column));
                    let sum = add_across_lanes(gpu, FULL_WARP, [1, WARP], dot(gpu, &q, &k));
                    let score = head.score.of_pair::<G, MODIFIES>(gpu, sum, row, column);
                    // One lane has the key's weight in its sum.
                    let weight = online.weigh(gpu, score, lane == 0);
                    let weight = gpu.warp_shuffle_idx(FULL_WARP, weight, 0, WARP);
                    online.add(
                        gpu,
                        weight,
                        &widened(gpu, &fragment.load(gpu, head.v, head.kv_stride, column)),
                    );
                }
            }
            let (o, logsumexp) = online.finish(gpu, WARP, any_keys);
            fragment.store_row(gpu, head, row, &o, logsumexp);
        }
    }

    /// As [`attend`](Self::attend), for a head that [is whole](Head::is_whole) and a list with a key: every load is made, so that
    /// none waits for a test. In place of keys that are not there the first is loaded again, and weighs 0; so a row that comes
    /// out not finite is not stored, and this gives false.
    ///
    /// # Safety
    /// As for `attend`.
    #[inline(always)]
    pub(super) unsafe fn attend_whole<G: Gpu, T: Real, const U: usize, const MODIFIES: bool>(
        gpu: G,
        head: &Head<T>,
        row: u32,
        keys: impl Keys,
        [start, end]: [u32; 2],
    ) -> bool {
        let lane = gpu.lane_id();
        let fragment = Self::of(lane % LANES as u32, head.dim);
        let first = (lane % LANES as u32 * V as u32) as usize;
        let (k, v) = (head.k.add(first), head.v.add(first));
        let row_bytes = head.kv_stride;
        let mut online = OnlineSoftmax::<V, CHUNKS>::NEW;
        let mut base = start;
        // SAFETY: as promised by the caller; columns that are not absent are keys of the head.
        unsafe {
            let q = widened(gpu, &fragment.load(gpu, head.q, head.q_stride, row));
            let mut next = keys.column(gpu, base + lane);
            while base < end {
                let column = next;
                let left = end - base;
                base += WARP;
                next = keys.column(gpu, base + lane);
                let mut bytes = column.wrapping_mul(row_bytes);
                if left < WARP {
                    let first = gpu.warp_shuffle_idx(FULL_WARP, bytes, 0, WARP);
                    bytes = if lane < left { bytes } else { first };
                }
                let rows = of_group::<G, LANES>(gpu, bytes);

                let mut sums = [0.0; LANES];
                for first in (0..LANES).step_by(U) {
                    let loaded = Self::load_whole_rows::<_, _, U>(gpu, k, &rows, first);
                    for (i, loaded) in loaded.iter().enumerate() {
                        sums[first + i] = dot(gpu, &q, &widened(gpu, loaded));
                    }
                }
                let sum = transpose_sums(gpu, FULL_WARP, gpu.lane_id(), LANES as u32, sums);
                let score = head.score.of_pair::<G, MODIFIES>(gpu, sum, row, column);
                let weight = online.weigh(gpu, score, lane < left);
                for first in (0..LANES).step_by(U) {
                    let loaded = Self::load_whole_rows::<_, _, U>(gpu, v, &rows, first);
                    for (i, loaded) in loaded.iter().enumerate() {
                        let lane = (first + i) as u32;
                        let weight = gpu.warp_shuffle_idx(FULL_WARP, weight, lane, LANES as u32);
                        online.add(gpu, weight, &widened(gpu, loaded));
                    }
                }
            }
            let (o, logsumexp) = online.finish(gpu, LANES as u32, true);
            let finite = are_finite(gpu, &o);
            if finite {
                fragment.store_row(gpu, head, row, &o, logsumexp);
            }
            finite
        }
    }

    /// Stores a row of O, and its logarithm.
    ///
    /// # Safety
    /// No other warp writes this row of the head.
    #[inline(always)]
    pub(super) unsafe fn store_row<G: Gpu, T: Real>(
        self,
        gpu: G,
        head: &Head<T>,
        row: u32,
        o: &[[f32; V]; CHUNKS],
        logsumexp: f32,
    ) {
        let lane = gpu.lane_id();
        // SAFETY: as promised by the caller.
        unsafe {
            if lane < LANES as u32 {
                self.store(gpu, head.o, head.o_stride, row, o);
            }
            if lane == 0 {
                head.store_logsumexp(gpu, row, logsumexp);
            }
        }
    }
}

/// Whether a row of O is finite; the same for the whole warp.
#[inline(always)]
pub(super) fn are_finite<G: Gpu, const V: usize, const CHUNKS: usize>(
    gpu: G,
    o: &[[f32; V]; CHUNKS],
) -> bool {
    gpu.warp_all(FULL_WARP, common::are_finite(o.as_flattened()))
}

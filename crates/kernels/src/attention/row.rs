//! One query, by a warp.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, Real, WARP};

use super::Operands;
use super::lanes::{ABSENT, Part, dot, transpose_sums, widen};
use super::online::Online;

/// Q, K, V, O and the logarithms of one head.
#[derive(Clone, Copy)]
pub(super) struct Head<T> {
    pub(super) q: GlobalPtr<T>,
    pub(super) k: GlobalPtr<T>,
    pub(super) v: GlobalPtr<T>,
    pub(super) o: GlobalMut<T>,
    logsumexp: GlobalMut<f32>,
    pub(super) dim: u32,
    pub(super) scale: f32,
}

impl<T: Real> Head<T> {
    /// The head of this number.
    #[inline(always)]
    pub(super) fn of(args: &Operands<T>, head: u32) -> Self {
        let (queries, keys) =
            (u64::from(head) * u64::from(args.rows), u64::from(head) * u64::from(args.cols));
        let (of_queries, of_keys) = (queries * u64::from(args.dim), keys * u64::from(args.dim));
        let wanted = args.logsumexp.address() != 0;
        Self {
            q: args.q.add(of_queries as usize),
            k: args.k.add(of_keys as usize),
            v: args.v.add(of_keys as usize),
            o: args.o.add(of_queries as usize),
            logsumexp: if wanted { args.logsumexp.add(queries as usize) } else { args.logsumexp },
            dim: args.dim,
            scale: args.scale,
        }
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
    /// The column at place `index`, or [`ABSENT`].
    ///
    /// # Safety
    /// The list is live; `index` is below its end, or less than two warps beyond.
    unsafe fn column<G: Gpu>(self, gpu: G, index: u32) -> u32;
}

/// Works out row `row` of a head by one warp, from the keys at the places `start..end` of a list.
///
/// Groups of `LANES` lanes take a key each, `U` keys one after another whose loads are under way together.
///
/// # Safety
/// The head and the keys are live, and no other warp writes this row.
#[inline(always)]
pub(super) unsafe fn attend<
    G: Gpu,
    T: Real,
    K: Keys,
    const V: usize,
    const LANES: usize,
    const CHUNKS: usize,
    const U: usize,
>(
    gpu: G,
    head: &Head<T>,
    row: u32,
    keys: K,
    [start, end]: [u32; 2],
) {
    let groups = WARP / LANES as u32;
    let lane = gpu.lane_id();
    let part = Part::<V, LANES, CHUNKS>::of(lane % LANES as u32, head.dim);
    // Of 32 keys group g takes g, g + groups, …: so few keys are few rounds. Its lane i has the i-th of these.
    let own = lane % LANES as u32 * groups + lane / LANES as u32;
    let mut online = Online::<V, CHUNKS>::NEW;
    let mut any_keys = false;
    let mut base = start;
    // SAFETY: as promised by the caller; columns that are not absent are keys of the head.
    unsafe {
        let q = widen(gpu, &part.load(gpu, head.q, row));
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
                    let rows = load_rows::<_, _, V, LANES, CHUNKS, U>(gpu, part, head.k, column, first);
                    for (i, row) in rows.iter().enumerate() {
                        sums[first + i] = dot(gpu, &q, &widen(gpu, row));
                    }
                }
            }
            let score = transpose_sums(gpu, sums) * head.scale;
            let weight = online.weigh(gpu, score, column != ABSENT);
            for first in (0..LANES).step_by(U) {
                if first as u32 * groups < left {
                    let rows = load_rows::<_, _, V, LANES, CHUNKS, U>(gpu, part, head.v, column, first);
                    for (i, row) in rows.iter().enumerate() {
                        let lane = (first + i) as u32;
                        let weight = gpu.warp_shuffle_idx(FULL_WARP, weight, lane, LANES as u32);
                        online.add(gpu, weight, &widen(gpu, row));
                    }
                }
            }
        }
        let any_keys = gpu.warp_any(FULL_WARP, any_keys);
        let (o, logsumexp) = online.finish(gpu, LANES as u32, any_keys);
        if lane < LANES as u32 {
            part.store(gpu, head.o, row, &o);
        }
        if lane == 0 {
            head.store_logsumexp(gpu, row, logsumexp);
        }
    }
}

/// The lane's part of the rows of K or V that its group's lanes `first..first + U` have the columns of.
///
/// # Safety
/// The columns are absent, or rows of the matrix.
#[inline(always)]
pub(super) unsafe fn load_rows<
    G: Gpu,
    T: Real,
    const V: usize,
    const LANES: usize,
    const CHUNKS: usize,
    const U: usize,
>(
    gpu: G,
    part: Part<V, LANES, CHUNKS>,
    matrix: GlobalPtr<T>,
    column: u32,
    first: usize,
) -> [[[T; V]; CHUNKS]; U] {
    let mut rows = [[[T::default(); V]; CHUNKS]; U];
    for (i, row) in rows.iter_mut().enumerate() {
        let column = gpu.warp_shuffle_idx(FULL_WARP, column, (first + i) as u32, LANES as u32);
        // SAFETY: as promised by the caller.
        *row = unsafe { part.load(gpu, matrix, column) };
    }
    rows
}

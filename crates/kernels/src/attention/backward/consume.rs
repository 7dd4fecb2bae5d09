//! The warpgroups that multiply.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::super::wgmma::{BLOCK, BlockEntry, BlockMask};
use super::side::Side;
use super::{BackwardTiles, PANEL, ROW, SCORES, TERMS, WARPGROUP, Work};
use crate::HalfValue;
use crate::common::{add_across_lanes, strided};

/// Lanes that share a row.
pub(super) const LANES: u32 = 4;

/// Which block a warp multiplies: the step, its entry, and where it is copied to.
pub(super) struct Place {
    pub(super) step: u32,
    pub(super) index: u32,
    pub(super) stage: u32,
    pub(super) warp: u32,
}

/// What a thread knows of its two queries, eight apart, where queries are owned.
#[derive(Clone, Copy)]
pub(super) struct RowTerms {
    pub(super) shift: [f32; 2],
    pub(super) delta: [f32; 2],
}

impl<
    T: HalfValue,
    const KEYS: bool,
    const L: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> BackwardTiles<T, KEYS, L, GROUPS, STAGES, MODIFIES>
{
    /// Works out the gradients of 64 rows, and writes them.
    ///
    /// # Safety
    /// The whole warpgroup is here; operands and entries are live.
    #[inline(always)]
    pub(super) unsafe fn consume<G: Gpu>(work: &Work<T, G>, warp: u32) {
        let gpu = work.gpu;
        let (group, thread) = (warp / 4, gpu.thread_idx_x() % WARPGROUP);
        let steps = work.count * work.heads;
        // The gradient by dS, and that of V.
        let (mut sums, mut values) = ([0.0; L], [0.0; L]);
        let (mut step, mut index, mut stage) = (0, 0, 0);
        // SAFETY: as promised by the caller; a stage is read while it is full.
        unsafe {
            let terms = Self::begin(work, group, thread);
            while step < steps {
                let mask = BlockEntry::load_mask(gpu, work.entries, index, work.count, group);
                // It is the same for all lanes, which the compiler sees by way of a shuffle.
                let mask = gpu.warp_shuffle_idx(FULL_WARP, mask, 0, WARP);
                gpu.barrier_sync(Self::FULL + stage * GROUPS + group, WARPGROUP + WARP);
                if mask != BlockMask::EMPTY {
                    let at = Place { step, index, stage, warp };
                    Self::multiply(work, &at, mask, &terms, &mut sums, &mut values);
                }
                if step + STAGES < steps {
                    gpu.barrier_arrive(Self::EMPTY + stage, GROUPS * WARPGROUP + WARP);
                }
                (step, stage) = (step + 1, if stage + 1 == STAGES { 0 } else { stage + 1 });
                index = if index + 1 == work.count { 0 } else { index + 1 };
            }
            let mut again = Self::write(work, warp, &sums, &values);
            // By way of a shuffle, so that no register holds through all steps what is made of it there.
            let work = &Work { head: gpu.warp_shuffle_idx(FULL_WARP, work.head, 0, WARP), ..*work };
            while again != 0 {
                let row = again.trailing_zeros();
                again &= again - 1;
                Self::work_out_anew(work, (group, warp % 4 * 16 + row), &terms);
            }
        }
    }

    /// Copies the group's rows, and works out the terms of queries.
    ///
    /// # Safety
    /// As for [`consume`](Self::consume).
    #[inline(always)]
    unsafe fn begin<G: Gpu>(work: &Work<T, G>, group: u32, thread: u32) -> RowTerms {
        let (gpu, first) = (work.gpu, work.first + group * BLOCK);
        let side = work.owned::<KEYS>();
        let place = (Self::OWNED + group * Self::PAIR, Self::PANELS);
        // SAFETY: as promised by the caller.
        let terms = unsafe {
            side.copy(gpu, (first, work.operands.shape.dim), place, (thread, WARPGROUP));
            gpu.copy_async_commit();
            if KEYS {
                RowTerms { shift: [0.0; 2], delta: [0.0; 2] }
            } else {
                Self::row_terms(work, &side, first, thread)
            }
        };
        gpu.copy_async_wait::<0>();
        gpu.fence_async_proxy();
        gpu.barrier_sync(Self::COPIED + group, WARPGROUP);
        terms
    }

    /// Works out the terms of 64 queries, two threads each, and writes them. Gives those of the thread's two rows.
    ///
    /// # Safety
    /// As for [`consume`](Self::consume).
    #[inline(always)]
    unsafe fn row_terms<G: Gpu>(work: &Work<T, G>, side: &Side<T>, first: u32, thread: u32) -> RowTerms {
        let (gpu, operands) = (work.gpu, &work.operands);
        let (query, half) = (first + thread / 2, thread % 2);
        let is_there = query < side.rows;
        let (mut delta, mut logsumexp) = (0.0, 0.0);
        if is_there {
            let o = operands.o.add((u64::from(work.head) * operands.shape.o_batch_stride) as usize);
            let [o, d_o] = [o, side.matrices[1]].map(|matrix| matrix.add_rows(query, side.strides[1]));
            let queries = u64::from(work.head) * u64::from(operands.shape.rows);
            // SAFETY: as promised by the caller; the dimension is a multiple of 8.
            unsafe {
                strided(8 * half, operands.shape.dim, 16, |column| {
                    let o: [T; 8] = gpu.load_readonly(o.add(column as usize));
                    let d_o: [T; 8] = gpu.load_readonly(d_o.add(column as usize));
                    for i in 0..8 {
                        delta = gpu.fma(o[i].to_f32(gpu), d_o[i].to_f32(gpu), delta);
                    }
                });
                [logsumexp] =
                    gpu.load_readonly(operands.logsumexp.add((queries + u64::from(query)) as usize));
            }
        }
        delta = add_across_lanes(gpu, FULL_WARP, [1, 2], delta);
        // A query that sees nothing has no weights, whatever its shift.
        let shift = if logsumexp == f32::NEG_INFINITY { 0.0 } else { -logsumexp * core::f32::consts::LOG2_E };
        if is_there && half == 0 {
            // SAFETY: as promised by the caller: the query is this thread's.
            unsafe { gpu.store(work.terms::<KEYS>(0).add(query as usize * TERMS), [shift, delta]) };
        }
        // Row r of a warp is with lane 2r; a thread's rows are lane / 4 and 8 more.
        let row = gpu.lane_id() / LANES;
        let of = |value: f32, row: u32| gpu.warp_shuffle_idx(FULL_WARP, value, 2 * row, WARP);
        RowTerms { shift: [of(shift, row), of(shift, row + 8)], delta: [of(delta, row), of(delta, row + 8)] }
    }

    /// Adds what a block gives.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(
        work: &Work<T, G>,
        place: &Place,
        mask: u32,
        terms: &RowTerms,
        sums: &mut [f32; L],
        values: &mut [f32; L],
    ) {
        let (gpu, stage, group) = (work.gpu, place.stage, place.warp / 4);
        let (owned, streamed) = (Self::OWNED + group * Self::PAIR, stage * Self::PAIR);
        let (mut s, mut slopes) = ([0.0; SCORES], [0.0; SCORES]);
        // SAFETY: as promised by the caller.
        unsafe {
            // In a block that is seen whole, queries past the last weigh 1 where keys are owned; but their gradient of O is 0.
            if mask != BlockMask::FULL {
                let bits = Self::bits(gpu, (stage, group), mask);
                for (i, score) in s.iter_mut().enumerate() {
                    *score = if bits >> i & 1 != 0 { 0.0 } else { f32::NEG_INFINITY };
                }
            }
            gpu.warpgroup_arrive();
            Self::multiply_rows(gpu, owned, streamed, &mut s);
            gpu.warpgroup_commit();
            let (mut weights, mut packed) = ([0; SCORES / 2], [0; SCORES / 2]);
            // Kernels that modify are not called without; with both ways in them, the compiler spills no registers.
            if !MODIFIES || work.is_plain() {
                Self::multiply_rows(gpu, owned + Self::MATRIX, streamed + Self::MATRIX, &mut slopes);
                gpu.warpgroup_commit();
                gpu.warpgroup_wait::<1, SCORES>(&mut s);
                for eight in 0..SCORES / 4 {
                    let of_columns = Self::column_terms(gpu, stage, eight as u32);
                    for i in 0..4 {
                        let shift = if KEYS { of_columns[i % 2 * TERMS] } else { terms.shift[i / 2] };
                        let at = 4 * eight + i;
                        s[at] = gpu.exp2_flush(gpu.fma(s[at], work.operands.shape.scale, shift));
                    }
                    if KEYS {
                        weights[2 * eight] = T::pack(gpu, s[4 * eight], s[4 * eight + 1]);
                        weights[2 * eight + 1] = T::pack(gpu, s[4 * eight + 2], s[4 * eight + 3]);
                    }
                }
            } else {
                // The second product comes later: its sums have no registers until scores are done.
                gpu.warpgroup_wait::<0, SCORES>(&mut s);
                Self::weigh_modified(work, place, mask, terms, &mut s, &mut weights);
                gpu.warpgroup_arrive();
                Self::multiply_rows(gpu, owned + Self::MATRIX, streamed + Self::MATRIX, &mut slopes);
                gpu.warpgroup_commit();
            }
            gpu.warpgroup_wait::<0, SCORES>(&mut slopes);
            for eight in 0..SCORES / 4 {
                let of_columns = Self::column_terms(gpu, stage, eight as u32);
                for i in 0..4 {
                    let delta = if KEYS { of_columns[i % 2 * TERMS + 1] } else { terms.delta[i / 2] };
                    let at = 4 * eight + i;
                    slopes[at] = s[at] * (slopes[at] - delta);
                }
                packed[2 * eight] = T::pack(gpu, slopes[4 * eight], slopes[4 * eight + 1]);
                packed[2 * eight + 1] = T::pack(gpu, slopes[4 * eight + 2], slopes[4 * eight + 3]);
            }
            gpu.warpgroup_arrive();
            if KEYS {
                Self::multiply_columns(gpu, &weights, streamed + Self::MATRIX, values);
            }
            Self::multiply_columns(gpu, &packed, streamed, sums);
            gpu.warpgroup_commit();
            gpu.warpgroup_wait::<0, L>(sums);
            if KEYS {
                gpu.warpgroup_wait::<0, L>(values);
            }
        }
    }

    /// Shift and delta of this thread's two columns among eight, where keys are owned.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    pub(super) unsafe fn column_terms<G: Gpu>(gpu: G, stage: u32, eight: u32) -> [f32; 2 * TERMS] {
        if !KEYS {
            return [0.0; 2 * TERMS];
        }
        let column = 8 * eight + gpu.lane_id() % LANES * 2;
        let place = Self::TERMS + stage * Self::TERM_BYTES + column * TERMS as u32 * 4;
        // SAFETY: as promised by the caller.
        unsafe { gpu.shared_load(SharedPtr::from_offset(place)) }
    }

    /// Starts adding the product of 64 rows with 64 rows.
    ///
    /// # Safety
    /// Both are there; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn multiply_rows<G: Gpu>(gpu: G, a: u32, b: u32, s: &mut [f32; SCORES]) {
        for sixteen in 0..4 * Self::PANELS {
            let place = sixteen / 4 * PANEL + sixteen % 4 * 32;
            // SAFETY: as promised by the caller.
            unsafe {
                T::warpgroup_mma_columns(
                    gpu,
                    s,
                    SharedPtr::from_offset(a + place),
                    SharedPtr::from_offset(b + place),
                );
            }
        }
    }

    /// Starts adding the product of 64 × 64 numbers in pairs with 64 rows.
    ///
    /// # Safety
    /// As for [`multiply_rows`](Self::multiply_rows).
    #[inline(always)]
    unsafe fn multiply_columns<G: Gpu>(gpu: G, pairs: &[u32; SCORES / 2], b: u32, sums: &mut [f32; L]) {
        for sixteen in 0..4 {
            let first = 4 * sixteen;
            let a = [pairs[first], pairs[first + 1], pairs[first + 2], pairs[first + 3]];
            let b = SharedPtr::from_offset(b + sixteen as u32 * 16 * ROW);
            // SAFETY: as promised by the caller.
            unsafe { T::warpgroup_mma_registers::<G, L, PANEL>(gpu, sums, a, b) };
        }
    }

    /// Writes the rows that are finite. Gives a bit for each of the warp's 16 rows that is not.
    ///
    /// # Safety
    /// As for [`consume`](Self::consume).
    #[inline(always)]
    unsafe fn write<G: Gpu>(work: &Work<T, G>, warp: u32, sums: &[f32; L], values: &[f32; L]) -> u32 {
        let (gpu, factor) = (work.gpu, work.operands.factor);
        // By way of a shuffle, so that no register holds what is made of it through all steps.
        let lane = gpu.warp_shuffle_idx(FULL_WARP, gpu.lane_id(), gpu.lane_id(), WARP);
        let (side, [by_slopes, of_values]) = (work.owned::<KEYS>(), work.gradients::<KEYS>());
        let first = work.first + warp * 16;
        let mut bad = [0; 2];
        for (row, bad) in bad.iter_mut().enumerate() {
            let at = first + lane / LANES + 8 * row as u32;
            let mut finite = true;
            for i in 0..L {
                if i / 2 % 2 == row {
                    finite &= (sums[i] * factor).is_finite() && (!KEYS || values[i].is_finite());
                }
            }
            let is_there = at < side.rows;
            *bad = gpu.warp_ballot(FULL_WARP, is_there && !finite);
            if is_there && *bad >> (lane / LANES * LANES) & 15 == 0 {
                let own = |matrix: GlobalMut<T>| {
                    let own = matrix.add_rows(at, side.strides[0]).address();
                    GlobalMut::<u32>::from_address(own).add((lane % LANES) as usize)
                };
                let (by_slopes, of_values) = (own(by_slopes), own(of_values));
                for eight in 0..L / 4 {
                    let i = 4 * eight + 2 * row;
                    if 8 * (eight as u32) < work.operands.shape.dim {
                        let pair = T::pack(gpu, sums[i] * factor, sums[i + 1] * factor);
                        // SAFETY: as promised by the caller; the dimension is a multiple of 8.
                        unsafe { gpu.store(by_slopes.add(4 * eight), [pair]) };
                        if KEYS {
                            let pair = T::pack(gpu, values[i], values[i + 1]);
                            // SAFETY: as above.
                            unsafe { gpu.store(of_values.add(4 * eight), [pair]) };
                        }
                    }
                }
            }
        }
        // A bit for each row, from those of its four lanes.
        let of_row = if lane < 8 { bad[0] } else { bad[1] };
        gpu.warp_ballot(FULL_WARP, lane < 16 && of_row >> (lane % 8 * LANES) & 15 != 0)
    }
}

impl<T: HalfValue, G: Gpu> Work<T, G> {
    /// The gradients of what is owned: that by dS, and that of V.
    #[inline(always)]
    pub(super) fn gradients<const KEYS: bool>(&self) -> [GlobalMut<T>; 2] {
        let operands = &self.operands;
        let head = u64::from(self.head);
        if KEYS {
            let offset = (head * operands.shape.kv_batch_stride) as usize;
            [operands.d_k.add(offset), operands.d_v.add(offset)]
        } else {
            [operands.d_q.add((head * operands.shape.q_batch_stride) as usize), operands.d_v]
        }
    }

    /// The terms of query `query` of a head, as the first kernel left them.
    ///
    /// # Safety
    /// It is one of the head's.
    #[inline(always)]
    pub(super) unsafe fn load_terms<const KEYS: bool>(&self, index: u32, query: u32) -> [f32; TERMS] {
        let terms = GlobalPtr::<f32>::from_address(self.terms::<KEYS>(index).address());
        // SAFETY: as promised by the caller.
        unsafe { self.gpu.load_readonly(terms.add(query as usize * TERMS)) }
    }
}

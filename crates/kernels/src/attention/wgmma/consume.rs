//! The warpgroups that multiply.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::super::online::{HEADROOM, LN_2};
use super::super::score::{Score, column_and_row};
use super::block::{BITMAP_WORDS, BLOCK, BlockEntry, BlockMask};
use super::{MAX_UNITS, PANEL, PIECE, WARPGROUP, WgmmaTiles, Work};
use crate::HalfValue;
use crate::common::{add_across_lanes, reduce, strided};

/// Lanes that share a query.
const LANES: u32 = 4;

/// The softmax of a thread's two queries, eight apart, so far: weights are 2^(score − max), to be divided by their sum at last.
#[derive(Clone, Copy)]
struct Softmax {
    max: [f32; 2],
    /// Of this thread's weights.
    sum: [f32; 2],
}

impl<
    T: HalfValue,
    const L: usize,
    const PARTS: usize,
    const PIECES: usize,
    const SCORES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> WgmmaTiles<T, L, PARTS, PIECES, SCORES, GROUPS, STAGES, MODIFIES>
{
    /// Works out 64 queries, and writes the rows of O that are finite. Gives a bit for each of the warp's 16 rows that is not.
    ///
    /// # Safety
    /// The whole warpgroup is here; head and entries are live.
    #[inline(always)]
    pub(super) unsafe fn consume<G: Gpu>(work: &Work<T, G>, warp: u32) -> u32 {
        let gpu = work.gpu;
        let (group, thread) = (warp / 4, gpu.thread_idx_x() % WARPGROUP);
        let steps = work.count.div_ceil(Self::UNITS);
        let mut o = [[0.0; L]; PARTS];
        let mut softmax = Softmax { max: [f32::NEG_INFINITY; 2], sum: [0.0; 2] };
        let (mut step, mut stage) = (0, 0);
        let scale = if MODIFIES { 1.0 } else { work.operands.shape.scale };
        // SAFETY: as promised by the caller; a stage is read while it is full.
        unsafe {
            Self::copy_queries(work, group, thread);
            while step < steps {
                // It is the same for all lanes, which the compiler sees by way of a shuffle.
                let masks = [
                    BlockEntry::load_mask(gpu, work.entries, Self::UNITS * step, work.count, group),
                    if Self::UNITS == 2 {
                        BlockEntry::load_mask(gpu, work.entries, Self::UNITS * step + 1, work.count, group)
                    } else {
                        BlockMask::EMPTY
                    },
                ];
                let masks = [0, 1].map(|unit| gpu.warp_shuffle_idx(FULL_WARP, masks[unit], 0, WARP));
                gpu.barrier_sync(Self::FULL + stage * GROUPS + group, WARPGROUP + WARP);
                if masks[0] != BlockMask::EMPTY || masks[1] != BlockMask::EMPTY {
                    let mut s = [0.0; SCORES];
                    if masks[0] != BlockMask::FULL || Self::UNITS == 2 && masks[1] != BlockMask::FULL {
                        let words = [0, 1]
                            .map(|unit| Self::bits(gpu, masks[unit], stage, group, unit as u32, thread));
                        for i in 0..SCORES {
                            s[i] = if words[i / 32] >> (i % 32) & 1 != 0 { 0.0 } else { f32::NEG_INFINITY };
                        }
                    }
                    Self::multiply_keys(gpu, stage, group, &mut s);
                    if MODIFIES {
                        Self::modify(work, [step, stage, warp], masks, &mut s);
                    }
                    let weights = Self::weigh(gpu, scale, &s, &mut softmax, &mut o);
                    Self::multiply_values(gpu, stage, &weights, &mut o);
                }
                if step + STAGES < steps {
                    gpu.barrier_arrive(Self::EMPTY + stage, GROUPS * WARPGROUP + WARP);
                }
                (step, stage) = (step + 1, if stage + 1 == STAGES { 0 } else { stage + 1 });
            }
            Self::write(work, warp, &softmax, &o)
        }
    }

    /// Copies the group's queries into panels. Zeros stand for what is not there.
    ///
    /// # Safety
    /// As for [`consume`](Self::consume).
    #[inline(always)]
    unsafe fn copy_queries<G: Gpu>(work: &Work<T, G>, group: u32, thread: u32) {
        let (gpu, head) = (work.gpu, &work.head);
        let q = Self::Q + group * Self::Q_BYTES;
        // SAFETY: as promised by the caller; nothing is read of queries that are not there.
        unsafe {
            strided(thread, BLOCK * PIECES as u32, WARPGROUP, |at| {
                let (row, piece) = (at / PIECES as u32, at % PIECES as u32);
                let query = work.first + group * BLOCK + row;
                let is_there = query < work.rows && piece * 8 < head.dim;
                let from = head.q.add_rows(query, head.q_stride).add(piece as usize * 8).address();
                let to = q + piece / 8 * PANEL + (row * 8 + ((piece % 8) ^ (row % 8))) * PIECE;
                let (to, from) = (SharedPtr::from_offset(to), GlobalPtr::from_address(from));
                gpu.copy_async_or_zero::<u16, 8>(to, from, is_there);
            });
        }
        gpu.copy_async_commit();
        gpu.copy_async_wait::<0>();
        gpu.fence_async_proxy();
        gpu.barrier_sync(Self::QUERIES_COPIED + group, WARPGROUP);
    }

    /// This thread's bits of a block.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    unsafe fn bits<G: Gpu>(gpu: G, mask: u32, stage: u32, group: u32, unit: u32, thread: u32) -> u32 {
        match mask {
            BlockMask::EMPTY => 0,
            BlockMask::FULL => u32::MAX,
            _ => {
                let place = Self::BITMAPS + (Self::slot(stage, group, unit) * BITMAP_WORDS + thread) * 4;
                // SAFETY: as promised by the caller.
                let [word] = unsafe { gpu.shared_load(SharedPtr::from_offset(place)) };
                word
            }
        }
    }

    /// Adds Q·Kᵀ to scores.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn multiply_keys<G: Gpu>(gpu: G, stage: u32, group: u32, s: &mut [f32; SCORES]) {
        let (q, k) = (Self::Q + group * Self::Q_BYTES, Self::K + stage * Self::KV_BYTES);
        gpu.warpgroup_arrive();
        for pair in 0..PIECES as u32 / 2 {
            let (panel, at) = (pair / 4, pair % 4 * 2 * PIECE);
            let a = SharedPtr::from_offset(q + panel * PANEL + at);
            let b = SharedPtr::from_offset(k + panel * Self::UNITS * PANEL + at);
            // SAFETY: as promised by the caller.
            unsafe { T::warpgroup_mma_columns(gpu, s, a, b) };
        }
        gpu.warpgroup_commit();
        gpu.warpgroup_wait::<0, SCORES>(s);
    }

    /// Makes scores of products: within the soft cap, and lessened by distance. What is not seen stays -∞, which the cap has not.
    ///
    /// # Safety
    /// The stage is full; the step's entries are live.
    #[inline(always)]
    unsafe fn modify<G: Gpu>(
        work: &Work<T, G>,
        [step, stage, warp]: [u32; 3],
        masks: [u32; MAX_UNITS],
        s: &mut [f32; SCORES],
    ) {
        let (gpu, lane) = (work.gpu, work.gpu.lane_id());
        // SAFETY: as promised by the caller.
        let score = unsafe {
            Score::of::<G, true>(gpu, &work.operands.shape, work.operands.slopes, gpu.block_idx_x())
        };
        let (group, thread) = (warp / 4, gpu.thread_idx_x() % WARPGROUP);
        let query = work.first + warp * 16 + lane / LANES;
        let (mut bits, mut ahead) = ([0; MAX_UNITS], [[0.0; 2]; MAX_UNITS]);
        for unit in 0..Self::UNITS as usize {
            // SAFETY: as promised by the caller.
            unsafe {
                let index = Self::UNITS * step + unit as u32;
                let block = BlockEntry::load_key_block(gpu, work.entries, index, work.count);
                bits[unit] = Self::bits(gpu, masks[unit], stage, group, unit as u32, thread);
                ahead[unit] = score.ahead_of_key(query, block * BLOCK + lane % LANES * 2);
            }
        }
        score.cap(gpu, s);
        for (i, s) in s.iter_mut().enumerate() {
            let (column, row) = column_and_row(i % 32);
            let distance = (ahead[i / 32][row] - column).abs();
            let modified = score.biased(gpu, *s, distance);
            *s = if bits[i / 32] >> (i % 32) & 1 != 0 { modified } else { f32::NEG_INFINITY };
        }
    }

    /// Makes weights of scores, in pairs as products take them. If scores are larger than those before, what was summed is rescaled.
    #[inline(always)]
    fn weigh<G: Gpu>(
        gpu: G,
        scale: f32,
        s: &[f32; SCORES],
        softmax: &mut Softmax,
        o: &mut [[f32; L]; PARTS],
    ) -> [u32; MAX_UNITS * 16] {
        let mut largest = [f32::NEG_INFINITY; 2];
        for i in 0..SCORES {
            // NaN is left out: it shows in the sum.
            largest[i / 2 % 2] = largest[i / 2 % 2].max(s[i]);
        }
        let largest = [largest[0] * scale, largest[1] * scale];
        let grows = largest[0] > softmax.max[0] + HEADROOM || largest[1] > softmax.max[1] + HEADROOM;
        if gpu.warp_any(FULL_WARP, grows) {
            let mut factors = [1.0; 2];
            for row in 0..2 {
                let max = softmax.max[row].max(reduce(gpu, FULL_WARP, LANES, largest[row], f32::max));
                // Before the first finite score this is 0, and so are the sums.
                if max != softmax.max[row] {
                    factors[row] = gpu.exp2_flush(softmax.max[row] - max);
                }
                softmax.sum[row] *= factors[row];
                softmax.max[row] = max;
            }
            for part in o.iter_mut() {
                for i in 0..L {
                    part[i] *= factors[i / 2 % 2];
                }
            }
        }
        // While all scores are -∞, their weights are 0, not 2^(∞ - ∞).
        let shift = |row: usize| if softmax.max[row] == f32::NEG_INFINITY { 0.0 } else { -softmax.max[row] };
        let shifts = [shift(0), shift(1)];
        let mut weights = [0; MAX_UNITS * 16];
        for pair in 0..SCORES / 2 {
            let row = pair % 2;
            let low = gpu.exp2_flush(gpu.fma(s[2 * pair], scale, shifts[row]));
            let high = gpu.exp2_flush(gpu.fma(s[2 * pair + 1], scale, shifts[row]));
            softmax.sum[row] += low + high;
            weights[pair] = T::pack(gpu, low, high);
        }
        weights
    }

    /// Adds the weights times V to O.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn multiply_values<G: Gpu>(
        gpu: G,
        stage: u32,
        weights: &[u32; MAX_UNITS * 16],
        o: &mut [[f32; L]; PARTS],
    ) {
        let v = stage * Self::KV_BYTES;
        gpu.warpgroup_arrive();
        for sixteen in 0..Self::KEYS as usize / 16 {
            let first = 4 * sixteen;
            let a = [weights[first], weights[first + 1], weights[first + 2], weights[first + 3]];
            for (part, o) in o.iter_mut().enumerate() {
                let first = v + part as u32 * (L as u32 / 32) * Self::UNITS * PANEL;
                let b = SharedPtr::from_offset(first + sixteen as u32 * 16 * 8 * PIECE);
                // SAFETY: as promised by the caller.
                unsafe {
                    if Self::UNITS == 2 {
                        T::warpgroup_mma_registers::<G, L, { 2 * PANEL }>(gpu, o, a, b);
                    } else {
                        T::warpgroup_mma_registers::<G, L, PANEL>(gpu, o, a, b);
                    }
                }
            }
        }
        gpu.warpgroup_commit();
        for part in o.iter_mut() {
            gpu.warpgroup_wait::<0, L>(part);
        }
    }

    /// Writes rows of O that are finite, and their logarithms. Gives a bit for each of the warp's 16 rows that is not.
    ///
    /// # Safety
    /// As for [`consume`](Self::consume).
    #[inline(always)]
    unsafe fn write<G: Gpu>(work: &Work<T, G>, warp: u32, softmax: &Softmax, o: &[[f32; L]; PARTS]) -> u32 {
        let (gpu, head, lane) = (work.gpu, &work.head, work.gpu.lane_id());
        let first = work.first + warp * 16;
        let mut bad = [0; 2];
        for (row, bad) in bad.iter_mut().enumerate() {
            let sum = add_across_lanes(gpu, FULL_WARP, [1, LANES], softmax.sum[row]);
            let inverse = gpu.rcp_approx(sum);
            let query = first + lane / LANES + 8 * row as u32;
            let mut finite = true;
            for (i, sum) in o.as_flattened().iter().enumerate() {
                if i / 2 % 2 == row {
                    finite &= (sum * inverse).is_finite();
                }
            }
            let is_there = query < work.rows;
            *bad = gpu.warp_ballot(FULL_WARP, is_there && !finite);
            let row_is_good = *bad >> (lane / LANES * LANES) & 15 == 0;
            if is_there && row_is_good {
                let to = head.o.add_rows(query, head.o_stride).address();
                let to = GlobalMut::<u32>::from_address(to).add((lane % LANES) as usize);
                for eight in 0..PIECES {
                    let (part, at) = (eight / (L / 4), 4 * (eight % (L / 4)) + 2 * row);
                    if 8 * (eight as u32) < head.dim {
                        let pair = T::pack(gpu, o[part][at] * inverse, o[part][at + 1] * inverse);
                        // SAFETY: as promised by the caller; the dimension is a multiple of 8.
                        unsafe { gpu.store(to.add(4 * eight), [pair]) };
                    }
                }
                if lane.is_multiple_of(LANES) {
                    let logsumexp = LN_2 * (softmax.max[row] + gpu.log2_approx(sum));
                    // SAFETY: as promised by the caller.
                    unsafe { head.store_logsumexp(gpu, query, logsumexp) };
                }
            }
        }
        // A bit for each row, from those of its four lanes.
        let of_row = if lane < 8 { bad[0] } else { bad[1] };
        gpu.warp_ballot(FULL_WARP, lane < 16 && of_row >> (lane % 8 * LANES) & 15 != 0)
    }
}

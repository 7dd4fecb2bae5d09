//! The warpgroups that multiply.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::super::score::Score;
use super::super::tile_rows::{LANES, MOST_PAIRS, Softmax, modify, seen};
use super::block::{BITMAP_WORDS, BLOCK, BlockEntry, BlockMask};
use super::{MAX_UNITS, PANEL, PIECE, WARPGROUP, WgmmaTiles, WgmmaValue, Work};
use crate::common::{PASSES, Rows, strided};

impl<
    T: WgmmaValue,
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
        let mut softmax = Softmax::NEW;
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
                let full = Self::FULL + stage * GROUPS + group;
                gpu.barrier_sync(if Self::HALVES { Self::FULL_OF_KEYS } else { full }, Self::AT_FULL);
                let has_next = step + STAGES < steps;
                if masks[0] != BlockMask::EMPTY || masks[1] != BlockMask::EMPTY {
                    let mut s = [0.0; SCORES];
                    if masks[0] != BlockMask::FULL || Self::UNITS == 2 && masks[1] != BlockMask::FULL {
                        let words = [0, 1].map(|unit| {
                            Self::bits(
                                gpu,
                                masks[unit],
                                Self::bitmap_stage(step, stage),
                                group,
                                unit as u32,
                                thread,
                            )
                        });
                        s = seen(words);
                    }
                    Self::multiply_keys(gpu, stage, group, &mut s);
                    if MODIFIES {
                        Self::modify(work, [step, Self::bitmap_stage(step, stage), warp], masks, &mut s);
                    }
                    if Self::HALVES && has_next {
                        gpu.barrier_arrive(Self::EMPTY_OF_KEYS, Self::AT_EMPTY);
                    }
                    let weights = softmax.weigh::<_, T, SCORES, L, PARTS>(gpu, scale, &s, &mut o);
                    if Self::HALVES {
                        gpu.barrier_sync(full, Self::AT_FULL);
                    }
                    Self::multiply_values(gpu, stage, &weights, &mut o);
                }
                if has_next {
                    gpu.barrier_arrive(Self::EMPTY + stage, Self::AT_EMPTY);
                }
                (step, stage) = (step + 1, if stage + 1 == STAGES { 0 } else { stage + 1 });
            }
            softmax.write(gpu, &work.head, [work.first + warp * 16, work.rows], &o)
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
        let rows = Rows {
            matrix: head.q,
            first: work.first + group * BLOCK,
            end: work.rows,
            stride_bytes: head.q_stride,
        };
        // SAFETY: as promised by the caller; nothing is read of queries that are not there.
        unsafe {
            for panel in 0..Self::DIM / 64 {
                let loaded = T::load::<G, PASSES>(gpu, &rows, [64 * panel, head.dim]);
                T::store::<G, PASSES>(gpu, &loaded, q + panel * PANEL, Self::Q_PART);
            }
            let pieces = if T::PARTS > 1 { 0 } else { BLOCK * PIECES as u32 };
            strided(thread, pieces, WARPGROUP, |at| {
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

    /// A place; of long rows in parts by way of a shuffle, so that no register holds what is made of it through all steps.
    #[inline(always)]
    fn opaque<G: Gpu>(gpu: G, place: u32) -> u32 {
        if T::PARTS > 1 && PARTS > 1 { gpu.warp_shuffle_idx(FULL_WARP, place, 0, WARP) } else { place }
    }

    /// Adds Q·Kᵀ to scores.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn multiply_keys<G: Gpu>(gpu: G, stage: u32, group: u32, s: &mut [f32; SCORES]) {
        let q = Self::opaque(gpu, Self::Q + group * Self::Q_BYTES);
        let k = Self::opaque(gpu, Self::K + stage * Self::KV_BYTES);
        gpu.warpgroup_arrive();
        for pair in 0..PIECES as u32 / 2 {
            let (panel, at) = (pair / 4, pair % 4 * 2 * PIECE);
            let (a, b) = (q + panel * PANEL + at, k + panel * Self::UNITS * PANEL + at);
            // SAFETY: as promised by the caller.
            unsafe { T::multiply(gpu, s, (a, Self::Q_PART), (b, Self::KV_PART)) };
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
        modify(gpu, score, bits, ahead, s);
    }

    /// Adds the weights times V to O.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn multiply_values<G: Gpu>(
        gpu: G,
        stage: u32,
        weights: &[[u32; 2]; MOST_PAIRS],
        o: &mut [[f32; L]; PARTS],
    ) {
        let v = Self::opaque(gpu, stage * Self::KV_BYTES);
        gpu.warpgroup_arrive();
        for sixteen in 0..Self::KEYS as usize / 16 {
            let first = 4 * sixteen;
            let a = [0, 1].map(|part| core::array::from_fn(|i| weights[first + i][part]));
            for (part, o) in o.iter_mut().enumerate() {
                let first = v + part as u32 * (L as u32 / 32) * Self::UNITS * PANEL;
                let b = (first + sixteen as u32 * 16 * 8 * PIECE, Self::KV_PART);
                // SAFETY: as promised by the caller.
                unsafe {
                    if Self::UNITS == 2 {
                        T::multiply_weights::<G, L, { 2 * PANEL }>(gpu, o, a, b);
                    } else {
                        T::multiply_weights::<G, L, PANEL>(gpu, o, a, b);
                    }
                }
            }
        }
        gpu.warpgroup_commit();
        for part in o.iter_mut() {
            gpu.warpgroup_wait::<0, L>(part);
        }
    }
}

//! What a warpgroup has before its first step: its rows in shared memory, and the terms of queries.
use core::ops::Range;

use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use super::super::tile_rows::LANES;
use super::super::wgmma::{BLOCK, WgmmaValue};
use super::side::Side;
use super::{BackwardTiles, PANEL, TERMS, WARPGROUP, Work};
use crate::common::{PASSES, add_across_lanes, strided};

/// What a thread knows of its two queries, eight apart, where queries are owned.
#[derive(Clone, Copy)]
pub(super) struct RowTerms {
    pub(super) shift: [f32; 2],
    pub(super) delta: [f32; 2],
}

impl RowTerms {
    /// Where keys are owned: each step brings its own.
    pub(super) const NONE: Self = Self { shift: [0.0; 2], delta: [0.0; 2] };
}

impl<
    T: WgmmaValue,
    const KEYS: bool,
    const L: usize,
    const PARTS: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> BackwardTiles<T, KEYS, L, PARTS, GROUPS, STAGES, MODIFIES>
{
    /// Copies a group's rows of these matrices, of two, and works out the terms of queries; barrier `COPIED` + `warpgroup` is this warpgroup's.
    ///
    /// # Safety
    /// The whole warpgroup is here; operands are live.
    #[inline(always)]
    pub(super) unsafe fn begin<G: Gpu>(
        work: &Work<T, G>,
        (group, warpgroup): (u32, u32),
        matrices: Range<usize>,
    ) -> RowTerms {
        let (gpu, first, dim) = (work.gpu, work.first + group * BLOCK, work.operands.shape.dim);
        let (side, thread) = (work.owned::<KEYS>(), gpu.thread_idx_x() % WARPGROUP);
        // SAFETY: as promised by the caller.
        let terms = unsafe {
            for matrix in matrices {
                let to = Self::OWNED + group * Self::PAIR + matrix as u32 * Self::MATRIX;
                if T::PARTS > 1 {
                    for panel in 0..Self::PANELS {
                        let loaded = T::load::<G, PASSES>(gpu, &side.rows(matrix, first), [64 * panel, dim]);
                        T::store::<G, PASSES>(gpu, &loaded, to + panel * PANEL, Self::PART);
                    }
                } else {
                    side.copy(gpu, matrix, (first, BLOCK, dim), (to, Self::PANELS), (thread, WARPGROUP));
                }
            }
            gpu.copy_async_commit();
            if KEYS { RowTerms::NONE } else { work.row_terms(&side, first, thread) }
        };
        gpu.copy_async_wait::<0>();
        gpu.fence_async_proxy();
        gpu.barrier_sync(Self::COPIED + warpgroup, WARPGROUP);
        terms
    }
}

impl<T: WgmmaValue, G: Gpu> Work<T, G> {
    /// Works out the terms of 64 queries, two threads each, and writes them. Gives those of the thread's two rows.
    ///
    /// # Safety
    /// Whole warps are here, 16 queries each; operands are live.
    #[inline(always)]
    pub(super) unsafe fn row_terms(&self, side: &Side<T>, first: u32, thread: u32) -> RowTerms {
        let (gpu, operands) = (self.gpu, &self.operands);
        let (query, half) = (first + thread / 2, thread % 2);
        let is_there = query < side.rows;
        let (mut delta, mut logsumexp) = (0.0, 0.0);
        if is_there {
            let o = operands.o.add((u64::from(self.head) * operands.shape.o_batch_stride) as usize);
            let [o, d_o] = [o, side.matrices[1]].map(|matrix| matrix.add_rows(query, side.strides[1]));
            let queries = u64::from(self.head) * u64::from(operands.shape.rows);
            // SAFETY: as promised by the caller; rows are whole vectors of 16 bytes.
            unsafe {
                let vector = 16 / size_of::<T>() as u32;
                strided(vector * half, operands.shape.dim, 2 * vector, |column| {
                    delta = T::add_products(gpu, [o, d_o].map(|row| row.add(column as usize)), delta);
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
            unsafe { gpu.store(self.terms::<false>(0).add(query as usize * TERMS), [shift, delta]) };
        }
        // Row r of a warp is with lane 2r; a thread's rows are lane / 4 and 8 more.
        let row = gpu.lane_id() / LANES;
        let of = |value: f32, row: u32| gpu.warp_shuffle_idx(FULL_WARP, value, 2 * row, WARP);
        RowTerms { shift: [of(shift, row), of(shift, row + 8)], delta: [of(delta, row), of(delta, row + 8)] }
    }
}

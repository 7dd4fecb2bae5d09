//! Rows that are not finite, pair by pair: what a row does not see does not reach it.
use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use super::super::lanes::{ABSENT, Fragment, dot};
use super::super::row::Keys as _;
use super::super::wgmma::{BLOCK, BlockKeys, WgmmaValue};
use super::Work;
use super::begin::RowTerms;
use crate::common::{add_across_lanes, widened};

impl<T: WgmmaValue, G: Gpu> Work<T, G> {
    /// Works out rows of 16 of a group anew, a bit each, by the warp whose rows they are: the gradient by dS, that of V, or both, as
    /// `wanted`. They have up to `panels` times 64 elements.
    ///
    /// # Safety
    /// The whole warp is here, whose rows they are; operands and entries are live.
    #[inline(always)]
    pub(super) unsafe fn work_out_anew<const KEYS: bool, const MODIFIES: bool>(
        &self,
        (warp, mut again, panels): (u32, u32, u32),
        wanted: [bool; 2],
        terms: &RowTerms,
    ) {
        // By way of a shuffle, so that no register holds through all steps what is made of it there.
        let head = self.gpu.warp_shuffle_idx(FULL_WARP, self.head, 0, WARP);
        let work = &Work { head, ..*self };
        while again != 0 {
            let row = (warp / 4, warp % 4 * 16 + again.trailing_zeros());
            again &= again - 1;
            // SAFETY: as promised by the caller. A lane has single elements of a row.
            unsafe {
                if panels > 2 {
                    work.work_out_row::<8, KEYS, MODIFIES>(row, wanted, terms);
                } else {
                    work.work_out_row::<4, KEYS, MODIFIES>(row, wanted, terms);
                }
            }
        }
    }

    /// Works out row `row` of a group by one warp, in `f32`, and writes it. A lane has up to `CHUNKS` elements of it.
    ///
    /// # Safety
    /// The whole warp is here, whose row it is; operands and entries are live.
    #[inline(always)]
    unsafe fn work_out_row<const CHUNKS: usize, const KEYS: bool, const MODIFIES: bool>(
        &self,
        (group, row): (u32, u32),
        wanted: [bool; 2],
        terms: &RowTerms,
    ) {
        let (gpu, lane, operands) = (self.gpu, self.gpu.lane_id(), &self.operands);
        let part = Fragment::<1, { WARP as usize }, CHUNKS>::of(lane, operands.shape.dim);
        let (side, at) = (self.owned::<KEYS>(), self.first + group * BLOCK + row);
        let end = self.count * BLOCK;
        let keys = BlockKeys { entries: self.entries, bitmaps: self.bitmaps, end, group, query: row };
        let of_row = |value: [f32; 2]| {
            let own = if row % 16 < 8 { value[0] } else { value[1] };
            gpu.warp_shuffle_idx(FULL_WARP, own, row % 8 * 4, WARP)
        };
        let own_terms = [of_row(terms.shift), of_row(terms.delta)];
        let (mut sums, mut values) = ([[0.0; 1]; CHUNKS], [[0.0; 1]; CHUNKS]);
        // SAFETY: as promised by the caller; columns that are not absent are rows of what streams.
        unsafe {
            let load = |matrix, stride, row| widened(gpu, &part.load(gpu, matrix, stride, row));
            let own =
                [load(side.matrices[0], side.strides[0], at), load(side.matrices[1], side.strides[1], at)];
            for head in 0..self.heads {
                let (streamed, scores) = (self.streamed::<KEYS>(head), self.score::<KEYS, MODIFIES>(head));
                let mut base = 0;
                while base < end {
                    // A block that is seen whole may have queries past the last.
                    let column = keys.column(gpu, base + lane);
                    let is_there = column != ABSENT && column < streamed.rows;
                    let mut left = gpu.warp_ballot(FULL_WARP, is_there);
                    base += WARP;
                    while left != 0 {
                        let other = gpu.warp_shuffle_idx(FULL_WARP, column, left.trailing_zeros(), WARP);
                        left &= left - 1;
                        let first = load(streamed.matrices[0], streamed.strides[0], other);
                        let second = load(streamed.matrices[1], streamed.strides[1], other);
                        let sum = |part: f32| add_across_lanes(gpu, FULL_WARP, [1, WARP], part);
                        let (of_pair, product) =
                            (sum(dot(gpu, &own[0], &first)), sum(dot(gpu, &own[1], &second)));
                        let [shift, delta] =
                            if KEYS { self.load_terms::<KEYS>(head, other) } else { own_terms };
                        let mut capped = [of_pair];
                        scores.cap(gpu, &mut capped);
                        let [capped] = capped;
                        let (query, key) = if KEYS { (other, at) } else { (at, other) };
                        let [distance, _] = scores.ahead_of_key(query, key);
                        let weight = gpu.exp2_flush(scores.biased(gpu, capped, distance.abs()) + shift);
                        let slope = weight * scores.slope_of_cap(capped) * (product - delta);
                        for i in 0..CHUNKS {
                            sums[i][0] = gpu.fma(slope, first[i][0], sums[i][0]);
                            values[i][0] = gpu.fma(weight, second[i][0], values[i][0]);
                        }
                    }
                }
            }
            for sum in sums.as_flattened_mut() {
                *sum *= operands.factor;
            }
            let [by_slopes, of_values] = self.gradients::<KEYS>();
            if wanted[0] {
                part.store(gpu, by_slopes, side.strides[0], at, &sums);
            }
            if wanted[1] {
                part.store(gpu, of_values, side.strides[0], at, &values);
            }
        }
    }
}

//! Weights of scores that are within a soft cap, or lessened by distance.
use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

use super::super::score::{Score, column_and_row};
use super::super::wgmma::{BITMAP_WORDS, BLOCK, BlockEntry, BlockMask, WgmmaValue};
use super::begin::RowTerms;
use super::consume::Place;
use super::multiply::{LANES, Pairs};
use super::{BackwardTiles, SCORES, TERMS, Work};

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
    /// Makes weights of products, packed where keys are owned, by scores that are within a soft cap or lessened by distance; and leaves them
    /// times the slopes of their caps.
    ///
    /// # Safety
    /// As for [`consume`](Self::consume); the stage is full.
    #[inline(always)]
    pub(super) unsafe fn weigh_modified<G: Gpu>(
        work: &Work<T, G>,
        &Place { step, index, stage, warp }: &Place,
        mask: u32,
        terms: &RowTerms,
        s: &mut [f32; SCORES],
        weights: &mut Pairs,
    ) {
        let gpu = work.gpu;
        // By way of a shuffle, so that no register holds what is made of it through all steps.
        let lane = gpu.warp_shuffle_idx(FULL_WARP, gpu.lane_id(), gpu.lane_id(), WARP);
        // SAFETY: as promised by the caller.
        let (block, bits, score) = unsafe {
            let block = BlockEntry::load_key_block(gpu, work.entries, index, work.count);
            // Heads are gone through with all entries each.
            let score = work.score::<KEYS, MODIFIES>(step / work.count);
            (block, Self::bits(gpu, (stage, warp / 4), mask), score)
        };
        let (row, column) = (work.first + warp * 16 + lane / LANES, block * BLOCK + lane % LANES * 2);
        let ahead = if KEYS { score.ahead_of_query(row, column) } else { score.ahead_of_key(row, column) };
        let bits = if KEYS { bits & present(work.operands.shape.rows.wrapping_sub(column)) } else { bits };
        let of_block = (score, ahead, bits);
        // SAFETY: as promised by the caller.
        unsafe {
            if score.has_cap() {
                score.cap(gpu, s);
                Self::weigh_each::<G, true>(gpu, stage, of_block, terms, s, weights);
            } else {
                Self::weigh_each::<G, false>(gpu, stage, of_block, terms, s, weights);
            }
        }
    }

    /// The same of what [`Score::cap`] gave, if `CAPS`, or of products: with how far rows are ahead of the first column, and the bits of what is
    /// seen.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    unsafe fn weigh_each<G: Gpu, const CAPS: bool>(
        gpu: G,
        stage: u32,
        (score, ahead, bits): (Score, [f32; 2], u32),
        terms: &RowTerms,
        s: &mut [f32; SCORES],
        weights: &mut Pairs,
    ) {
        for (pair, packed) in weights.iter_mut().enumerate() {
            let first = 2 * pair;
            // SAFETY: as promised by the caller.
            let of_columns = unsafe { Self::column_terms(gpu, stage, pair as u32 / 2) };
            let capped = [s[first], s[first + 1]];
            for i in 0..2 {
                let shift = if KEYS { of_columns[i * TERMS] } else { terms.shift[pair % 2] };
                let (column, row) = column_and_row(first + i);
                let modified = score.biased(gpu, capped[i], (ahead[row] - column).abs());
                // The cap of what is not seen is not -∞.
                let modified = if bits >> (first + i) & 1 != 0 { modified } else { f32::NEG_INFINITY };
                s[first + i] = gpu.exp2_flush(modified + shift);
            }
            if KEYS {
                *packed = T::split(gpu, s[first], s[first + 1]);
            }
            if CAPS {
                for i in 0..2 {
                    s[first + i] *= gpu.fma(-capped[i], capped[i], 1.0);
                }
            }
        }
    }

    /// This thread's bits of a block.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    pub(super) unsafe fn bits<G: Gpu>(gpu: G, (stage, group): (u32, u32), mask: u32) -> u32 {
        if mask == BlockMask::FULL {
            return u32::MAX;
        }
        let place = Self::bitmap(stage, group) + gpu.thread_idx_x() % BITMAP_WORDS * 4;
        // SAFETY: as promised by the caller.
        let [bits] = unsafe { gpu.shared_load(SharedPtr::from_offset(place)) };
        bits
    }
}

/// The bits of scores whose columns are below `left`, counted from the thread's first: a block that is seen whole may have rows past the
/// last, whose weights are not to grow with distance.
#[inline(always)]
fn present(left: u32) -> u32 {
    // Two columns of each eight are this thread's, in two rows.
    let whole = left / 8;
    let of_eight = match left % 8 {
        0 => 0,
        1 => 0b0101,
        _ => 0b1111,
    };
    if left as i32 <= 0 {
        0
    } else if whole >= 8 {
        u32::MAX
    } else {
        ((1 << (4 * whole)) - 1) | of_eight << (4 * whole)
    }
}

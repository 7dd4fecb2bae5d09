//! Weights of scores that are within a soft cap, or lessened by distance.
use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use super::super::score::{Score, column_and_row};
use super::super::tile_rows::LANES;
use super::super::wgmma::{BLOCK, BlockEntry, WgmmaValue};
use super::begin::RowTerms;
use super::weights::column_terms;
use super::{Pairs, TERMS, Work};

/// Whose scores a warp makes: columns of a block.
pub(super) struct ScoreBlock {
    /// The head of those that are gone through, and the block's entry.
    pub(super) head: u32,
    pub(super) index: u32,
    /// The warp, of those that own rows: 16 each.
    pub(super) warp: u32,
    /// The first of the columns that are taken, of 64.
    pub(super) column: u32,
    /// The lane's bits of what is seen of them.
    pub(super) bits: u32,
    /// Where their queries' terms are, where keys are owned.
    pub(super) terms: u32,
}

impl<T: WgmmaValue, G: Gpu> Work<T, G> {
    /// Makes weights of products, packed where keys are owned, by scores that are within a soft cap or lessened by distance; and leaves them
    /// times the slopes of their caps.
    ///
    /// # Safety
    /// The whole warp is here; entries are live, and the terms are there.
    #[inline(always)]
    pub(super) unsafe fn weigh_modified<const KEYS: bool, const N: usize>(
        &self,
        block: &ScoreBlock,
        terms: &RowTerms,
        s: &mut [f32; N],
        weights: &mut Pairs,
    ) {
        let gpu = self.gpu;
        // By way of a shuffle, so that no register holds what is made of it through all steps.
        let lane = gpu.warp_shuffle_idx(FULL_WARP, gpu.lane_id(), gpu.lane_id(), WARP);
        // SAFETY: as promised by the caller.
        let (number, score) = unsafe {
            let number = BlockEntry::load_key_block(gpu, self.entries, block.index, self.count);
            (number, self.score::<KEYS, true>(block.head))
        };
        let (row, column) =
            (self.first + block.warp * 16 + lane / LANES, number * BLOCK + block.column + lane % LANES * 2);
        let ahead = if KEYS { score.ahead_of_query(row, column) } else { score.ahead_of_key(row, column) };
        let bits = if KEYS {
            block.bits & present(self.operands.shape.rows.wrapping_sub(column))
        } else {
            block.bits
        };
        let of_block = (score, ahead, bits);
        // SAFETY: as promised by the caller.
        unsafe {
            if score.has_cap() {
                score.cap(gpu, s);
                weigh_each::<G, T, KEYS, true, N>(gpu, block.terms, of_block, terms, s, weights);
            } else {
                weigh_each::<G, T, KEYS, false, N>(gpu, block.terms, of_block, terms, s, weights);
            }
        }
    }
}

/// The same of what [`Score::cap`] gave, if `CAPS`, or of products: with how far rows are ahead of the first column, and the bits of what is
/// seen.
///
/// # Safety
/// The terms are there.
#[inline(always)]
unsafe fn weigh_each<G: Gpu, T: WgmmaValue, const KEYS: bool, const CAPS: bool, const N: usize>(
    gpu: G,
    place: u32,
    (score, ahead, bits): (Score, [f32; 2], u32),
    terms: &RowTerms,
    s: &mut [f32; N],
    weights: &mut Pairs,
) {
    for (pair, packed) in weights[..N / 2].iter_mut().enumerate() {
        let first = 2 * pair;
        // SAFETY: as promised by the caller.
        let of_columns = unsafe { column_terms::<G, KEYS>(gpu, place, pair as u32 / 2) };
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

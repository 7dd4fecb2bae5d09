//! What becomes of the product of a query and a key before the softmax: scale, soft cap, and a bias by distance.
//!
//! Sources: Gemma Team, *Gemma 2* (2024), section 2, for the soft cap; Press, Smith, Lewis, *Train Short, Test Long* (ALiBi, ICLR
//! 2022), section 3, for the bias.
use lacuna_gpu::{GlobalPtr, Gpu};

use super::Shape;

/// How products become scores, in powers of two; of one head.
#[derive(Clone, Copy)]
pub(super) struct Score {
    pub(super) scale: f32,
    softcap: f32,
    /// What a step of distance takes, in powers of two.
    slope: f32,
    /// Keys beyond queries: the last query is as far as the last key.
    past: u32,
}

impl Score {
    /// The scores of head `head`, whose slope is among `slopes`, if there are any.
    ///
    /// # Safety
    /// The slopes are live, and the head has one; or their address is 0.
    #[inline(always)]
    pub(super) unsafe fn of<G: Gpu>(gpu: G, shape: &Shape, slopes: GlobalPtr<f32>, head: u32) -> Self {
        let mut slope = 0.0;
        if slopes.address() != 0 {
            // SAFETY: as promised by the caller.
            [slope] = unsafe { gpu.load_readonly(slopes.add(head as usize)) };
        }
        Self {
            scale: shape.scale,
            softcap: shape.softcap,
            slope: slope * core::f32::consts::LOG2_E,
            past: shape.cols.wrapping_sub(shape.rows),
        }
    }

    /// Whether a score is a product times the scale.
    #[inline(always)]
    pub(super) fn is_plain(self) -> bool {
        self.softcap == 0.0 && self.slope == 0.0
    }

    /// A product within the soft cap, of which it is the part, from -1 to 1; the product itself where there is none.
    #[inline(always)]
    pub(super) fn cap<G: Gpu>(self, gpu: G, product: f32) -> f32 {
        if self.softcap == 0.0 {
            return product;
        }
        // The hyperbolic tangent. Large exponentials are ∞, whose reciprocal is 0.
        let exponential = gpu.exp2_flush(product * self.softcap);
        gpu.fma(-2.0, gpu.rcp_approx(1.0 + exponential), 1.0)
    }

    /// What the slope of a score, times what [`cap`](Self::cap) gave, is of that of its product.
    #[inline(always)]
    pub(super) fn slope_of_cap(self, capped: f32) -> f32 {
        if self.softcap == 0.0 { 1.0 } else { 1.0 - capped * capped }
    }

    /// The score, of what [`cap`](Self::cap) gave.
    #[inline(always)]
    pub(super) fn biased<G: Gpu>(self, gpu: G, capped: f32, distance: f32) -> f32 {
        gpu.fma(-self.slope, distance, capped * self.scale)
    }

    /// The score of a query and a key.
    #[inline(always)]
    pub(super) fn of_pair<G: Gpu>(self, gpu: G, product: f32, query: u32, key: u32) -> f32 {
        if self.is_plain() {
            return product * self.scale;
        }
        let distance = query.wrapping_add(self.past).wrapping_sub(key) as i32 as f32;
        self.biased(gpu, self.cap(gpu, product), distance.abs())
    }

    /// How far queries `query` and `query` + 8 are past a key.
    #[inline(always)]
    pub(super) fn ahead_of_key(self, query: u32, key: u32) -> [f32; 2] {
        rows_ahead(query.wrapping_add(self.past).wrapping_sub(key))
    }

    /// How far keys `key` and `key` + 8 are past a query.
    #[inline(always)]
    pub(super) fn ahead_of_query(self, key: u32, query: u32) -> [f32; 2] {
        rows_ahead(key.wrapping_sub(self.past).wrapping_sub(query))
    }
}

/// Of two rows that are eight apart, as a thread of a warpgroup has them.
#[inline(always)]
fn rows_ahead(first: u32) -> [f32; 2] {
    [first as i32 as f32, first.wrapping_add(8) as i32 as f32]
}

/// The column of a thread's score `at` among those of a warpgroup's product, from the thread's first; and which of its two rows.
#[inline(always)]
pub(super) const fn column_and_row(at: usize) -> (f32, usize) {
    ((at / 4 * 8 + at % 2) as f32, at / 2 % 2)
}

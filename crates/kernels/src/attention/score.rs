//! What becomes of the product of a query and a key before the softmax: scale, soft cap, and a bias by distance.
//!
//! Sources: Gemma Team, *Gemma 2* (2024), section 2, for the soft cap; Press, Smith, Lewis, *Train Short, Test Long* (ALiBi, ICLR
//! 2022), section 3, for the bias.
use lacuna_gpu::{GlobalPtr, Gpu};

use super::Shape;

/// Half the natural logarithm of 2.
const HALF_LN_2: f32 = core::f32::consts::LN_2 / 2.0;
/// Below this exponent, a hyperbolic tangent of 0.25, the series is nearer than what the exponential gives.
const SMALL: f32 = 0.25 / HALF_LN_2;
/// tanh(x) / x − 1 is −x²/3 + 2x⁴/15 − 17x⁶/315 …, of x² in place of which an exponent's square is multiplied.
const SERIES: [f32; 3] = {
    let square = HALF_LN_2 * HALF_LN_2;
    [-square / 3.0, 2.0 * square * square / 15.0, -17.0 * square * square * square / 315.0]
};

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
    /// The scores of head `head`, whose slope is among `slopes`, if there are any and the kernel `MODIFIES` scores.
    ///
    /// # Safety
    /// The slopes are live, and the head has one; or their address is 0.
    #[inline(always)]
    pub(super) unsafe fn of<G: Gpu, const MODIFIES: bool>(
        gpu: G,
        shape: &Shape,
        slopes: GlobalPtr<f32>,
        head: u32,
    ) -> Self {
        let mut slope = 0.0;
        if MODIFIES && slopes.address() != 0 {
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

    /// Whether there is a soft cap.
    #[inline(always)]
    pub(super) fn has_cap(self) -> bool {
        self.softcap != 0.0
    }

    /// Holds products within the soft cap, if there is one: they become parts of it, from -1 to 1.
    #[inline(always)]
    pub(super) fn cap<G: Gpu>(self, gpu: G, products: &mut [f32]) {
        if self.has_cap() {
            for product in products {
                // The hyperbolic tangent of half of an exponent, of which large exponentials are ∞, whose reciprocal is 0. Small ones
                // would cancel, and have its series.
                let exponent = *product * self.softcap;
                let [x, square] = [exponent * HALF_LN_2, exponent * exponent];
                let series = gpu.fma(SERIES[2], square, SERIES[1]);
                let series = gpu.fma(gpu.fma(series, square, SERIES[0]), square, 1.0);
                let large = gpu.fma(-2.0, gpu.rcp_approx(1.0 + gpu.exp2_flush(exponent)), 1.0);
                *product = if exponent.abs() < SMALL { x * series } else { large };
            }
        }
    }

    /// What the slope of a score, times what [`cap`](Self::cap) gave, is of that of its product.
    #[inline(always)]
    pub(super) fn slope_of_cap(self, capped: f32) -> f32 {
        let part = if self.softcap == 0.0 { 0.0 } else { capped };
        1.0 - part * part
    }

    /// The score, of what [`cap`](Self::cap) gave.
    #[inline(always)]
    pub(super) fn biased<G: Gpu>(self, gpu: G, capped: f32, distance: f32) -> f32 {
        gpu.fma(-self.slope, distance, capped * self.scale)
    }

    /// The score of a query and a key: of a kernel that does not modify, the product times the scale.
    #[inline(always)]
    pub(super) fn of_pair<G: Gpu, const MODIFIES: bool>(
        self,
        gpu: G,
        product: f32,
        query: u32,
        key: u32,
    ) -> f32 {
        if !MODIFIES {
            return product * self.scale;
        }
        let distance = query.wrapping_add(self.past).wrapping_sub(key) as i32 as f32;
        let mut capped = [product];
        self.cap(gpu, &mut capped);
        self.biased(gpu, capped[0], distance.abs())
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

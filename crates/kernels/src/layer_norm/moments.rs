//! Mean and variance of a token, and what is made of its numbers with them.
use lacuna_gpu::Gpu;

/// What sums over the features become moments by.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// 1 over the number of features.
    pub inverse: f32,
    /// ε, which is added to the variance: finite, not below 0.
    pub epsilon: f32,
}

/// What the numbers of a token are normalised by.
#[derive(Clone, Copy)]
pub(super) struct Moments {
    /// The mean, as far as the first pass has it.
    mean: f32,
    /// What is still missing of it.
    correction: f32,
    /// 1 / √(variance + ε).
    factor: f32,
}

/// The sums of d and of d².
pub(super) type Sums = [f32; 2];

/// What a number adds to the [`Sums`].
#[inline(always)]
pub(super) fn term(d: f32) -> Sums {
    [d, d * d]
}

/// The sums of both.
#[inline(always)]
pub(super) fn plus(a: Sums, b: Sums) -> Sums {
    [a[0] + b[0], a[1] + b[1]]
}

impl Moments {
    /// Of the mean of the first pass, and the sums over d = x − `mean`.
    #[inline(always)]
    pub(super) fn new<G: Gpu>(gpu: G, mean: f32, sums: Sums, scale: Scale) -> Self {
        let correction = sums[0] * scale.inverse;
        let variance = gpu.fma(-correction, correction, sums[1] * scale.inverse);
        // Rounding may leave less than nothing. NaN stays.
        let variance = if variance < 0.0 { 0.0 } else { variance };
        Self { mean, correction, factor: rsqrt(gpu, variance + scale.epsilon) }
    }

    /// The result for a number. Two differences: the first is exact where the mean is large beside what x is off it.
    #[inline(always)]
    pub(super) fn of<G: Gpu>(&self, gpu: G, x: f32, weight: f32, bias: f32) -> f32 {
        gpu.fma((x - self.mean - self.correction) * self.factor, weight, bias)
    }
}

/// 1 / √v for v from 0 on, within 2·2⁻²⁴ of it: infinity of 0, 0 of infinity. 2 to the power −log₂v / 2 is within 53·2⁻²² of it,
/// since log₂v, at most 149 in size, is within 2⁻²² of its size; a step of Newton's method squares that.
#[inline(always)]
fn rsqrt<G: Gpu>(gpu: G, v: f32) -> f32 {
    let near = gpu.exp2_flush(-0.5 * gpu.log2_approx(v));
    // Of 0 and of infinity a step would make NaN.
    if !(near > 0.0 && near < f32::INFINITY) {
        return near;
    }
    // v·near first: the square of `near` may overflow.
    let off = gpu.fma(-(v * near), near, 1.0);
    gpu.fma(0.5 * near, off, near)
}

//! The activation functions.
use lacuna_gpu::Gpu;

/// An activation: the identity and ReLU are limits, too.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Activation {
    /// Whether it is GELU, x·Φ(x) with Φ the normal distribution; exact, not its tanh form: 0 or 1, the same for all threads of
    /// a launch, so that no warp diverges. Otherwise sums are held between the limits.
    pub is_gelu: u32,
    /// The least result; −∞ for none.
    pub lo: f32,
    /// The greatest; ∞ for none.
    pub hi: f32,
}

/// From here on exp(−t²/2) is below 2⁻¹⁴¹, which is flushed to 0; and +∞ times 0 would be NaN.
const FAR: f32 = 14.0;
/// k = 1 / (1 + 0.31·t) takes t from 0 to 14 to numbers from 1 down to 0.187.
const SCALE: f32 = 0.31;
/// Φ(−t)·exp(t²/2) = k·(c₀ + c₁k + … + c₇k⁷), within 3.2·2⁻²⁴ of it for t from 0 to 14: a least-maximum fit of the relative
/// error.
const RATIO: [f32; 8] = [
    0.123_656_906,
    0.124_060_37,
    0.107_770_92,
    0.110_111_25,
    -0.014_904_626,
    0.155_069_28,
    -0.141_605_45,
    0.035_841_946,
];

impl Activation {
    /// What it makes of a sum, where `GELU` tells whether it is that.
    #[inline(always)]
    pub(super) fn of<G: Gpu, const GELU: bool>(&self, gpu: G, x: f32) -> f32 {
        if GELU { gelu(gpu, x) } else { self.limited(x) }
    }

    /// NaN is neither below a limit nor above, and −0 not below +0: both stay. Two selects: of one choice among three LLVM makes
    /// branches.
    #[inline(always)]
    fn limited(&self, x: f32) -> f32 {
        let x = if x < self.lo { self.lo } else { x };
        if x > self.hi { self.hi } else { x }
    }
}

/// max(x, 0) − t·Φ(−t) with t = |x|. Nothing cancels: for x > 0 the second term is at most half of the first, and for x < 0
/// the first is 0. The oracle (`lacuna_reference::bias_act`) derives how far it may be off.
#[inline(always)]
fn gelu<G: Gpu>(gpu: G, x: f32) -> f32 {
    // NaN comes through by the first term: it is not below 0, and `min` makes a number of it for the second.
    let positive = if x < 0.0 { 0.0 } else { x };
    let t = x.abs().min(FAR);
    let k = gpu.rcp_approx(gpu.fma(SCALE, t, 1.0));
    let ratio = gpu.fma(RATIO[7], k, RATIO[6]);
    let ratio = gpu.fma(ratio, k, RATIO[5]);
    let ratio = gpu.fma(ratio, k, RATIO[4]);
    let ratio = gpu.fma(ratio, k, RATIO[3]);
    let ratio = gpu.fma(ratio, k, RATIO[2]);
    let ratio = gpu.fma(ratio, k, RATIO[1]);
    let ratio = gpu.fma(ratio, k, RATIO[0]) * k;
    let exponential = gpu.exp2_flush(t * (-0.5 * core::f32::consts::LOG2_E) * t);
    gpu.fma(-exponential * ratio, t, positive)
}

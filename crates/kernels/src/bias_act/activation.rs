//! What is made of a sum.
use lacuna_gpu::Gpu;

/// An activation. `lo` and `hi` are of [`CLAMP`](Self::CLAMP) alone.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Activation {
    /// One of the constants; the same for all threads of a launch, so that no warp diverges.
    pub kind: u32,
    /// The least result of a clamp.
    pub lo: f32,
    /// The greatest.
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
    /// The sum itself.
    pub const IDENTITY: u32 = 0;
    /// `lo` below it, `hi` above it; NaN stays, and -0 beside a limit of +0.
    pub const CLAMP: u32 = 1;
    /// GELU: x·Φ(x), with Φ the normal distribution; exact, not its tanh form.
    pub const GELU: u32 = 2;

    /// Applies it to each number.
    #[inline(always)]
    pub(super) fn apply<G: Gpu, const V: usize>(&self, gpu: G, numbers: &mut [f32; V]) {
        if self.kind == Self::CLAMP {
            for x in numbers {
                *x = self.clamp(*x);
            }
        } else if self.kind == Self::GELU {
            for x in numbers {
                *x = gelu(gpu, *x);
            }
        }
    }

    #[inline(always)]
    fn clamp(&self, x: f32) -> f32 {
        if x < self.lo {
            self.lo
        } else if x > self.hi {
            self.hi
        } else {
            x
        }
    }
}

/// max(x, 0) − t·Φ(−t) with t = |x|. Nothing cancels: for x > 0 the second term is at most half of the first, and for x < 0
/// the first is 0. The oracle (`lacuna_reference::bias_act`) derives how far it may be off.
#[inline(always)]
fn gelu<G: Gpu>(gpu: G, x: f32) -> f32 {
    // NaN is neither below 0, nor below the limit: it comes through by the first term.
    let positive = if x < 0.0 { 0.0 } else { x };
    let t = if x.abs() < FAR { x.abs() } else { FAR };
    let k = gpu.rcp_approx(gpu.fma(SCALE, t, 1.0));
    let mut ratio = RATIO[7];
    for i in (0..7).rev() {
        ratio = gpu.fma(ratio, k, RATIO[i]);
    }
    let exponential = gpu.exp2_flush(t * (-0.5 * core::f32::consts::LOG2_E) * t);
    positive - exponential * (ratio * k) * t
}

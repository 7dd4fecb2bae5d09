//! What tensor cores multiply, and what a product of `f32` numbers is there: they multiply shorter ones.
use lacuna_gpu::Gpu;

/// What tensor cores multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// 16-bit values as they are; accumulators in `f32`.
    Half,
    /// `f32` in three products: [`Split`].
    Split,
    /// `f32` in one product: [`Tf32`].
    Tf32,
}

/// How many products stand for one.
pub trait Products: Send + Sync + 'static {
    /// Whether the parts that TF32 leaves out are multiplied, too.
    const SPLIT: bool;
    /// Which arithmetic this is.
    const ARITHMETIC: Arithmetic = if Self::SPLIT { Arithmetic::Split } else { Arithmetic::Tf32 };
}

/// Three products: a·b ≈ hi(a)·hi(b) in TF32, + a·lo(b) + lo(a)·b in bfloat16, with x = hi(x) + lo(x) exactly.
///
/// hi is x with the lower 13 bits of its mantissa cleared: what the hardware takes of it. So |lo(x)| < 2⁻¹⁰·|x|, and
/// with two roundings to 8 bits, of 2⁻⁸ each, a correction is within 2⁻¹⁷·|a·b|, and a product within 2⁻¹⁶ and a little
/// more. Bfloat16 has the exponents of f32, so this holds for all magnitudes. Corrections in TF32 would be closer, at
/// twice the time; the error of long sums is that of adding up, and stays.
#[derive(Debug)]
pub struct Split;

/// One product in TF32: within 2⁻⁹·|a·b| and a little more. Only for those who ask for it.
#[derive(Debug)]
pub struct Tf32;

impl Products for Split {
    const SPLIT: bool = true;
}
impl Products for Tf32 {
    const SPLIT: bool = false;
}

/// Bits of an `f32` that TF32 leaves out.
const LEFT_OUT: u32 = 0x1fff;

/// What TF32 leaves out of a number.
#[inline(always)]
fn lo(x: f32) -> f32 {
    x - f32::from_bits(x.to_bits() & !LEFT_OUT)
}

/// What TF32 leaves out of two numbers, in bfloat16.
#[inline(always)]
fn pack_lo<G: Gpu>(gpu: G, [x, y]: [f32; 2]) -> u32 {
    gpu.pack_bf16(lo(x), lo(y))
}

/// The right operands of the corrections, in bfloat16: of `RT` products of 16 along K the values, and what TF32 leaves out of them.
pub(crate) struct Corrections<const RT: usize> {
    x: [[u32; 2]; RT],
    lo: [[u32; 2]; RT],
}

impl<const RT: usize> Corrections<RT> {
    /// Of a lane's values, neighbours along K as mma takes them.
    #[inline(always)]
    pub(crate) fn of<G: Gpu>(gpu: G, values: &[[f32; 4]; RT]) -> Self {
        let (mut x, mut lo) = ([[0; 2]; RT], [[0; 2]; RT]);
        for (r, &[a, b, c, d]) in values.iter().enumerate() {
            x[r] = [gpu.pack_bf16(a, b), gpu.pack_bf16(c, d)];
            lo[r] = [pack_lo(gpu, [a, b]), pack_lo(gpu, [c, d])];
        }
        Self { x, lo }
    }

    /// Adds lo(w)·x + w·lo(x) to the `n`-th accumulators of each; `w` is a lane's left operand, neighbours along K.
    #[inline(always)]
    pub(crate) fn add<G: Gpu, const NT: usize>(
        &self,
        gpu: G,
        w: [[f32; 2]; 4],
        n: usize,
        accumulators: &mut [[[f32; 4]; NT]; RT],
    ) {
        let lo = [pack_lo(gpu, w[0]), pack_lo(gpu, w[1]), pack_lo(gpu, w[2]), pack_lo(gpu, w[3])];
        for (x, accumulators) in self.x.iter().zip(accumulators.iter_mut()) {
            accumulators[n] = gpu.mma_bf16(lo, *x, accumulators[n]);
        }
        let pack = |[x, y]: [f32; 2]| gpu.pack_bf16(x, y);
        let hi = [pack(w[0]), pack(w[1]), pack(w[2]), pack(w[3])];
        for (lo, accumulators) in self.lo.iter().zip(accumulators.iter_mut()) {
            accumulators[n] = gpu.mma_bf16(hi, *lo, accumulators[n]);
        }
    }
}

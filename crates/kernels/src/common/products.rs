//! How tensor cores multiply `f32` values, of which they take fewer bits: in TF32, or in split precision.
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
    /// `f32` in three products in TF32: [`SplitTf32`].
    SplitTf32,
    /// `f32` in three products of bfloat16: [`SplitBf16`].
    SplitBf16,
}

/// How a product of two `f32` values is computed: [`Split`], [`SplitTf32`], [`SplitBf16`] or [`Tf32`].
pub trait Products: Send + Sync + 'static {
    /// Whether the parts that TF32 leaves out are multiplied, too.
    const SPLIT: bool;
    /// Which arithmetic this is.
    const ARITHMETIC: Arithmetic;
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

/// Three products in TF32: a·b ≈ hi(a)·hi(b) + hi(a)·lo(b) + lo(a)·hi(b), where hi(x) is the nearest TF32 number, and x = hi(x) + lo(x)
/// exactly.
///
/// So lo(x) has 12 bits at most, of which TF32 leaves out one: 2⁻²³·|x|. With lo(a)·lo(b), which is left out, a product is within
/// 2⁻²¹·|a·b| and a little more.
#[derive(Debug)]
pub struct SplitTf32;

/// Three products of bfloat16: a·b ≈ hi(a)·hi(b) + hi(a)·lo(b) + lo(a)·hi(b), where hi(x) is the nearest bfloat16 number, and lo(x) that of
/// x − hi(x).
///
/// Both roundings leave up to 2⁻⁸ of what they round. With lo(a)·lo(b), which is left out, a product is within 2⁻¹⁵·|a·b| and a little
/// more.
#[derive(Debug)]
pub struct SplitBf16;

impl Products for Split {
    const SPLIT: bool = true;
    const ARITHMETIC: Arithmetic = Arithmetic::Split;
}
impl Products for Tf32 {
    const SPLIT: bool = false;
    const ARITHMETIC: Arithmetic = Arithmetic::Tf32;
}
impl Products for SplitTf32 {
    const SPLIT: bool = true;
    const ARITHMETIC: Arithmetic = Arithmetic::SplitTf32;
}
impl Products for SplitBf16 {
    const SPLIT: bool = true;
    const ARITHMETIC: Arithmetic = Arithmetic::SplitBf16;
}

/// Bits of an `f32` that TF32 leaves out.
const LEFT_OUT: u32 = 0x1fff;

/// What TF32 leaves out of a number.
#[inline(always)]
fn lo(x: f32) -> f32 {
    x - f32::from_bits(x.to_bits() & !LEFT_OUT)
}

/// The nearest TF32 number; of two as near the one away from zero. Infinite beyond the largest.
#[inline(always)]
pub(crate) fn nearest_tf32(x: f32) -> f32 {
    f32::from_bits(x.to_bits().wrapping_add(LEFT_OUT / 2 + 1) & !LEFT_OUT)
}

/// What that leaves of a number, of which tensor cores take the upper bits. NaN, where the number or the nearest is not finite.
#[inline(always)]
pub(crate) fn tf32_rest(x: f32) -> f32 {
    x - nearest_tf32(x)
}

/// Two numbers in bfloat16.
#[inline(always)]
pub(crate) fn pack<G: Gpu>(gpu: G, x: f32, y: f32) -> u32 {
    gpu.pack_bf16(x, y)
}

/// What TF32 leaves out of two numbers, in bfloat16.
#[inline(always)]
pub(crate) fn pack_lo<G: Gpu>(gpu: G, x: f32, y: f32) -> u32 {
    gpu.pack_bf16(lo(x), lo(y))
}

/// Two numbers in bfloat16, the nearest, and what that leaves of them, likewise.
#[inline(always)]
pub(crate) fn bf16_parts<G: Gpu>(gpu: G, x: f32, y: f32) -> [u32; 2] {
    let nearest = gpu.pack_bf16(x, y);
    let (of_x, of_y) = (f32::from_bits(nearest << 16), f32::from_bits(nearest & 0xffff_0000));
    [nearest, gpu.pack_bf16(x - of_x, y - of_y)]
}

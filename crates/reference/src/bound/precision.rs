//! How far each kind of arithmetic may be from the exact sum.

use super::{Sum, U32, U64, UNDERFLOW, gamma};

/// The smallest normal number of `f32`, 2⁻¹²⁶.
pub(super) const SMALLEST: f64 = f32::MIN_POSITIVE as f64;

/// What one addition in a tensor core may err by, relatively: 2⁻²².
pub(super) const STEP: f64 = 1.0 / (1u64 << 22) as f64;

/// What TF32 leaves of a number's precision when it cuts or rounds: 2⁻¹⁰.
const CUT: f64 = 1.0 / 1024.0;

/// What rounding to the 8 digits of bfloat16 may change, relatively: 2⁻⁸.
const ROUND: f64 = 1.0 / 256.0;

/// What [`Precision::Split`] may change of a product, relatively: 2⁻¹⁶ + 2⁻²⁰ + 2⁻²⁵.
const SPLIT: f64 = CUT * CUT + 2.0 * CUT * ROUND * (2.0 + ROUND);

/// What [`Precision::SplitBf16`] may change of a product, relatively: 2⁻¹⁵ + 2⁻³⁴.
const SPLIT_BF16: f64 = 2.0 * ROUND * ROUND + 0.25 * ROUND * ROUND * ROUND * ROUND;

/// What [`Precision::SplitTf32`] may change of a product, relatively: 2⁻²¹ + 2⁻³³.
const SPLIT_TF32: f64 = NEAREST * NEAREST * (2.0 + NEAREST);

/// What rounding to the 11 digits of TF32 may change, relatively: 2⁻¹¹.
const NEAREST: f64 = CUT / 2.0;

/// The arithmetic of a sum of products.
///
/// In what follows m = Σ |aᵢbᵢ| over n products, and γₙ(u) = nu / (1 - nu).
///
/// # On tensor cores
/// A tensor core multiplies exactly: two halves, two bfloat16 or two TF32 numbers have a product that `f32` holds. It
/// brings some products and the sum so far to one exponent, the largest of them, cuts what falls below the last place,
/// adds, and cuts again. If j of the products are not zero, at most j of the j + 1 numbers are cut at alignment, by one
/// place each, and the result once more, at most 2⁻²³ of the magnitude each: j + 1 cuts, which are no more than 2j. So
/// each product that is not zero counts as a step with a relative error of w = 2⁻²², four times what `f32` rounding
/// takes. Zeros are added exactly and do not count. The rest is as for `f32`: of k steps γₖ(w).
///
/// Numbers below the smallest normal `f32`, 2⁻¹²⁶, may be taken for zero: products and sums, by at most 2⁻¹²⁶ each, and
/// inputs, by at most 2⁻¹²⁶ of the other factor each. [`Sum::tiny`] counts the latter.
///
/// Inputs that are not finite are no exception to the rules of IEEE 754: a kernel has to go round the tensor cores where
/// they would not keep them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// `f32` arithmetic, rounded to nearest, subnormals kept: γₙ(2⁻²⁴) m; see [`bound`](crate::bound).
    #[default]
    Fp32,
    /// Tensor cores with inputs that they take as they are, halves or bfloat16: γₙ(w) m.
    Tensor,
    /// Tensor cores with `f32` inputs in two parts each: one product in TF32 and two, which correct it, in bfloat16.
    ///
    /// a = a₁ + a₂, where a₁ is a with the lower 13 bits of the mantissa cleared, so that |a₂| < 2⁻¹⁰ |a|. Likewise b. So
    /// ab = a₁b₁ + a₂b + ab₂ - a₂b₂. Of these a₁b₁ is a product in TF32, with nothing left to cut; a₂b and ab₂ have both
    /// factors rounded to bfloat16, each by 2⁻⁸ relatively, so that each product errs by (2⁻⁷ + 2⁻¹⁶) 2⁻¹⁰ |ab|; a₂b₂ is
    /// left out, at most 2⁻²⁰ |ab|. In all a product errs by s |ab| with s = 2⁻¹⁶ + 2⁻²⁰ + 2⁻²⁵. Its three parts have the
    /// sign of ab, so that their sizes sum up to (1 + s) |ab| at most: (s + γ₃ₙ(w) (1 + s)) m.
    ///
    /// A finite number from 2¹²⁸ - 2¹¹⁹ on is infinite as bfloat16. The sum is then not finite, and the kernel has to do
    /// it again in `f32`: such results keep the bound of [`Fp32`](Self::Fp32), which is smaller than this one.
    Split,
    /// Tensor cores with `f32` inputs in two parts each, both bfloat16, in three products.
    ///
    /// a = a₁ + a₂ + e, where a₁ is a rounded to bfloat16, and a₂ that difference rounded likewise. For a from 1 to 2, which stands for all
    /// others, |a - a₁| ≤ 2⁻⁸; up to there bfloat16 numbers are 2⁻¹⁶ apart at most, so that |e| ≤ 2⁻¹⁷. The products are a₁b₁, a₁b₂ and
    /// a₂b₁. Left out are a₂b₂, at most 2⁻¹⁶ |ab|, and what e brings, at most 2⁻¹⁷ of each factor: in all a product errs by s |ab| with
    /// s = 2⁻¹⁵ + 2⁻³⁴. Parts may have either sign: their sizes sum up to ((1 + 2⁻⁸)² + 2⁻⁷ (1 + 2⁻⁸)) |ab| = g |ab| at most, with
    /// g = 1 + 2⁻⁶ + 3 · 2⁻¹⁶: (s + γ₃ₙ(w) g) m. What is not finite is as of [`Split`](Self::Split).
    SplitBf16,
    /// Tensor cores with `f32` inputs in two parts each, in three products, all in TF32.
    ///
    /// a = a₁ + a₂, where a₁ is a rounded to TF32. For a from 1 to 2, which stands for all others, |a₂| ≤ 2⁻¹¹, so that it has 12
    /// digits at most, of which TF32 cuts one: 2⁻²³. Likewise b. The products are a₁b₁, a₁b₂ and a₂b₁, of which the latter two err by
    /// 2⁻²³ (1 + 2⁻¹¹) |ab| each. Left out is a₂b₂, at most 2⁻²² |ab|. In all a product errs by s |ab| with s = 2⁻²¹ + 2⁻³³. Parts may
    /// have either sign: their sizes sum up to (1 + 2⁻⁹ + 3 · 2⁻²²) |ab| = g |ab| at most: (s + γ₃ₙ(w) g) m. What is not finite is
    /// as of [`Split`](Self::Split).
    SplitTf32,
    /// Tensor cores with `f32` inputs cut or rounded to TF32, by at most 2⁻¹⁰ each.
    ///
    /// A product errs by (1 + 2⁻¹⁰)² - 1 = 2⁻⁹ + 2⁻²⁰ relatively: in all (2⁻⁹ + 2⁻²⁰ + γₙ(w) (1 + 2⁻⁹ + 2⁻²⁰)) m.
    Tf32,
}

impl Precision {
    /// The most products of a sum that can be checked: steps times the error of one are 1/4 at most.
    pub const fn max_terms(self) -> u32 {
        match self {
            Self::Fp32 => 1 << 22,
            Self::Tensor | Self::Tf32 => 1 << 20,
            Self::Split | Self::SplitBf16 | Self::SplitTf32 => (1 << 20) / 3,
        }
    }

    /// How far a right sum may be from the reference.
    pub(super) fn error(self, sum: &Sum) -> f64 {
        // Where all products are zero none is rounded.
        if sum.magnitude == 0.0 {
            return 0.0;
        }
        let n = f64::from(sum.terms);
        let reference = 2.0 * gamma(n + 4.0, U64);
        let (cut, growth, steps) = match self {
            Self::Fp32 => {
                let relative = gamma(n, U32) + reference;
                return relative * sum.magnitude + n * UNDERFLOW * (1.0 + relative);
            }
            Self::Tensor => (0.0, 1.0, n),
            Self::Split => (SPLIT, 1.0 + SPLIT, 3.0 * n),
            Self::SplitBf16 => (SPLIT_BF16, 1.0 + 4.0 * ROUND + 3.0 * ROUND * ROUND, 3.0 * n),
            Self::SplitTf32 => (SPLIT_TF32, 1.0 + 4.0 * NEAREST + 3.0 * NEAREST * NEAREST, 3.0 * n),
            Self::Tf32 => (CUT * (2.0 + CUT), (1.0 + CUT) * (1.0 + CUT), n),
        };
        let summing = gamma(steps, STEP);
        let relative = cut + summing * growth + reference;
        // A product and the sum after it, for each step. An input comes in up to three parts: of a, a₁ meets b₁, a₂ meets
        // b, and a meets b₂, the latter two rounded, which is little more than twice the other factor. With that, 4 also
        // covers that a₂ of a subnormal a is not below 2⁻¹⁰ |a|, only below 2⁻¹³⁶.
        let flushed = SMALLEST * (2.0 * steps + 4.0 * sum.tiny) * (1.0 + summing);
        relative * sum.magnitude + flushed
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    /// What three products of two parts each are off, relatively, by what makes parts.
    fn off(parts: fn(f32) -> [f64; 2], [a, b]: [f32; 2]) -> f64 {
        let ([a1, a2], [b1, b2]) = (parts(a), parts(b));
        let exact = f64::from(a) * f64::from(b);
        ((a1 * b1 + a1 * b2 + a2 * b1 - exact) / exact).abs()
    }

    /// The most that products are off, around halves of the last place, once and twice, where rounding is worst: of numbers with so
    /// many bits below those of the upper part.
    fn worst(parts: fn(f32) -> [f64; 2], bits: u32) -> f64 {
        let mut worst = 0.0_f64;
        let half = 1 << (bits - 1);
        for step in 0..512 {
            for low in [-3, -2, -1, 0, 1, 2, 3, 37, 64, 100, 127] {
                for low in [low, half - low] {
                    let a = (1.0_f32.to_bits() + (step << bits)).wrapping_add_signed(low);
                    let a = f32::from_bits(a);
                    for b in [a, 1.0 + 1.0 / 256.0, 1.003_914, 1.7, 1.000_488] {
                        worst = worst.max(off(parts, [a, b]));
                    }
                }
            }
        }
        worst
    }

    #[test]
    fn products_of_bf16_parts_keep_their_bound_and_come_near_it() {
        let parts = |x: f32| {
            let upper = bf16::from_f32(x).to_f32();
            [f64::from(upper), f64::from(bf16::from_f32(x - upper).to_f32())]
        };
        let worst = worst(parts, 15);
        assert!(worst <= SPLIT_BF16 && worst > 0.5 * SPLIT_BF16, "{worst:e}");
    }

    #[test]
    fn products_of_tf32_parts_keep_their_bound_and_come_near_it() {
        let parts = |x: f32| {
            let upper = f32::from_bits((x.to_bits() + 0x1000) & !0x1fff);
            let rest = f32::from_bits((x - upper).to_bits() & !0x1fff);
            [f64::from(upper), f64::from(rest)]
        };
        let worst = worst(parts, 13);
        assert!(worst <= SPLIT_TF32 && worst > 0.5 * SPLIT_TF32, "{worst:e}");
    }
}

//! The types that a matrix's values can have.

use half::{bf16, f16};
use std::borrow::Cow;

/// A type of matrix values: `f32`, [`half::f16`] or [`half::bf16`].
///
/// Results are computed in `f32` and rounded once to this type, to nearest, ties to even.
pub trait Value: Copy + Default + Send + Sync + sealed::Sealed + 'static {
    /// The name in messages.
    const NAME: &'static str;

    /// The unit roundoff: half the distance from 1 to the next number.
    const ROUNDOFF: f64;
    /// Half the smallest subnormal number: what rounding may take where numbers are smallest.
    const LEAST: f64;
    /// The largest number.
    const LARGEST: f64;

    /// The number that it holds; exact.
    fn to_f32(self) -> f32;

    /// Its bits, in the lower end.
    fn to_bits32(self) -> u32;

    /// The numbers that they hold.
    fn to_f32s(values: &[Self]) -> Cow<'_, [f32]>;

    /// What an `f32` result in `low..=high` may become in this type, as its smallest and its largest number, one of
    /// them perhaps infinite. An `f32` stays as it is.
    fn rounded(low: f64, high: f64) -> (f64, f64);

    /// The reals that become the number `got` in this type, ends included: of `f32`, that number alone.
    fn origin(got: f64) -> (f64, f64);
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

impl Value for f32 {
    const NAME: &'static str = "f32";
    const ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;
    const LEAST: f64 = f32::MIN_POSITIVE as f64 * Self::ROUNDOFF;
    const LARGEST: f64 = f32::MAX as f64;

    fn to_f32(self) -> f32 {
        self
    }

    fn to_bits32(self) -> u32 {
        self.to_bits()
    }

    fn to_f32s(values: &[Self]) -> Cow<'_, [f32]> {
        Cow::Borrowed(values)
    }

    fn rounded(low: f64, high: f64) -> (f64, f64) {
        (low, high)
    }

    fn origin(got: f64) -> (f64, f64) {
        (got, got)
    }
}

macro_rules! narrow {
    ($type:ty, $name:literal) => {
        impl Value for $type {
            const NAME: &'static str = $name;
            const ROUNDOFF: f64 = 1.0 / (1u64 << <$type>::MANTISSA_DIGITS) as f64;
            const LEAST: f64 = <$type>::MIN_POSITIVE.to_f64_const() * Self::ROUNDOFF;
            const LARGEST: f64 = <$type>::MAX.to_f64_const();

            fn to_f32(self) -> f32 {
                <$type>::to_f32(self)
            }

            fn to_bits32(self) -> u32 {
                self.to_bits().into()
            }

            fn to_f32s(values: &[Self]) -> Cow<'_, [f32]> {
                values.iter().map(|value| value.to_f32()).collect()
            }

            fn rounded(low: f64, high: f64) -> (f64, f64) {
                let format = Self::FORMAT;
                (format.round(low), format.round(high))
            }

            fn origin(got: f64) -> (f64, f64) {
                Self::FORMAT.origin(got)
            }
        }

        impl Narrow for $type {
            const FORMAT: Format = Format {
                digits: <$type>::MANTISSA_DIGITS as i32,
                least_exponent: <$type>::MIN_EXP - 1,
                largest_exponent: <$type>::MAX_EXP - 1,
            };
        }
    };
}

narrow!(f16, "f16");
narrow!(bf16, "bf16");

/// A type narrower than `f32`.
trait Narrow {
    const FORMAT: Format;
}

/// A binary format as IEEE 754 describes one.
struct Format {
    /// Digits of a normal number, the leading one among them.
    digits: i32,
    /// The exponent of the smallest normal number.
    least_exponent: i32,
    /// The exponent of the largest number.
    largest_exponent: i32,
}

impl Format {
    /// The distance of neighbouring numbers where `x` stands.
    fn spacing(&self, x: f64) -> f64 {
        // A zero or a subnormal of `f64` has the exponent field 0, which is below every other format's least.
        let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        power(exponent.max(self.least_exponent) - (self.digits - 1))
    }

    /// The number nearest to `x`, the even one of two, infinite from half a step beyond the largest on.
    fn round(&self, x: f64) -> f64 {
        if !x.is_finite() {
            return x;
        }
        let spacing = self.spacing(x);
        let nearest = (x / spacing).round_ties_even() * spacing;
        if nearest.abs() < self.overflow() { nearest } else { f64::INFINITY.copysign(x) }
    }

    /// The reals that round to the number `got`, and those that may, being halfway.
    fn origin(&self, got: f64) -> (f64, f64) {
        let size = got.abs();
        let (inner, outer) = if size.is_infinite() {
            (self.overflow() - 0.5 * self.spacing(self.overflow().next_down()), size)
        } else {
            // Inside a power of two the numbers lie closer.
            let inner = size - 0.5 * self.spacing(size.next_down().max(0.0));
            (inner, size + 0.5 * self.spacing(size))
        };
        if got.is_sign_negative() && got != 0.0 { (-outer, -inner) } else { (inner, outer) }
    }

    /// The first power of two that is too large.
    fn overflow(&self) -> f64 {
        power(self.largest_exponent + 1)
    }
}

/// 2 to a power from -1022 to 1023.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every half and every bfloat16, from the smallest to the largest, with infinities.
    fn ascending<T: Value>(from_bits: impl Fn(u16) -> T) -> Vec<f64> {
        let all = (0..=u16::MAX).map(|bits| f64::from(from_bits(bits).to_f32())).filter(|x| !x.is_nan());
        let mut all: Vec<f64> = all.collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    fn between_neighbours<T: Value>(from_bits: impl Fn(u16) -> T, from_f32: impl Fn(f32) -> T) {
        let all = ascending(from_bits);
        let round = |x: f64| T::rounded(x, x).0;
        for pair in all.windows(2) {
            assert_eq!((round(pair[0]), round(pair[1])), (pair[0], pair[1]));
            if pair[0].is_infinite() || pair[1].is_infinite() {
                continue;
            }
            let middle = 0.5 * (pair[0] + pair[1]);
            assert_eq!(round(middle), f64::from(from_f32(middle as f32).to_f32()), "{middle:e}");
            assert_eq!((round(middle.next_down()), round(middle.next_up())), (pair[0], pair[1]));
            assert_eq!((T::origin(pair[0]).1, T::origin(pair[1]).0), (middle, middle));
        }
    }

    #[test]
    fn rounding_is_that_of_the_types() {
        between_neighbours(f16::from_bits, f16::from_f32);
        between_neighbours(bf16::from_bits, bf16::from_f32);
    }

    #[test]
    fn rounding_overflows_half_a_step_beyond_the_largest() {
        assert_eq!(f16::rounded(65_520f64.next_down(), 65_520.0), (65_504.0, f64::INFINITY));
        assert_eq!(f16::origin(f64::INFINITY), (65_520.0, f64::INFINITY));
        assert_eq!(f16::origin(f64::NEG_INFINITY), (f64::NEG_INFINITY, -65_520.0));
        assert_eq!(f16::origin(65_504.0), (65_488.0, 65_520.0));
        let edge = f64::from(bf16::MAX) + 2f64.powi(119);
        assert_eq!(bf16::rounded(-edge, edge.next_down()), (f64::NEG_INFINITY, f64::from(bf16::MAX)));
        assert_eq!(bf16::origin(f64::INFINITY).0, edge);
    }

    #[test]
    fn an_f32_stays_as_it_is() {
        assert_eq!(f32::rounded(0.1, 1e300), (0.1, 1e300));
        assert_eq!(f32::origin(0.5), (0.5, 0.5));
    }
}

//! The values that cases are made of.
use half::{bf16, f16};

/// A type of matrix values that the library multiplies and the oracle judges: `f32`, `f16` or `bf16`.
pub trait Number: lacuna::Value + lacuna_reference::Value + PartialOrd {
    /// The type's name in messages and in names of cases.
    const TYPE_NAME: &'static str;
    /// What C holds before a run: a NaN with bits of its own, so that an element that is not written shows.
    const POISON: Self;
    /// What guards hold: a NaN, so that reading it shows, with bits of its own, so that writing it shows.
    const CANARY: Self;

    /// The bits, in the lower end.
    fn bits(self) -> u32;

    /// The value, exact.
    fn wide(self) -> f32 {
        <Self as lacuna::Value>::to_f32(self)
    }
}

impl Number for f32 {
    const TYPE_NAME: &'static str = "f32";
    const POISON: Self = Self::from_bits(0x7fc0_dead);
    const CANARY: Self = Self::from_bits(0x7fc5_afe5);

    fn bits(self) -> u32 {
        self.to_bits()
    }
}

impl Number for f16 {
    const TYPE_NAME: &'static str = "f16";
    const POISON: Self = Self::from_bits(0x7ead);
    const CANARY: Self = Self::from_bits(0x7fe5);

    fn bits(self) -> u32 {
        self.to_bits().into()
    }
}

impl Number for bf16 {
    const TYPE_NAME: &'static str = "bf16";
    const POISON: Self = Self::from_bits(0x7fea);
    const CANARY: Self = Self::from_bits(0x7fe5);

    fn bits(self) -> u32 {
        self.to_bits().into()
    }
}

/// Numbers rounded to a type, to nearest.
pub fn rounded<T: Number>(values: &[f32]) -> Vec<T> {
    values.iter().map(|&value| T::from_f32(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks<T: Number>() {
        assert!(T::POISON.wide().is_nan() && T::CANARY.wide().is_nan());
        assert_ne!(T::POISON.bits(), T::CANARY.bits());
        // What conversions make of NaN.
        assert_ne!(T::POISON.bits(), T::from_f32(f32::NAN).bits());
    }

    #[test]
    fn marks_are_nan_and_differ() {
        marks::<f32>();
        marks::<f16>();
        marks::<bf16>();
    }
}

//! Real numbers as memory holds them; kernels compute with `f32`.
use crate::{Gpu, Scalar};

/// An IEEE 754 binary16 number (half precision), as its bits. The host's own type has the same layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// A bfloat16 number, the upper half of an `f32`, as its bits. The host's own type has the same layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

impl Bf16 {
    /// The nearest number to `x`, ties to even, where no instruction rounds.
    #[inline(always)]
    pub const fn nearest(x: f32) -> Self {
        let bits = x.to_bits();
        // Half of the last place, less one where the last bit is even. A NaN might round to an infinity: it keeps a bit.
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        Self(if x.is_nan() { (bits >> 16) as u16 | 0x40 } else { rounded as u16 })
    }
}

// SAFETY: transparent around `u16`.
unsafe impl Scalar for F16 {}
// SAFETY: as above.
unsafe impl Scalar for Bf16 {}

/// A number in memory.
pub trait Real: Scalar {
    /// Its value; exact.
    fn to_f32<G: Gpu>(self, gpu: G) -> f32;
    /// The nearest number of this type, ties to even.
    fn from_f32<G: Gpu>(gpu: G, x: f32) -> Self;
}

impl Real for f32 {
    #[inline(always)]
    fn to_f32<G: Gpu>(self, _gpu: G) -> f32 {
        self
    }
    #[inline(always)]
    fn from_f32<G: Gpu>(_gpu: G, x: f32) -> Self {
        x
    }
}

impl Real for F16 {
    #[inline(always)]
    fn to_f32<G: Gpu>(self, gpu: G) -> f32 {
        gpu.f16_to_f32(self)
    }
    #[inline(always)]
    fn from_f32<G: Gpu>(gpu: G, x: f32) -> Self {
        gpu.f32_to_f16(x)
    }
}

impl Real for Bf16 {
    #[inline(always)]
    fn to_f32<G: Gpu>(self, _gpu: G) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
    #[inline(always)]
    fn from_f32<G: Gpu>(gpu: G, x: f32) -> Self {
        gpu.f32_to_bf16(x)
    }
}

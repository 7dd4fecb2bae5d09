//! How numbers are joined, and what is made of them at the end.
use lacuna_gpu::{Gpu, Real};

use crate::common::{RawVector, unpack_into};

/// What pooling makes of a window.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolMode {
    /// Not 0 for the greatest pixel; otherwise the mean, a sum times `scale`.
    pub is_max: u32,
    /// 1 over the pixels of a window; 0 where only those in the map count.
    pub scale: f32,
}

impl PoolMode {
    /// What a sum of a window is multiplied by, of which `pixels` are in the map.
    #[inline(always)]
    pub(super) fn scale_of(&self, pixels: u32) -> f32 {
        if self.scale != 0.0 { self.scale } else { 1.0 / pixels as f32 }
    }
}

/// What joins with a number to that number. Of sums −0, which changes not even −0.
#[inline(always)]
pub(super) const fn neutral<const MAX: bool>() -> f32 {
    if MAX { f32::NEG_INFINITY } else { -0.0 }
}

/// The greater of two numbers, NaN if one is NaN; or their sum. No branch: of `||` LLVM would make one.
#[inline(always)]
pub(super) fn join<const MAX: bool>(a: f32, b: f32) -> f32 {
    if !MAX {
        a + b
    } else if (b > a) | b.is_nan() {
        b
    } else {
        a
    }
}

/// A number that counts only where it is `inside`. A maximum counts it always: what stands there is another pixel of its window.
#[inline(always)]
pub(super) fn counted<const MAX: bool>(is_inside: bool, x: f32) -> f32 {
    if MAX || is_inside { x } else { neutral::<MAX>() }
}

/// Joins the numbers of a vector, which counts only where it is `inside`, to those before.
#[inline(always)]
pub(super) fn join_vector<G: Gpu, T: Real, const V: usize, const MAX: bool>(
    gpu: G,
    vector: &RawVector,
    is_inside: bool,
    joined: &mut [f32; V],
) {
    let mut numbers = [0.0; V];
    unpack_into::<G, T, V>(gpu, vector, &mut numbers);
    for (v, joined) in joined.iter_mut().enumerate() {
        *joined = join::<MAX>(*joined, counted::<MAX>(is_inside, numbers[v]));
    }
}

/// The result that numbers joined to.
#[inline(always)]
pub(super) fn finish<const MAX: bool>(joined: f32, scale: f32) -> f32 {
    if MAX { joined } else { joined * scale }
}

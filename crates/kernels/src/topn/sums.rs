//! Sums of exponentials, each relative to a greatest value of its own.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, WARP};

use super::output::base;

/// The greatest value, and the sum, of two together: symmetric.
#[inline(always)]
pub(super) fn join<G: Gpu>(gpu: G, scale: f32, a: [f32; 2], b: [f32; 2]) -> [f32; 2] {
    let greatest = a[0].max(b[0]);
    let relative = |[own, sum]: [f32; 2]| sum * gpu.exp2_approx((own - base(greatest)) * scale);
    [greatest, relative(a) + relative(b)]
}

/// The greatest value of a row, and its sum, from those of its parts. Whole warps come here.
///
/// # Safety
/// There are so many pairs.
#[inline(always)]
pub(super) unsafe fn of_parts<G: Gpu>(gpu: G, scale: f32, sums: GlobalPtr<f32>, parts: u32) -> [f32; 2] {
    let mut pair = [f32::NEG_INFINITY, 0.0];
    let mut part = gpu.lane_id();
    while part < parts {
        // SAFETY: as promised by the caller.
        pair = join(gpu, scale, pair, unsafe { gpu.load_readonly(sums.add(2 * part as usize)) });
        part += WARP;
    }
    let mut distance = WARP / 2;
    while distance > 0 {
        let other = pair.map(|number| gpu.warp_shuffle_xor(FULL_WARP, number, distance, WARP));
        pair = join(gpu, scale, pair, other);
        distance /= 2;
    }
    pair
}

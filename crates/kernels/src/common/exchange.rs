//! Sums of a product, as lanes have them, exchanged for neighbours.
use lacuna_gpu::{FULL_WARP, Gpu, WARP};

/// Of two lanes that are `APART`, the lower gives `high` for the upper's `low`. All lanes of the warp are here.
#[inline(always)]
pub(crate) fn swap<G: Gpu, const APART: u32>(gpu: G, low: [f32; 2], high: [f32; 2]) -> [[f32; 2]; 2] {
    let is_upper = gpu.lane_id() & APART != 0;
    let give = |low, high| {
        let given = if is_upper { low } else { high };
        gpu.warp_shuffle_xor(FULL_WARP, given, APART, WARP)
    };
    let got = [give(low[0], high[0]), give(low[1], high[1])];
    if is_upper { [got, high] } else { [low, got] }
}

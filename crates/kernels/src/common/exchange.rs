//! Sums of a product, as lanes have them, exchanged for neighbours.
use lacuna_gpu::{FULL_WARP, Gpu, WARP, Word};

/// Of two lanes that are `APART`, the lower gives `high` for the upper's `low`. All lanes of the warp are here.
#[inline(always)]
pub(crate) fn swap<G: Gpu, const APART: u32, W: Word, const N: usize>(
    gpu: G,
    low: [W; N],
    high: [W; N],
) -> [[W; N]; 2] {
    let is_upper = gpu.lane_id() & APART != 0;
    let mut got = low;
    for i in 0..N {
        let given = if is_upper { low[i] } else { high[i] };
        got[i] = gpu.warp_shuffle_xor(FULL_WARP, given, APART, WARP);
    }
    if is_upper { [got, high] } else { [low, got] }
}

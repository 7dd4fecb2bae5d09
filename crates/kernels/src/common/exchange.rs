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

/// Of four lanes, each gives its word `i` to lane `i`, and gets what the others have for it, in their order. Done twice, all have what they had. All lanes of
/// the warp are here.
#[inline(always)]
pub(crate) fn transpose_words<G: Gpu>(gpu: G, [a, b, c, d]: [u32; 4]) -> [u32; 4] {
    // What is not on the diagonal is exchanged: in each block of two by two, then the blocks.
    let [[a], [b]] = swap::<G, 1, _, _>(gpu, [a], [b]);
    let [[c], [d]] = swap::<G, 1, _, _>(gpu, [c], [d]);
    let [[a, b], [c, d]] = swap::<G, 2, _, _>(gpu, [a, b], [c, d]);
    [a, b, c, d]
}

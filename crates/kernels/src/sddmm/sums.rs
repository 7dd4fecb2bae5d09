//! From every lane's part of each sum to one whole sum a lane.
use lacuna_gpu::{Gpu, WARP};

/// Adds up, over the lanes of a group, the `LANES` sums of which each lane has a part; lane `i` of the group gets sum `i`.
///
/// Integrated interleaving reduction (Yu et al., section III-B): in each round a lane keeps half of its sums, gives the other
/// half to the lane across, and adds what it gets. So `LANES - 1` shuffles do for all the sums.
///
/// ```text
///   4 lanes, 4 sums   lane 0: a b c d   ─►  a+ b+   ─►  a++
///                     lane 1: a b c d   ─►  a+ b+   ─►  b++
///                     lane 2: a b c d   ─►  c+ d+   ─►  c++
///                     lane 3: a b c d   ─►  c+ d+   ─►  d++
/// ```
/// Each sum is added on the same tree, whichever lane it ends in.
#[inline(always)]
pub(super) fn transpose_add<G: Gpu, const LANES: usize>(
    gpu: G,
    mask: u32,
    lane: u32,
    mut sums: [f32; LANES],
) -> f32 {
    if LANES > 16 {
        halve::<G, LANES, 16>(gpu, mask, lane, &mut sums);
    }
    if LANES > 8 {
        halve::<G, LANES, 8>(gpu, mask, lane, &mut sums);
    }
    if LANES > 4 {
        halve::<G, LANES, 4>(gpu, mask, lane, &mut sums);
    }
    halve::<G, LANES, 2>(gpu, mask, lane, &mut sums);
    halve::<G, LANES, 1>(gpu, mask, lane, &mut sums);
    sums[0]
}

/// One round: of `2 · HALF` sums, lanes without the bit `HALF` keep the lower ones.
#[inline(always)]
fn halve<G: Gpu, const LANES: usize, const HALF: usize>(
    gpu: G,
    mask: u32,
    lane: u32,
    sums: &mut [f32; LANES],
) {
    let upper = lane & HALF as u32 != 0;
    for i in 0..HALF {
        let (low, high) = (sums[i], sums[i + HALF]);
        let (kept, given) = if upper { (high, low) } else { (low, high) };
        sums[i] = kept + gpu.warp_shuffle_xor(mask, given, HALF as u32, WARP);
    }
}

//! From every lane's part of each sum to whole sums.
use lacuna_gpu::{Gpu, WARP};

/// Adds up, over the `lanes` lanes of a group, `N` (2 or 4) sums of which each lane has a part; lane `i` gets sum `i % N`.
///
/// Integrated interleaving reduction (Yu et al., section III-B): in each round a lane keeps half of its sums, gives the other
/// half to the lane across, and adds what it gets. The one that is left is added up with the lanes that have the same. So
/// `N - 1` shuffles, and one for each doubling of the lanes beyond `N`, do for all the sums.
///
/// ```text
///   8 lanes, 4 sums   lanes 0, 4: a b c d  ─►  a+ b+  ─►  a++  ─►  a
///                     lanes 1, 5: a b c d  ─►  a+ b+  ─►  b++  ─►  b
///                     lanes 2, 6: a b c d  ─►  c+ d+  ─►  c++  ─►  c
///                     lanes 3, 7: a b c d  ─►  c+ d+  ─►  d++  ─►  d
/// ```
/// Each sum is added on the same tree, whichever lane it ends in.
#[inline(always)]
pub(super) fn add_up<G: Gpu, const N: usize>(
    gpu: G,
    mask: u32,
    lane: u32,
    lanes: u32,
    mut sums: [f32; N],
) -> f32 {
    if N > 2 {
        halve::<G, N, 2>(gpu, mask, lane, &mut sums);
    }
    halve::<G, N, 1>(gpu, mask, lane, &mut sums);
    let mut sum = sums[0];
    let mut distance = N as u32;
    while distance < lanes {
        sum += gpu.warp_shuffle_xor(mask, sum, distance, WARP);
        distance *= 2;
    }
    sum
}

/// One round: of `2 · HALF` sums, lanes without the bit `HALF` keep the lower ones.
#[inline(always)]
fn halve<G: Gpu, const N: usize, const HALF: usize>(gpu: G, mask: u32, lane: u32, sums: &mut [f32; N]) {
    let is_upper = lane & HALF as u32 != 0;
    for i in 0..HALF {
        let (low, high) = (sums[i], sums[i + HALF]);
        let (kept, given) = if is_upper { (high, low) } else { (low, high) };
        sums[i] = kept + gpu.warp_shuffle_xor(mask, given, HALF as u32, WARP);
    }
}

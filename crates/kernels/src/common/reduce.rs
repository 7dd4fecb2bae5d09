//! Reductions and scans over the lanes of a warp, and a scan over a block: shuffles, always in the same order.
use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP, Word};

/// The lanes of a subwarp of so many, as a mask: from lane `first` of the warp on.
#[inline(always)]
pub(crate) const fn subwarp_mask(first: u32, lanes: u32) -> u32 {
    if lanes < WARP { ((1 << lanes) - 1) << first } else { FULL_WARP }
}

/// Reduces a value over `lanes` neighbouring lanes, a power of two, the farthest first. All of them get the result.
#[inline(always)]
pub(crate) fn reduce<G: Gpu, T: Word>(
    gpu: G,
    mask: u32,
    lanes: u32,
    mut value: T,
    join: impl Fn(T, T) -> T,
) -> T {
    let mut distance = lanes / 2;
    while distance > 0 {
        value = join(value, gpu.warp_shuffle_xor(mask, value, distance, WARP));
        distance /= 2;
    }
    value
}

/// As [`reduce`], of several values: the shuffles of a distance are under way together. One value in an array would keep the
/// compiler from the order of instructions that `reduce` gives.
#[inline(always)]
pub(crate) fn reduce_each<G: Gpu, T: Word, const N: usize>(
    gpu: G,
    mask: u32,
    lanes: u32,
    mut values: [T; N],
    join: impl Fn(T, T) -> T,
) -> [T; N] {
    let mut distance = lanes / 2;
    while distance > 0 {
        for value in &mut values {
            *value = join(*value, gpu.warp_shuffle_xor(mask, *value, distance, WARP));
        }
        distance /= 2;
    }
    values
}

/// Adds up a number over the lanes whose indices differ in bits from `from` up to below `to`, the nearest first.
#[inline(always)]
pub(crate) fn add_across_lanes<G: Gpu>(gpu: G, mask: u32, [from, to]: [u32; 2], mut sum: f32) -> f32 {
    let mut distance = from;
    while distance < to {
        sum += gpu.warp_shuffle_xor(mask, sum, distance, WARP);
        distance *= 2;
    }
    sum
}

/// As [`add_across_lanes`], of several numbers, and of a count if there is one: the shuffles of a distance are under way together.
#[inline(always)]
pub(crate) fn add_all_across_lanes<G: Gpu>(
    gpu: G,
    mask: u32,
    [from, to]: [u32; 2],
    mut count: Option<&mut u32>,
    sums: &mut [f32],
) {
    let mut distance = from;
    while distance < to {
        if let Some(count) = &mut count {
            **count += gpu.warp_shuffle_xor(mask, **count, distance, WARP);
        }
        for sum in &mut *sums {
            *sum += gpu.warp_shuffle_xor(mask, *sum, distance, WARP);
        }
        distance *= 2;
    }
}

/// Adds up, over the `lanes` lanes of a subwarp, `N` sums of which each lane has a part; lane `i` gets sum `i % N`.
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
pub(crate) fn transpose_sums<G: Gpu, const N: usize>(
    gpu: G,
    mask: u32,
    lane: u32,
    lanes: u32,
    mut sums: [f32; N],
) -> f32 {
    let mut half = N / 2;
    while half > 0 {
        let is_upper = lane & half as u32 != 0;
        for i in 0..half {
            let (kept, given) = if is_upper { (sums[i + half], sums[i]) } else { (sums[i], sums[i + half]) };
            sums[i] = kept + gpu.warp_shuffle_xor(mask, given, half as u32, WARP);
        }
        half /= 2;
    }
    add_across_lanes(gpu, mask, [N as u32, lanes], sums[0])
}

/// The sum over the lanes of the warp up to and with this one.
#[inline(always)]
pub(crate) fn inclusive_sum<G: Gpu>(gpu: G, own: u32) -> u32 {
    let lane = gpu.lane_id();
    let mut sum = own;
    let mut distance = 1;
    while distance < WARP {
        let below = gpu.warp_shuffle_up(FULL_WARP, sum, distance, WARP);
        // A select: as a branch, the block-wide counts of top-N take a register more.
        sum += if lane >= distance { below } else { 0 };
        distance *= 2;
    }
    sum
}

/// The sum over the threads of the block before this one, and over all of them: a lane scans its warp, then each warp the sums
/// of warps, a lane a warp.
///
/// # Safety
/// The block has 1024 threads, and all of them come here. `totals` are 32 words of shared memory, which between two calls nothing
/// else uses without a barrier.
#[inline(always)]
pub(crate) unsafe fn sums_of_block<G: Gpu>(gpu: G, totals: SharedPtr<u32>, own: u32) -> [u32; 2] {
    let (lane, warp) = (gpu.lane_id(), gpu.thread_idx_x() / WARP);
    let through = inclusive_sum(gpu, own);
    // Another call's totals may not be read yet. Here a warp that was ahead seldom waits: after the load, all would at once.
    gpu.sync_threads();
    // SAFETY: `totals` has a place for each warp and for each lane; barriers stand before and after the stores.
    let [total] = unsafe {
        if lane == WARP - 1 {
            gpu.shared_store(totals.add(warp), [through]);
        }
        gpu.sync_threads();
        gpu.shared_load(totals.add(lane))
    };
    let totals_through = inclusive_sum(gpu, total);
    let before = gpu.warp_shuffle_idx(FULL_WARP, totals_through - total, warp, WARP);
    let all = gpu.warp_shuffle_idx(FULL_WARP, totals_through, WARP - 1, WARP);
    [before + through - own, all]
}

/// Whether all numbers are finite.
#[inline(always)]
pub(crate) fn are_finite(numbers: &[f32]) -> bool {
    let mut finite = true;
    for number in numbers {
        finite &= number.is_finite();
    }
    finite
}

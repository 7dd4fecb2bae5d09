//! Shuffles and votes. One block of 64 threads, two warps, with a word of input each.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu};

use crate::results::Results;

/// The lower half of a warp.
const LOWER: u32 = 0xffff;

/// Each shuffle over a whole warp and over segments of 8; the last within a branch.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn shuffles<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    let thread = gpu.thread_idx_x();
    let mut results = Results::of(gpu, out, thread);
    // SAFETY: indices are below 64.
    unsafe {
        let [word] = gpu.load_readonly::<u32, 1>(input.add(thread as usize));
        let (signed, float) = (word as i32, f32::from_bits(word));
        results.put(gpu.warp_shuffle_idx(FULL_WARP, word, 5, 32));
        results.put(gpu.warp_shuffle_idx(FULL_WARP, signed, 3, 8));
        results.put(gpu.warp_shuffle_idx(FULL_WARP, word, word & 31, 32));
        results.put(gpu.warp_shuffle_down(FULL_WARP, word, 1, 32));
        results.put(gpu.warp_shuffle_down(FULL_WARP, float, 2, 8));
        results.put(gpu.warp_shuffle_up(FULL_WARP, float, 1, 32));
        results.put(gpu.warp_shuffle_up(FULL_WARP, word, 3, 8));
        results.put(gpu.warp_shuffle_xor(FULL_WARP, signed, 16, 32));
        results.put(gpu.warp_shuffle_xor(FULL_WARP, float, 4, 8));
        if gpu.lane_id() < 16 {
            results.put(gpu.warp_shuffle_xor(LOWER, word, 8, 32));
        }
    }
}

/// Each vote with each outcome; the last ones within a branch.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn votes<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    let thread = gpu.thread_idx_x();
    let mut results = Results::of(gpu, out, thread);
    // SAFETY: indices are below 64.
    unsafe {
        let [word] = gpu.load_readonly::<u32, 1>(input.add(thread as usize));
        let odd = word & 1 == 1;
        // The input holds no zero, and 7 in one thread of the second warp.
        results.put(u32::from(gpu.warp_all(FULL_WARP, word != 0)));
        results.put(u32::from(gpu.warp_all(FULL_WARP, word != 7)));
        results.put(u32::from(gpu.warp_any(FULL_WARP, word == 0)));
        results.put(u32::from(gpu.warp_any(FULL_WARP, word == 7)));
        results.put(gpu.warp_ballot(FULL_WARP, odd));
        if gpu.lane_id() < 16 {
            results.put(gpu.warp_ballot(LOWER, odd));
            results.put(u32::from(gpu.warp_all(LOWER, word != 7)));
            results.put(u32::from(gpu.warp_any(LOWER, word == 7)));
        }
    }
}

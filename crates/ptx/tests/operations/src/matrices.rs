//! Tensor cores and loads of matrices. One block of 32 threads.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr};

use crate::results::Results;

/// `A·B + C` in each type, of the same bits. Twelve words of input each: A, B, two that are not used, C.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn products<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    let thread = gpu.thread_idx_x();
    let mut results = Results::of(gpu, out, thread);
    let own = input.add(12 * thread as usize);
    // SAFETY: indices are below 32; the whole warp is here.
    unsafe {
        let a = gpu.load_readonly::<u32, 4>(own);
        let b = gpu.load_readonly::<u32, 2>(own.add(4));
        let c = gpu.load_readonly::<u32, 4>(own.add(8)).map(f32::from_bits);
        let tf32 = gpu.mma_tf32(a.map(f32::from_bits), b.map(f32::from_bits), c);
        for sums in [tf32, gpu.mma_f16(a, b, c), gpu.mma_bf16(a, b, c)] {
            for sum in sums {
                results.put(sum);
            }
        }
    }
}

/// Four matrices, as they are and transposed. A row of 16 bytes of input each; 512 bytes of shared memory.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn loads<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u16>) {
    let thread = gpu.thread_idx_x();
    let mut results = Results::of(gpu, out, thread);
    let row = SharedPtr::from_offset(16 * thread);
    // SAFETY: indices are below 32; a barrier stands between the stores and the loads, at which the whole warp is.
    unsafe {
        gpu.shared_store(row, gpu.load_readonly::<u16, 8>(input.add(8 * thread as usize)));
        gpu.sync_warp(FULL_WARP);
        for words in [gpu.shared_load_matrices::<false>(row), gpu.shared_load_matrices::<true>(row)] {
            for word in words {
                results.put(word);
            }
        }
    }
}

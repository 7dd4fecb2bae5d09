//! Products of a warpgroup. One block of 128 threads.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, SharedPtr};

/// Bytes from one panel of B to the next: 16 rows of 128 bytes.
const PANEL: u32 = 2048;

/// Bytes of A's panel.
const A: u32 = 64 * 128;

/// Ones plus `A·B`, `L` words of output a thread. The input is the panel of A, of which the second 16 columns are taken, and
/// then B, `64 · L` bytes, as they lie in shared memory.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn products<const L: usize, const BRAIN: bool, G: Gpu>(
    gpu: G,
    out: GlobalMut<f32>,
    input: GlobalPtr<u32>,
) {
    let (thread, bytes) = (gpu.thread_idx_x(), A + 64 * L as u32);
    let mut sums = [1.0; L];
    // SAFETY: indices are below 128; each 16 bytes have one thread, and a barrier stands between stores and product.
    unsafe {
        let mut place = 16 * thread;
        while place < bytes {
            let piece = gpu.load_readonly::<u32, 4>(input.add(place as usize / 4));
            gpu.shared_store(SharedPtr::from_offset(place), piece);
            place += 128 * 16;
        }
        gpu.fence_async_proxy();
        gpu.sync_threads();
        let (a, b) = (SharedPtr::from_offset(32), SharedPtr::from_offset(A));
        gpu.warpgroup_arrive();
        if BRAIN {
            gpu.warpgroup_mma_bf16::<L, PANEL>(&mut sums, a, b);
        } else {
            gpu.warpgroup_mma_f16::<L, PANEL>(&mut sums, a, b);
        }
        gpu.warpgroup_commit();
        gpu.warpgroup_wait::<1, L>(&mut sums);
        gpu.warpgroup_wait::<0, L>(&mut sums);
        for (index, sum) in sums.into_iter().enumerate() {
            gpu.store(out.add(L * thread as usize + index), [sum]);
        }
    }
}

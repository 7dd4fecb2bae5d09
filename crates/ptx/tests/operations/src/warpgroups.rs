//! Products of a warpgroup. One block of 128 threads.
use lacuna_gpu::{CoreMatrices, GlobalMut, GlobalPtr, Gpu, SharedPtr};

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
    let (a, b) = (SharedPtr::from_offset(32), SharedPtr::from_offset(A));
    // SAFETY: passed on to the caller; `of_input` brings A and B.
    unsafe {
        of_input::<L, G>(gpu, out, input, |sums| {
            if BRAIN {
                gpu.warpgroup_mma_bf16::<L, PANEL>(sums, a, b);
            } else {
                gpu.warpgroup_mma_f16::<L, PANEL>(sums, a, b);
            }
        });
    }
}

/// The same of core matrices: A's begin at its second row, those of 8 columns are 4096 bytes from the next, and 8 rows 128; B's lie with no
/// room between.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn products_of_cores<const L: usize, const BRAIN: bool, G: Gpu>(
    gpu: G,
    out: GlobalMut<f32>,
    input: GlobalPtr<u32>,
) {
    let a = CoreMatrices { first: SharedPtr::from_offset(16), leading: A / 2, stride: 128 };
    let b = CoreMatrices { first: SharedPtr::from_offset(A), leading: 32 * L as u32, stride: 128 };
    // SAFETY: as above.
    unsafe {
        of_input::<L, G>(gpu, out, input, |sums| {
            if BRAIN {
                gpu.warpgroup_mma_bf16_cores(sums, a, b);
            } else {
                gpu.warpgroup_mma_f16_cores(sums, a, b);
            }
        });
    }
}

/// As [`products`], with B column by column: the third 16 numbers of each row of a panel, of whose `256 · L` bytes `of_input` brings the
/// first.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn products_of_columns<const L: usize, const BRAIN: bool, G: Gpu>(
    gpu: G,
    out: GlobalMut<f32>,
    input: GlobalPtr<u32>,
) {
    let (a, b) = (SharedPtr::from_offset(32), SharedPtr::from_offset(A + 64));
    // SAFETY: as above.
    unsafe {
        of_input::<L, G>(gpu, out, input, |sums| {
            if BRAIN {
                gpu.warpgroup_mma_bf16_columns(sums, a, b);
            } else {
                gpu.warpgroup_mma_f16_columns(sums, a, b);
            }
        });
    }
}

/// A warpgroup gives registers to another that waits for them; then each copies its word. One block of 256 threads, compiled for 128
/// registers a thread.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn registers<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<u32>) {
    let thread = gpu.thread_idx_x() as usize;
    if thread < 128 {
        gpu.warpgroup_give_registers::<24>();
    } else {
        gpu.warpgroup_take_registers::<160>();
    }
    // SAFETY: each thread has its own word.
    unsafe { gpu.store(out.add(thread), gpu.load_readonly::<u32, 1>(input.add(thread))) }
}

/// As [`products`], with the input's first words as A: four a thread.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn products_of_registers<const L: usize, const BRAIN: bool, G: Gpu>(
    gpu: G,
    out: GlobalMut<f32>,
    input: GlobalPtr<u32>,
) {
    let b = SharedPtr::from_offset(A);
    // SAFETY: as above; indices are below 512.
    unsafe {
        let a = gpu.load_readonly::<u32, 4>(input.add(4 * gpu.thread_idx_x() as usize));
        of_input::<L, G>(gpu, out, input, |sums| {
            if BRAIN {
                gpu.warpgroup_mma_bf16_registers::<L, PANEL>(sums, a, b);
            } else {
                gpu.warpgroup_mma_f16_registers::<L, PANEL>(sums, a, b);
            }
        });
    }
}

/// The same in TF32. B is the second 8 rows of a panel of 32, column by column, in `256 · L` bytes, of which `of_input` brings the first.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn products_of_singles<const L: usize, G: Gpu>(
    gpu: G,
    out: GlobalMut<f32>,
    input: GlobalPtr<u32>,
) {
    let b = SharedPtr::from_offset(A + 32);
    // SAFETY: as above; indices are below 512.
    unsafe {
        let [p, q, r, s] = gpu.load_readonly::<u32, 4>(input.add(4 * gpu.thread_idx_x() as usize));
        let a = [f32::from_bits(p), f32::from_bits(q), f32::from_bits(r), f32::from_bits(s)];
        of_input::<L, G>(gpu, out, input, |sums| gpu.warpgroup_mma_tf32_registers(sums, a, b));
    }
}

/// Copies the input to shared memory, and writes what a product makes of ones.
///
/// # Safety
/// The launch and the buffers are as said.
unsafe fn of_input<const L: usize, G: Gpu>(
    gpu: G,
    out: GlobalMut<f32>,
    input: GlobalPtr<u32>,
    start: impl FnOnce(&mut [f32; L]),
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
        gpu.warpgroup_arrive();
        start(&mut sums);
        gpu.warpgroup_commit();
        gpu.warpgroup_wait::<1, L>(&mut sums);
        gpu.warpgroup_wait::<0, L>(&mut sums);
        for (index, sum) in sums.into_iter().enumerate() {
            gpu.store(out.add(L * thread as usize + index), [sum]);
        }
    }
}

//! Arithmetic. One block of 64 threads, four floats of input each: a, b, c and x.
use lacuna_gpu::{F16, GlobalMut, GlobalPtr, Gpu};

use crate::results::Results;

/// `a · b + c`, 2 to the power `x`, the same with 0 for what is subnormal, the logarithm of `x` to base 2, 1 / `x`, the half nearest to `x`, and the number of the half in the lower bits of `a`.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn all<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<f32>) {
    let thread = gpu.thread_idx_x();
    let mut results = Results::of(gpu, out, thread);
    // SAFETY: indices are below 64.
    unsafe {
        let [a, b, c, x] = gpu.load_readonly::<f32, 4>(input.add(4 * thread as usize));
        results.put(gpu.fma(a, b, c));
        results.put(gpu.exp2_approx(x));
        results.put(gpu.exp2_flush(x));
        results.put(gpu.log2_approx(x));
        results.put(gpu.rcp_approx(x));
        results.put(u32::from(gpu.f32_to_f16(x).0));
        results.put(gpu.f16_to_f32(F16(a.to_bits() as u16)));
    }
}

/// The bfloat16 nearest to `x`. Pairs of bfloat16, then of binary16: `a` and `b`, `c` and `x`.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn packed<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<f32>) {
    let thread = gpu.thread_idx_x();
    let mut results = Results::of(gpu, out, thread);
    // SAFETY: indices are below 64.
    unsafe {
        let [a, b, c, x] = gpu.load_readonly::<f32, 4>(input.add(4 * thread as usize));
        results.put(u32::from(gpu.f32_to_bf16(x).0));
        results.put(gpu.pack_bf16(a, b));
        results.put(gpu.pack_bf16(c, x));
        results.put(gpu.pack_f16(a, b));
        results.put(gpu.pack_f16(c, x));
    }
}

/// The greater of `a` and `b`, and of that and `c`.
///
/// # Safety
/// The launch and the buffers are as said.
pub unsafe fn greatest<G: Gpu>(gpu: G, out: GlobalMut<u32>, input: GlobalPtr<f32>) {
    let thread = gpu.thread_idx_x();
    let mut results = Results::of(gpu, out, thread);
    // SAFETY: indices are below 64.
    unsafe {
        let [a, b, c, _] = gpu.load_readonly::<f32, 4>(input.add(4 * thread as usize));
        let greater = gpu.max_nan(a, b);
        results.put(greater);
        results.put(gpu.max_nan(greater, c));
    }
}

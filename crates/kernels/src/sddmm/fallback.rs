//! What tensor cores cannot do of `f32`: sums that are not finite.
use lacuna_gpu::{Gpu, Real};

use super::Operands;

/// The product of a row of A and a row of B by fused multiply-adds, which IEEE 754 governs: for accumulators that are not finite.
/// Parts of an infinite number are no numbers, so that tensor cores would not give what the whole does.
///
/// # Safety
/// The rows are live.
#[inline(always)]
pub(super) unsafe fn fallback<G: Gpu, T: Real>(
    gpu: G,
    operands: &Operands<T>,
    [row, column]: [u32; 2],
) -> f32 {
    let a = operands.a.add_rows(row, operands.a_stride_bytes);
    let b = operands.b.add_rows(column, operands.b_stride_bytes);
    let mut sum = 0.0;
    for k in 0..operands.k as usize {
        // SAFETY: both rows have K elements.
        let ([a], [b]) =
            unsafe { (gpu.load_readonly::<T, 1>(a.add(k)), gpu.load_readonly::<T, 1>(b.add(k))) };
        sum = gpu.fma(a.to_f32(gpu), b.to_f32(gpu), sum);
    }
    sum
}

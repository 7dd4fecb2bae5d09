//! A lane's vector of a row, as it is in memory and as numbers.
use core::mem::transmute_copy;

use lacuna_gpu::{GlobalPtr, Gpu, Real};

/// Up to 16 bytes as they are in memory. Unpacking waits for a load, and would keep the next ones from starting.
pub(super) type Words = [u32; 4];

/// Loads `V` elements.
///
/// # Safety
/// They are live, nobody writes them, and the address is a multiple of their size.
#[inline(always)]
pub(super) unsafe fn load<G: Gpu, T: Real, const V: usize>(gpu: G, from: GlobalPtr<T>) -> Words {
    let words = GlobalPtr::<u32>::from_address(from.address());
    // SAFETY: as promised by the caller.
    unsafe {
        match V * size_of::<T>() {
            16 => gpu.load_readonly(words),
            8 => {
                let [a, b] = gpu.load_readonly(words);
                [a, b, 0, 0]
            }
            4 => {
                let [a] = gpu.load_readonly(words);
                [a, 0, 0, 0]
            }
            _ => {
                let [half] = gpu.load_readonly(GlobalPtr::<u16>::from_address(from.address()));
                [u32::from(half), 0, 0, 0]
            }
        }
    }
}

/// The numbers that [`load`] brought.
#[inline(always)]
pub(super) fn numbers<G: Gpu, T: Real, const V: usize>(gpu: G, words: &Words) -> [f32; V] {
    const { assert!(size_of::<[T; V]>() <= size_of::<Words>(), "at most 16 bytes") }
    // SAFETY: the values are no more than the words, and every bit pattern of a `Scalar` is valid.
    let values: [T; V] = unsafe { transmute_copy(words) };
    let mut numbers = [0.0; V];
    for (number, value) in numbers.iter_mut().zip(&values) {
        *number = value.to_f32(gpu);
    }
    numbers
}

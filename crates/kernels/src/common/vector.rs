//! Loading a lane's vectors, converting them to `f32`, and rounding them.
use core::mem::transmute_copy;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, Real, Word};

/// A vector of up to 16 bytes as it is in memory. Unpacking waits for a load, and would keep the next ones from starting.
pub(crate) type RawVector = [u32; 4];

macro_rules! load_raw {
    ($(#[$doc:meta])* $name:ident, $pointer:ident, $load:ident) => {
        /// Loads `V` elements.
        ///
        /// # Safety
        $(#[$doc])*
        #[inline(always)]
        pub(crate) unsafe fn $name<G: Gpu, T: Real, const V: usize>(gpu: G, from: $pointer<T>) -> RawVector {
            let words = $pointer::<u32>::from_address(from.address());
            // SAFETY: as promised by the caller.
            unsafe {
                match V * size_of::<T>() {
                    16 => gpu.$load(words),
                    8 => {
                        let [a, b] = gpu.$load(words);
                        [a, b, 0, 0]
                    }
                    4 => {
                        let [a] = gpu.$load(words);
                        [a, 0, 0, 0]
                    }
                    _ => {
                        let [half] = gpu.$load($pointer::<u16>::from_address(from.address()));
                        [u32::from(half), 0, 0, 0]
                    }
                }
            }
        }
    };
}
load_raw! {
    /// They are live, nobody writes them, and the address is a multiple of their size.
    load_raw, GlobalPtr, load_readonly
}
load_raw! {
    /// They are live, this launch may write them, and the address is a multiple of their size.
    load_raw_mut, GlobalMut, load
}

/// Writes `V` elements, of which there are the words: 16 bytes, or a single element.
///
/// # Safety
/// They are live, no other thread reads or writes them, and the address is a multiple of their size.
#[inline(always)]
pub(crate) unsafe fn store_raw<G: Gpu, T: Real, const V: usize>(gpu: G, to: GlobalMut<T>, words: RawVector) {
    let to = to.address();
    // SAFETY: as promised by the caller.
    unsafe {
        match V * size_of::<T>() {
            16 => gpu.store(GlobalMut::<u32>::from_address(to), words),
            4 => gpu.store(GlobalMut::<u32>::from_address(to), [words[0]]),
            _ => gpu.store(GlobalMut::<u16>::from_address(to), [words[0] as u16]),
        }
    }
}

/// Two numbers of 16 bits as a word; of two `f32` the first.
#[inline(always)]
pub(crate) fn word<T: Real>(pair: [T; 2]) -> u32 {
    // SAFETY: a pair is at least four bytes, and every bit pattern of these is a `u32`.
    unsafe { transmute_copy(&pair) }
}

/// The elements of a raw vector, in `f32`.
#[inline(always)]
pub(crate) fn unpack<G: Gpu, T: Real, const V: usize>(gpu: G, words: &RawVector) -> [f32; V] {
    let mut numbers = [0.0; V];
    unpack_into::<G, T, V>(gpu, words, &mut numbers);
    numbers
}

/// As [`unpack`], into an array of the caller: one that is returned would be moved there once more, in a branch.
#[inline(always)]
pub(crate) fn unpack_into<G: Gpu, T: Real, const V: usize>(
    gpu: G,
    words: &RawVector,
    numbers: &mut [f32; V],
) {
    const { assert!(size_of::<[T; V]>() <= size_of::<RawVector>(), "at most 16 bytes") }
    // SAFETY: the values are no more than the words, and every bit pattern of a `Scalar` is valid.
    let values: [T; V] = unsafe { transmute_copy(words) };
    for (number, value) in numbers.iter_mut().zip(&values) {
        *number = value.to_f32(gpu);
    }
}

/// The same vectors in `f32`.
#[inline(always)]
pub(crate) fn widened<G: Gpu, T: Real, const V: usize, const N: usize>(
    gpu: G,
    vectors: &[[T; V]; N],
) -> [[f32; V]; N] {
    let mut wide = [[0.0; V]; N];
    for (wide, narrow) in wide.as_flattened_mut().iter_mut().zip(vectors.as_flattened()) {
        *wide = narrow.to_f32(gpu);
    }
    wide
}

/// Rounds a vector of numbers, each once, after `finish`; into an array of the caller: a vector that is returned costs
/// some kernels registers.
#[inline(always)]
pub(crate) fn round_into<G: Gpu, T: Real, const V: usize>(
    gpu: G,
    numbers: &[f32; V],
    finish: impl Fn(f32) -> f32,
    rounded: &mut [T; V],
) {
    for (rounded, &number) in rounded.iter_mut().zip(numbers) {
        *rounded = T::from_f32(gpu, finish(number));
    }
}

/// Writes `V` words of four bytes, in accesses of at most 16 bytes.
///
/// # Safety
/// They have a place from `to` on that nobody else reads or writes, aligned to all of them or to 16 bytes.
#[inline(always)]
pub(crate) unsafe fn store_words<G: Gpu, W: Word, const V: usize>(gpu: G, to: GlobalMut<W>, words: &[W; V]) {
    // SAFETY: as promised by the caller.
    unsafe {
        if V.is_multiple_of(4) {
            for i in 0..V / 4 {
                let part = [words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]];
                gpu.store(to.add(4 * i), part);
            }
        } else if V.is_multiple_of(2) {
            for i in 0..V / 2 {
                gpu.store(to.add(2 * i), [words[2 * i], words[2 * i + 1]]);
            }
        } else {
            for (i, &word) in words.iter().enumerate() {
                gpu.store(to.add(i), [word]);
            }
        }
    }
}

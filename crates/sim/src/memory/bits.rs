//! Values of a kernel as the bytes that memory holds: up to 16, in two little-endian words.
use lacuna_gpu::Scalar;

#[cfg(target_endian = "big")]
compile_error!("lacuna-sim keeps device memory little-endian and runs on little-endian hosts only");

/// Two words: all that one memory instruction of a thread can move.
pub(crate) type Words = [u64; 2];

/// Whether one memory instruction can move `bytes`.
const fn movable(bytes: usize) -> bool {
    bytes.is_power_of_two() && bytes <= size_of::<Words>()
}

/// The bytes of `value`; those beyond it are zero.
#[inline]
pub(crate) fn to_words<T: Scalar, const N: usize>(value: [T; N]) -> Words {
    const { assert!(movable(size_of::<[T; N]>()), "a memory access moves 1, 2, 4, 8 or 16 bytes") };
    let mut words = [0; 2];
    // SAFETY: the assertion above says that the value fits; a `Scalar` has no padding, so all its bytes are set.
    unsafe {
        value.as_ptr().cast::<u8>().copy_to_nonoverlapping(words.as_mut_ptr().cast(), size_of::<[T; N]>());
    }
    words
}

/// The value whose bytes `words` starts with.
#[inline]
pub(crate) fn from_words<T: Scalar, const N: usize>(words: Words) -> [T; N] {
    const { assert!(movable(size_of::<[T; N]>()), "a memory access moves 1, 2, 4, 8 or 16 bytes") };
    // SAFETY: the assertion above says that the words cover the value, and a `Scalar` accepts every bit pattern.
    unsafe { std::mem::transmute_copy(&words) }
}

/// A mask of the lowest `bits` bits (1 to 64) of a word.
#[inline]
pub(crate) const fn low_bits(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_round_trip() {
        assert_eq!(from_words::<f32, 4>(to_words([1.0f32, -2.0, 3.5, f32::MAX])), [1.0, -2.0, 3.5, f32::MAX]);
        assert_eq!(from_words::<u8, 2>(to_words([7u8, 9])), [7, 9]);
        assert_eq!(to_words([0x0102u16, 0x0304]), [0x0304_0102, 0]);
        assert_eq!(low_bits(64), u64::MAX);
        assert_eq!(low_bits(8), 0xff);
    }
}

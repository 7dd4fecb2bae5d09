//! How values lie in a tile of shared memory: rows of 128 bytes, swizzled against bank conflicts.
use lacuna_gpu::{Bf16, F16};

use crate::DeviceValue;

/// Bytes of a row in a tile.
pub(in crate::spmm) const TILE_ROW: u32 = 128;

/// A value that can lie in a tile.
pub trait TileValue: DeviceValue {
    /// Elements of a 16-byte vector.
    const VECTOR: u32 = 16 / size_of::<Self>() as u32;
    /// Columns of a tile.
    const COLUMNS: u32 = TILE_ROW / size_of::<Self>() as u32;

    /// Where in its row, in bytes, the first vector of a row lies; vector `i` lies at 16·`i` exclusive or this. So lanes that
    /// read a vector of several rows find them in different banks.
    fn swizzle(row: u32) -> u32;

    /// Value `index` of a vector.
    fn of_vector(vector: &[u32; 4], index: u32) -> Self;
}

/// For reads of 16 bytes by each lane, eight lanes of two rows at a time.
impl TileValue for f32 {
    #[inline(always)]
    fn swizzle(row: u32) -> u32 {
        row % 2 * 64
    }
    #[inline(always)]
    fn of_vector(vector: &[u32; 4], index: u32) -> Self {
        Self::from_bits(vector[index as usize])
    }
}

/// Writes the implementation for a 16-bit type, for loads of 8×8 matrices.
macro_rules! half {
    ($type:ident) => {
        impl TileValue for $type {
            #[inline(always)]
            fn swizzle(row: u32) -> u32 {
                row % 8 * 16
            }
            #[inline(always)]
            fn of_vector(vector: &[u32; 4], index: u32) -> Self {
                Self((vector[index as usize / 2] >> (index % 2 * 16)) as u16)
            }
        }
    };
}
half!(F16);
half!(Bf16);

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether eight lanes that read a vector of 16 bytes each, of these rows, find them in different banks.
    fn spread<T: TileValue>(vectors: [(u32, u32); 8]) -> bool {
        let slots = vectors.map(|(row, vector)| ((16 * vector) ^ T::swizzle(row)) / 16);
        slots.iter().fold(0, |seen, slot| seen | 1 << slot) == 0xff
    }

    #[test]
    fn lanes_that_read_together_find_different_banks() {
        for row in 0..16 {
            for vector in 0..8 {
                let down = core::array::from_fn(|lane| (row / 8 * 8 + lane as u32, vector));
                assert!(spread::<F16>(down) && spread::<Bf16>(down), "{vector} from {row} on");
                // Four lanes of a row, and four of the next.
                let across =
                    core::array::from_fn(|lane| (row + lane as u32 / 4, vector / 4 * 4 + lane as u32 % 4));
                assert!(spread::<f32>(across), "{vector} from {row} on");
            }
        }
    }

    #[test]
    fn values_of_a_vector_are_told_apart() {
        let words = [0x0002_0001, 0x0004_0003, 0x0006_0005, 0x0008_0007];
        for i in 0..8 {
            assert_eq!(F16::of_vector(&words, i).0, i as u16 + 1);
        }
        assert_eq!([0, 1, 2, 3].map(|i| f32::of_vector(&words, i).to_bits()), words);
    }
}

//! Tensor maps: what a bulk tensor copy needs to know of a tensor.

/// Three dimensions of a tensor of 16-bit elements in global memory, and the boxes in which it is copied: some columns of some rows of one
/// matrix. In shared memory a row of a box follows the row before, and its 16-byte pieces are swizzled as those of the panels of
/// [`warpgroup_mma_f16`](crate::Hopper::warpgroup_mma_f16): a row has 64 or 128 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Where the first element lies; a multiple of 16.
    pub address: u64,
    /// Columns (a multiple of eight), rows and matrices. What a copy asks for beyond them is zero.
    pub extent: [u32; 3],
    /// Bytes from one row to the next, and from one matrix to the next; multiples of 16.
    pub stride_bytes: [u64; 2],
    /// Columns and rows of a box: 32 or 64, and up to 256.
    pub box_dim: [u32; 2],
}

impl Tensor {
    /// Bytes of an element.
    pub const ELEMENT: u32 = 2;

    /// Bytes of a row of a box.
    pub const fn row_bytes(&self) -> u32 {
        self.box_dim[0] * Self::ELEMENT
    }

    /// Bytes of a box.
    pub const fn box_bytes(&self) -> u32 {
        self.box_dim[1] * self.row_bytes()
    }

    /// Where in its row, in bytes, the first 16 bytes of row `row` of a box lie.
    pub const fn swizzle(&self, row: u32) -> u32 {
        if self.row_bytes() == 128 { row % 8 * 16 } else { row / 2 % 4 * 16 }
    }
}

/// A [`Tensor`] as the device has it: the driver's `CUtensorMap` on a GPU.
///
/// It is the first thing in a kernel's argument. A GPU copies by its address there, which the entry point puts in its place ([`at`](Self::at)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TensorMap([u64; Self::WORDS]);

impl TensorMap {
    /// Words of it.
    pub const WORDS: usize = 16;

    /// From the words of a `CUtensorMap`.
    pub const fn from_words(words: [u64; Self::WORDS]) -> Self {
        Self(words)
    }

    /// In place of the map, where it is.
    #[inline(always)]
    pub const fn at(address: u64) -> Self {
        let mut words = [0; Self::WORDS];
        words[0] = address;
        Self(words)
    }

    /// Where it is, by [`at`](Self::at).
    #[inline(always)]
    pub const fn address(self) -> u64 {
        self.0[0]
    }

    /// As the simulator has it.
    pub const fn of(tensor: &Tensor) -> Self {
        let [columns, rows, matrices] = tensor.extent;
        let [row, matrix] = tensor.stride_bytes;
        let mut words = [0; Self::WORDS];
        words[0] = tensor.address;
        words[1] = columns as u64 | (rows as u64) << 32;
        words[2] = matrices as u64;
        words[3] = row;
        words[4] = matrix;
        words[5] = tensor.box_dim[0] as u64 | (tensor.box_dim[1] as u64) << 32;
        Self(words)
    }

    /// What it describes, by [`of`](Self::of).
    pub const fn tensor(&self) -> Tensor {
        let [address, extent, matrices, row, matrix, box_dim, ..] = self.0;
        Tensor {
            address,
            extent: [extent as u32, (extent >> 32) as u32, matrices as u32],
            stride_bytes: [row, matrix],
            box_dim: [box_dim as u32, (box_dim >> 32) as u32],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_the_simulator_tells_its_tensor() {
        let tensor = Tensor {
            address: 1 << 60 | 16,
            extent: [u32::MAX, 7, 3],
            stride_bytes: [1 << 40, u64::MAX - 15],
            box_dim: [64, 128],
        };
        assert_eq!(TensorMap::of(&tensor).tensor(), tensor);
        assert_eq!((tensor.row_bytes(), tensor.box_bytes()), (128, 128 * 128));
        assert_eq!(TensorMap::at(5).address(), 5);
    }

    #[test]
    fn pieces_are_swizzled_by_the_width_of_a_row() {
        let of = |columns| Tensor { address: 0, extent: [1; 3], stride_bytes: [0; 2], box_dim: [columns, 8] };
        assert_eq!([0, 1, 7, 8, 9].map(|row| of(64).swizzle(row)), [0, 16, 112, 0, 16]);
        assert_eq!([0, 1, 2, 7, 8].map(|row| of(32).swizzle(row)), [0, 0, 16, 48, 0]);
    }
}

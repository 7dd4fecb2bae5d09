//! How an operand of tensor cores lies in shared memory, where it is not swizzled.
use crate::SharedPtr;

/// A matrix of 16 numbers along K, of 16 bits, in core matrices: eight rows of 16 bytes, one after the other.
///
/// ```text
///            K 0..8      K 8..16
///   rows 0…  ┌───────┐   ┌───────┐     a core matrix: 8 × 16 bytes
///            └───────┘   └───────┘     ──► leading
///   rows 8…  ┌───────┐   ┌───────┐
///            └───────┘   └───────┘     ▼ stride
/// ```
/// The names are those of the PTX manual. All numbers are multiples of 16, and below 2¹⁸.
#[derive(Clone, Copy)]
pub struct CoreMatrices {
    /// The first row's first 16 bytes.
    pub first: SharedPtr<u16>,
    /// Bytes from one core matrix to the next along K.
    pub leading: u32,
    /// Bytes from eight rows to the next eight.
    pub stride: u32,
}

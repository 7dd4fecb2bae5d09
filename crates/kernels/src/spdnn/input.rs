//! What a layer by groups reads: numbers, or bits that stand for 0 and 1.
use lacuna_gpu::{GlobalPtr, Gpu, Scalar};

use super::TILE_ROWS;

/// Features in tiles of 32 rows, as one type or the other.
pub trait LayerInput: Send + Sync + 'static {
    /// An element of memory.
    type Element: Scalar;
    /// Whether an element is a bit of each of 32 rows, rather than a number.
    const BITS: bool;
    /// Bytes of one input of a tile.
    const INPUT_BYTES: u32;

    /// Where the first input of a row is.
    fn of_row(from: GlobalPtr<Self::Element>, row: u32, inputs: u32) -> GlobalPtr<Self::Element>;

    /// The number that an element is for a row.
    fn number(element: Self::Element, row: u32) -> f32;

    /// Loads an input of a row.
    ///
    /// # Safety
    /// The row has this input, and nobody writes it.
    #[inline(always)]
    unsafe fn load<G: Gpu>(gpu: G, first: GlobalPtr<Self::Element>, input: u32) -> Self::Element {
        // SAFETY: as promised by the caller.
        let [element] = unsafe { gpu.load_readonly(first.add_rows(input, Self::INPUT_BYTES)) };
        element
    }
}

impl LayerInput for f32 {
    type Element = Self;
    const BITS: bool = false;
    const INPUT_BYTES: u32 = TILE_ROWS * 4;

    #[inline(always)]
    fn of_row(from: GlobalPtr<f32>, row: u32, inputs: u32) -> GlobalPtr<f32> {
        let tile = from.add_rows(inputs, Self::INPUT_BYTES * (row / TILE_ROWS));
        tile.add((row % TILE_ROWS) as usize)
    }
    #[inline(always)]
    fn number(element: f32, _row: u32) -> f32 {
        element
    }
}

/// A word has a bit of each row of a tile.
impl LayerInput for u32 {
    type Element = Self;
    const BITS: bool = true;
    const INPUT_BYTES: u32 = 4;

    #[inline(always)]
    fn of_row(from: GlobalPtr<u32>, row: u32, inputs: u32) -> GlobalPtr<u32> {
        from.add_rows(inputs, Self::INPUT_BYTES * (row / TILE_ROWS))
    }
    #[inline(always)]
    fn number(element: u32, row: u32) -> f32 {
        (element >> (row % TILE_ROWS) & 1) as f32
    }
}

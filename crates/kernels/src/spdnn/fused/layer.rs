//! A layer as the kernel of fused layers knows it, and where features are in shared memory.
use crate::spdnn::exact::OF_LANE;

/// Words of a [`FusedLayer`]: three vectors of 16 bytes.
pub const LAYER_WORDS: u32 = 12;
/// Inputs and outputs of a layer at most.
pub const FUSED_WIDTH: u32 = 1024;
/// Stands for no input: the place of zeros.
pub const FUSED_NONE: u32 = FUSED_WIDTH * ROW_BYTES;
/// Rows of a block.
pub(super) const ROWS: u32 = 16;
/// Bytes of an input's rows.
const ROW_BYTES: u32 = ROWS * 4;

/// A layer of [`FusedArgs::layers`](super::FusedArgs::layers), where it is [`LAYER_WORDS`] words in this order, and a zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FusedLayer {
    /// Groups of outputs (not 0).
    pub groups: u32,
    /// Steps of each group (not 0).
    pub steps: u32,
    /// Which word of the network's arrays the steps' inputs begin at: places, by [`fused_place`].
    pub inputs: u32,
    /// Likewise the weights of steps, as [`GroupMmaArgs::weights`](crate::spdnn::GroupMmaArgs::weights). Two steps, of inputs and weights, and a
    /// group come after the last, which are loaded and not used.
    pub weights: u32,
    /// Likewise the places of each group's outputs, [`NO_OUTPUT`](crate::spdnn::NO_OUTPUT) where it has fewer than 16.
    pub outputs: u32,
    /// Likewise their biases.
    pub bias: u32,
    /// What sums below become: an `f32`.
    pub lo: u32,
    /// What sums above become.
    pub hi: u32,
    /// Inputs of the layer.
    pub input_width: u32,
    /// Outputs of the layer.
    pub output_width: u32,
    /// Not 0 where no feature that it reads is infinite.
    pub bounded: u32,
}

impl FusedLayer {
    /// As words.
    pub const fn to_words(self) -> [u32; LAYER_WORDS as usize] {
        let Self {
            groups,
            steps,
            inputs,
            weights,
            outputs,
            bias,
            lo,
            hi,
            input_width,
            output_width,
            bounded,
        } = self;
        [groups, steps, inputs, weights, outputs, bias, lo, hi, input_width, output_width, bounded, 0]
    }

    /// From three vectors of words.
    #[inline(always)]
    pub(super) const fn of_words(words: [[u32; 4]; 3]) -> Self {
        let [
            [groups, steps, inputs, weights],
            [outputs, bias, lo, hi],
            [input_width, output_width, bounded, _],
        ] = words;
        Self { groups, steps, inputs, weights, outputs, bias, lo, hi, input_width, output_width, bounded }
    }
}

/// Where the rows of an input are in shared memory, in bytes: of 16 rows in a line of 128 bytes the second half may come first.
///
/// Four inputs are loaded together, of four rows each. They are in different banks where these two bits differ: whether a number has
/// an odd number of ones, and whether it has at places that are odd. So they do for four neighbouring multiples of any power of
/// two. A warp's own place is `fused_place(input) ^ bytes of its first row`.
pub const fn fused_place(input: u32) -> u32 {
    let odd = (input & 0xaaaa_aaaa).count_ones() & 1;
    ((input ^ ((input >> 1).count_ones() & 1)) * ROW_BYTES) | (odd * (ROW_BYTES / 2))
}

/// Which of four kinds of banks an input is in.
pub const fn fused_banks(input: u32) -> u32 {
    fused_place(input) / (ROW_BYTES / 2) % OF_LANE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let words = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 0]];
        assert_eq!(FusedLayer::of_words(words).to_words(), *words.as_flattened());
    }

    #[test]
    fn each_input_has_a_line_of_its_own() {
        let mut is_taken = [false; FUSED_WIDTH as usize];
        for input in 0..FUSED_WIDTH {
            is_taken[(fused_place(input) / ROW_BYTES) as usize] = true;
        }
        assert!(is_taken.into_iter().all(|is_taken| is_taken));
        assert!((0..FUSED_WIDTH).all(|input| fused_place(input).is_multiple_of(ROW_BYTES / 2)));
    }

    #[test]
    fn neighbouring_multiples_are_in_different_banks() {
        for power in 0..8 {
            for first in 0..16 {
                let mut banks = [0, 1, 2, 3].map(|i| fused_banks((first * 4 + i) << power));
                banks.sort_unstable();
                assert_eq!(banks, [0, 1, 2, 3], "from {first} by {power}");
            }
        }
    }
}

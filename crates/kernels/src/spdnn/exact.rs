//! Products of tensor cores that lose nothing: weights are bfloat16, and an `f32` feature is the sum of three bfloat16 numbers, unless
//! it is below 2⁻¹⁰⁹: then less than 2⁻¹³³ is left out.
//!
//! ```text
//!   16 outputs × 16 inputs (A)        16 inputs × 8 rows (B), lane g·4 + t, of each input an f32
//!   ┌───────────────────┐             x = hi + mid + lo: the upper 16 bits of x, of x - hi, and the rest
//!   │ weights, in the   │      ·      three products with the same A, the least first
//!   │ order of the lanes│             slots 4t … 4t+3 of a step are the lane's: rows 2t, 2t+1, 2t+8, 2t+9 of B
//!   └───────────────────┘
//! ```
//! Groups of outputs with the same inputs have steps of 16 inputs; what is left of the last step stands for nothing.
use lacuna_gpu::{GlobalPtr, Gpu};

/// Outputs of a group.
pub const MMA_OUTPUTS: u32 = 16;
/// Inputs of a step.
pub const MMA_INPUTS: u32 = 16;
/// Words of the weights of a step: pairs of bfloat16 numbers.
pub const MMA_WORDS: u32 = MMA_OUTPUTS * MMA_INPUTS / 2;
/// Stands for no input.
pub const NO_INPUT: u32 = u32::MAX;
/// Inputs of a lane in a step, and words of its weights.
pub(super) const OF_LANE: u32 = 4;

/// Where a weight of a step is, as an index of its bfloat16 numbers: that of an output of the group, and of a slot.
pub const fn weight_place(output: u32, slot: u32) -> u32 {
    let (t, i) = (slot / OF_LANE, slot % OF_LANE);
    let lane = output % 8 * OF_LANE + t;
    let word = i / 2 * 2 + output / 8;
    (lane * OF_LANE + word) * 2 + i % 2
}

/// A step as a lane has it.
#[derive(Clone, Copy, Default)]
pub(super) struct Step {
    /// Its weights.
    pub(super) a: [u32; 4],
    /// Its inputs, or places of them.
    pub(super) inputs: [u32; 4],
}

/// Where a lane's parts of a step are.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    weights: GlobalPtr<u32>,
    inputs: GlobalPtr<u32>,
}

impl Steps {
    /// Those of step `step`, of arrays of all steps.
    #[inline(always)]
    pub(super) fn at<G: Gpu>(gpu: G, weights: GlobalPtr<u32>, inputs: GlobalPtr<u32>, step: u32) -> Self {
        let lane = gpu.lane_id();
        Self {
            weights: weights.add_rows(step, MMA_WORDS * 4).add((lane * OF_LANE) as usize),
            inputs: inputs.add_rows(step, MMA_INPUTS * 4).add((lane % OF_LANE * OF_LANE) as usize),
        }
    }

    /// Goes on to the next step.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        self.weights = self.weights.add(MMA_WORDS as usize);
        self.inputs = self.inputs.add(MMA_INPUTS as usize);
    }

    /// Loads the lane's weights.
    ///
    /// # Safety
    /// The step is there, and nobody writes it.
    #[inline(always)]
    pub(super) unsafe fn weights<G: Gpu>(&self, gpu: G) -> [u32; 4] {
        // SAFETY: as promised by the caller.
        unsafe { gpu.load_readonly(self.weights) }
    }

    /// Loads the lane's inputs.
    ///
    /// # Safety
    /// As [`weights`](Self::weights).
    #[inline(always)]
    pub(super) unsafe fn inputs<G: Gpu>(&self, gpu: G) -> [u32; 4] {
        // SAFETY: as promised by the caller.
        unsafe { gpu.load_readonly(self.inputs) }
    }

    /// Loads a step, and goes on to the next.
    ///
    /// # Safety
    /// As [`weights`](Self::weights).
    #[inline(always)]
    pub(super) unsafe fn next<G: Gpu>(&mut self, gpu: G) -> Step {
        // SAFETY: as promised by the caller.
        let step = unsafe { Step { a: self.weights(gpu), inputs: self.inputs(gpu) } };
        self.advance();
        step
    }
}

/// Adds the products of a step for eight rows, of which this lane has four inputs of one row. `BOUNDED` are features that are not
/// infinite.
#[inline(always)]
pub(super) fn add_products<G: Gpu, const BOUNDED: bool>(
    gpu: G,
    a: [u32; 4],
    x: [f32; 4],
    sums: [f32; 4],
) -> [f32; 4] {
    // A NaN of which the upper bits are an infinity becomes another NaN.
    let x = x.map(|x| if BOUNDED || x.is_finite() { x } else { x + x });
    let mid = x.map(rest::<BOUNDED>);
    let lo = mid.map(|x| x - upper(x));
    // The rest is rounded to what it is: one instruction, without a mask.
    let lo = [gpu.pack_bf16(lo[0], lo[1]), gpu.pack_bf16(lo[2], lo[3])];
    let sums = gpu.mma_bf16(a, lo, sums);
    let sums = gpu.mma_bf16(a, pairs(mid), sums);
    gpu.mma_bf16(a, pairs(x), sums)
}

/// The upper 16 bits of a number: a bfloat16 number.
#[inline(always)]
fn upper(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & 0xffff_0000)
}

/// What the upper bits leave; of an infinity or NaN nothing that would change the product.
#[inline(always)]
fn rest<const BOUNDED: bool>(x: f32) -> f32 {
    if BOUNDED || x.is_finite() { x - upper(x) } else { 0.0 }
}

/// The upper halves of two numbers each.
#[inline(always)]
pub(super) fn pairs(x: [f32; 4]) -> [u32; 2] {
    let pair = |low: f32, high: f32| low.to_bits() >> 16 | high.to_bits() & 0xffff_0000;
    [pair(x[0], x[1]), pair(x[2], x[3])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_weight_has_a_place_of_its_own() {
        let mut is_taken = [false; 256];
        for (output, slot) in (0..16).flat_map(|output| (0..16).map(move |slot| (output, slot))) {
            is_taken[weight_place(output, slot) as usize] = true;
        }
        assert_eq!(is_taken, [true; 256]);
    }

    #[test]
    fn three_parts_are_all_of_a_number() {
        // What is left of smaller numbers than 2⁻¹⁰⁹ may be below the least number of bfloat16, 2⁻¹³³.
        for bits in (0x0900_0000..0x7f80_0000_u32).step_by(65_537) {
            let x = f32::from_bits(bits);
            let mid = rest::<false>(x);
            let lo = mid - upper(mid);
            assert_eq!(upper(lo), lo, "{x:e}");
            assert_eq!(upper(x) + (upper(mid) + lo), x);
        }
        assert_eq!(rest::<false>(f32::INFINITY), 0.0);
    }
}

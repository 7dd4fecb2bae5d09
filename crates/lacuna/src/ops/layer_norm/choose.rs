//! Which kernel suits tokens: a pure function of the problem shape.
use lacuna_kernels::layer_norm::{Scheme, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::{OPERATION, Shape};
use crate::op;

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Tokens and features.
    pub shape: Shape,
    /// Elements that strides and addresses allow to load at once (1, 2, 4 or 8).
    pub vector: u32,
    /// Type of the values.
    pub value: ValueType,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// Tokens of `f32` without gaps, on an H200.
    pub fn new(shape: Shape) -> Self {
        Self { shape, vector: 8, value: ValueType::F32, multiprocessors: 132, sm: 90 }
    }
}

/// How tokens are shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Features beside each other: lanes share a row. Of maps, those of one pixel.
    Rows {
        /// Features that a thread loads at once.
        vector: u32,
        /// Threads that share a row: a warp or a block.
        lanes: u32,
    },
    /// Maps in NCHW: a lane has a pixel, and the warps of a block share its channels.
    Channels,
}

/// A kernel, and what the heuristic thinks of it.
pub type Choice = op::Choice<Algorithm, Tile>;

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::layer_norm;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let Tile { value, scheme, vector, .. } = entry.tile;
        let are_beside = self.shape.pixels() == 1;
        let (algorithm, is_legal) = match scheme {
            Scheme::Rows { lanes } => {
                let is_whole = self.shape.features().is_multiple_of(vector as usize);
                (Algorithm::Rows { vector, lanes }, are_beside && is_whole)
            }
            Scheme::Channels => (Algorithm::Channels, !are_beside),
        };
        let is_able = value == self.value && vector <= self.vector && entry.runs_on(self.sm);
        (is_able && is_legal).then_some(algorithm)
    }

    /// Cycles: those of the loads that a thread waits for, one chunk after another; and the most of what instructions, memory, and
    /// the caches take.
    fn cost(&self, entry: &'static Entry<Tile>, _algorithm: Algorithm) -> f64 {
        let Tile { scheme, vector, block_tokens, .. } = entry.tile;
        let lanes = match scheme {
            Scheme::Rows { lanes } => lanes,
            Scheme::Channels => entry.threads / block_tokens,
        };
        let tokens = self.shape.tokens() as f64 / f64::from(self.multiprocessors);
        let loads = self.shape.features().div_ceil((lanes * vector) as usize) as f64;
        let warps = (tokens * f64::from(lanes) / 32.0).max(1.0);
        let instructions =
            warps * (START + loads * PASSES * (LOAD + NUMBER * f64::from(vector))) / SCHEDULERS;
        let bytes = self.shape.features() as f64 * f64::from(self.value.bytes());
        // The tokens that a multiprocessor has at a time: where they do not stay in L1, passes two and three read L2.
        let resident = tokens.min(THREADS / f64::from(lanes)) * bytes;
        let read_again = if resident > L1 { 2.0 * tokens * bytes / L2_BYTES } else { 0.0 };
        let memory = 2.0 * tokens * bytes / BYTES;
        (loads / CHUNK).ceil() * LATENCY + instructions.max(memory + read_again)
    }
}

/// The kernels that can do this problem, the best first. Never empty: rows by single elements are always legal, and so are maps.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

/// Instructions of a thread that are none of its loads: mostly those of three sums over lanes.
const START: f64 = 150.0;
/// Of a load, and of a number, in each pass.
const LOAD: f64 = 6.0;
const NUMBER: f64 = 3.0;
/// Passes over a token.
const PASSES: f64 = 3.0;
/// Loads of a thread that are under way at once.
const CHUNK: f64 = 4.0;
/// Instructions of warps in a cycle of a multiprocessor.
const SCHEDULERS: f64 = 4.0;
/// Threads of a multiprocessor, with the registers of these kernels.
const THREADS: f64 = 1536.0;
/// Bytes that L1 keeps of tokens.
const L1: f64 = 192.0 * 1024.0;
/// Bytes of memory, and of L2, in a cycle of a multiprocessor: an H200's 4.8 TB/s at 1.8 GHz, and about two and a half times that.
const BYTES: f64 = 20.0;
const L2_BYTES: f64 = 50.0;
/// Cycles until a load from memory is there.
const LATENCY: f64 = 600.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn best(shape: Shape, vector: u32) -> &'static str {
        choose(&Problem { vector, ..Problem::new(shape) })[0].entry.name
    }

    #[test]
    fn lanes_follow_the_shape() {
        let rows = |rows, features, vector| best(Shape::Rows { rows, features }, vector);
        assert_eq!(rows(100_000, 96, 8), "layer_norm_f32_rows_v4_l32");
        assert_eq!(rows(1, 4096, 8), "layer_norm_f32_rows_v4_l256");
        assert_eq!(rows(8192, 8192, 8), "layer_norm_f32_rows_v4_l256");
        assert_eq!(rows(100_000, 49, 8), "layer_norm_f32_rows_v1_l32");
        assert_eq!(rows(100_000, 96, 2), "layer_norm_f32_rows_v1_l32");
    }

    #[test]
    fn maps_have_a_kernel_of_their_own_and_one_pixel_is_a_row() {
        let maps = |pixels| best(Shape::Maps { images: 16, channels: 96, pixels }, 8);
        assert_eq!([maps(49), maps(0)], ["layer_norm_f32_channels"; 2]);
        assert!(maps(1).starts_with("layer_norm_f32_rows_"));
    }

    #[test]
    fn every_type_and_any_shape_have_a_kernel() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            for features in [0, 1, 2, 3, 4, 8, 31, 32, 513] {
                let maps = |pixels| Shape::Maps { images: 3, channels: features, pixels };
                for shape in [Shape::Rows { rows: 10, features }, maps(0), maps(1), maps(2)] {
                    let problem = Problem { value, sm: 70, ..Problem::new(shape) };
                    for choice in choose(&problem) {
                        assert_eq!(op::find(&problem, choice.algorithm), Some(choice));
                        assert!(choice.cost.is_finite());
                    }
                    assert!(!choose(&problem).is_empty());
                }
            }
        }
    }
}

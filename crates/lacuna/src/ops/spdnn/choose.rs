//! Which kernel suits a layer: a pure function of the problem shape.
use lacuna_kernels::spdnn::{Scheme, TILE_ROWS, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::OPERATION;
use crate::op;

/// The problem shape: all that the heuristic sees of a layer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Problem {
    /// Samples that are expected to be there.
    pub rows: usize,
    /// Inputs.
    pub inputs: usize,
    /// Outputs.
    pub outputs: usize,
    /// Weights.
    pub edges: usize,
    /// How many outputs have the same inputs, and how many inputs: a pair for each class of outputs.
    pub classes: Vec<[u32; 2]>,
    /// Whether the weights are `f16`, rather than `f32`.
    pub f16_weights: bool,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

/// How a layer is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Outputs with the same inputs are computed together.
    InputGroups {
        /// Outputs of a group at most.
        outputs: u32,
        /// Tiles of 32 samples that a warp has at once.
        tiles: u32,
    },
    /// The same, with inputs staged in shared memory by asynchronous copies. From compute capability 8.0 on.
    GroupTiles {
        /// Outputs of a group at most.
        outputs: u32,
        /// Tiles of 32 samples that a warp has at once.
        tiles: u32,
    },
    /// The paper's first kernel: a thread an output.
    Baseline,
    /// The paper's second kernel: inputs staged in shared memory, weights in sliced ELL. Up to 65,536 inputs.
    StagedEll,
}

impl Algorithm {
    /// Whether features lie in tiles of 32 samples, rather than sample by sample.
    pub(super) fn is_tiled(self) -> bool {
        matches!(self, Self::Auto | Self::InputGroups { .. } | Self::GroupTiles { .. })
    }
}

/// The most inputs that maps of two bytes have.
const MAX_STAGED_INPUTS: usize = 1 << 16;

/// A kernel, and what the heuristic thinks of it.
pub type Choice = op::Choice<Algorithm, Tile>;

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::spdnn;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let Tile { scheme, input_bits, weights } = entry.tile;
        // The paper's kernels have weights in f32, whatever they are.
        let fits = self.f16_weights == (weights == ValueType::F16);
        let algorithm = match scheme {
            Scheme::InputGroups { outputs, tiles } if fits => Some(Algorithm::InputGroups { outputs, tiles }),
            Scheme::GroupTiles { outputs, tiles } if fits => Some(Algorithm::GroupTiles { outputs, tiles }),
            Scheme::Baseline { .. } => Some(Algorithm::Baseline),
            Scheme::StagedEll { .. } => (self.inputs <= MAX_STAGED_INPUTS).then_some(Algorithm::StagedEll),
            _ => None,
        };
        // A layer that reads bits has the kernel of the same shape.
        algorithm.filter(|_| !input_bits && entry.runs_on(self.sm))
    }

    /// Cycles: those in which instructions are issued, or shared memory is read, and those of waiting for loads.
    fn cost(&self, entry: &'static Entry<Tile>, _algorithm: Algorithm) -> f64 {
        let (outputs, tiles, staged) = match entry.tile.scheme {
            Scheme::InputGroups { outputs, tiles } => (outputs, tiles, false),
            Scheme::GroupTiles { outputs, tiles } => (outputs, tiles, true),
            _ => return f64::INFINITY,
        };
        let [mut groups, mut inputs] = [0.0, 0.0];
        for &[members, length] in &self.classes {
            let count = f64::from(members.div_ceil(outputs));
            groups += count;
            inputs += count * f64::from(length);
        }
        let spans = self.rows.div_ceil((TILE_ROWS * tiles) as usize).max(1) as f64;
        let resident = f64::from(self.multiprocessors * entry.bounds.min_blocks * entry.threads / 32);
        // All warps are there at once, or in turns that end together but for the last.
        let turns = (spans * groups / resident).ceil();
        let (outputs, tiles) = (f64::from(outputs), f64::from(tiles));
        let length = inputs / groups.max(1.0);
        // Copies of a stage run ahead of the products: only the first is waited for.
        let steps = if staged { 2.0 } else { length / STEP };
        let waiting = turns * (WAIT * steps + START);
        let issued = if staged {
            SCHEDULERS * (outputs * tiles / 4.0 + STAGED)
        } else {
            tiles * (outputs + LOAD) + WEIGHTS * (outputs / 4.0).max(1.0)
        };
        let busy = spans * inputs * issued / (f64::from(self.multiprocessors) * SCHEDULERS);
        busy + waiting
    }

    /// The paper's kernels must be asked for: they need features of another layout.
    fn is_offered(algorithm: Algorithm) -> bool {
        algorithm.is_tiled()
    }
}

/// The kernels that the library may choose for this layer, the best first. Never empty.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

/// Instructions that a multiprocessor starts in a cycle.
const SCHEDULERS: f64 = 4.0;
/// Inputs whose loads are under way together.
const STEP: f64 = 4.0;
/// Cycles until the loads of a step are there.
const WAIT: f64 = 350.0;
/// Cycles from the start of a group to its first products, and to write its outputs.
const START: f64 = 1500.0;
/// Instructions of a load of an input.
const LOAD: f64 = 2.0;
/// Cycles of a multiprocessor in which shared memory gives a warp an input of two tiles, and weights, beyond those of products.
const STAGED: f64 = 5.0;
/// Instructions of four weights.
const WEIGHTS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(rows: usize, classes: Vec<[u32; 2]>) -> Problem {
        let outputs = classes.iter().map(|&[members, _]| members as usize).sum();
        let edges = classes.iter().map(|&[members, length]| (members * length) as usize).sum();
        let (inputs, multiprocessors, sm) = (outputs, 132, 90);
        Problem { rows, inputs, outputs, edges, classes, f16_weights: false, multiprocessors, sm }
    }

    #[test]
    fn groups_follow_the_classes() {
        let outputs = |problem: &Problem| match choose(problem)[0].algorithm {
            Algorithm::InputGroups { outputs, .. } | Algorithm::GroupTiles { outputs, .. } => outputs,
            other => panic!("{other:?}"),
        };
        assert_eq!(outputs(&problem(60_000, vec![[16, 32]; 64])), 16);
        assert_eq!(outputs(&problem(60_000, vec![[4, 32]; 256])), 4);
        assert_eq!(outputs(&problem(60_000, vec![[1, 32]; 1024])), 1);
    }

    #[test]
    fn any_layer_has_a_kernel() {
        for classes in [vec![], vec![[1, 0]], vec![[3, 5], [1, 7]]] {
            let problem = problem(0, classes);
            assert!(!choose(&problem).is_empty());
            for choice in choose(&problem) {
                assert!(choice.cost.is_finite());
                assert_eq!(op::find(&problem, choice.algorithm), Some(choice));
            }
        }
    }
}

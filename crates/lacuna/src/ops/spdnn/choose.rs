//! Which kernel suits a layer: a pure function of the problem shape.
use lacuna_kernels::spdnn::{FUSED_WIDTH, MMA_INPUTS, MMA_OUTPUTS, Scheme, TILE_ROWS, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::OPERATION;
use crate::{Precision, op};

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
    /// Whether weights are normal numbers of bfloat16, or zero, all of them.
    pub exact_bf16: bool,
    /// How sums are computed.
    pub precision: Precision,
    /// Bytes of shared memory that a thread block may have.
    pub block_shared_bytes: u32,
    /// Whether samples are likely to come by a list, as in the first layers where samples are left out.
    pub listed: bool,
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
    /// Groups of 16 outputs with the same inputs, on tensor cores, for weights that are numbers of bfloat16: features are cut into three
    /// parts, so that products stay exact. From compute capability 8.0 on.
    GroupMma,
    /// The same for neighbouring layers in one kernel, which keeps features in shared memory: of at most 1,024 inputs and outputs.
    FusedLayers,
    /// The paper's first kernel: a thread an output.
    Baseline,
    /// The paper's second kernel: inputs staged in shared memory, weights in sliced ELL. Up to 65,536 inputs.
    StagedEll,
}

impl Algorithm {
    /// Whether features lie in tiles of 32 samples, rather than sample by sample.
    pub(super) fn is_tiled(self) -> bool {
        !matches!(self, Self::Baseline | Self::StagedEll)
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
        let is_exact = self.exact_bf16 && self.precision != Precision::Fma;
        let has_room = entry.shared_bytes <= self.block_shared_bytes;
        let widths = [self.inputs, self.outputs];
        let is_narrow =
            has_room && self.outputs > 0 && widths.iter().all(|&width| width <= FUSED_WIDTH as usize);
        // The paper's kernels have weights in f32, whatever they are.
        let fits = self.f16_weights == (weights == ValueType::F16);
        let algorithm = match scheme {
            Scheme::InputGroups { outputs, tiles } if fits => Some(Algorithm::InputGroups { outputs, tiles }),
            Scheme::GroupTiles { outputs, tiles } if fits => Some(Algorithm::GroupTiles { outputs, tiles }),
            Scheme::GroupMma if is_exact => Some(Algorithm::GroupMma),
            Scheme::FusedLayers if is_exact && is_narrow => Some(Algorithm::FusedLayers),
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
            Scheme::GroupMma => return self.mma_cost(),
            Scheme::FusedLayers => return self.fused_cost(),
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
        let waiting = turns * (WAIT * steps + START) + LAUNCH;
        let issued = if staged {
            SCHEDULERS * (outputs * tiles / 4.0 + STAGED)
        } else {
            tiles * (outputs + LOAD) + WEIGHTS * (outputs / 4.0).max(1.0)
        };
        let busy = spans * inputs * issued / (f64::from(self.multiprocessors) * SCHEDULERS);
        busy * if self.listed { LISTED } else { 1.0 } + waiting
    }

    /// The paper's kernels must be asked for: they need features of another layout.
    fn is_offered(algorithm: Algorithm) -> bool {
        algorithm.is_tiled()
    }
}

impl Problem {
    /// Groups of 16 outputs, steps of 16 inputs of all of them, and the most of one.
    fn steps(&self) -> [f64; 3] {
        let [mut groups, mut steps, mut most] = [0.0, 0.0, 1.0_f64];
        for &[members, length] in &self.classes {
            let (count, length) =
                (f64::from(members.div_ceil(MMA_OUTPUTS)), f64::from(length.div_ceil(MMA_INPUTS)));
            groups += count;
            steps += count * length;
            most = most.max(length);
        }
        [groups, steps, most]
    }

    /// Cycles on tensor cores: a step takes longer where features come from memory rather than from the L2 cache.
    fn mma_cost(&self) -> f64 {
        let [_, steps, _] = self.steps();
        let tiles = self.rows.div_ceil(TILE_ROWS as usize).max(1) as f64;
        let is_cached = self.rows.saturating_mul(self.inputs) <= CACHED_FEATURES;
        let step = if is_cached { MMA_STEP[0] } else { MMA_STEP[1] };
        tiles * steps * step / (f64::from(self.multiprocessors) * SCHEDULERS) + START + LAUNCH
    }

    /// Cycles of a layer that is one of several in a kernel: a block a multiprocessor reads all weights through the L2 cache.
    fn fused_cost(&self) -> f64 {
        let [groups, _, most] = self.steps();
        let turns =
            self.rows.div_ceil(FUSED_ROWS).max(1).div_ceil(self.multiprocessors.max(1) as usize) as f64;
        turns * (groups * most * FUSED_STEP + FUSED_WAIT)
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
/// Cycles of a launch; fused layers share one.
const LAUNCH: f64 = 6000.0;
/// How much longer kernels without tensor cores take where samples come by a list, number by number.
const LISTED: f64 = 1.7;
/// Cycles of a scheduler for a step of 16 inputs, 16 outputs and 32 rows on tensor cores: with features from the L2 cache, or from
/// memory. Measured on an H200, as those of fused layers.
const MMA_STEP: [f64; 2] = [500.0, 640.0];
/// Numbers of the features that the L2 cache of an H100 holds.
const CACHED_FEATURES: usize = 50_000_000 / 4;
/// Rows of a block of fused layers.
const FUSED_ROWS: usize = 16;
/// Cycles of a multiprocessor for a step in fused layers.
const FUSED_STEP: f64 = 75.0;
/// Cycles that fused layers wait for one another.
const FUSED_WAIT: f64 = 700.0;
/// Instructions of four weights.
const WEIGHTS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(rows: usize, classes: Vec<[u32; 2]>) -> Problem {
        let outputs = classes.iter().map(|&[members, _]| members as usize).sum();
        let edges = classes.iter().map(|&[members, length]| (members * length) as usize).sum();
        let (inputs, multiprocessors, sm) = (outputs, 132, 90);
        Problem { rows, inputs, outputs, edges, classes, multiprocessors, sm, ..Problem::default() }
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
    fn exact_weights_go_to_tensor_cores() {
        let best = |rows, neurons: u32, listed, precision| {
            let classes = vec![[16, 32]; neurons as usize / 16];
            let block_shared_bytes = 227 * 1024;
            let exact =
                Problem { exact_bf16: true, precision, listed, block_shared_bytes, ..problem(rows, classes) };
            choose(&exact)[0].algorithm
        };
        let tiles = Algorithm::GroupTiles { outputs: 16, tiles: 2 };
        assert_eq!(best(60_000, 1024, true, Precision::Single), Algorithm::GroupMma);
        assert_eq!(best(1_875, 1024, false, Precision::Single), Algorithm::FusedLayers);
        assert_eq!(best(1_875, 4096, false, Precision::Single), Algorithm::GroupMma);
        assert_eq!(best(60_000, 65_536, true, Precision::Single), Algorithm::GroupMma);
        // Slower on tensor cores: whole lines come from memory.
        assert_eq!(best(1_875, 65_536, false, Precision::Single), tiles);
        assert_eq!(best(60_000, 1024, false, Precision::Fma), tiles);
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

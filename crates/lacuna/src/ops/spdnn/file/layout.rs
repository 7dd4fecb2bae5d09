//! Where the arrays of a layer are, by their sizes: as packing puts them one after another.
use lacuna_kernels::spdnn::{MMA_INPUTS, MMA_OUTPUTS, MMA_WORDS, Scheme, Tile};

use super::super::csr::CsrLayer;
use super::super::groups::{Groups, STEP};
use super::super::packed::{ALIGNED, Place};
use super::super::prepared::{Places, Prepared};
use super::super::staged::{StagedLayer, WARP};
use super::super::steps::{MORE_STEPS, Steps};

/// What a layer's kernel and widths leave open, padded with zeros: of groups how many there are, and places for weights, or steps; of stages
/// how many there are, inputs of all, and places for edges.
pub(super) type Sizes = [u64; 3];

/// More than any layer has. Products of sizes below this do not overflow.
const MOST: u64 = 1 << 32;

/// The sizes of a layer.
pub(super) fn sizes(layer: &Prepared, words: &[u32]) -> Sizes {
    match &layer.places {
        Places::Groups(groups) => [groups.groups.into(), groups.padded as u64, 0],
        Places::Csr(_) => [0; 3],
        Places::Steps(steps) => [steps.groups.into(), steps.steps.into(), 0],
        Places::Staged(staged) => {
            let (blocks, ..) = stages_of(layer);
            let stages = words[staged.stages as usize + blocks];
            let inputs = words[staged.map_starts as usize + stages as usize];
            [stages.into(), inputs.into(), staged.padded as u64]
        }
    }
}

/// Where the arrays of a layer are, and how many words they have with what aligns them. `None` where there is no such layer.
pub(super) fn places(tile: Tile, outputs: usize, edges: u64, sizes: Sizes) -> Option<(Places, u64)> {
    let mut end = 0;
    let mut array = |words: u64| {
        let place: Place = end;
        end += words.next_multiple_of(ALIGNED as u64);
        place
    };
    let fit = |sizes: &[u64]| sizes.iter().all(|&size| size < MOST);
    let (rows, [first, second, third]) = (outputs as u64, sizes);
    let places = match tile.scheme {
        Scheme::InputGroups { outputs: most, .. } | Scheme::GroupTiles { outputs: most, .. } => {
            let (groups, padded, most) = (first, second, u64::from(most));
            let inputs = padded / most;
            if !fit(&[groups, inputs]) || padded % (most * STEP as u64) != 0 || third != 0 {
                return None;
            }
            Places::Groups(Groups {
                groups: groups as u32,
                padded: padded as usize,
                starts: array(groups),
                counts: array(groups),
                inputs: array(inputs),
                weights: array((padded * u64::from(tile.weights.bytes())).div_ceil(4)),
                bias: array(groups * most),
                outputs: array(groups * most),
            })
        }
        Scheme::GroupMma | Scheme::FusedLayers => {
            let (groups, steps) = (first, second);
            // Fused layers have the same number of steps in each of some groups.
            let is_even = steps > 0 && groups > 0 && steps % groups == 0;
            let is_fused = tile.scheme != Scheme::GroupMma;
            if !fit(&[groups, steps]) || third != 0 || is_fused && !is_even {
                return None;
            }
            Places::Steps(Steps {
                groups: groups as u32,
                steps: steps as u32,
                starts: array(groups + 1),
                inputs: array((steps + MORE_STEPS as u64) * u64::from(MMA_INPUTS)),
                weights: array((steps + MORE_STEPS as u64) * u64::from(MMA_WORDS)),
                outputs: array((groups + 1) * u64::from(MMA_OUTPUTS)),
                bias: array((groups + 1) * u64::from(MMA_OUTPUTS)),
            })
        }
        Scheme::StagedEll { outputs: of_block, .. } => {
            let (stages, inputs, padded) = (first, second, third);
            let (blocks, warps) = (rows.div_ceil(of_block.into()), u64::from(of_block) / WARP as u64);
            let steps = padded / WARP as u64;
            if !fit(&[stages, stages.saturating_mul(warps), inputs, steps]) || padded % WARP as u64 != 0 {
                return None;
            }
            Places::Staged(StagedLayer {
                padded: padded as usize,
                stages: array(blocks + 1),
                map_starts: array(stages + 1),
                map: array(inputs.div_ceil(2)),
                steps: array(stages * warps + 1),
                places: array(padded.div_ceil(2)),
                weights: array(padded),
                bias: array(rows),
            })
        }
        Scheme::Baseline { .. } => {
            if !fit(&[edges]) || sizes != [0; 3] {
                return None;
            }
            Places::Csr(CsrLayer {
                offsets: array(rows + 1),
                inputs: array(edges),
                weights: array(edges),
                bias: array(rows),
            })
        }
        _ => return None,
    };
    Some((places, end))
}

/// Of a layer in stages its blocks of outputs, warps of a block, and the most inputs of a stage.
pub(super) fn stages_of(layer: &Prepared) -> (usize, usize, u32) {
    match layer.choice.entry.tile.scheme {
        Scheme::StagedEll { outputs, inputs, .. } => {
            (layer.outputs.div_ceil(outputs as usize), outputs as usize / WARP, inputs)
        }
        _ => (0, 0, 0),
    }
}

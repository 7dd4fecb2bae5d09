//! A layer for the paper's second kernel: stages of inputs, and sliced ELL.
use lacuna_kernels::spdnn::PADDED;

use super::Layer;
use super::packed::{Arrays, Place};

/// Lanes of a warp.
pub(super) const WARP: usize = 32;

/// A layer in stages, packed; places are those of `StagedArgs`.
#[derive(Clone, Copy, Debug)]
pub(super) struct StagedLayer {
    pub(super) stages: Place,
    pub(super) map_starts: Place,
    pub(super) map: Place,
    pub(super) steps: Place,
    pub(super) places: Place,
    pub(super) weights: Place,
    pub(super) bias: Place,
    /// Places for edges, padding among them.
    pub(super) padded: usize,
}

impl StagedLayer {
    /// Packs a layer of at most 65,536 inputs: blocks of `outputs` outputs, stages of `inputs` inputs at most.
    pub(super) fn pack(layer: &Layer, outputs: usize, inputs: usize, arrays: &mut Arrays) -> Self {
        let matrix = layer.weights();
        let mut stages = vec![0];
        let mut map_starts = vec![0];
        let mut steps = vec![0];
        let (mut map, mut places, mut weights) = (Vec::<u16>::new(), Vec::<u16>::new(), Vec::<f32>::new());
        for block in (0..layer.outputs()).step_by(outputs) {
            let of_block = block..(block + outputs).min(layer.outputs());
            let offsets = matrix.row_offsets();
            let edges = offsets[of_block.start] as usize..offsets[of_block.end] as usize;
            let mut footprint = matrix.col_indices()[edges].to_vec();
            footprint.sort_unstable();
            footprint.dedup();
            // Edges of each output that are in no stage yet.
            let mut left: Vec<usize> = of_block.clone().map(|output| offsets[output] as usize).collect();
            for stage in footprint.chunks(inputs) {
                map.extend(stage.iter().map(|&input| input as u16));
                map_starts.push(map.len() as u32);
                let last = stage[stage.len() - 1];
                for warp in (0..outputs).step_by(WARP) {
                    let lanes = warp.min(left.len())..(warp + WARP).min(left.len());
                    let taken: Vec<_> = lanes
                        .map(|lane| {
                            let end = offsets[of_block.start + lane + 1] as usize;
                            let first = left[lane];
                            let columns = &matrix.col_indices()[first..end];
                            left[lane] += columns.partition_point(|&input| input <= last);
                            first..left[lane]
                        })
                        .collect();
                    let longest = taken.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
                    for step in 0..longest {
                        for lane in 0..WARP {
                            let edge = taken.get(lane).and_then(|edges| edges.clone().nth(step));
                            let place = |edge: usize| {
                                stage.partition_point(|&input| input < matrix.col_indices()[edge]) as u16
                            };
                            places.push(edge.map_or(PADDED, place));
                            weights.push(edge.map_or(0.0, |edge| matrix.values()[edge]));
                        }
                    }
                    steps.push((places.len() / WARP) as u32);
                }
            }
            stages.push(map_starts.len() as u32 - 1);
        }
        Self {
            padded: places.len(),
            stages: arrays.push(&stages),
            map_starts: arrays.push(&map_starts),
            map: arrays.push_u16(&map),
            steps: arrays.push(&steps),
            places: arrays.push_u16(&places),
            weights: arrays.push_f32(weights),
            bias: arrays.push_f32((0..layer.outputs()).map(|output| layer.bias().of(output))),
        }
    }
}

//! A layer for the paper's first kernel.
use super::Layer;
use super::packed::{Arrays, Place};

/// A layer in CSR, packed; places are those of `BaselineArgs`.
#[derive(Clone, Copy, Debug)]
pub(super) struct CsrLayer {
    pub(super) offsets: Place,
    pub(super) inputs: Place,
    pub(super) weights: Place,
    pub(super) bias: Place,
}

impl CsrLayer {
    pub(super) fn pack(layer: &Layer, arrays: &mut Arrays) -> Self {
        let weights = layer.weights();
        Self {
            offsets: arrays.push(weights.row_offsets()),
            inputs: arrays.push(weights.col_indices()),
            weights: arrays.push_f32(weights.values().iter().copied()),
            bias: arrays.push_f32((0..layer.outputs()).map(|output| layer.bias().of(output))),
        }
    }
}

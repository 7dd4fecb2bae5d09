//! Which values of a model have gaps between their planes.
use lacuna::conv::{Algorithm, MapLayout};

use super::options::SPARSE_ABOVE;
use super::{Held, Options};
use crate::memory;
use crate::network::{Layer, Network, Operation};
use crate::weights::{Folded, Weights};

/// Elements from one plane of each value to the next, where there are gaps: see [`memory::plane_strides`].
pub(super) fn plane_strides(
    network: &Network,
    weights: &Weights,
    options: &Options,
    bytes: usize,
) -> Vec<Option<usize>> {
    if options.layout != MapLayout::Nchw {
        return vec![None; network.shapes().len()];
    }
    let are_sparse = |layer: &Layer| {
        let conv = network.convolution(layer).filter(|conv| conv.is_pixelwise() && !conv.is_linear());
        let limit = match options.of(&layer.name).weights {
            Held::Dense => return false,
            Held::Sparse => return conv.is_some(),
            Held::SparseAbove(limit) => limit,
            // Below that dense weights mostly win, which gaps would only slow down.
            Held::FasterAbove(limit) => limit.max(SPARSE_ABOVE),
        };
        // Weights that are not there are told of where they are needed.
        conv.and_then(|conv| Folded::new(&conv, weights).ok()).is_some_and(|folded| folded.zeros() > limit)
    };
    let take_gaps = |layer: &Layer| match layer.operation {
        // A residual would have to lie as the result does.
        Operation::Conv(_) => layer.inputs.len() == 1 && options.of(&layer.name).algorithm == Algorithm::Auto,
        Operation::Pool(_) => true,
        _ => false,
    };
    memory::plane_strides(network, bytes, are_sparse, take_gaps)
}

//! Gaps between the planes of maps, so that products with sparse weights find whole vectors of pixels: 49 pixels of `f32` are none.
use crate::network::{Layer, Network, Operation};

/// Bytes of a vector.
const VECTOR: usize = 16;

/// Elements from one plane to the next, for each value in NCHW of elements of `bytes` bytes; none without gaps.
///
/// There are gaps in front of the layers that `are_sparse`, taps of 1×1, and after them, where the layers that read and write these values `take_gaps`.
/// Convolutions alone write such values; input and output of the network have none.
pub(crate) fn plane_strides(
    network: &Network,
    bytes: usize,
    are_sparse: impl Fn(&Layer) -> bool,
    take_gaps: impl Fn(&Layer) -> bool,
) -> Vec<Option<usize>> {
    let mut may_have = vec![false; network.shapes().len()];
    for layer in network.layers() {
        let is_conv = matches!(layer.operation, Operation::Conv(_));
        may_have[layer.output.index()] = is_conv && layer.output != network.output() && take_gaps(layer);
        // Layers come after those whose results they read.
        if !take_gaps(layer) {
            layer.inputs.iter().for_each(|input| may_have[input.index()] = false);
        }
    }
    let mut strides = vec![None; may_have.len()];
    for layer in network.layers() {
        let around = [layer.inputs[0], layer.output];
        let [pixels, out_pixels] = around.map(|value| network.shape(value).pixels());
        let stride = (pixels * bytes).next_multiple_of(VECTOR) / bytes;
        // Of small maps gaps would be most: they cost time and memory like pixels.
        let has_no_vectors = stride != pixels && 4 * stride <= 5 * pixels;
        let may_have = around.iter().all(|value| may_have[value.index()]);
        if has_no_vectors && pixels == out_pixels && may_have && are_sparse(layer) {
            around.iter().for_each(|value| strides[value.index()] = Some(stride));
        }
    }
    strides
}

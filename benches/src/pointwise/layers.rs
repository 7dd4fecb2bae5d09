//! The layers that are measured: those of MobileNetV1 with taps of 1 × 1.
use anyhow::Result;
use lacuna::conv::Shape;
use lacuna::matrix::{Csr, generate};

use crate::conv::{Input, MOBILENET_V1, at_width};

/// Layers of MobileNetV1: channels at width 1, side of the map, filters at width 1.
const MOBILENET: [[usize; 3]; 9] = [
    [32, 112, 64],
    [64, 56, 128],
    [128, 56, 128],
    [128, 28, 256],
    [256, 28, 256],
    [256, 14, 512],
    [512, 14, 512],
    [512, 7, 1024],
    [1024, 7, 1024],
];

/// A layer with sparse weights.
#[derive(Clone, Debug)]
pub struct Pruned {
    /// Filters × channels.
    pub weights: Csr<f32>,
    /// The same with dense weights, for those that know no others; with the maps.
    pub dense: Input,
}

/// The different 1 × 1 layers of MobileNetV1 at a width, with channels in whole eights, of so many images.
pub fn mobilenet(width: f64, batch: usize) -> Vec<Shape> {
    let layer = |[channels, side, filters]: [usize; 3]| {
        let [channels, filters] = [channels, filters].map(|count| at_width(count, width));
        Shape::new(channels, [side; 2], filters, [1, 1]).batch(batch)
    };
    MOBILENET.into_iter().map(layer).collect()
}

/// A layer whose weights are pruned at random, and whose maps are drawn as after a ReLU, but without zeros, which save nothing here.
///
/// # Errors
/// A pattern that cannot be drawn.
pub fn drawn(shape: Shape, sparsity: f64, seed: u64) -> Result<Pruned> {
    let draw = |len, salt| generate::random_values(len, seed ^ salt);
    let pattern = generate::uniform(shape.filters, shape.channels, sparsity, seed)?;
    let values = draw(pattern.nnz(), 3);
    let weights = Csr::with_values(pattern, values)?;
    let dense = Input {
        name: MOBILENET_V1.into(),
        shape,
        level: Some(0.0),
        input: draw(shape.input_len(), 1).into_iter().map(f32::abs).collect(),
        weights: weights.to_dense()?,
        bias: draw(shape.filters, 4),
    };
    Ok(Pruned { weights, dense })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_follow_each_other_at_any_width() {
        let shapes = mobilenet(1.4, 2);
        let sizes: Vec<_> = shapes.iter().map(|shape| (shape.channels, shape.filters)).collect();
        assert_eq!(sizes[..4], [(48, 88), (88, 176), (176, 176), (176, 360)]);
        let drawn = drawn(shapes[0], 0.9, 1).unwrap();
        assert_eq!(drawn.weights.nnz(), 422);
        assert_eq!(drawn.dense.weights.iter().filter(|&&weight| weight != 0.0).count(), 422);
        assert_eq!(drawn.dense.input.len(), 2 * 48 * 112 * 112);
    }
}

//! A convolution as the oracle sees it.
use lacuna::conv::{Algorithm, Shape};
use lacuna_reference::{ConvShape, Precision};

use crate::Number;

/// The oracle's arithmetic of a kernel for values of `T`; of cuDNN where nobody asked for TF32.
pub fn precision<T: Number>(algorithm: Algorithm) -> Precision {
    let is_mma = matches!(
        algorithm,
        Algorithm::MmaTile { .. }
            | Algorithm::WgmmaTile { .. }
            | Algorithm::PointwiseTile { .. }
            | Algorithm::WgmmaPointwise { .. }
            | Algorithm::WgmmaPanels { .. }
            | Algorithm::FewChannelsMma { .. }
    );
    match size_of::<T>() {
        4 if is_mma => Precision::SplitBf16,
        2 if is_mma || algorithm == Algorithm::CuDnn => Precision::Tensor,
        _ => Precision::Fp32,
    }
}

/// The sizes of the first images.
pub fn oracle_shape(shape: Shape, batch: usize) -> ConvShape {
    ConvShape {
        batch,
        channels: shape.channels,
        size: shape.size,
        filters: shape.filters,
        taps: shape.taps,
        strides: shape.strides,
        padding: shape.padding,
        groups: shape.groups,
    }
}

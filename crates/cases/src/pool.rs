//! A pooling as the oracle sees it.
use lacuna::pool::{Mode, Shape};
use lacuna_reference::{PoolMode, PoolShape};

/// The sizes of the first images.
pub fn oracle_shape(shape: Shape, batch: usize) -> PoolShape {
    PoolShape {
        planes: batch * shape.channels,
        size: shape.size,
        window: shape.window,
        strides: shape.strides,
        padding: shape.padding,
    }
}

/// What is made of a window.
///
/// # Panics
/// For a mode that the oracle does not know.
pub fn oracle_mode(mode: Mode) -> PoolMode {
    match mode {
        Mode::Max => PoolMode::Max,
        Mode::AverageIncludePadding => PoolMode::AverageIncludePadding,
        Mode::AverageExcludePadding => PoolMode::AverageExcludePadding,
        other => unreachable!("the oracle has no {other:?}"),
    }
}

//! By which arithmetic a kernel's results are judged.
use lacuna::{Arithmetic, Choice, Scheme};
use lacuna_reference::Precision;

use super::guarded::Placement;
use crate::Number;

/// The oracle's arithmetic of a kernel.
pub(super) fn precision_of(choice: &Choice) -> Precision {
    match choice.tile.scheme {
        Scheme::Tiles { arithmetic: Arithmetic::Half, .. } => Precision::Tensor,
        Scheme::Tiles { arithmetic: Arithmetic::Split, .. } => Precision::Split,
        Scheme::Tiles { arithmetic: Arithmetic::Tf32, .. } => Precision::Tf32,
        Scheme::RowSplit { .. } | Scheme::Ablation { .. } | Scheme::Masks => Precision::Fp32,
    }
}

/// The oracle's arithmetic of a plan whose choice for aligned operands is `choice`, for operands at a placement: tensor
/// cores take B and C at multiples of 16 bytes only, and plans fall back to `f32` elsewhere.
pub(super) fn precision_at<T: Number>(choice: &Choice, at: Placement) -> Precision {
    if at.is_aligned(size_of::<T>()) { precision_of(choice) } else { Precision::Fp32 }
}

/// Whether a kernel multiplies on tensor cores.
pub(super) fn is_tiles(choice: &Choice) -> bool {
    matches!(choice.tile.scheme, Scheme::Tiles { .. })
}

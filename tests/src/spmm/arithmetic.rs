//! By which arithmetic a kernel's results are judged.
use lacuna::spmm;
use lacuna_reference::Precision;

use super::guarded::Placement;
use crate::Number;

/// The oracle's arithmetic of a kernel.
pub(super) fn precision_of(choice: &spmm::Choice) -> Precision {
    precision_on(choice.entry.tile.scheme.arithmetic())
}

/// The oracle's arithmetic of what tensor cores multiply, or of what they do not.
pub(crate) fn precision_on(arithmetic: Option<spmm::Arithmetic>) -> Precision {
    match arithmetic {
        Some(spmm::Arithmetic::Half) => Precision::Tensor,
        Some(spmm::Arithmetic::Split) => Precision::Split,
        Some(spmm::Arithmetic::SplitTf32) => Precision::SplitTf32,
        Some(spmm::Arithmetic::SplitBf16) => Precision::SplitBf16,
        Some(spmm::Arithmetic::Tf32) => Precision::Tf32,
        None => Precision::Fp32,
    }
}

/// The oracle's arithmetic of a plan whose choice for aligned operands is `choice`, for operands at a placement: tensor
/// cores take B and C at multiples of 16 bytes only, and plans fall back to `f32` elsewhere.
pub(super) fn precision_at<T: Number>(choice: &spmm::Choice, at: Placement) -> Precision {
    if at.is_aligned(size_of::<T>()) { precision_of(choice) } else { Precision::Fp32 }
}

/// Of kernels in the order of their costs, those on tensor cores that are the cheapest of their kind: by tiles, and by
/// warpgroups.
pub(super) fn cheapest_tiles(choices: &[spmm::Choice]) -> impl Iterator<Item = &spmm::Choice> {
    let is_by_groups = |choice: &spmm::Choice| {
        matches!(
            choice.entry.tile.scheme,
            spmm::Scheme::WgmmaTile { .. } | spmm::Scheme::PrepackedTile { .. }
        )
    };
    [false, true].into_iter().filter_map(move |by_groups| {
        choices.iter().find(|choice| is_tiles(choice) && is_by_groups(choice) == by_groups)
    })
}

/// Whether a kernel multiplies on tensor cores.
pub(super) fn is_tiles(choice: &spmm::Choice) -> bool {
    choice.entry.tile.scheme.arithmetic().is_some()
}

/// Whether a kernel reads prepacked weights.
pub(super) fn is_for_packs(choice: &spmm::Choice) -> bool {
    matches!(choice.entry.tile.scheme, spmm::Scheme::PrepackedTile { .. })
}

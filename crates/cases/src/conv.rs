//! How a convolution's kernels compute, for the oracle.
use lacuna::conv::Algorithm;
use lacuna_reference::Precision;

use crate::Number;

/// The oracle's arithmetic of a kernel for values of `T`.
pub fn precision<T: Number>(algorithm: Algorithm) -> Precision {
    let is_mma = matches!(algorithm, Algorithm::MmaTile { .. } | Algorithm::WgmmaTile { .. });
    match size_of::<T>() {
        4 if is_mma => Precision::SplitBf16,
        2 if is_mma => Precision::Tensor,
        _ => Precision::Fp32,
    }
}

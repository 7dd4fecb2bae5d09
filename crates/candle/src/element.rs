//! What tensors of sparse operations hold.
use candle_core::WithDType;
use half::{bf16, f16};

/// What candle's GPU asks of a number.
#[cfg(feature = "cuda")]
pub trait OnGpu:
    candle_core::cuda::CudaDType
    + candle_core::cuda::cudarc::driver::DeviceRepr
    + candle_core::cuda::cudarc::driver::ValidAsZeroBits
{
}
#[cfg(feature = "cuda")]
impl OnGpu for f32 {}
#[cfg(feature = "cuda")]
impl OnGpu for f16 {}
#[cfg(feature = "cuda")]
impl OnGpu for bf16 {}

/// Nothing, without a GPU.
#[cfg(not(feature = "cuda"))]
pub trait OnGpu {}
#[cfg(not(feature = "cuda"))]
impl<T> OnGpu for T {}

/// A number of sparse matrices and of candle's tensors: `f32`, `half::f16` or `half::bf16`.
pub trait Element: lacuna::Value + WithDType + OnGpu {}
impl Element for f32 {}
impl Element for f16 {}
impl Element for bf16 {}

/// Calls a block, of a `candle_core::Result`, with a name for the type that a `DType` stands for.
macro_rules! with_element {
    ($operation:expr, $dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            candle_core::DType::F32 => {
                type $T = f32;
                $body
            }
            candle_core::DType::F16 => {
                type $T = half::f16;
                $body
            }
            candle_core::DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            other => {
                candle_core::bail!("{}: tensors are {other:?}, but f32, f16 or bf16 is expected", $operation)
            }
        }
    };
}
pub(crate) use with_element;

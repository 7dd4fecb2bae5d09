//! The arithmetic and the algorithms of a convolution.

use std::ffi::c_int;

use super::api::Performance;
use super::described::WORKSPACE_BYTES;
use crate::data_type::DataType;

/// The arithmetic of the products. Sums are in fp32 in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Math {
    /// FMA units only: full fp32.
    Fma,
    /// Tensor cores, where the GPU and the algorithm have them: inputs of fp32 rounded to TF32 (10 bits of mantissa),
    /// those of 16 bits as they are.
    ///
    /// The variable `NVIDIA_TF32_OVERRIDE` can forbid TF32; leave it unset.
    TensorCores,
}

impl Math {
    /// A short name for records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fma => "fma",
            Self::TensorCores => "tensor_cores",
        }
    }

    /// What to ask of the library for values of `data_type`.
    pub(super) fn asks(self, data_type: DataType) -> MathType {
        match (self, data_type) {
            (Self::Fma, _) => MathType::Fma,
            (Self::TensorCores, DataType::F32) => MathType::Default,
            (Self::TensorCores, DataType::F16 | DataType::Bf16) => MathType::TensorOp,
        }
    }

    /// Whether a result of `math_type` is of this arithmetic. The library may answer with others than it was asked
    /// for.
    fn allows(self, math_type: MathType) -> bool {
        match self {
            // The default lets TF32 in.
            Self::Fma => math_type == MathType::Fma,
            Self::TensorCores => true,
        }
    }
}

/// What an algorithm is allowed to multiply with: a value of `cudnnMathType_t`. That which rounds fp32 to fp16 is
/// left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MathType {
    /// `CUDNN_DEFAULT_MATH`: tensor cores too, and TF32 for fp32.
    Default,
    /// `CUDNN_TENSOR_OP_MATH`: tensor cores.
    TensorOp,
    /// `CUDNN_FMA_MATH`: FMA units only.
    Fma,
}

impl MathType {
    /// A short name for records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::TensorOp => "tensor_op",
            Self::Fma => "fma",
        }
    }

    /// The number in `cudnnMathType_t`.
    pub(super) fn raw(self) -> c_int {
        match self {
            Self::Default => 0,
            Self::TensorOp => 1,
            Self::Fma => 3,
        }
    }

    fn from_raw(raw: c_int) -> Option<Self> {
        [Self::Default, Self::TensorOp, Self::Fma].into_iter().find(|math_type| math_type.raw() == raw)
    }
}

/// cuDNN's algorithms for a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// A matrix product whose left matrix, of input values, is never in memory.
    ImplicitGemm,
    /// The same with the places of these values worked out before. The only one for a bias without ReLU.
    ImplicitPrecompGemm,
    /// A matrix product whose left matrix is in the workspace.
    Gemm,
    /// The sums as they are defined.
    Direct,
    /// Fourier transforms of whole images.
    Fft,
    /// Fourier transforms of tiles.
    FftTiling,
    /// Winograd's transform in one kernel.
    Winograd,
    /// Winograd's transform in several kernels.
    WinogradNonfused,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ImplicitGemm,
        Self::ImplicitPrecompGemm,
        Self::Gemm,
        Self::Direct,
        Self::Fft,
        Self::FftTiling,
        Self::Winograd,
        Self::WinogradNonfused,
    ];

    /// A short name for records.
    pub fn name(self) -> &'static str {
        match self {
            Self::ImplicitGemm => "implicit_gemm",
            Self::ImplicitPrecompGemm => "implicit_precomp_gemm",
            Self::Gemm => "gemm",
            Self::Direct => "direct",
            Self::Fft => "fft",
            Self::FftTiling => "fft_tiling",
            Self::Winograd => "winograd",
            Self::WinogradNonfused => "winograd_nonfused",
        }
    }

    /// The number in `cudnnConvolutionFwdAlgo_t`.
    pub(super) fn raw(self) -> c_int {
        match self {
            Self::ImplicitGemm => 0,
            Self::ImplicitPrecompGemm => 1,
            Self::Gemm => 2,
            Self::Direct => 3,
            Self::Fft => 4,
            Self::FftTiling => 5,
            Self::Winograd => 6,
            Self::WinogradNonfused => 7,
        }
    }

    fn from_raw(raw: c_int) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.raw() == raw)
    }
}

/// An algorithm, by the library's own measurement of the convolution without bias and ReLU, or by its heuristic.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// What it was allowed to multiply with; a run allows the same.
    pub math_type: MathType,
    /// Milliseconds of one run; below 0 where it was not measured.
    pub time_ms: f32,
    /// Bytes of the workspace that it needs, at most [`WORKSPACE_BYTES`].
    pub workspace_bytes: usize,
}

impl Found {
    /// What `performance` says; nothing for an algorithm that did not run, that `math` does not allow, or whose
    /// numbers are not known here.
    pub(super) fn read(performance: &Performance, math: Math) -> Option<Self> {
        let &Performance { status, milliseconds: time_ms, workspace_bytes, .. } = performance;
        let algorithm = Algorithm::from_raw(performance.algorithm)?;
        let math_type = MathType::from_raw(performance.math_type)?;
        let ran = status == 0 && workspace_bytes <= WORKSPACE_BYTES;
        (ran && math.allows(math_type)).then_some(Self { algorithm, math_type, time_ms, workspace_bytes })
    }

    /// What `performance` says of an algorithm that did not run: how fast it may be. On FMA units it is held to them,
    /// whatever the heuristic thought of. Its workspace is not known yet.
    pub(super) fn ranked(performance: &Performance, math: Math) -> Option<Self> {
        let algorithm = Algorithm::from_raw(performance.algorithm)?;
        let math_type = match math {
            Math::Fma => MathType::Fma,
            Math::TensorCores => MathType::from_raw(performance.math_type)?,
        };
        let found = Self { algorithm, math_type, time_ms: -1.0, workspace_bytes: 0 };
        (performance.status == 0).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Performance = Performance {
        algorithm: 6,
        status: 0,
        milliseconds: 0.5,
        workspace_bytes: 1024,
        determinism: 1,
        math_type: 3,
        reserved: [0; 3],
    };

    #[test]
    fn the_struct_is_that_of_the_header() {
        assert_eq!((size_of::<Performance>(), align_of::<Performance>()), (48, 8));
        assert_eq!(std::mem::offset_of!(Performance, workspace_bytes), 16);
        assert_eq!(std::mem::offset_of!(Performance, math_type), 28);
    }

    #[test]
    fn only_algorithms_that_ran_in_the_arithmetic_asked_for_are_found() {
        let found = Found::read(&GOOD, Math::Fma).unwrap();
        let expected = (Algorithm::Winograd, MathType::Fma, 0.5, 1024);
        assert_eq!((found.algorithm, found.math_type, found.time_ms, found.workspace_bytes), expected);
        for math_type in [0, 1, 2, 4] {
            assert_eq!(Found::read(&Performance { math_type, ..GOOD }, Math::Fma), None, "{math_type}");
        }
        for bad in [
            Performance { status: 3000, ..GOOD },
            Performance { algorithm: 8, ..GOOD },
            Performance { algorithm: -1, ..GOOD },
            Performance { workspace_bytes: WORKSPACE_BYTES + 1, ..GOOD },
            Performance { math_type: 2, ..GOOD },
        ] {
            assert_eq!(Found::read(&bad, Math::TensorCores), None);
        }
        assert!([0, 1, 3].into_iter().all(|math_type| {
            Found::read(&Performance { math_type, ..GOOD }, Math::TensorCores).is_some()
        }));
    }
}

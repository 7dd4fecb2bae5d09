//! What may be asked of SpMM.
use lacuna_gpu::{GlobalMut, GlobalPtr, Real};
use lacuna_kernels::spmm::Output;

use super::{Algorithm, OPERATION};
use crate::op::Layout;
use crate::{Error, Result};

/// How exactly products and their sums are computed.
///
/// Halves and bfloat16 have exact products. On tensor cores, which `Single` and `Tf32` allow for them, sums are cut at each
/// addition where `f32` rounds: four times its error at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// By fused multiply-adds in `f32`; or, where sums are long ([`LONG_ROWS`]: of SpMM the rows of A on average, of SDDMM K)
    /// and it is faster, on tensor cores in three products each. Such a product is within 2⁻¹⁶ of its size, in short rows of such a matrix too,
    /// and sums are cut where `f32` rounds: the reference's `Precision::Split` has the bound. Numbers below about 2⁻¹⁰⁰ may
    /// lose more.
    #[default]
    Single,
    /// By fused multiply-adds in `f32`, for 16-bit values too.
    Fma,
    /// On tensor cores with `f32` cut to TF32 (10 bits of mantissa) where that is faster: errors up to 2⁻⁹ of each product.
    Tf32,
}

/// Terms of an average sum from which on [`Precision::Single`] allows products on tensor cores. In shorter sums the error
/// of such a product would show: a sum of 64 in `f32` is within 2⁻¹⁸, and equal products err alike, so that their sum is off by
/// as large a part as each of them.
pub const LONG_ROWS: usize = 64;

/// What may be asked of SpMM: C = clamp(alpha·A·B + beta·C + bias, lo, hi), for a batch of operands with any strides.
///
/// The default is C = A·B of operands without gaps. Each sum is finished in `f32` and then rounded once to the type of C:
/// a fused epilogue costs no rounding and no pass over C of its own. The bias is an operand
/// ([`Operands`](super::Operands)).
///
/// ```
/// # use lacuna::spmm;
/// let linear_layer = spmm::Options::default().relu();
/// let gradients = spmm::Options::default().alpha(0.5).beta(1.0);
/// let heads = spmm::Options::default().batch(8).b_stride(8 * 64).b_batch_stride(64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The algorithm, if not the library's choice. It must be legal for N and the strides; where B's or C's address does
    /// not allow its vectors, the run is refused.
    pub algorithm: Algorithm,
    /// How exactly it is computed.
    pub precision: Precision,
    /// Multiplies A·B.
    pub alpha: f32,
    /// Multiplies what C holds. With 0, C is not read: it may hold anything, NaN too.
    pub beta: f32,
    /// The least result, -∞ for no limit.
    pub lo: f32,
    /// The greatest result, +∞ for no limit.
    pub hi: f32,
    /// Elements from one row of B to the next, N if none.
    pub b_stride: Option<usize>,
    /// Elements from one row of C to the next, N if none.
    pub c_stride: Option<usize>,
    /// Products in one run.
    pub batch: usize,
    /// Elements from one B to the next, K strides of a row if none; 0 for one B that all products share.
    pub b_batch_stride: Option<usize>,
    /// Elements from one C to the next, M strides of a row if none.
    pub c_batch_stride: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Auto,
            precision: Precision::Single,
            alpha: 1.0,
            beta: 0.0,
            lo: f32::NEG_INFINITY,
            hi: f32::INFINITY,
            b_stride: None,
            c_stride: None,
            batch: 1,
            b_batch_stride: None,
            c_batch_stride: None,
        }
    }
}

impl Options {
    /// With this algorithm.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }
    /// Computed this exactly.
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }
    /// With A·B multiplied by `alpha`.
    #[must_use]
    pub fn alpha(self, alpha: f32) -> Self {
        Self { alpha, ..self }
    }
    /// With `beta` times what C holds added.
    #[must_use]
    pub fn beta(self, beta: f32) -> Self {
        Self { beta, ..self }
    }
    /// With results below 0 replaced by 0. NaN and -0 stay.
    #[must_use]
    pub fn relu(self) -> Self {
        self.clamp(0.0, f32::INFINITY)
    }
    /// With results below `lo` replaced by `lo`, and those above `hi` by `hi`. NaN stays.
    #[must_use]
    pub fn clamp(self, lo: f32, hi: f32) -> Self {
        Self { lo, hi, ..self }
    }
    /// With `elements` from one row of B to the next, at least N: a leading dimension.
    #[must_use]
    pub fn b_stride(self, elements: usize) -> Self {
        Self { b_stride: Some(elements), ..self }
    }
    /// With `elements` from one row of C to the next, at least N. The gaps are neither read nor written.
    #[must_use]
    pub fn c_stride(self, elements: usize) -> Self {
        Self { c_stride: Some(elements), ..self }
    }
    /// With `products` in one run: of one A, or of as many with one pattern
    /// ([`with_value_batch`](crate::CsrMatrix::with_value_batch)), with as many B.
    #[must_use]
    pub fn batch(self, products: usize) -> Self {
        Self { batch: products, ..self }
    }
    /// With `elements` from one B of the batch to the next; 0 for one B that all products share.
    #[must_use]
    pub fn b_batch_stride(self, elements: usize) -> Self {
        Self { b_batch_stride: Some(elements), ..self }
    }
    /// With `elements` from one C of the batch to the next. They may lie one after another, or side by side within the
    /// stride of a row; they must not overlap.
    #[must_use]
    pub fn c_batch_stride(self, elements: usize) -> Self {
        Self { c_batch_stride: Some(elements), ..self }
    }

    /// Whether the clamp's limits are numbers in order.
    pub(super) fn check(&self) -> Result<()> {
        if self.lo <= self.hi {
            return Ok(());
        }
        Err(Error::Parameter {
            operation: OPERATION,
            what: "the clamp",
            expected: "lo, hi with lo <= hi, neither of them NaN".into(),
            got: format!("{}, {}", self.lo, self.hi),
        })
    }

    /// These options as the kernels take them.
    pub(super) fn output<T: Real>(&self, c: GlobalMut<T>, layout: &Layout, bias: GlobalPtr<T>) -> Output<T> {
        let Self { alpha, beta, lo, hi, .. } = *self;
        let (c_batch, c_stride_bytes) = (layout.batch_stride as u64, layout.stride_bytes);
        Output { c, c_batch, bias, alpha, beta, lo, hi, c_stride_bytes }
    }
}

//! What may be asked of SpMM.
use lacuna_gpu::{GlobalMut, GlobalPtr, Real};
use lacuna_kernels::Arithmetic;
use lacuna_kernels::spmm::Output;

use super::{Algorithm, OPERATION, Reduce};
use crate::op::{Layout, options};
use crate::{Error, Result};

/// How exactly products and their sums are computed.
///
/// Halves and bfloat16 have exact products. On tensor cores, which `Single` and `Tf32` allow for them, sums are cut at each
/// addition where `f32` rounds: four times its error at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// By fused multiply-adds in `f32`; or, where sums are long ([`LONG_ROWS`]: of SpMM the rows of A on average, of SDDMM K, of attention d and the
    /// keys of a query)
    /// and it is faster, on tensor cores in three products each. Such a product is within 2⁻¹⁶ of its size, in short rows of such a matrix too,
    /// and sums are cut where `f32` rounds: the reference's `Precision::Split` has the bound. With prepacked weights it is
    /// within 2⁻²¹ (`Precision::SplitTf32`), and rows need 16 nonzeros. Of a convolution, and of SDDMM and attention by warpgroups, a
    /// product is within 2⁻¹⁵ (`Precision::SplitBf16`). Numbers below about 2⁻¹⁰⁰ may lose more.
    #[default]
    Single,
    /// By fused multiply-adds in `f32`, for 16-bit values too, but in fused kernels of attention.
    Fma,
    /// On tensor cores with `f32` cut to TF32 (10 bits of mantissa) where that is faster: errors up to 2⁻⁹ of each product. Fused kernels of attention
    /// make three products as with `Single`, in short sums too.
    Tf32,
}

impl Precision {
    /// Whether products on tensor cores by this arithmetic are exact enough, for sums of so many terms on average.
    pub(crate) fn allows(self, arithmetic: Arithmetic, terms: usize) -> bool {
        match (arithmetic, self) {
            (_, Self::Fma) | (Arithmetic::Tf32, Self::Single) => false,
            (Arithmetic::Split | Arithmetic::SplitTf32 | Arithmetic::SplitBf16, Self::Tf32) => false,
            (Arithmetic::Split | Arithmetic::SplitBf16, Self::Single) => terms >= LONG_ROWS,
            (Arithmetic::SplitTf32, Self::Single) => terms >= MEDIUM_ROWS,
            (Arithmetic::Tf32, Self::Tf32) | (Arithmetic::Half, _) => true,
        }
    }
}

/// Terms of an average sum from which on [`Precision::Single`] allows products on tensor cores. In shorter sums the error
/// of such a product would show: a sum of 64 in `f32` is within 2⁻¹⁸, and equal products err alike, so that their sum is off by
/// as large a part as each of them.
pub const LONG_ROWS: usize = 64;

/// As [`LONG_ROWS`], for products of which TF32 makes three, as of [prepacked](crate::CsrMatrix::prepacked) weights: each is within
/// 2⁻²¹ and a little more, and a sum of 16 in `f32` is within 2⁻²⁰.
pub const MEDIUM_ROWS: usize = 16;

options! {
    /// What may be asked of SpMM: C = clamp(alpha·A·B + beta·C + bias, lo, hi), for a batch of operands with any strides; with the
    /// mean, the greatest or the least of a row's products in place of their sum ([`Reduce`]).
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
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// How exactly it is computed.
        pub precision: Precision = Precision::Single => set,
        /// What becomes of a row's products. The epilogue follows, whatever it is.
        pub reduce: Reduce = Reduce::Sum => set,
        /// Rows with more nonzeros are cut into pieces of at most about so many, which kernels by rows that are not persistent
        /// work on as on rows, and a second kernel adds up; `usize::MAX` leaves all rows whole. The library's choice if none: it
        /// cuts rows that are far longer than the mean, where it estimates that to be faster.
        pub longest_piece: Option<usize> = None => some(usize),
        /// Multiplies A·B.
        pub alpha: f32 = 1.0 => set,
        /// Multiplies what C holds, which is added. With 0, C is not read: it may hold anything, NaN too.
        pub beta: f32 = 0.0 => set,
        /// The least result, -∞ for no limit.
        pub lo: f32 = f32::NEG_INFINITY,
        /// The greatest result, +∞ for no limit.
        pub hi: f32 = f32::INFINITY,
        /// Elements from one row of B to the next, at least N: a leading dimension. N if none.
        pub b_stride: Option<usize> = None => some(usize),
        /// Elements from one row of C to the next, at least N, and N if none. The gaps are neither read nor written.
        pub c_stride: Option<usize> = None => some(usize),
        /// Products in one run: of one A, or of as many with one pattern
        /// ([`with_value_batch`](crate::CsrMatrix::with_value_batch)), with as many B.
        pub batch: usize = 1 => set,
        /// Elements from one B of the batch to the next, K strides of a row if none; 0 for one B that all products share.
        pub b_batch_stride: Option<usize> = None => some(usize),
        /// Elements from one C of the batch to the next, M strides of a row if none. They may lie one after another, or side
        /// by side within the stride of a row; they must not overlap.
        pub c_batch_stride: Option<usize> = None => some(usize),
    }
}

impl Options {
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

    /// Whether the clamp's limits are numbers in order, and pieces have nonzeros.
    pub(super) fn check(&self) -> Result<()> {
        let expected = || "at least 1 nonzero";
        Error::expect(self.longest_piece != Some(0), OPERATION, "the longest piece", expected, 0)?;
        let Self { lo, hi, .. } = *self;
        let expected = || "lo, hi with lo <= hi, neither of them NaN";
        Error::expect(lo <= hi, OPERATION, "the clamp", expected, format!("{lo}, {hi}"))
    }

    /// These options as the kernels take them.
    pub(super) fn output<T: Real>(
        &self,
        c: GlobalMut<T>,
        layout: &Layout,
        bias: GlobalPtr<T>,
        row_scale: GlobalPtr<f32>,
    ) -> Output<T> {
        let Self { alpha, beta, lo, hi, .. } = *self;
        let (c_batch, c_stride_bytes) = (layout.batch_stride as u64, layout.stride_bytes);
        Output { c, c_batch, bias, row_scale, alpha, beta, lo, hi, c_stride_bytes }
    }
}

//! What may be asked of attention.
use super::{Algorithm, OPERATION};
use crate::op::options;
use crate::{Error, Precision, Result};

options! {
    /// What may be asked of attention: heads, scale, soft cap, algorithm and precision.
    ///
    /// ```
    /// # use lacuna::attention;
    /// let heads_of_two_samples = attention::Options::default().batch(2 * 8);
    /// let unscaled = attention::Options::default().scale(1.0);
    /// // Q, K, V and O as a linear layer leaves them: tokens × heads × 64.
    /// let side_by_side = attention::Options::default().heads_side_by_side(8, 64);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct Options {
        /// The algorithm, if not the library's choice. It must be legal for the dimension; where an address does not allow its
        /// vectors, the run is refused.
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// Whether tensor cores may take part in fused kernels of `f32`: with [`Precision::Single`] where d and the keys of a query, on average, are
        /// 64 at least; with [`Precision::Tf32`] of any; with [`Precision::Fma`] never. A product is then three, together within 2⁻¹⁵. Of 16 bits
        /// fused kernels are the same with each. Three steps hand it on to SDDMM and SpMM, which may be less exact with `Tf32`, 2⁻⁹.
        pub precision: Precision = Precision::Single => set,
        /// Heads that share the mask, of all samples together.
        pub batch: usize = 1 => set,
        /// Neighbouring heads that share K and V, as in grouped-query attention: K and V are those of batch / `kv_group` heads. It divides the
        /// batch. Three steps take 1 alone.
        pub kv_group: usize = 1 => set,
        /// Multiplies the scores; 1/√d if none.
        pub scale: Option<f32> = None => some(f32),
        /// Holds scores between −c and c, as c·tanh(s/c) of a scaled score s (Gemma 2, section 2); above 0. None if none. The tangent is
        /// within 2⁻¹⁸ of itself. Three steps take none.
        pub softcap: Option<f32> = None => some(f32),
        /// Elements from one row of Q to the next; d if none.
        pub q_stride: Option<usize> = None => some(usize),
        /// Elements from one row of K to the next, and from one of V; d if none.
        pub kv_stride: Option<usize> = None => some(usize),
        /// Elements from one row of O to the next; d if none. The gaps are not written.
        pub o_stride: Option<usize> = None => some(usize),
        /// Elements from one head's Q to the next; as many as Q has rows, times their stride, if none.
        pub q_batch_stride: Option<usize> = None => some(usize),
        /// The same of K, and of V, from one group's to the next. It may be 0: all heads then share K and V.
        pub kv_batch_stride: Option<usize> = None => some(usize),
        /// The same of O. Heads may lie one after another, or side by side in the stride of a row.
        pub o_batch_stride: Option<usize> = None => some(usize),
    }
}

impl Options {
    /// As many heads of `dim` elements, side by side in the rows of Q, K, V and O: tokens × heads × d, as linear layers leave them.
    /// The strides may be changed afterwards, where Q, K and V share rows.
    #[must_use]
    pub fn heads_side_by_side(self, heads: usize, dim: usize) -> Self {
        let (row, head) = (Some(heads * dim), Some(dim));
        Self {
            batch: heads,
            q_stride: row,
            kv_stride: row,
            o_stride: row,
            q_batch_stride: head,
            kv_batch_stride: head,
            o_batch_stride: head,
            ..self
        }
    }

    /// Whether anything is said of how operands lie.
    pub(super) fn has_strides(&self) -> bool {
        let Self { q_stride, kv_stride, o_stride, q_batch_stride, kv_batch_stride, o_batch_stride, .. } =
            self;
        [q_stride, kv_stride, o_stride, q_batch_stride, kv_batch_stride, o_batch_stride]
            .iter()
            .any(|stride| stride.is_some())
    }

    /// What multiplies scores in a kernel, and what products for its soft cap: see [`Shape`](lacuna_kernels::attention::Shape).
    pub(super) fn scale_and_softcap(&self, factor: f32) -> [f32; 2] {
        match self.softcap {
            None => [in_powers_of_two(factor), 0.0],
            Some(softcap) => {
                let of_product = 2.0 * f64::from(factor) / f64::from(softcap) * std::f64::consts::LOG2_E;
                [in_powers_of_two(softcap), of_product as f32]
            }
        }
    }

    /// The factor of scores of rows of `dim` elements.
    pub(super) fn factor(&self, dim: usize) -> Result<f32> {
        let factor = self.scale.unwrap_or(1.0 / (dim as f32).sqrt());
        let (is_finite, expected) =
            (in_powers_of_two(factor).is_finite(), || "finite, also when multiplied by 1.443");
        Error::expect(is_finite, OPERATION, "the scale", expected, factor)?;
        if let Some(softcap) = self.softcap {
            let [scale, of_product] = self.scale_and_softcap(factor);
            // A factor of 0 is none for a kernel.
            let is_legal = softcap > 0.0 && scale.is_finite() && of_product.is_finite() && of_product != 0.0;
            let expected = || format!("above 0, finite, and not too far from the scale, {factor}");
            Error::expect(is_legal, OPERATION, "the soft cap", expected, softcap)?;
        }
        Ok(factor)
    }
}

/// The factor of scores whose exponentials are powers of two; rounded once.
pub(super) fn in_powers_of_two(factor: f32) -> f32 {
    (f64::from(factor) * std::f64::consts::LOG2_E) as f32
}

//! What may be asked of a pointwise convolution with sparse weights.
use crate::op::{Activation, options};
use crate::{Precision, spmm};

options! {
    /// What may be asked of a pointwise convolution with sparse weights. The default is no activation, and maps without gaps.
    ///
    /// Maps are NCHW: a pixel's neighbours lie beside it. Strides let input and result be parts of wider maps.
    ///
    /// ```
    /// # use lacuna::pointwise;
    /// // 32 channels of 14 × 14 pixels, written into a concatenated map of 256 channels.
    /// let growth = pointwise::Options::default().relu().out_image_stride(256 * 14 * 14);
    /// // Planes of 49 pixels that begin 64 elements apart.
    /// let apart = pointwise::Options::default().input_channel_stride(64).out_channel_stride(64);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct Options {
        /// What is made of sums.
        pub activation: Activation = Activation::Identity => set,
        /// The algorithm of the product, if not the library's choice. It must be legal for the number of pixels of a result's channel and for the strides; where the
        /// addresses of input and result do not allow its vectors, the run is refused.
        pub algorithm: spmm::Algorithm = spmm::Algorithm::Auto => set,
        /// How exactly the product is computed.
        pub precision: Precision = Precision::Single => set,
        /// Whether what the result holds before is added, before the activation: a residual.
        pub accumulate: bool = false,
        /// Elements from one channel of the input to the next, at least the pixels of one, H·W; H·W if none.
        pub input_channel_stride: Option<usize> = None => some(usize),
        /// Elements from one image of the input to the next: C strides of a channel if none. Of a map that is concatenated of several, all of
        /// its channels' elements; 0 for one image that all share.
        pub input_image_stride: Option<usize> = None => some(usize),
        /// Elements from one channel of the result to the next, at least the pixels of one, and as many if none. The gaps are neither read nor written.
        pub out_channel_stride: Option<usize> = None => some(usize),
        /// Elements from one image of the result to the next: N strides of a channel if none. Images must not overlap.
        pub out_image_stride: Option<usize> = None => some(usize),
    }
}

impl Options {
    /// With numbers below 0 replaced by 0. NaN and -0 stay.
    #[must_use]
    pub fn relu(self) -> Self {
        self.activation(Activation::Relu)
    }

    /// With what the result holds before added to the sums, before the activation: a residual without another pass. Without it, the result
    /// may hold anything, NaN too.
    #[must_use]
    pub fn accumulate(self) -> Self {
        Self { accumulate: true, ..self }
    }

    /// The same of the product of a batch.
    pub(super) fn of_product(&self, batch: usize) -> spmm::Options {
        let [lo, hi] = self.activation.limits();
        let beta = if self.accumulate { 1.0 } else { 0.0 };
        let options = spmm::Options::default().algorithm(self.algorithm).precision(self.precision);
        let options = options.beta(beta).clamp(lo, hi).batch(batch);
        let (c_stride, c_batch_stride) = (self.out_channel_stride, self.out_image_stride);
        spmm::Options { c_stride, c_batch_stride, ..options }
    }
}

//! What may be asked of a convolution.
use super::Algorithm;
use crate::Precision;
use crate::op::{Activation, MapLayout, options};

options! {
    /// What may be asked of a convolution. The default is no activation, and maps in NCHW.
    ///
    /// ```
    /// # use lacuna::conv;
    /// let options = conv::Options::default().relu().layout(conv::MapLayout::Nhwc);
    /// // Planes of 49 pixels that begin 52 elements apart, so that a product with sparse weights finds whole vectors.
    /// let apart = conv::Options::default().input_channel_stride(52).out_channel_stride(52);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct Options {
        /// What is made of sums.
        pub activation: Activation = Activation::Identity => set,
        /// How input, residual and result lie.
        pub layout: MapLayout = MapLayout::Nchw => set,
        /// The algorithm, if not the library's choice.
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// Over how many blocks the channels of a tile are split (by panels, its channels and taps), if not the library's choice: at least 1. There are fewer where a block would have no
        /// channels, partial sums would be 2²⁸ or more, or the kernel knows no splits: [`Conv::splits`](super::Conv::splits) tells.
        pub splits: Option<usize> = None => some(usize),
        /// How sums are computed. By default tensor cores may be taken where sums are long ([`LONG_ROWS`](crate::LONG_ROWS) products, of which zeros count):
        /// `f32` is the sum of two bfloat16 numbers, three products stand for one, and a product is within 2⁻¹⁵ of its size.
        /// [`Precision::Fma`] keeps to `f32`; `Tf32` is as `Single`, of short sums too. Products of 16-bit values are exact on tensor cores: only `Fma` keeps from them.
        pub precision: Precision = Precision::Single => set,
        /// The part of the input's pixels that is likely to be zero, 0 to 1: the choice of tiles goes by it. Results do not depend on
        /// what the part really is.
        pub zeros: f64 = 0.7 => set,
        /// Elements from one channel of the input to the next, in NCHW: at least the pixels of one, H·W, and as many if none. Images lie one after another.
        pub input_channel_stride: Option<usize> = None => some(usize),
        /// The same of the result, and of the residual. The gaps are neither read nor written.
        pub out_channel_stride: Option<usize> = None => some(usize),
    }
}

impl Options {
    /// With numbers below 0 replaced by 0.
    #[must_use]
    pub fn relu(self) -> Self {
        self.activation(Activation::Relu)
    }
}

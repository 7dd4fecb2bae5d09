//! What may be asked of bias and activation.
use lacuna_kernels::bias_act::Activation as DeviceActivation;

use super::{Algorithm, OPERATION};
use crate::op::options;
use crate::{Error, Result};

/// What is made of each sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Activation {
    /// The sum itself.
    #[default]
    Identity,
    /// Numbers below 0 become 0. NaN and -0 stay.
    Relu,
    /// Numbers below `lo` become `lo`, those above `hi` become `hi`. NaN stays.
    Clamp {
        /// The least result.
        lo: f32,
        /// The greatest.
        hi: f32,
    },
    /// x·Φ(x) with Φ the normal distribution: PyTorch's default `gelu`, by erf, not its tanh form. Numbers below 0 have results as
    /// exact relatively as those above, and −∞ its limit, 0, where PyTorch gives NaN.
    Gelu,
}

impl Activation {
    /// Whether a clamp's limits are numbers in order.
    pub(super) fn check(self) -> Result<()> {
        let Self::Clamp { lo, hi } = self else { return Ok(()) };
        let expected = || "lo, hi with lo <= hi, neither of them NaN";
        Error::expect(lo <= hi, OPERATION, "the clamp", expected, format!("{lo}, {hi}"))
    }

    /// As kernels have it.
    pub(super) fn to_device(self) -> DeviceActivation {
        let (lo, hi) = match self {
            Self::Identity | Self::Gelu => (f32::NEG_INFINITY, f32::INFINITY),
            Self::Relu => (0.0, f32::INFINITY),
            Self::Clamp { lo, hi } => (lo, hi),
        };
        DeviceActivation { is_gelu: u32::from(self == Self::Gelu), lo, hi }
    }
}

/// Which element of the bias an element has, where there is a bias.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bias {
    /// That of its column: of a linear layer, rows of features.
    #[default]
    PerColumn,
    /// That of its row.
    PerRow,
    /// That of its channel: of a convolution in NCHW, where row `i` of image · channels + channel has the pixels of a channel.
    /// Their number divides that of the rows.
    PerChannel {
        /// Channels of an image.
        channels: usize,
    },
}

options! {
    /// What may be asked of bias and activation. The default is the identity, a bias per column, and rows without gaps.
    ///
    /// ```
    /// # use lacuna::bias_act;
    /// let linear = bias_act::Options::default().activation(bias_act::Activation::Gelu);
    /// let convolution = bias_act::Options::default().relu().bias(bias_act::Bias::PerChannel { channels: 64 });
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct Options {
        /// What is made of sums.
        pub activation: Activation = Activation::Identity => set,
        /// Which element of the bias an element has.
        pub bias: Bias = Bias::PerColumn => set,
        /// The algorithm, if not the library's choice. It must be legal for the columns and the strides; where the addresses
        /// do not allow its vectors, the run is refused.
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// Elements from one row of the input to the next; as many as columns if none.
        pub input_stride: Option<usize> = None => some(usize),
        /// Elements from one row of the residual to the next; as many as columns if none.
        pub residual_stride: Option<usize> = None => some(usize),
        /// Elements from one row of the result to the next; as many as columns if none. The gaps are not written.
        pub out_stride: Option<usize> = None => some(usize),
    }
}

impl Options {
    /// With numbers below 0 replaced by 0.
    #[must_use]
    pub fn relu(self) -> Self {
        self.activation(Activation::Relu)
    }
}

//! What layers do: a type a file, and the list of them.

mod add;
mod attention;
mod concat;
mod conv;
mod depth_to_space;
mod flatten;
mod layer_norm;
mod linear;
mod pad;
mod pad_channels;
mod pool;
mod resize;
mod scale;

use super::{Activation, Convolution, Parameter, Problem, Shape};

pub use add::Add;
pub use attention::Attention;
pub(crate) use attention::Part;
pub use concat::Concat;
pub use conv::{Conv, Padding};
pub use depth_to_space::DepthToSpace;
pub use flatten::{Flatten, FlattenNhwc};
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use pad::Pad;
pub use pad_channels::PadChannels;
pub use pool::{Pool, Window};
pub use resize::{Resize, Sampling};
pub use scale::Scale;

/// What a layer does.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A convolution, depthwise too.
    Conv(Conv),
    /// A linear layer of a matrix.
    Linear(Linear),
    /// A factor and a sum for each channel.
    Scale(Scale),
    /// A layer norm of each pixel.
    LayerNorm(LayerNorm),
    /// Multi-head attention with a sparse mask, of one sequence to itself or to another.
    Attention(Attention),
    /// The greatest pixel or the mean of windows, or of whole maps.
    Pool(Pool),
    /// A margin around maps.
    Pad(Pad),
    /// More channels, of zeros.
    PadChannels(PadChannels),
    /// The sum of two values.
    Add(Add),
    /// Channels of several values side by side.
    Concat(Concat),
    /// Maps as rows of features.
    Flatten(Flatten),
    /// Maps as rows of features, the channels of a pixel side by side.
    FlattenNhwc(FlattenNhwc),
    /// Channels as pixels.
    DepthToSpace(DepthToSpace),
    /// Maps of another size.
    Resize(Resize),
}

impl Operation {
    /// The shape of the result.
    ///
    /// # Errors
    /// What does not fit.
    pub fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        if let Some(Activation::Clamp { lo, hi }) = self.activation()
            && (lo > hi || lo.is_nan() || hi.is_nan())
        {
            return Err(Problem::Clamp { lo, hi });
        }
        match self {
            Self::Conv(conv) => conv.output(inputs),
            Self::Linear(linear) => linear.output(inputs),
            Self::Scale(scale) => scale.output(inputs),
            Self::LayerNorm(norm) => norm.output(inputs),
            Self::Attention(attention) => attention.output(inputs),
            Self::Pool(pool) => pool.output(inputs),
            Self::Pad(pad) => pad.output(inputs),
            Self::PadChannels(pad) => pad.output(inputs),
            Self::Add(add) => add.output(inputs),
            Self::Concat(concat) => concat.output(inputs),
            Self::Flatten(flatten) => flatten.output(inputs),
            Self::FlattenNhwc(flatten) => flatten.output(inputs),
            Self::DepthToSpace(of) => of.output(inputs),
            Self::Resize(resize) => resize.output(inputs),
        }
    }

    /// A layer of this name as the convolution that it is, if it has weights; `input` fits it.
    pub(super) fn convolution(&self, name: &str, input: Shape) -> Option<Convolution> {
        match self {
            Self::Conv(conv) => conv.convolution(name, input),
            Self::Linear(linear) => Some(linear.convolution(name, input)),
            Self::Scale(scale) => Some(scale.convolution(name, input)),
            Self::LayerNorm(_)
            | Self::Attention(_)
            | Self::Pool(_)
            | Self::Pad(_)
            | Self::PadChannels(_)
            | Self::Add(_)
            | Self::Concat(_)
            | Self::Flatten(_)
            | Self::FlattenNhwc(_)
            | Self::DepthToSpace(_)
            | Self::Resize(_) => None,
        }
    }

    /// The tensors of weights that a layer of this name needs.
    pub(super) fn parameters(&self, name: &str, input: Shape) -> Vec<Parameter> {
        match self {
            Self::LayerNorm(_) => LayerNorm::parameters(name, input),
            _ => self.convolution(name, input).map_or_else(Vec::new, |conv| conv.parameters()),
        }
    }

    /// Multiply-adds of a layer that multiplies by filters, or values with each other; 0 for others.
    pub(super) fn products(&self, name: &str, inputs: &[Shape]) -> u64 {
        match (self, inputs) {
            (Self::Attention(attention), _) => attention.products(inputs),
            (_, &[input, ..]) => self.convolution(name, input).map_or(0, |conv| conv.products()),
            (_, []) => 0,
        }
    }

    /// What is made of sums; none where elements are only moved or joined.
    pub(super) fn activation(&self) -> Option<Activation> {
        match self {
            Self::Conv(conv) => Some(conv.activation),
            Self::Linear(linear) => Some(linear.activation),
            Self::Scale(scale) => Some(scale.activation),
            Self::Add(add) => Some(add.activation),
            Self::LayerNorm(_) | Self::Attention(_) => Some(Activation::Identity),
            Self::Pool(_)
            | Self::Pad(_)
            | Self::PadChannels(_)
            | Self::Concat(_)
            | Self::Flatten(_)
            | Self::FlattenNhwc(_)
            | Self::DepthToSpace(_)
            | Self::Resize(_) => None,
        }
    }
}

/// `From` for each variant, so that builders take the structs themselves.
macro_rules! operations {
    ($($name:ident),+) => {
        $(impl From<$name> for Operation {
            fn from(operation: $name) -> Self {
                Self::$name(operation)
            }
        })+
    };
}
operations!(
    Conv,
    Linear,
    Scale,
    LayerNorm,
    Attention,
    Pool,
    Pad,
    PadChannels,
    Add,
    Concat,
    Flatten,
    FlattenNhwc,
    DepthToSpace,
    Resize
);

/// The methods that choose an activation, for each layer that has one.
macro_rules! activations {
    ($($name:ident),+) => {
        $(impl $name {
            /// With this made of sums.
            #[must_use]
            pub fn activation(mut self, activation: Activation) -> Self {
                self.activation = activation;
                self
            }

            /// With numbers below 0 replaced by 0.
            #[must_use]
            pub fn relu(self) -> Self {
                self.activation(Activation::Relu)
            }

            /// With numbers below 0 replaced by 0, and those above 6 by 6.
            #[must_use]
            pub fn relu6(self) -> Self {
                self.activation(Activation::Clamp { lo: 0.0, hi: 6.0 })
            }
        })+
    };
}
activations!(Conv, Linear, Scale, Add);

/// The one input of a layer.
fn only(inputs: &[Shape]) -> Result<Shape, Problem> {
    let &[input] = inputs else { return Err(Problem::Inputs { expected: "one input", got: inputs.len() }) };
    Ok(input)
}

/// A second input must be as another.
fn expect_same(what: &'static str, expected: Shape, got: Shape) -> Result<(), Problem> {
    if expected == got { Ok(()) } else { Err(Problem::Shape { what, expected, got }) }
}

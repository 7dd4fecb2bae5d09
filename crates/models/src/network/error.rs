//! What is wrong with a network.
use thiserror::Error;

use super::Shape;

/// Why a network cannot be built.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A layer does not fit its inputs.
    #[error("layer {layer}: {problem}")]
    Layer {
        /// The layer.
        layer: String,
        /// What does not fit.
        problem: Problem,
    },
    /// Two layers, or two tensors of weights, have one name.
    #[error("layer {layer}: the name {name} is in use already; names must differ")]
    Name {
        /// The layer that came later.
        layer: String,
        /// The name that is there twice.
        name: String,
    },
    /// The result of the network is no layer's.
    #[error("the output of the network must be the result of one of its layers; add a layer")]
    Output,
    /// A size of a builder of networks means nothing.
    #[error("{network}: {what} must be {expected}, got {got}")]
    Size {
        /// The network.
        network: &'static str,
        /// Which size.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        got: String,
    },
}

/// What does not fit, of a layer.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// There are too few inputs, or too many.
    #[error("expected {expected}, got {got}; give it the values that it reads")]
    Inputs {
        /// How many there must be, in words.
        expected: &'static str,
        /// How many there are.
        got: usize,
    },
    /// An input is no value of this network.
    #[error("expected values of this network, got one of another builder; use what this builder gave")]
    Foreign,
    /// An input has not the shape of another operand.
    #[error("{what}: expected {expected}, got {got}; change the layer that makes it")]
    Shape {
        /// Which operand.
        what: &'static str,
        /// Its shape as it must be.
        expected: Shape,
        /// Its shape.
        got: Shape,
    },
    /// A linear layer has maps before it.
    #[error("expected a matrix, rows × features, got maps {got}; flatten or pool them before")]
    NotFlat {
        /// The input.
        got: Shape,
    },
    /// A size is 0, or too large, or a window does not fit.
    #[error("{what}: expected {expected}, got {got}; choose other sizes")]
    Size {
        /// Which size.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        got: String,
    },
    /// Padding "same" would be another one on both sides, which convolutions have not.
    #[error(
        "padding \"same\" of a map of {size:?} is {before:?} before and {after:?} after, and must be equal; \
         put a layer `Pad::same` before it and pad by 0, or choose another size of the input"
    )]
    Asymmetric {
        /// Rows and columns of the map.
        size: [usize; 2],
        /// Rows above, and columns on the left.
        before: [usize; 2],
        /// Rows below, and columns on the right.
        after: [usize; 2],
    },
    /// A clamp's limits are not numbers in order.
    #[error("the clamp: expected lo <= hi, neither of them NaN, got {lo}, {hi}; change its limits")]
    Clamp {
        /// The least result.
        lo: f32,
        /// The greatest.
        hi: f32,
    },
}

impl Problem {
    /// An error unless a size is what it must be.
    pub(super) fn expect_size(
        is_right: bool,
        what: &'static str,
        expected: impl Into<String>,
        got: impl ToString,
    ) -> Result<(), Self> {
        if is_right {
            return Ok(());
        }
        Err(Self::Size { what, expected: expected.into(), got: got.to_string() })
    }
}

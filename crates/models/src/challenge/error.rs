//! What can be wrong with the wish for a network or its images.

use lacuna_matrix::FormatError;
use thiserror::Error;

/// There is no such network, layer or set of images.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChallengeError {
    /// A network of so many neurons is not defined.
    #[error(
        "neurons: expected a power of two from 32 to {max}, got {got}; the official networks have 1024, 4096, 16384 \
         and 65536",
        max = 1u32 << 26
    )]
    Neurons {
        /// Neurons asked for.
        got: usize,
    },
    /// A network needs a layer.
    #[error("layers: expected at least 1, got 0; the official networks have 120, 480 and 1920")]
    NoLayers,
    /// The network has not so many layers.
    #[error("layer: expected less than {layers}, got {got}; layers count from 0")]
    Layer {
        /// The layer asked for.
        got: usize,
        /// Layers of the network.
        layers: usize,
    },
    /// Digits cannot be made this large or small.
    #[error("side of an image: expected {expected}, got {got}; the official sides are 32, 64, 128 and 256")]
    Side {
        /// What it may be.
        expected: &'static str,
        /// The side asked for.
        got: usize,
    },
    /// There are too few or too many digits to make images of.
    #[error("digits: expected 1 to {max}, got {got}; the challenge has 60000")]
    Digits {
        /// The most that are taken.
        max: usize,
        /// How many there are.
        got: usize,
    },
    /// The matrix would be too large.
    #[error(transparent)]
    Format(#[from] FormatError),
}

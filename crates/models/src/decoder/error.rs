//! What can go wrong with a decoder.
use thiserror::Error;

use crate::model::ModelError;
use crate::network::NetworkError;
use crate::oracle::OracleError;
use crate::weights::WeightsError;

/// Why a decoder cannot be planned or run, or what it has wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DecoderError {
    /// A size means nothing, or layers cannot have it.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The embedding is not there, or does not fit.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A layer cannot be planned, or failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The library refused lookup, top-N or beams, or failed.
    #[error(transparent)]
    Library(#[from] lacuna::Error),
    /// The context is not as long as the sizes say.
    #[error("the context: expected {expected} elements, a row of the state for each sentence, got {got}")]
    Context {
        /// Elements that the sizes ask for.
        expected: usize,
        /// Elements that there are.
        got: usize,
    },
    /// A layer's result is not what it may be, or there is no oracle for it.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// What was looked up is not what the table has.
    #[error(
        "hypothesis {hypothesis}, element {element} of what the recurrent layer reads: expected {expected}, got {got}"
    )]
    Lookup {
        /// Which hypothesis.
        hypothesis: usize,
        /// Which element of its row.
        element: usize,
        /// What it should be.
        expected: f32,
        /// What it is.
        got: f32,
    },
    /// A beam is no right continuation.
    #[error("sentence {sentence}, beam {beam}: {why}")]
    Beam {
        /// Which sentence.
        sentence: usize,
        /// Which of its beams.
        beam: usize,
        /// What is wrong with it.
        why: String,
    },
}

//! One step of a translation decoder with beam search, on a device and without the host.
//!
//! A step is the lookup of each hypothesis' last word, a recurrent layer, a feed-forward block with a residual, the projection to the
//! vocabulary, softmax and top-N, and the beams' choice. The words that a step chooses are what the next one looks up, on the
//! device: a recorded step is replayed as often as sentences are long.
//!
//! [`Config`] has the sizes, [`Decoder`] runs steps, and [`Oracle`] works them out in `f64` on the host.
//!
//! Lookup, softmax with top-N and the sizes of vocabularies are those of Argueta and Chiang, *Accelerating Sparse Matrix Operations in
//! Neural Networks on Graphics Processing Units* (ACL 2019). The layers between are not theirs. The recurrent one is that of Le, Jaitly
//! and Hinton, *A Simple Way to Initialize Recurrent Networks of Rectified Linear Units* (2015): one linear layer of word and state,
//! with ReLU. The library has no sigmoid, no tanh and no product of elements, so that LSTM and GRU cannot be had.

mod check;
mod config;
mod error;
mod oracle;
mod parts;
mod plan;

pub use check::StepCheck;
pub use config::{Config, Features};
pub use error::DecoderError;
pub use oracle::{Candidate, Hypotheses, Oracle};
pub use parts::Part;
pub use plan::Decoder;

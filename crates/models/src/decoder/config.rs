//! The sizes of a decoder, and what follows from them.
use lacuna::matrix::generate;

use crate::network::{Conv, Linear, Network, NetworkError, Shape};
use crate::weights::{Tensor, Weights, WeightsError};

/// The sizes of a decoder.
///
/// Its tensors, all of `f32`:
///
/// | tensor | shape |
/// | --- | --- |
/// | `embedding.weight` | vocabulary × hidden; with [`Features`] their rows × hidden |
/// | `recurrent.weight`, `.bias` | hidden × 2 · hidden, of the word's embedding and then of the state; hidden |
/// | `up.weight`, `.bias` | inner × hidden; inner |
/// | `down.weight`, `.bias` | hidden × inner × 1 × 1; hidden |
/// | `projection.weight`, `.bias` | vocabulary × hidden; vocabulary |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Sentences that are decoded at once: the batch.
    pub sentences: usize,
    /// Hypotheses of a sentence: 1 to 64.
    pub beams: usize,
    /// Words.
    pub vocabulary: usize,
    /// Features of an embedding, and of a hypothesis' state.
    pub hidden: usize,
    /// Features inside the feed-forward block. At 0 there is no such block, and no `up` and `down`.
    pub inner: usize,
    /// The word that begins sentences.
    pub first: u32,
    /// The word that ends them.
    pub end: u32,
    /// What words are made of, if not each of a row of its own.
    pub features: Option<Features>,
}

/// Few-hot words: the embedding of a word is the sum of several rows of the table, of its features. They are the same each time
/// the word comes; so the sums are worked out once, by a lookup of the whole vocabulary when the decoder is planned, and a step looks
/// up one row a hypothesis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// Rows of the table.
    pub rows: usize,
    /// Where each word's features start, and the end of the last: one more than words.
    pub offsets: Vec<usize>,
    /// The features, each a row of the table.
    pub indices: Vec<u32>,
}

/// What draws the embedding, beside the seed of the layers.
const EMBEDDING_SALT: u64 = 0xe3bed;

impl Default for Config {
    /// 16 sentences with four beams, 32,000 words, 512 features with 2048 inside, as in a Transformer's block.
    fn default() -> Self {
        Self {
            sentences: 16,
            beams: 4,
            vocabulary: 32_000,
            hidden: 512,
            inner: 2048,
            first: 1,
            end: 2,
            features: None,
        }
    }
}

impl Config {
    /// Hypotheses of all sentences. Those of a sentence are side by side.
    pub fn hypotheses(&self) -> usize {
        self.sentences.saturating_mul(self.beams)
    }

    /// The recurrent layer, `recurrent`: ReLU of a linear layer. It reads a row a hypothesis, the embedding of its last word and then
    /// its state, and makes its next state.
    ///
    /// # Errors
    /// [`NetworkError`] for sizes that mean nothing or cannot be counted.
    pub fn recurrent(&self) -> Result<Network, NetworkError> {
        self.expect(self.sentences > 0, "the number of sentences", self.sentences)?;
        self.expect(self.beams > 0, "the number of beams", self.beams)?;
        self.expect(self.hidden > 0, "the number of features", self.hidden)?;
        let mut builder = Network::builder(Shape::matrix(self.hypotheses(), self.hidden.saturating_mul(2)));
        let state = builder.layer("recurrent", Linear::new(self.hidden).relu(), &[builder.input()])?;
        builder.finish(state)
    }

    /// The feed-forward block: `up` with ReLU, and `down`, to which its input is added. None at an `inner` of 0.
    ///
    /// # Errors
    /// As [`recurrent`](Self::recurrent).
    pub fn feed_forward(&self) -> Result<Option<Network>, NetworkError> {
        if self.inner == 0 {
            return Ok(None);
        }
        let mut builder = Network::builder(Shape::matrix(self.hypotheses(), self.hidden));
        let state = builder.input();
        let inner = builder.layer("up", Linear::new(self.inner).relu(), &[state])?;
        // A convolution of matrices is a linear layer too, and has a residual in the same pass.
        let down = Conv::new(self.hidden, [1, 1]).bias().residual();
        let output = builder.layer("down", down, &[inner, state])?;
        builder.finish(output).map(Some)
    }

    /// The projection to the vocabulary, `projection`: a linear layer.
    ///
    /// # Errors
    /// As [`recurrent`](Self::recurrent).
    pub fn projection(&self) -> Result<Network, NetworkError> {
        let mut builder = Network::builder(Shape::matrix(self.hypotheses(), self.hidden));
        let logits = builder.layer("projection", Linear::new(self.vocabulary), &[builder.input()])?;
        builder.finish(logits)
    }

    /// All of these that there are, in the order in which they run.
    ///
    /// # Errors
    /// As [`recurrent`](Self::recurrent).
    pub fn networks(&self) -> Result<Vec<Network>, NetworkError> {
        let feed_forward = self.feed_forward()?;
        Ok([Some(self.recurrent()?), feed_forward, Some(self.projection()?)].into_iter().flatten().collect())
    }

    /// Drawn weights, for speed and tests: layers as [`Weights::drawn`] has them, and an embedding with elements from -1 to 1.
    ///
    /// # Errors
    /// [`NetworkError`] as [`recurrent`](Self::recurrent); [`WeightsError`] for tensors of more elements than memory can have.
    pub fn drawn(&self, seed: u64) -> Result<Weights, super::DecoderError> {
        let mut weights = Weights::new();
        for (number, network) in (0..).zip(self.networks()?) {
            weights.append(Weights::drawn(&network, seed.wrapping_add(number))?);
        }
        let shape = self.embedding_shape();
        let elements = shape.iter().fold(1, |product: usize, &extent| product.saturating_mul(extent));
        let values = generate::random_values(elements, seed ^ EMBEDDING_SALT);
        weights.insert(Self::EMBEDDING, Tensor::new(shape.to_vec(), values)?);
        Ok(weights)
    }

    /// The name of the embedding's tensor.
    pub(super) const EMBEDDING: &'static str = "embedding.weight";

    /// Rows and columns of the embedding.
    pub(super) fn embedding_shape(&self) -> [usize; 2] {
        [self.features.as_ref().map_or(self.vocabulary, |features| features.rows), self.hidden]
    }

    /// The embedding's rows.
    pub(super) fn embedding<'w>(&self, weights: &'w Weights) -> Result<&'w [f32], WeightsError> {
        Ok(weights.get(Self::EMBEDDING, &self.embedding_shape())?.values())
    }

    /// An error where features are not those of as many words.
    pub(super) fn check_features(&self) -> Result<(), NetworkError> {
        let words = self.features.as_ref().map(|features| features.offsets.len().saturating_sub(1));
        match words {
            Some(words) if words != self.vocabulary => {
                let (what, expected) = ("the number of words with features", self.vocabulary.to_string());
                Err(NetworkError::Size { network: NAME, what, expected, got: words.to_string() })
            }
            _ => Ok(()),
        }
    }

    fn expect(&self, is_right: bool, what: &'static str, got: usize) -> Result<(), NetworkError> {
        let (expected, got) = ("at least 1".to_owned(), got.to_string());
        if is_right { Ok(()) } else { Err(NetworkError::Size { network: NAME, what, expected, got }) }
    }
}

/// What errors call it.
const NAME: &str = "a decoder";

//! The Transformer with a sparse attention mask.
use std::sync::Arc;

use lacuna::matrix::{Pattern, generate};

use super::expect;
use crate::network::{Attention, Conv, LayerNorm, Network, NetworkError, Shape};

/// A stack of Transformer layers whose attention has a sparse mask: Vaswani et al., *Attention Is All You Need* (2017), as Child et al.,
/// *Generating Long Sequences with Sparse Transformers* (2019), and Gale et al. (SC 2020, section VII-C and table III) use it.
///
/// A layer is x + Attention(LayerNorm(x)), then x + FeedForward(LayerNorm(x)), and a norm comes last. The input are embedded tokens:
/// images × hidden × tokens, whose pixels are tokens. [`NHot`](lacuna::NHot) looks embeddings up, and may write them there.
///
/// Names: `layers.<layer>.norm1`, `.qkv`, `.attention`, `.out`, `.norm2`, `.fc1`, `.fc2`, then `norm`, and `logits` where there is a vocabulary.
/// `qkv` makes Q, K and V as one, and neither it nor `out` has a bias.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformer {
    /// Layers.
    pub layers: usize,
    /// Heads. They divide the hidden features.
    pub heads: usize,
    /// Features of a token.
    pub hidden: usize,
    /// Features within a feed-forward layer.
    pub filter: usize,
    /// Which tokens (rows) see which (columns).
    pub mask: Arc<Pattern>,
    /// Words to choose from, if the network ends with a score for each.
    pub vocabulary: Option<usize>,
}

/// Neighbours that each token of table III sees.
const BAND: usize = 256;
/// The part of those further back that it does not see.
const SPARSITY: f64 = 0.95;
/// Tokens of a row of pixels, where they are a multiple: a tile of any kernel has whole rows of them.
const ROW: usize = 64;

impl Transformer {
    /// That of table III, of so many tokens (there 12,288): 3 layers, 8 heads, 1,024 features, 4,096 within, for ImageNet's
    /// images of 64 × 64 × 3 bytes. A token sees the 256 before it, and 5 % of those further back, which are drawn from `seed`.
    ///
    /// # Errors
    /// [`NetworkError::Size`] for tokens that no mask can have.
    pub fn table_iii(tokens: usize, seed: u64) -> Result<Self, NetworkError> {
        let mask = generate::band_random(tokens, BAND, SPARSITY, seed);
        let mask = mask.map_err(|error| NetworkError::Size {
            network: NAME,
            what: "the number of tokens",
            expected: "one whose mask fits".into(),
            got: format!("{tokens}: {error}"),
        })?;
        let mask = Arc::new(mask);
        Ok(Self { layers: 3, heads: 8, hidden: 1024, filter: 4096, mask, vocabulary: Some(256) })
    }

    /// The network for so many sequences, each of as many tokens as the mask has rows. Its result are scores, images × vocabulary × tokens,
    /// without softmax; without vocabulary features, images × hidden × tokens.
    ///
    /// # Errors
    /// [`NetworkError::Size`] for no layers, no heads, and heads that do not divide the hidden features; [`NetworkError::Layer`] for other sizes
    /// that do not fit.
    pub fn network(&self, images: usize) -> Result<Network, NetworkError> {
        let Self { layers, heads, hidden, filter, .. } = *self;
        expect(layers > 0, NAME, "the number of layers", "at least 1", layers)?;
        let divide = heads > 0 && hidden > 0 && hidden.is_multiple_of(heads);
        expect(divide, NAME, "the number of heads", &format!("a divisor of {hidden}, the features"), heads)?;
        let tokens = self.mask.rows();
        let mut builder = Network::builder(Shape::maps(images, hidden, map_of_tokens(tokens)));
        let mut x = builder.input();
        for layer in 0..layers {
            let name = |part: &str| format!("layers.{layer}.{part}");
            let y = builder.layer(name("norm1"), LayerNorm::new(), &[x])?;
            let y = builder.layer(name("qkv"), Conv::new(3 * hidden, [1, 1]), &[y])?;
            let attention = Attention::new(heads, Arc::clone(&self.mask));
            let y = builder.layer(name("attention"), attention, &[y])?;
            x = builder.layer(name("out"), Conv::new(hidden, [1, 1]).residual(), &[y, x])?;
            let y = builder.layer(name("norm2"), LayerNorm::new(), &[x])?;
            let y = builder.layer(name("fc1"), Conv::new(filter, [1, 1]).bias().relu(), &[y])?;
            x = builder.layer(name("fc2"), Conv::new(hidden, [1, 1]).bias().residual(), &[y, x])?;
        }
        x = builder.layer("norm", LayerNorm::new(), &[x])?;
        if let Some(words) = self.vocabulary {
            x = builder.layer("logits", Conv::new(words, [1, 1]), &[x])?;
        }
        builder.finish(x)
    }
}

/// Rows and columns of a map whose pixels are so many tokens.
pub(super) fn map_of_tokens(tokens: usize) -> [usize; 2] {
    if tokens.is_multiple_of(ROW) { [tokens / ROW, ROW] } else { [1, tokens] }
}

const NAME: &str = "Transformer";

//! The Transformer for translation, with an encoder and a decoder.
use std::sync::Arc;

use lacuna::matrix::{Pattern, generate};

use super::expect;
use super::transformer::map_of_tokens;
use crate::network::{Attention, Builder, Conv, LayerNorm, Network, NetworkError, Shape, ValueId};

/// The base model of Vaswani et al., *Attention Is All You Need* (2017), table 3, as the matrices of the Deep Learning Matrix Collection (DLMC) were
/// trained with tensor2tensor: Gale, Elsen, Hooker, *The State of Sparsity in Deep Neural Networks* (2019), section 3.
///
/// A forward pass over given sources and targets, as in training: both are inputs, embedded tokens of images × hidden × tokens, the sources before
/// the targets in one buffer. All tokens of a target are worked out at once, each from those that its mask lets it see.
///
/// - *Norms* come before each attention and feed-forward layer, and at the end of both stacks, as tensor2tensor has them ("pre-norm"): x + f(norm(x)),
///   with an epsilon of 10⁻⁶.
/// - *Linear layers* are those of the collection, Q, K and V each by itself; those of attention have no bias.
/// - *Embeddings and the scores of words* are not in the collection. [`NHot`](lacuna::NHot) looks embeddings up; `vocabulary` asks for scores.
///
/// Names: `<stack>.<layer>.<block>.<part>`. The encoder's blocks are `self_attention` and `ffn`; the decoder has `encdec_attention` between them, whose
/// keys and values are the encoder's result. Parts of attention are `norm`, `q`, `k`, `v`, `attention`, `output_transform`, and of `ffn` they are `norm`,
/// `conv1`, `conv2`. Then `encoder.norm`, `decoder.norm`, and `logits` where there is a vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub struct TransformerBase {
    /// Layers of the encoder, and of the decoder.
    pub layers: usize,
    /// Heads. They divide the hidden features.
    pub heads: usize,
    /// Features of a token.
    pub hidden: usize,
    /// Features within a feed-forward layer.
    pub filter: usize,
    /// Which tokens of the source (rows) see which others.
    pub source_mask: Arc<Pattern>,
    /// Which tokens of the target (rows) see which others.
    pub target_mask: Arc<Pattern>,
    /// Which tokens of the target (rows) see which of the source (columns).
    pub cross_mask: Arc<Pattern>,
    /// Words to choose from, if the network ends with a score for each.
    pub vocabulary: Option<usize>,
}

const NAME: &str = "TransformerBase";
/// What tensor2tensor's norms add to variances.
const EPSILON: f32 = 1e-6;

impl TransformerBase {
    /// The base model for sources and targets of so many tokens, with dense attention: a token of the source sees all others, one of the target
    /// those before it, itself, and all of the source. 6 layers, 8 heads, 512 features, 2,048 within.
    ///
    /// # Errors
    /// [`NetworkError::Size`] for tokens that no mask can have.
    pub fn dense(source: usize, target: usize) -> Result<Self, NetworkError> {
        let source_mask = Arc::new(all_keys(source, source)?);
        let cross_mask =
            if source == target { Arc::clone(&source_mask) } else { Arc::new(all_keys(target, source)?) };
        // One document: each token sees those up to itself.
        let causal = generate::document_mask(target, target.max(1));
        let target_mask = Arc::new(causal.map_err(|error| no_mask(target, target, &error))?);
        let (layers, heads, hidden, filter, vocabulary) = (6, 8, 512, 2048, None);
        Ok(Self { layers, heads, hidden, filter, source_mask, target_mask, cross_mask, vocabulary })
    }

    /// The network for so many pairs of a source and a target, of as many tokens as the masks have rows. Its result are features of the targets, images ×
    /// hidden × tokens, or with a vocabulary scores, images × vocabulary × tokens, without softmax.
    ///
    /// # Errors
    /// [`NetworkError::Size`] for no layers, no heads, and heads that do not divide the hidden features; [`NetworkError::Layer`] for masks and other
    /// sizes that do not fit.
    pub fn network(&self, images: usize) -> Result<Network, NetworkError> {
        let Self { layers, heads, hidden, .. } = *self;
        expect(layers > 0, NAME, "the number of layers", "at least 1", layers)?;
        let divide = heads > 0 && hidden > 0 && hidden.is_multiple_of(heads);
        expect(divide, NAME, "the number of heads", &format!("a divisor of {hidden}, the features"), heads)?;
        let tokens = |mask: &Pattern| Shape::maps(images, hidden, map_of_tokens(mask.rows()));
        let mut builder = Network::builder(tokens(&self.source_mask));
        let mut source = builder.input();
        let mut target = builder.add_input(tokens(&self.target_mask));
        for layer in 0..layers {
            let name = |block: &str| format!("encoder.{layer}.{block}");
            source =
                self.attention(&mut builder, &name("self_attention"), source, None, &self.source_mask)?;
            source = self.feed_forward(&mut builder, &name("ffn"), source)?;
        }
        source = builder.layer("encoder.norm", norm(), &[source])?;
        for layer in 0..layers {
            let name = |block: &str| format!("decoder.{layer}.{block}");
            target =
                self.attention(&mut builder, &name("self_attention"), target, None, &self.target_mask)?;
            let cross = name("encdec_attention");
            target = self.attention(&mut builder, &cross, target, Some(source), &self.cross_mask)?;
            target = self.feed_forward(&mut builder, &name("ffn"), target)?;
        }
        target = builder.layer("decoder.norm", norm(), &[target])?;
        if let Some(words) = self.vocabulary {
            target = builder.layer("logits", Conv::new(words, [1, 1]), &[target])?;
        }
        builder.finish(target)
    }

    /// x + Attention(norm(x)), with keys and values of another sequence if one is given.
    fn attention(
        &self,
        builder: &mut Builder,
        block: &str,
        x: ValueId,
        other: Option<ValueId>,
        mask: &Arc<Pattern>,
    ) -> Result<ValueId, NetworkError> {
        let name = |part: &str| format!("{block}.{part}");
        let linear = || Conv::new(self.hidden, [1, 1]);
        let y = builder.layer(name("norm"), norm(), &[x])?;
        let seen = other.unwrap_or(y);
        let q = builder.layer(name("q"), linear(), &[y])?;
        let k = builder.layer(name("k"), linear(), &[seen])?;
        let v = builder.layer(name("v"), linear(), &[seen])?;
        let attention = Attention::new(self.heads, Arc::clone(mask));
        let y = builder.layer(name("attention"), attention, &[q, k, v])?;
        builder.layer(name("output_transform"), linear().residual(), &[y, x])
    }

    /// x + FeedForward(norm(x)).
    fn feed_forward(&self, builder: &mut Builder, block: &str, x: ValueId) -> Result<ValueId, NetworkError> {
        let name = |part: &str| format!("{block}.{part}");
        let y = builder.layer(name("norm"), norm(), &[x])?;
        let y = builder.layer(name("conv1"), Conv::new(self.filter, [1, 1]).bias().relu(), &[y])?;
        builder.layer(name("conv2"), Conv::new(self.hidden, [1, 1]).bias().residual(), &[y, x])
    }

    /// The file in which DLMC has the mask of the layer of this name, in `transformer/<technique>/<sparsity>`; none for layers that it has not.
    ///
    /// ```
    /// use lacuna_models::networks::TransformerBase;
    ///
    /// let file = TransformerBase::dlmc_file("decoder.0.encdec_attention.k");
    /// let expected = "body_decoder_layer_0_encdec_attention_multihead_attention_k_fully_connected.smtx";
    /// assert_eq!(file.as_deref(), Some(expected));
    /// assert_eq!(TransformerBase::dlmc_file("decoder.0.ffn.norm"), None);
    /// ```
    pub fn dlmc_file(layer: &str) -> Option<String> {
        let parts: Vec<&str> = layer.split('.').collect();
        let &[stack @ ("encoder" | "decoder"), number, block, part] = &parts[..] else { return None };
        let part = match (block, part) {
            ("self_attention" | "encdec_attention", "q" | "k" | "v" | "output_transform") => {
                format!("multihead_attention_{part}")
            }
            ("ffn", "conv1" | "conv2") => part.to_owned(),
            _ => return None,
        };
        Some(format!("body_{stack}_layer_{number}_{block}_{part}_fully_connected.smtx"))
    }
}

fn norm() -> LayerNorm {
    LayerNorm::new().epsilon(EPSILON)
}

/// A mask in which each query sees each key.
fn all_keys(queries: usize, keys: usize) -> Result<Pattern, NetworkError> {
    // Whoever has more nonzeros than 32 bits count is refused before memory is asked for.
    let is_countable = queries.checked_mul(keys).is_some_and(|nnz| u32::try_from(nnz).is_ok());
    let expected = "so many that queries × keys fit 32 bits";
    expect(is_countable, NAME, "the number of tokens", expected, format!("{queries} × {keys}"))?;
    let offsets = (0..=queries).map(|query| (query * keys) as u32).collect();
    let columns = (0..queries).flat_map(|_| 0..keys as u32).collect();
    Pattern::new(queries, keys, offsets, columns).map_err(|error| no_mask(queries, keys, &error))
}

fn no_mask(queries: usize, keys: usize, why: &dyn std::error::Error) -> NetworkError {
    NetworkError::Size {
        network: NAME,
        what: "the number of tokens",
        expected: "one whose mask fits".into(),
        got: format!("{queries} × {keys}: {why}"),
    }
}

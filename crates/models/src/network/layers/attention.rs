//! Attention.
use std::fmt;
use std::sync::Arc;

use lacuna::matrix::Pattern;

use super::only;
use crate::network::{Problem, Shape};

/// Multi-head attention with a sparse mask: softmax(Q·Kᵀ / √d ⊙ mask)·V for each head. Source: Gale, Zaharia, Young, Elsen, *Sparse GPU
/// Kernels for Deep Learning* (SC 2020), section VII-C.
///
/// A token is a pixel. The input has the channels of Q, then those of K, then those of V, each the heads' one after another, so that
/// one layer of 1×1 taps makes all three. The result has a third of the channels. All images and heads share the mask.
#[derive(Clone, PartialEq)]
pub struct Attention {
    /// Heads.
    pub heads: usize,
    /// Which queries (rows) see which keys (columns): tokens × tokens.
    pub mask: Arc<Pattern>,
}

impl Attention {
    /// So many heads with this mask. Layers may share it: it is then on the device once.
    pub fn new(heads: usize, mask: Arc<Pattern>) -> Self {
        Self { heads, mask }
    }

    /// Elements of a row of Q, K and V of one head; 0 where the heads do not divide the channels.
    pub(crate) fn dim(&self, input: Shape) -> usize {
        let parts = self.heads.saturating_mul(3);
        if parts > 0 && input.channels.is_multiple_of(parts) { input.channels / parts } else { 0 }
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let input = only(inputs)?;
        let (dim, tokens) = (self.dim(input), input.pixels());
        let expected = || format!("Q, K and V of {} heads, at least one, as many channels each", self.heads);
        Problem::expect_size(dim > 0, "the channels", expected(), input.channels)?;
        let (rows, columns) = (self.mask.rows(), self.mask.cols());
        let fits = [rows, columns] == [tokens; 2];
        let expected = format!("{tokens}×{tokens}, the tokens");
        Problem::expect_size(fits, "the mask", expected, format!("{rows}×{columns}"))?;
        Ok(Shape { channels: input.channels / 3, ..input })
    }

    /// Multiply-adds of both products, those of tokens that are not seen left out.
    pub(super) fn products(&self, input: Shape) -> u64 {
        let channels = (input.channels / 3) as u64;
        let keys = (self.mask.nnz() as u64).saturating_mul(input.images as u64);
        keys.saturating_mul(channels).saturating_mul(2)
    }
}

impl fmt::Debug for Attention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mask = format_args!("{}×{}, {} nonzeros", self.mask.rows(), self.mask.cols(), self.mask.nnz());
        f.debug_struct("Attention").field("heads", &self.heads).field("mask", &mask).finish()
    }
}

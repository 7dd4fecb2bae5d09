//! Attention.
use std::fmt;
use std::sync::Arc;

use lacuna::matrix::Pattern;

use super::expect_same;
use crate::network::{Problem, Shape};

/// Multi-head attention with a sparse mask: softmax(Q·Kᵀ / √d ⊙ mask)·V for each head. Source: Gale, Zaharia, Young, Elsen, *Sparse GPU
/// Kernels for Deep Learning* (SC 2020), section VII-C.
///
/// A token is a pixel, and Q, K and V have as many channels each, the heads' one after another. How many inputs the layer has says where they are:
///
/// | inputs | of |
/// | --- | --- |
/// | Q, K and V side by side, three times the channels | a sequence to itself, where one layer of 1×1 taps makes all three |
/// | Q; K and V side by side, twice the channels | a sequence to another |
/// | Q; K; V | either |
///
/// Of a sequence to another the keys may be more or fewer than the queries: *cross attention*, Vaswani et al., *Attention Is All You Need* (2017),
/// section 3.2.3. The result has the channels and the pixels of Q. All images and heads share the mask; one with all keys makes attention dense.
///
/// ```
/// use lacuna::matrix::generate;
/// use lacuna_models::network::{Attention, Conv, Network, Shape};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Two heads of 8 features: 6 tokens look at all of 10 others.
/// let mut builder = Network::builder(Shape::maps(1, 16, [1, 6]));
/// let target = builder.input();
/// let source = builder.add_input(Shape::maps(1, 16, [1, 10]));
/// let q = builder.layer("q", Conv::new(16, [1, 1]), &[target])?;
/// let kv = builder.layer("kv", Conv::new(32, [1, 1]), &[source])?;
/// let mask = generate::uniform(6, 10, 0.0, 0)?;
/// let out = builder.layer("attention", Attention::new(2, mask.into()), &[q, kv])?;
/// assert_eq!(builder.shape(out), Some(Shape::maps(1, 16, [1, 6])));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq)]
pub struct Attention {
    /// Heads.
    pub heads: usize,
    /// Which queries (rows) see which keys (columns).
    pub mask: Arc<Pattern>,
}

/// Where Q, K or V is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The layer's input.
    pub(crate) input: usize,
    /// The first channel there.
    pub(crate) channel: usize,
}

impl Attention {
    /// So many heads with this mask. Layers may share it: it is then on the device once.
    pub fn new(heads: usize, mask: Arc<Pattern>) -> Self {
        Self { heads, mask }
    }

    /// Channels of Q, of K, of V and of the result.
    pub(crate) fn width(inputs: &[Shape]) -> usize {
        match inputs {
            [] => 0,
            [all] => all.channels / 3,
            [q, ..] => q.channels,
        }
    }

    /// Where Q, K and V are.
    pub(crate) fn parts(inputs: &[Shape]) -> [Part; 3] {
        let width = Self::width(inputs);
        let places = match inputs.len() {
            0 | 1 => [(0, 0), (0, width), (0, 2 * width)],
            2 => [(0, 0), (1, 0), (1, width)],
            _ => [(0, 0), (1, 0), (2, 0)],
        };
        places.map(|(input, channel)| Part { input, channel })
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let &[first, ..] = inputs else { return Err(wrong_count(0)) };
        let (width, heads) = (Self::width(inputs), self.heads);
        let of_all = if inputs.len() == 1 { heads.saturating_mul(3) } else { heads };
        let divide = width > 0 && of_all > 0 && first.channels.is_multiple_of(of_all);
        let expected = if inputs.len() == 1 {
            format!("Q, K and V of {heads} heads, at least one, as many channels each")
        } else {
            format!("Q of {heads} heads, at least one, as many channels each")
        };
        Problem::expect_size(divide, "the channels", expected, first.channels)?;
        let beside = |channels: usize, size| Shape { images: first.images, channels, size };
        let keys = match *inputs {
            [_] => first,
            [_, kv] => {
                expect_same("K and V", beside(width.saturating_mul(2), kv.size), kv)?;
                kv
            }
            [_, k, v] => {
                expect_same("K", beside(width, k.size), k)?;
                expect_same("V", k, v)?;
                k
            }
            _ => return Err(wrong_count(inputs.len())),
        };
        let [queries, keys] = [first, keys].map(|shape| shape.pixels());
        let (rows, columns) = (self.mask.rows(), self.mask.cols());
        let expected = format!("{queries}×{keys}, the tokens of Q and those of K");
        let fits = [rows, columns] == [queries, keys];
        Problem::expect_size(fits, "the mask", expected, format!("{rows}×{columns}"))?;
        Ok(Shape { channels: width, ..first })
    }

    /// Multiply-adds of both products, those of tokens that are not seen left out.
    pub(super) fn products(&self, inputs: &[Shape]) -> u64 {
        let images = inputs.first().map_or(0, |input| input.images);
        let keys = (self.mask.nnz() as u64).saturating_mul(images as u64);
        keys.saturating_mul(Self::width(inputs) as u64).saturating_mul(2)
    }
}

fn wrong_count(got: usize) -> Problem {
    Problem::Inputs {
        expected: "one to three inputs (Q, K and V side by side; Q, and K and V side by side; Q, K, V)",
        got,
    }
}

impl fmt::Debug for Attention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mask = format_args!("{}×{}, {} nonzeros", self.mask.rows(), self.mask.cols(), self.mask.nnz());
        f.debug_struct("Attention").field("heads", &self.heads).field("mask", &mask).finish()
    }
}

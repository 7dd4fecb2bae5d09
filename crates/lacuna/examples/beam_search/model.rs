//! A language model that is small enough to be looked at: what comes next depends on the last token, and on the sentence.
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// The token that ends a sentence. It also begins one.
pub(crate) const END: u32 = 0;

/// Logits of each token after each other one, and what a sentence adds to them: a source that is translated has its own words.
pub(crate) struct Model {
    /// Tokens that there are.
    pub(crate) vocabulary: usize,
    after: Vec<f32>,
    of_sentence: Vec<f32>,
}

impl Model {
    /// A model of `vocabulary` tokens, for so many sentences. An end becomes likelier with each token.
    pub(crate) fn draw(vocabulary: usize, sentences: usize, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut draw = |len: usize, size: f32| -> Vec<f32> {
            (0..len).map(|_| random.random_range(-size..size)).collect()
        };
        Self {
            vocabulary,
            after: draw(vocabulary * vocabulary, 3.0),
            of_sentence: draw(sentences * vocabulary, 2.0),
        }
    }

    /// Logits of what follows `last` as token `position` of a sentence.
    pub(crate) fn logits(
        &self,
        sentence: usize,
        position: usize,
        last: u32,
    ) -> impl Iterator<Item = f32> + '_ {
        let row = |at: usize| at * self.vocabulary..(at + 1) * self.vocabulary;
        let (after, of_sentence) = (&self.after[row(last as usize)], &self.of_sentence[row(sentence)]);
        let ending = 0.8 * position as f32 - 1.0;
        after
            .iter()
            .zip(of_sentence)
            .enumerate()
            .map(move |(token, (after, own))| after + own + if token == END as usize { ending } else { 0.0 })
    }
}

//! Documents of known topics.
use lacuna::matrix::{Csr, FormatError};
use rand::SeedableRng;
use rand::distr::weighted::WeightedIndex;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, Gamma};

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Rows of X.
    pub(crate) documents: usize,
    /// Columns of X; not 0.
    pub(crate) words: usize,
    /// Topics behind them; not 0.
    pub(crate) topics: usize,
    /// Words of each document, repeated ones counted.
    pub(crate) length: usize,
}

/// How few topics a document has: each is a draw from a Dirichlet distribution with this for every topic.
const TOPICS_OF_A_DOCUMENT: f64 = 0.2;
/// The same for the words of a topic.
const WORDS_OF_A_TOPIC: f64 = 0.1;

/// Counts of words, and the topics behind them.
pub(crate) struct Documents {
    /// How often a document (row) has a word (column).
    pub(crate) counts: Csr<f32>,
    /// The part that a topic has in a document: documents × topics.
    pub(crate) shares: Vec<f32>,
    /// How likely a word is in a topic: words × topics.
    pub(crate) topics: Vec<f32>,
}

impl Documents {
    /// Draws topics, then for each document its mixture of them, and for each of its words a topic and that topic's word.
    ///
    /// # Errors
    /// Sizes that do not fit 32 bits.
    pub(crate) fn draw(shape: Shape, seed: u64) -> Result<Self, FormatError> {
        let Shape { documents, words, topics, length } = shape;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let by_topic: Vec<Vec<f64>> =
            (0..topics).map(|_| dirichlet(WORDS_OF_A_TOPIC, words, &mut random)).collect();
        let weighted = |weights: &Vec<f64>| WeightedIndex::new(weights).expect("weights that sum to 1");
        let word_of: Vec<WeightedIndex<f64>> = by_topic.iter().map(weighted).collect();

        let mut shares = Vec::with_capacity(documents * topics);
        let mut counts = vec![0.0; documents * words];
        for document in 0..documents {
            let mixture = dirichlet(TOPICS_OF_A_DOCUMENT, topics, &mut random);
            let topic_of = weighted(&mixture);
            for _ in 0..length {
                let word = word_of[topic_of.sample(&mut random)].sample(&mut random);
                counts[document * words + word] += 1.0;
            }
            shares.extend(mixture.iter().map(|&share| share as f32));
        }
        let topics = (0..words).flat_map(|word| by_topic.iter().map(move |topic| topic[word] as f32));
        Ok(Self { topics: topics.collect(), shares, counts: Csr::from_dense(documents, words, &counts)? })
    }
}

/// Numbers that sum to 1, drawn from the Dirichlet distribution with `concentration` for each.
fn dirichlet(concentration: f64, len: usize, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let gamma = Gamma::new(concentration, 1.0).expect("a shape above 0");
    // All of few draws may be so small that they are 0.
    let draws: Vec<f64> = (0..len).map(|_| gamma.sample(random).max(f64::MIN_POSITIVE)).collect();
    let sum: f64 = draws.iter().sum();
    draws.iter().map(|draw| draw / sum).collect()
}

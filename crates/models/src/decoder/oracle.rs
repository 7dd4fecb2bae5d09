//! A decoder in `f64` on the host, part by part.
use lacuna_reference::bound::{Legal, SoftmaxRow};
use lacuna_reference::{NHotBags, Precision, TopNForm, nhot, topn};

use super::{Config, DecoderError};
use crate::model::Options;
use crate::network::{Network, Shape};
use crate::oracle::{self, Approximate, OracleError, sum_error};
use crate::weights::Weights;

/// The hypotheses of all sentences between two steps, those of a sentence side by side, best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypotheses {
    /// Their last words.
    pub words: Vec<u32>,
    /// Of which hypothesis of all sentences each is a continuation.
    pub parents: Vec<u32>,
    /// The sums of their words' log-probabilities.
    pub scores: Vec<f32>,
    /// Whether they have come to an end.
    pub finished: Vec<bool>,
}

/// A continuation of a hypothesis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its number among those of all sentences.
    pub parent: u32,
    /// The next word.
    pub word: u32,
    /// The sum of log-probabilities.
    pub score: f64,
    /// What a right score may be off.
    pub error: f64,
    /// Whether it ends here or before.
    pub is_finished: bool,
}

/// What each part of a step makes of what it reads, taken as exact, and how far a right result may be from it.
#[derive(Debug)]
pub struct Oracle<'o> {
    pub(super) config: &'o Config,
    weights: &'o Weights,
    options: &'o Options,
    /// In the order in which they run.
    networks: Vec<Network>,
}

impl<'o> Oracle<'o> {
    /// The oracle of a decoder with these sizes, weights and options.
    ///
    /// # Errors
    /// [`DecoderError::Network`] for sizes that mean nothing.
    pub fn new(config: &'o Config, weights: &'o Weights, options: &'o Options) -> Result<Self, DecoderError> {
        config.check_features()?;
        Ok(Self { config, weights, options, networks: config.networks()? })
    }

    /// The embedding of each word, vocabulary × hidden.
    ///
    /// # Errors
    /// [`DecoderError::Weights`] for an embedding that does not fit, and [`DecoderError::Oracle`] for features that are not rows.
    pub fn table(&self) -> Result<Approximate, DecoderError> {
        table(self.config, self.weights)
    }

    /// The hypotheses before the first step.
    pub fn begin(&self) -> Hypotheses {
        let Config { beams, first, .. } = *self.config;
        let all = 0..self.config.hypotheses();
        Hypotheses {
            words: vec![first; all.len()],
            parents: all.clone().map(|at| (at - at % beams) as u32).collect(),
            scores: all.clone().map(|at| if at % beams == 0 { 0.0 } else { f32::NEG_INFINITY }).collect(),
            finished: vec![false; all.len()],
        }
    }

    /// What the recurrent layer reads: rows of this table, and of these states, hypotheses × hidden.
    ///
    /// # Panics
    /// For words, parents and slices that are not of this decoder's sizes.
    pub fn input(&self, hypotheses: &Hypotheses, table: &[f32], state: &[f32]) -> Vec<f32> {
        let row = |of: &[f32], at: u32| of[at as usize * self.config.hidden..][..self.config.hidden].to_vec();
        let rows = hypotheses.words.iter().zip(&hypotheses.parents);
        rows.flat_map(|(&word, &parent)| [row(table, word), row(state, parent)].concat()).collect()
    }

    /// The next states, of what [`input`](Self::input) gives.
    ///
    /// # Errors
    /// [`OracleError`] for an input of another length, and weights that do not fit.
    pub fn recurrent(&self, input: &[f32]) -> Result<Approximate, OracleError> {
        self.run(&self.networks[0], input)
    }

    /// What the projection reads, of the states.
    ///
    /// # Errors
    /// As [`recurrent`](Self::recurrent).
    pub fn feed_forward(&self, state: &[f32]) -> Result<Approximate, OracleError> {
        match self.networks.as_slice() {
            [_, feed_forward, _] => self.run(feed_forward, state),
            _ => Ok(Approximate::exact(Shape::matrix(self.config.hypotheses(), self.config.hidden), state)),
        }
    }

    /// The logits, hypotheses × vocabulary.
    ///
    /// # Errors
    /// As [`recurrent`](Self::recurrent).
    pub fn projection(&self, features: &[f32]) -> Result<Approximate, OracleError> {
        self.run(&self.networks[self.networks.len() - 1], features)
    }

    fn run(&self, network: &Network, input: &[f32]) -> Result<Approximate, OracleError> {
        oracle::run(network, self.weights, self.options, input)
    }

    /// The candidates of each sentence, best first: the best words after each of its hypotheses, as many as there are of these. Of
    /// equal ones that of the earlier hypothesis comes first, and of one hypothesis the more probable word.
    ///
    /// # Panics
    /// For logits that are not hypotheses × vocabulary.
    pub fn choose(&self, before: &Hypotheses, logits: &[f32]) -> Vec<Vec<Candidate>> {
        let Config { sentences, beams, vocabulary, .. } = *self.config;
        let n = beams.min(vocabulary);
        let best = topn(logits, vocabulary, n, 1.0, TopNForm::Logit).expect("N is in the vocabulary");
        let sentence = |sentence: usize| {
            let of = sentence * beams..(sentence + 1) * beams;
            let mut candidates: Vec<Candidate> = of
                .flat_map(|parent| {
                    let words = &best.indices()[parent * n..(parent + 1) * n];
                    let row = Continuations::of(self.config, before, parent, logits);
                    // A finished hypothesis has one continuation.
                    let words = if row.is_finished { &[self.config.end][..] } else { words };
                    words.iter().map(|&word| row.by(word)).collect::<Vec<_>>()
                })
                .collect();
            // The sort is stable: equal ones stay in their order.
            candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
            candidates
        };
        (0..sentences).map(sentence).collect()
    }
}

/// The continuations of one hypothesis.
#[derive(Debug)]
pub(super) struct Continuations<'l> {
    parent: u32,
    end: u32,
    score: f32,
    is_finished: bool,
    logits: &'l [f32],
    softmax: SoftmaxRow,
}

impl<'l> Continuations<'l> {
    /// Those of hypothesis `parent`, by the logits of all.
    pub(super) fn of(config: &Config, before: &Hypotheses, parent: usize, logits: &'l [f32]) -> Self {
        let logits = &logits[parent * config.vocabulary..][..config.vocabulary];
        Self {
            parent: parent as u32,
            end: config.end,
            score: before.scores[parent],
            is_finished: before.finished[parent],
            logits,
            softmax: SoftmaxRow::new(logits, 1.0),
        }
    }

    /// That by this word; by any word the same of a finished one.
    pub(super) fn by(&self, word: u32) -> Candidate {
        let Self { parent, end, score, is_finished, .. } = *self;
        let score = f64::from(score);
        if is_finished {
            return Candidate { parent, word: end, score, error: 0.0, is_finished };
        }
        let legal: Legal = self.softmax.log_probability(self.logits[word as usize]);
        let (value, error) = (score + legal.value, legal.bound());
        let sum = sum_error(2, score.abs() + legal.value.abs() + error, 0.0, Precision::Fp32);
        // No hypothesis goes on from a score of -∞; so what it is off does not matter.
        let error = if score.is_finite() { error + sum } else { 0.0 };
        Candidate { parent, word, score: value, error, is_finished: word == end }
    }
}

/// The embedding of each word, and what a lookup of its features may be off.
fn table(config: &Config, weights: &Weights) -> Result<Approximate, DecoderError> {
    let (rows, shape) = (config.embedding(weights)?, Shape::matrix(config.vocabulary, config.hidden));
    let Some(features) = &config.features else { return Ok(Approximate::exact(shape, rows)) };
    let indices: Vec<usize> = features.indices.iter().map(|&index| index as usize).collect();
    let bags =
        NHotBags { offsets: &features.offsets, indices: &indices, weights: None, padding: None, mean: false };
    let wrong = |got| OracleError::Length { what: "the embedding".into(), expected: rows.len(), got };
    let value = nhot(&bags, rows, config.hidden).map_err(|_| wrong(indices.len()))?.value();
    let mut error = Vec::with_capacity(value.len());
    for word in 0..config.vocabulary {
        let features = &indices[features.offsets[word]..features.offsets[word + 1]];
        error.extend((0..config.hidden).map(|column| {
            let sizes = features.iter().map(|row| f64::from(rows[row * config.hidden + column].abs()));
            sum_error(features.len(), sizes.sum(), 0.0, Precision::Fp32)
        }));
    }
    Ok(Approximate { shape, value, error })
}

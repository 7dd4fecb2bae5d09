//! Latent Dirichlet allocation by expectation and maximisation, as multiplicative updates.
//!
//! A document d has topic k with the share Θ(d,k), and topic k has word w with probability Φ(w,k). For counts X the most
//! likely Θ and Φ, given Dirichlet priors, are approached by
//!
//! - Q = X ⊘ (Θ·Φᵀ) at X's nonzeros: the products are an SDDMM;
//! - Θ ← Θ ⊙ (Q·Φ) + prior, and then each document's shares made to sum to 1: an SpMM;
//! - Φ ← Φ ⊙ (Qᵀ·Θ) + prior, and then each topic's words made to sum to 1: an SpMM with the transposed Q.
//!
//! Θ ⊙ (Q·Φ) is the number of words of a document that are expected to be of a topic, so priors are counts of imagined
//! words. Both updates read the old Θ and Φ. No step makes the objective larger (Dempster, Laird and Rubin, 1977).
use std::time::Instant;

use lacuna::matrix::{Csr, generate};
use lacuna::{Device, Result, Stream};

use crate::clock::Took;
use crate::side::{Inner, Side};

/// What may be asked of the solver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Topics to look for; not 0.
    pub(crate) topics: usize,
    /// Imagined words of each topic in a document: a Dirichlet parameter less 1. Above 0.
    pub(crate) share_prior: f32,
    /// Imagined times of each word in a topic. Above 0.
    pub(crate) word_prior: f32,
    pub(crate) inner: Inner,
    /// Of the topics to start from.
    pub(crate) seed: u64,
}

/// Where the solver stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// What is minimised: `divergence`, and the priors' part, a word.
    pub(crate) objective: f64,
    /// The Kullback-Leibler divergence of the words' frequencies in documents from the model, a word.
    pub(crate) divergence: f64,
    pub(crate) took: Took,
}

/// Counts, and a model of them.
pub(crate) struct Lda {
    options: Options,
    stream: Stream,
    rows: Side,
    columns: Side,
    counts: Csr<f32>,
    /// Θ: documents × topics.
    pub(crate) shares: Vec<f32>,
    /// Φ: words × topics.
    pub(crate) topics: Vec<f32>,
    /// Θ·Φᵀ at the nonzeros.
    products: Vec<f32>,
}

impl Lda {
    /// Starts with equal shares of topics that are all the words, weighted at random.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn new(device: &Device, counts: &Csr<f32>, options: Options) -> Result<Self> {
        let k = options.topics;
        let stream = device.stream()?;
        let (mut rows, columns) = Side::pair(device, &stream, counts, k, options.inner)?;
        let shares = vec![1.0 / k as f32; counts.rows() * k];
        let draws = generate::random_values(counts.cols() * k, options.seed);
        let mut topics: Vec<f32> = draws.iter().map(|draw| 1.0 + 0.5 * draw).collect();
        normalize_columns(&mut topics, k);
        rows.fix(&topics)?;
        let products = rows.products(&stream, &shares)?;
        Ok(Self { counts: counts.clone(), options, stream, rows, columns, shares, topics, products })
    }

    /// One step.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn step(&mut self) -> Result<Progress> {
        let start = Instant::now();
        let Self { options, stream, rows, columns, counts, shares, topics, products } = self;
        // Quotients, and what scales factors, are the host's: the library has products only.
        let quotients = counts.values().iter().zip(&*products).map(|(x, product)| x / positive(*product));
        rows.set_values(&quotients.collect::<Vec<f32>>())?;
        let document_scales = rows.sums(stream)?;
        columns.take_values(stream, rows)?;
        columns.fix(shares)?;
        let word_scales = columns.sums(stream)?;

        scale(shares, &document_scales, options.share_prior);
        for of_document in shares.chunks_exact_mut(options.topics) {
            let sum: f64 = of_document.iter().map(|&share| f64::from(share)).sum();
            of_document.iter_mut().for_each(|share| *share = (f64::from(*share) / sum) as f32);
        }
        scale(topics, &word_scales, options.word_prior);
        normalize_columns(topics, options.topics);

        rows.fix(topics)?;
        *products = rows.products(stream, shares)?;
        let inner = rows.take_inner_time();
        let divergence = divergence(counts, products);
        let words: f64 = counts.values().iter().map(|&count| f64::from(count)).sum();
        let priors = f64::from(options.share_prior) * sum_of_logs(shares)
            + f64::from(options.word_prior) * sum_of_logs(topics);
        let objective = divergence - priors / words;
        Ok(Progress { objective, divergence, took: Took { step: start.elapsed(), inner } })
    }
}

/// The Kullback-Leibler divergence, a word, of the words' frequencies in documents from what a model says of them:
/// `products` at the nonzeros of `counts`.
pub(crate) fn divergence(counts: &Csr<f32>, products: &[f32]) -> f64 {
    let (mut sum, mut words, mut at) = (0.0, 0.0, 0);
    for row in 0..counts.rows() {
        let row_counts = counts.row(row).1;
        let length: f64 = row_counts.iter().map(|&count| f64::from(count)).sum();
        let counted = row_counts.iter().zip(&products[at..]).filter(|&(&count, _)| count > 0.0);
        for (&count, &product) in counted {
            let count = f64::from(count);
            sum += count * (count / length / f64::from(positive(product))).ln();
        }
        words += length;
        at += row_counts.len();
    }
    sum / words
}

/// Products of what is positive are 0 only where `f32` has nothing smaller.
fn positive(product: f32) -> f32 {
    product.max(f32::MIN_POSITIVE)
}

fn scale(factor: &mut [f32], scales: &[f32], prior: f32) {
    for (factor, scale) in factor.iter_mut().zip(scales) {
        *factor = *factor * scale + prior;
    }
}

/// Makes each of `k` columns sum to 1.
fn normalize_columns(factor: &mut [f32], k: usize) {
    let mut sums = vec![0.0; k];
    for row in factor.chunks_exact(k) {
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    for row in factor.chunks_exact_mut(k) {
        row.iter_mut().zip(&sums).for_each(|(x, sum)| *x = (f64::from(*x) / sum) as f32);
    }
}

fn sum_of_logs(of: &[f32]) -> f64 {
    of.iter().map(|&x| f64::from(x).ln()).sum()
}

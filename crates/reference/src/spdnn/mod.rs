//! Inference by a feed-forward network of sparse layers.
//!
//! A result is not compared with one that `f64` gives: a sum near an end of the clamp may fall to either side, and later layers
//! make more of it. Instead each value between layers is known as an interval of all that `f32` arithmetic may make of it,
//! and from layer to layer follows what may become of these.

mod block;

use crate::bound::{Known, MAX_TERMS, Verdict};
use crate::{ErrorReport, Mismatch, ReferenceError, Value};
use block::Block;
use lacuna_matrix::Csr;
use rayon::prelude::*;

/// Most rows that go through the network together. They are kept while they do, in 20 bytes a value.
const BLOCK: usize = 64;

/// One layer: Y ← act(Y·Wᵀ + b).
#[derive(Debug, Clone, Copy)]
pub struct SpdnnLayer<'a> {
    /// W: outputs × inputs.
    pub weights: &'a Csr<f32>,
    /// b: one for all outputs, or one each.
    pub bias: &'a [f32],
    /// A sum below it becomes it; -∞ leaves all. NaN stays.
    pub lo: f32,
    /// A sum above it becomes it; +∞ leaves all. At least `lo`.
    pub hi: f32,
    /// Whether sums may be those of tensor cores, with features in three parts: weights are numbers of bfloat16, not subnormal ones.
    pub tensor_cores: bool,
}

impl SpdnnLayer<'_> {
    fn check(&self, layer: usize, inputs: usize) -> Result<(), ReferenceError> {
        let &Self { weights, bias, lo, hi, .. } = self;
        if weights.cols() != inputs {
            return Err(ReferenceError::LayerInputs { layer, expected: inputs, got: weights.cols() });
        }
        if bias.len() != 1 && bias.len() != weights.rows() {
            let (outputs, got) = (weights.rows(), bias.len());
            return Err(ReferenceError::LayerBias { layer, outputs, got });
        }
        if lo.is_nan() || hi.is_nan() || lo > hi {
            return Err(ReferenceError::Clamp { lo, hi });
        }
        // The bias is one term more.
        match weights.row_lengths().position(|terms| terms >= MAX_TERMS) {
            Some(row) => {
                let terms = weights.row(row).0.len();
                Err(ReferenceError::TooManyTerms { row, terms, max: MAX_TERMS - 1 })
            }
            None => Ok(()),
        }
    }
}

/// What the scores of a network may be.
#[derive(Debug, Clone)]
pub struct SpdnnReference {
    outputs: usize,
    /// Edges of each output of the last layer.
    terms: Vec<u32>,
    /// For each row, which of the distinct rows it is.
    places: Vec<usize>,
    /// The distinct rows, `outputs` values each.
    known: Vec<Known>,
}

/// The scores of a network for rows of features, row-major: rows × inputs of the first layer.
///
/// Kernels compute each sum in `f32`, over the edges and the bias in any order, with fused multiply-add or not, and clamp it.
/// On tensor cores sums err by more, as the layer says. An output without edges is exactly its bias, clamped. What is not finite goes where the formula takes it: NaN to
/// all outputs that have an edge from it, whatever the weight. Where a sum may or may not overflow, or what comes of an
/// infinity hangs on an undecided value, all that may follow is right, infinities and NaN among it.
///
/// # Errors
/// If there is no layer, the features are not whole rows, a layer has other inputs than the layer before has outputs, a bias
/// has neither one element nor one an output, `lo` is not at most `hi`, or an output has [`MAX_TERMS`] edges or more.
pub fn spdnn(features: &[f32], layers: &[SpdnnLayer<'_>]) -> Result<SpdnnReference, ReferenceError> {
    let (Some(first), Some(last)) = (layers.first(), layers.last()) else {
        return Err(ReferenceError::NoLayers);
    };
    let inputs = first.weights.cols();
    let rows = features.len().checked_div(inputs).unwrap_or(0);
    if rows * inputs != features.len() {
        let (cols, got) = (inputs, features.len());
        return Err(ReferenceError::FactorLength { what: "features", rows, cols, got });
    }
    let mut width = inputs;
    for (index, layer) in layers.iter().enumerate() {
        layer.check(index, width)?;
        width = layer.weights.rows();
    }

    let block = rows.div_ceil(rayon::current_num_threads()).clamp(1, BLOCK);
    let through = |features: &[f32]| {
        let mut block = Block::new(features, inputs);
        layers.iter().for_each(|layer| block.pass(layer));
        block
    };
    let blocks: Vec<Block> = features.par_chunks((block * inputs).max(1)).map(through).collect();

    let terms = last.weights.row_lengths().collect();
    let mut reference = SpdnnReference { outputs: width, terms, places: Vec::new(), known: Vec::new() };
    let mut before = 0;
    for block in &blocks {
        reference.places.extend(block.places.iter().map(|place| before + place));
        reference.known.extend(block.known());
        before += block.distinct;
    }
    Ok(reference)
}

/// What is known of whether a row is all zero.
#[derive(Clone, Copy, PartialEq)]
enum Row {
    Zero,
    Nonzero,
    Undecided,
}

impl SpdnnReference {
    /// The scores in `f64`, row-major. A value that cannot be a right `f32` result, at the end or between layers, stands
    /// as the nearest that can.
    pub fn value(&self) -> Vec<f64> {
        self.places.iter().flat_map(|&place| self.row(place)).map(|known| known.value).collect()
    }

    /// Checks scores, row-major: rows × outputs of the last layer. Each is judged by its own bound.
    ///
    /// # Errors
    /// If `scores` has the wrong length, or an element is wrong.
    pub fn check(&self, scores: &[f32]) -> Result<ErrorReport, Mismatch> {
        let (rows, cols) = (self.places.len(), self.outputs);
        if scores.len() != rows * cols {
            return Err(Mismatch::Length { rows, cols, got: scores.len() });
        }
        let checked = scores.len();
        let mut report = ErrorReport { checked, worst_over_bound: 0.0, worst_at: None };
        let (mut failures, mut worst) = (0, (0, 0.0));
        let known = self.places.iter().flat_map(|&place| self.row(place));
        for (at, (known, &score)) in known.zip(scores).enumerate() {
            match known.legal().judge(score) {
                Verdict::Pass(ratio) if ratio > report.worst_over_bound => {
                    report.worst_over_bound = ratio;
                    report.worst_at = Some((at / cols, at % cols));
                }
                Verdict::Pass(_) => {}
                Verdict::Fail(ratio) => {
                    failures += 1;
                    worst = if ratio > worst.1 { (at, ratio) } else { worst };
                }
            }
        }
        if failures == 0 {
            return Ok(report);
        }
        let (at, ratio) = worst;
        let (row, column) = (at / cols, at % cols);
        let legal = self.row(self.places[row])[column].legal();
        Err(Mismatch::Elements {
            failures,
            checked,
            row,
            column,
            terms: self.terms[column],
            dtype: f32::NAME,
            got: scores[at],
            expected: legal.value,
            bound: legal.bound(),
            ratio,
        })
    }

    /// The rows, from 0, that have a score other than zero. NaN is one.
    ///
    /// # Errors
    /// [`ReferenceError::Undecided`] of the first row in which a score may be zero or not, and no other is certainly not.
    pub fn categories(&self) -> Result<Vec<u32>, ReferenceError> {
        let judge = |row: &[Known]| match row {
            _ if row.iter().any(Known::is_nonzero) => Row::Nonzero,
            _ if row.iter().all(Known::is_zero) => Row::Zero,
            _ => Row::Undecided,
        };
        let distinct: Vec<Row> = self.known.chunks(self.outputs.max(1)).map(judge).collect();
        let mut categories = Vec::new();
        for (row, &place) in self.places.iter().enumerate() {
            match distinct.get(place) {
                Some(Row::Undecided) => return Err(ReferenceError::Undecided { row }),
                Some(Row::Nonzero) => categories.push(row as u32),
                // Rows without scores have none other than zero.
                Some(Row::Zero) | None => {}
            }
        }
        Ok(categories)
    }

    fn row(&self, place: usize) -> &[Known] {
        &self.known[place * self.outputs..][..self.outputs]
    }
}

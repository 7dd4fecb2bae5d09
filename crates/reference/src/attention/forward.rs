//! Scores and weights in `f64`.

use super::error::Arithmetic;
use crate::{ReferenceError, Value};
use lacuna_matrix::Pattern;

/// The operands of one head, row-major, and the factor of the scores.
#[derive(Debug, Clone, Copy)]
pub struct Heads<'a, T> {
    /// Queries × `dim`.
    pub q: &'a [T],
    /// Keys × `dim`.
    pub k: &'a [T],
    /// Keys × `dim`.
    pub v: &'a [T],
    /// Elements of a row.
    pub dim: usize,
    /// Multiplies the scores.
    pub scale: f32,
    /// What is done to scaled scores.
    pub score_mod: ScoreMod,
}

/// What is done to a scaled score s of query i and key j: c·tanh(s/c) − slope·|i + keys − queries − j|.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ScoreMod {
    /// c; none caps nothing.
    pub softcap: Option<f32>,
    /// What a step of distance takes.
    pub slope: f32,
}

impl ScoreMod {
    /// A score within the soft cap, and what its slope is of that of the scaled score.
    pub(super) fn capped(self, scaled: f64) -> (f64, f64) {
        let Some(cap) = self.softcap else { return (scaled, 1.0) };
        let cap = f64::from(cap);
        let part = (scaled / cap).tanh();
        (cap * part, 1.0 - part * part)
    }

    /// What distance takes of the score of a query and a key, of so many queries and keys.
    pub(super) fn bias(self, [query, key]: [usize; 2], [queries, keys]: [usize; 2]) -> f64 {
        if self.slope == 0.0 {
            return 0.0;
        }
        f64::from(self.slope) * ((query + keys) as f64 - (queries + key) as f64).abs()
    }
}

/// Attention of one head in `f64`, and what is needed to judge a result.
#[derive(Debug, Clone)]
pub struct AttentionReference<'a, T> {
    pub(super) mask: &'a Pattern,
    pub(super) heads: Heads<'a, T>,
    pub(super) arithmetic: Arithmetic,
    /// Whether tensor cores may take parts of numbers for zero.
    pub(super) loses_parts: bool,
    /// For each element of the mask its score, and the sum of the absolute values of the terms of its product, scaled.
    pub(super) scores: Vec<f64>,
    pub(super) magnitudes: Vec<f64>,
    /// How far cap and bias may be off.
    pub(super) modified: Vec<f64>,
    /// What the score's slope is of that of the scaled product.
    pub(super) slopes_of_cap: Vec<f64>,
    /// For each element its weight; NaN in rows that have none that is a number.
    pub(super) weights: Vec<f64>,
}

/// O = softmax(scale · Q Kᵀ ⊙ mask) V, for a mask of queries × keys.
///
/// # Errors
/// If an operand has not as many elements as `mask` and `dim` ask for.
pub fn attention<'a, T: Value>(
    mask: &'a Pattern,
    heads: Heads<'a, T>,
) -> Result<AttentionReference<'a, T>, ReferenceError> {
    expect_len("Q", mask.rows(), heads.dim, heads.q.len())?;
    expect_len("K", mask.cols(), heads.dim, heads.k.len())?;
    expect_len("V", mask.cols(), heads.dim, heads.v.len())?;
    let scale = f64::from(heads.scale);
    let (mut scores, mut magnitudes) = (Vec::with_capacity(mask.nnz()), Vec::with_capacity(mask.nnz()));
    let mut weights = Vec::with_capacity(mask.nnz());
    let (mut modified, mut slopes_of_cap) = (Vec::with_capacity(mask.nnz()), Vec::with_capacity(mask.nnz()));
    for row in 0..mask.rows() {
        let q = heads.row(heads.q, row);
        for &column in mask.row_columns(row) {
            let (sum, magnitude) = dot(q, heads.row(heads.k, column as usize));
            let (capped, slope) = heads.score_mod.capped(scale * sum);
            let bias = heads.score_mod.bias([row, column as usize], [mask.rows(), mask.cols()]);
            scores.push(capped - bias);
            magnitudes.push(scale.abs() * magnitude);
            modified.push(heads.score_mod.error(capped, bias));
            slopes_of_cap.push(slope);
        }
        weights.extend(softmax(&scores[mask.row_range(row)]));
    }
    let arithmetic = Arithmetic::Fused;
    let loses_parts = false;
    Ok(AttentionReference {
        mask,
        heads,
        arithmetic,
        loses_parts,
        scores,
        magnitudes,
        modified,
        slopes_of_cap,
        weights,
    })
}

pub(super) fn expect_len(
    what: &'static str,
    rows: usize,
    cols: usize,
    got: usize,
) -> Result<(), ReferenceError> {
    if rows.checked_mul(cols) == Some(got) {
        return Ok(());
    }
    Err(ReferenceError::FactorLength { what, rows, cols, got })
}

impl<'a, T> Heads<'a, T> {
    /// A row of an operand.
    pub(super) fn row(&self, operand: &'a [T], row: usize) -> &'a [T] {
        &operand[row * self.dim..][..self.dim]
    }
}

impl<T: Value> AttentionReference<'_, T> {
    /// Has results judged as of this arithmetic. Without a call it is [`Arithmetic::Fused`].
    #[must_use]
    pub fn arithmetic(self, arithmetic: Arithmetic) -> Self {
        let judged = Self { arithmetic, ..self };
        Self { loses_parts: judged.may_lose_parts(), ..judged }
    }

    /// The weight of each element of the mask, row by row.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The natural logarithm of the sum of exponentials of a query's scores.
    pub fn logsumexp(&self, row: usize) -> f64 {
        let scores = &self.scores[self.mask.row_range(row)];
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if scores.iter().any(|score| score.is_nan()) || max == f64::INFINITY {
            return f64::NAN;
        }
        if max == f64::NEG_INFINITY {
            return max;
        }
        max + scores.iter().map(|score| (score - max).exp()).sum::<f64>().ln()
    }

    /// An element of O: what its row of weights and its column of V give.
    pub fn value(&self, row: usize, column: usize) -> f64 {
        let columns = self.mask.row_columns(row).iter();
        let weights = &self.weights[self.mask.row_range(row)];
        columns.zip(weights).map(|(&key, weight)| weight * self.v(key, column)).sum()
    }

    pub(super) fn v(&self, key: u32, column: usize) -> f64 {
        f64::from(self.heads.v[key as usize * self.heads.dim + column].to_f32())
    }
}

/// The sum of products, and of their absolute values.
pub(super) fn dot<T: Value>(a: &[T], b: &[T]) -> (f64, f64) {
    a.iter().zip(b).fold((0.0, 0.0), |(sum, magnitude), (a, b)| {
        let product = f64::from(a.to_f32()) * f64::from(b.to_f32());
        (sum + product, magnitude + if product.is_finite() { product.abs() } else { 0.0 })
    })
}

/// Weights of a row of scores, by the rules of IEEE 754.
fn softmax(scores: &[f64]) -> Vec<f64> {
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exponentials: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|x| x / sum).collect()
}

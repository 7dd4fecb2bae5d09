//! Gradients of attention: of Q, K and V, from that of O.
//!
//! With P the weights, G the gradient of O and s the scale: dV = Pᵀ G, D = G Vᵀ at the mask's elements, r = Σⱼ pⱼ dⱼ along a
//! row, dS = s P ⊙ (D - r), dQ = dS K, dK = dSᵀ Q.
//!
//! The bound goes the same way. Let Δp be that of [`attention`](super::attention), written to the type of the operands, u'
//! and η' what rounding to it takes. D is a sum of d products, Δd = γ_d |G| |V| + u' |d| + η'. Then r is off by Σ Δp |d| +
//! (p + Δp) Δd, and by γₙ of its terms; dS by s (Δp |d - r| + (p + Δp) (Δd + Δr + u (|d| + |r|))), by three roundings and by u'
//! of itself; and each gradient by what its factors are off, times the other factor, and by what its sum takes.
//!
//! *By tiles* weights come of the logarithm ℓ of the forward pass in place of a sum, which is off by Δℓ: so a weight is off by another
//! factor e^±(Δℓ + 4u (|ℓ| + |s - ℓ| + 2)). D is not written, but its sums are those of tensor cores. r comes of the O that was written, as
//! Σᵢ gᵢ oᵢ: it is off by Σ |gᵢ| Δoᵢ, and by γ_d of its terms. dS is rounded before it is scaled. Of `f32` a product is three of bfloat16, and
//! what is too small for tensor cores counts as lost. A soft cap multiplies it by 1 − t², where t
//! is off by what its score is, over c, and by what the tangent takes.

use super::check::Tally;
use super::error::{Arithmetic, SUBNORMAL, TANH, U32, gamma, most_lost, of_tiles, relative_error};
use super::forward::{dot, expect_len};
use super::{AttentionReference, Heads, attention};
use crate::bound::Legal;
use crate::{ErrorReport, Mismatch, Precision, ReferenceError, Value};
use lacuna_matrix::Pattern;

/// The gradients of one head in `f64`, and how far right results may be off.
#[derive(Debug, Clone)]
pub struct AttentionGradients {
    dim: usize,
    q: Gradient,
    k: Gradient,
    v: Gradient,
}

/// A gradient of a dense operand.
#[derive(Debug, Clone)]
struct Gradient {
    value: Vec<f64>,
    bound: Vec<f64>,
    /// The products in each sum of a row.
    terms: Vec<u32>,
}

/// A number, and how far it may be off.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inexact {
    pub(super) value: f64,
    pub(super) error: f64,
}

/// The gradients of Q, K and V for the gradient `d_o` of O, queries × `dim`. Products with weights and their gradients are
/// of `precision`.
///
/// # Errors
/// If an operand has not as many elements as `mask` and the dimension ask for.
///
/// # Panics
/// If scores are capped: three steps do not do that.
pub fn attention_backward<T: Value>(
    mask: &Pattern,
    heads: Heads<'_, T>,
    d_o: &[T],
    precision: Precision,
) -> Result<AttentionGradients, ReferenceError> {
    assert!(heads.score_mod.softcap.is_none(), "three steps do not cap scores");
    let forward = attention(mask, heads)?.arithmetic(Arithmetic::Steps(precision));
    gradients(&forward, d_o, precision, 1, |row, g| {
        let errors = forward.row_error(row).weights;
        let weights = forward.weights[mask.row_range(row)].iter().zip(errors);
        let weights: Vec<Inexact> = weights.map(|(&value, error)| Inexact { value, error }).collect();
        let keys = mask.row_columns(row).iter();
        let products = keys.map(|&key| product::<T>(g, heads.row(heads.v, key as usize)));
        let slopes = score_slopes::<T>(&weights, &products.collect::<Vec<_>>(), f64::from(heads.scale));
        (weights, slopes)
    })
}

/// The same, of a pass by tiles on tensor cores that has O and the logarithms of the forward one. K and V are shared by so many heads,
/// whose gradients are [added](AttentionGradients::add_keys).
///
/// # Errors
/// As [`attention_backward`].
pub fn attention_backward_by_tiles<T: Value>(
    mask: &Pattern,
    heads: Heads<'_, T>,
    d_o: &[T],
    shared_by: u32,
) -> Result<AttentionGradients, ReferenceError> {
    let forward = attention(mask, heads)?.arithmetic(Arithmetic::Tiles);
    let precision = of_tiles::<T>();
    gradients(&forward, d_o, precision, shared_by, |row, g| {
        let (errors, logsumexp) = (forward.row_error(row), forward.logsumexp(row));
        let scores = &forward.scores[mask.row_range(row)];
        let weight = |((&value, error), &score): ((&f64, f64), &f64)| {
            let more = errors.logsumexp + 4.0 * U32 * (logsumexp.abs() + (score - logsumexp).abs() + 2.0);
            Inexact { value, error: error + (value + error) * more.exp_m1() }
        };
        let own = forward.weights[mask.row_range(row)].iter().zip(errors.weights.clone());
        let weights: Vec<Inexact> = own.zip(scores).map(weight).collect();
        let sums = relative_error(precision, heads.dim);
        let size = |values: &[T]| values.iter().map(|x| f64::from(x.to_f32().abs())).sum::<f64>();
        let products = mask.row_columns(row).iter().map(|&key| {
            let v = heads.row(heads.v, key as usize);
            let (value, magnitude) = dot(g, v);
            let lost = most_lost(precision, size(g) + size(v));
            Inexact { value, error: sums * magnitude + lost + heads.dim as f64 * SUBNORMAL }
        });
        let mean = forward.mean_of_o(row, g);
        // It is rounded before it is scaled.
        let rounded = |value: f64, scale: f64| T::ROUNDOFF * value + scale.abs() * T::LEAST;
        let products: Vec<Inexact> = products.collect();
        let scale = |i: usize| {
            let at = mask.row_range(row).start + i;
            let (slope, cap) = (forward.slopes_of_cap[at], heads.score_mod.softcap);
            let scaled = (sums + gamma(2.0)) * forward.magnitudes[at] + heads.dim as f64 * SUBNORMAL;
            let of_part = |cap: f32| scaled / f64::from(cap) + TANH;
            // The slope of 1 − t² is 2t at most, of a t that is off by so much.
            Inexact { value: slope, error: cap.map_or(0.0, |cap| 2.0 * of_part(cap) + 3.0 * U32) }
        };
        let slopes = slopes_of(&weights, &products, &mean, (f64::from(heads.scale), scale), rounded);
        (weights, slopes)
    })
}

/// Gradients whose weights, and those of their scores, a function gives for a row and its part of the gradient of O.
fn gradients<'a, T: Value>(
    forward: &AttentionReference<'_, T>,
    d_o: &'a [T],
    precision: Precision,
    shared_by: u32,
    row_of: impl Fn(usize, &'a [T]) -> (Vec<Inexact>, Vec<Inexact>),
) -> Result<AttentionGradients, ReferenceError> {
    let (mask, heads) = (forward.mask, forward.heads);
    let dim = heads.dim;
    expect_len("the gradient of O", mask.rows(), dim, d_o.len())?;
    let columns: Vec<u32> = columns_lengths(mask).into_iter().map(|length| length * shared_by).collect();
    let mut q = Gradient::zeros(mask.row_lengths().collect(), dim);
    let (mut k, mut v) = (Gradient::zeros(columns.clone(), dim), Gradient::zeros(columns, dim));
    for row in 0..mask.rows() {
        let g = &d_o[row * dim..][..dim];
        let keys = mask.row_columns(row);
        if keys.is_empty() {
            continue;
        }
        let (weights, slopes) = row_of(row, g);
        for ((&key, weight), slope) in keys.iter().zip(&weights).zip(&slopes) {
            let key = key as usize;
            q.add(row, slope, heads.row(heads.k, key), precision);
            k.add(key, slope, heads.row(heads.q, row), precision);
            v.add(key, weight, g, precision);
        }
    }
    Ok(AttentionGradients { dim, q, k, v })
}

fn columns_lengths(mask: &Pattern) -> Vec<u32> {
    let mut lengths = vec![0; mask.cols()];
    mask.col_indices().iter().for_each(|&column| lengths[column as usize] += 1);
    lengths
}

/// An element of G Vᵀ.
fn product<T: Value>(g: &[T], v: &[T]) -> Inexact {
    let (value, magnitude) = dot(g, v);
    let error = gamma(g.len() as f64 + 1.0) * magnitude;
    let rounded = T::ROUNDOFF * (value.abs() + error) + T::LEAST + g.len() as f64 * SUBNORMAL;
    Inexact { value, error: error + rounded }
}

/// A row of the gradient of the scores before they are scaled.
fn score_slopes<T: Value>(weights: &[Inexact], products: &[Inexact], scale: f64) -> Vec<Inexact> {
    let pairs = || weights.iter().zip(products);
    let n = weights.len() as f64;
    let mean: f64 = pairs().map(|(p, d)| p.value * d.value).sum();
    let inherited: f64 = pairs().map(|(p, d)| p.error * d.value.abs() + (p.value + p.error) * d.error).sum();
    let size: f64 = pairs().map(|(p, d)| (p.value + p.error) * (d.value.abs() + d.error)).sum();
    let mean = Inexact { value: mean, error: inherited + gamma(n + 1.0) * size + n * SUBNORMAL };
    let plain = |_| Inexact { value: 1.0, error: 0.0 };
    slopes_of(weights, products, &mean, (scale, plain), |value, _| T::ROUNDOFF * value + T::LEAST)
}

/// The same, of the mean of the products as it was computed, the scale and what a cap leaves of it for each key, and what rounding takes of
/// a slope of a size, with the scale.
fn slopes_of(
    weights: &[Inexact],
    products: &[Inexact],
    &Inexact { value: mean, error: mean_error }: &Inexact,
    (scale, of_cap): (f64, impl Fn(usize) -> Inexact),
    rounded: impl Fn(f64, f64) -> f64,
) -> Vec<Inexact> {
    let slope = |(i, (p, d)): (usize, (&Inexact, &Inexact))| {
        let (difference, cap) = (d.value - mean, of_cap(i));
        let value = scale * cap.value * p.value * difference;
        let rounding = 2.0 * U32 * (d.value.abs() + mean.abs() + d.error + mean_error);
        let within = p.error * difference.abs() + (p.value + p.error) * (d.error + mean_error + rounding);
        let most = p.value * difference.abs() + within;
        let error = scale.abs() * (cap.value * within + cap.error * most);
        let most = value.abs() + error;
        Inexact { value, error: error + 4.0 * U32 * most + rounded(most, scale) + 4.0 * SUBNORMAL }
    };
    weights.iter().zip(products).enumerate().map(slope).collect()
}

impl Gradient {
    fn zeros(terms: Vec<u32>, dim: usize) -> Self {
        let zeros = vec![0.0; terms.len() * dim];
        Self { value: zeros.clone(), bound: zeros, terms }
    }

    /// Adds the products of a factor and a row of a dense operand.
    fn add<T: Value>(&mut self, row: usize, factor: &Inexact, dense: &[T], precision: Precision) {
        let sums = relative_error(precision, self.terms[row] as usize + 1);
        for (i, x) in dense.iter().enumerate() {
            let (at, x) = (row * dense.len() + i, f64::from(x.to_f32()));
            self.value[at] += factor.value * x;
            let size = factor.value.abs() + factor.error;
            let lost = most_lost(precision, size + x.abs());
            self.bound[at] += factor.error * x.abs() + sums * size * x.abs() + lost + 2.0 * SUBNORMAL;
        }
    }

    fn check<T: Value>(&self, what: &'static str, dim: usize, got: &[T]) -> Result<ErrorReport, Mismatch> {
        expect_len(what, self.terms.len(), dim, got.len())?;
        let mut tally = Tally::new(got.len());
        for (at, &got) in got.iter().enumerate() {
            let row = at / dim;
            let legal = match self.terms[row] {
                0 => Legal::exactly(0.0),
                _ if !self.value[at].is_finite() => Legal::anything(self.value[at]),
                _ => Legal::within(self.value[at], self.bound[at], false),
            };
            tally.judge(&legal, got, [row, at % dim], self.terms[row]);
        }
        tally.finish(T::NAME)
    }
}

impl AttentionGradients {
    /// Checks the gradient of Q.
    ///
    /// # Errors
    /// If `got` has the wrong length, or an element is wrong.
    pub fn check_q<T: Value>(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        self.q.check("the gradient of Q", self.dim, got)
    }
    /// Checks the gradient of K.
    ///
    /// # Errors
    /// As [`check_q`](Self::check_q).
    pub fn check_k<T: Value>(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        self.k.check("the gradient of K", self.dim, got)
    }
    /// Checks the gradient of V.
    ///
    /// # Errors
    /// As [`check_q`](Self::check_q).
    pub fn check_v<T: Value>(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        self.v.check("the gradient of V", self.dim, got)
    }

    /// Adds the gradients of K and V that another head has, which shares them.
    pub fn add_keys(&mut self, other: &Self) {
        for (own, other) in [(&mut self.k, &other.k), (&mut self.v, &other.v)] {
            for (own, other) in [(&mut own.value, &other.value), (&mut own.bound, &other.bound)] {
                own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
            }
        }
    }

    /// The gradients of Q, K and V, row-major.
    pub fn values(&self) -> [&[f64]; 3] {
        [&self.q.value, &self.k.value, &self.v.value]
    }
}

//! Attention with a sparse mask.
//!
//! With carried errors: a score sⱼ is off by what the errors of Q and K make of it, and by its own sum; a weight by a factor e^±δⱼ
//! for that, for the rounding of exponents and powers (each 2 ulp, and again where the maximum grows, at most once every 32 keys), by e^±L with
//! L = max δ for the sum of weights, and by sums and a division. Of values of 16 bits, both products may be on tensor cores, and weights are then
//! rounded to 16 bits. `lacuna_reference::attention` derives it; here Q, K and V are off, too.
use std::f64::consts::LN_2;

use lacuna_reference::Precision;
use rayon::prelude::*;

use crate::network::{Attention, Part, Shape};
use crate::oracle::approximate::sum_error;
use crate::oracle::{Approximate, Number};

/// The unit roundoff of `f32`.
const U: f64 = f32::EPSILON as f64 / 2.0;
/// The least `f32` above 0: what underflow takes of a term.
const LEAST: f64 = f32::MIN_POSITIVE as f64 * 2.0 * U;
/// Keys after which the greatest score may have grown.
const KEYS: usize = 32;

/// A key's score and weight, and how far they may be off.
struct Key {
    /// The pixel.
    token: usize,
    score: f64,
    /// Of the score.
    error: f64,
    weight: f64,
}

pub(super) fn attention<T: Number>(layer: &Attention, inputs: &[&Approximate], shape: Shape) -> Approximate {
    let dim = shape.channels / layer.heads;
    let shapes: Vec<Shape> = inputs.iter().map(|input| input.shape).collect();
    let parts = Attention::parts(&shapes);
    let queries = shape.pixels();
    let head = |number: usize| {
        let (image, head) = (number / layer.heads, number % layer.heads);
        let at = |part: usize, feature: usize, token: usize| {
            let Part { input, channel } = parts[part];
            let input = inputs[input];
            // Planes of Q, K and V of this head: d channels of the image.
            let plane = image * input.shape.channels + channel + head * dim + feature;
            let at = plane * input.shape.pixels() + token;
            (input.value[at], input.error[at])
        };
        let mut rows = Vec::with_capacity(queries);
        for query in 0..queries {
            rows.push(row::<T>(layer, dim, query, &at));
        }
        // Planes of the result.
        (0..dim).flat_map(|feature| rows.iter().map(move |row| row[feature]).collect::<Vec<_>>()).collect()
    };
    let heads: Vec<Vec<(f64, f64)>> = (0..shape.images * layer.heads).into_par_iter().map(head).collect();
    let (value, error) = heads.into_iter().flatten().unzip();
    Approximate { shape, value, error }
}

/// The features of a query; `at` gives an element of Q, K or V, by its part, feature and token.
fn row<T: Number>(
    layer: &Attention,
    dim: usize,
    query: usize,
    at: &impl Fn(usize, usize, usize) -> (f64, f64),
) -> Vec<(f64, f64)> {
    let scale = f64::from(1.0 / (dim as f32).sqrt());
    let is_single = size_of::<T>() == size_of::<f32>();
    let precision = if is_single { Precision::Fp32 } else { Precision::Tensor };
    // What rounding to 16 bits takes of a weight: as a part of it, and of one that is subnormal.
    let [rounded, least] =
        if is_single { [0.0; 2] } else { [T::ROUNDOFF, T::LEAST + f64::from(f32::MIN_POSITIVE)] };
    let score = |&token: &u32| {
        let (mut sum, mut magnitude, mut carried) = (0.0, 0.0, 0.0);
        for feature in 0..dim {
            let ((q, q_error), (k, k_error)) = (at(0, feature, query), at(1, feature, token as usize));
            sum += q * k;
            magnitude += (q.abs() + q_error) * (k.abs() + k_error);
            carried += q.abs() * k_error + q_error * k.abs() + q_error * k_error;
        }
        // The scale is rounded, times log₂ e, and multiplied: two roundings more.
        let own = sum_error(dim + 2, magnitude, 0.0, precision);
        Key { token: token as usize, score: scale * sum, error: scale * (carried + own) + LEAST, weight: 0.0 }
    };
    let mut keys: Vec<Key> = layer.mask.row_columns(query).iter().map(score).collect();
    if keys.is_empty() {
        return vec![(0.0, 0.0); dim];
    }
    let greatest = keys.iter().map(|key| key.score).fold(f64::NEG_INFINITY, f64::max);
    let most_off = keys.iter().map(|key| key.error).fold(0.0, f64::max);
    let sum: f64 = keys.iter().map(|key| (key.score - greatest).exp()).sum();
    keys.iter_mut().for_each(|key| key.weight = (key.score - greatest).exp() / sum);

    let count = keys.len();
    let powers = count.div_ceil(KEYS) as f64 + 1.0;
    let delta = |key: &Key| key.error + U * (greatest - key.score + 2.0 * most_off) / LN_2 + 5.0 * U * powers;
    let largest = keys.iter().map(delta).fold(0.0, f64::max);
    // Sums of weights and of products, the reciprocal and its product.
    let kappa = sum_error(count, 1.0, 0.0, Precision::Fp32) + sum_error(count, 1.0, 0.0, precision) + 4.0 * U;
    let flushed = 8.0 * (count as f64 + powers + 4.0) * LEAST + least;
    let feature = |feature: usize| {
        let (mut value, mut error, mut size) = (0.0, 0.0, 0.0);
        for key in &keys {
            let (v, v_error) = at(2, feature, key.token);
            let off = (delta(key) + largest + kappa).exp_m1() * (1.0 + rounded) + rounded;
            value += key.weight * v;
            error += key.weight * (off * (v.abs() + v_error) + v_error);
            size += v.abs() + v_error;
        }
        (value, error + flushed * (1.0 + size))
    };
    (0..dim).map(feature).collect()
}

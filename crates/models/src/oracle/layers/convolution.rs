//! Layers with weights.
use lacuna::LONG_ROWS;
use lacuna::conv::Algorithm;
use lacuna_reference::Precision;
use rayon::prelude::*;

use super::limits;
use crate::model::{Held, LayerOptions};
use crate::network::{Convolution, Shape};
use crate::oracle::approximate::{clamped, stored, sum_error};
use crate::oracle::{Approximate, Number};
use crate::weights::Folded;

/// The sums of a filter for an image, and what their bounds need, pixel by pixel.
struct Sums {
    value: Vec<f64>,
    /// Σ |w| (|x| + error).
    magnitude: Vec<f64>,
    /// Σ |w| error.
    carried: Vec<f64>,
    /// Weights other than zero.
    terms: usize,
}

pub(super) fn convolution<T: Number>(
    conv: &Convolution,
    folded: &Folded,
    options: &LayerOptions,
    inputs: &[&Approximate],
    shape: Shape,
) -> Approximate {
    let precision = precision::<T>(conv, options);
    let is_by_cudnn = options.algorithm == Algorithm::CuDnn;
    let [lo, hi] = limits(conv.activation);
    let input = inputs[0];
    let residual = inputs.get(1).filter(|_| conv.residual);
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0_f64, |most, value| most.max(value));
    let largest_input = largest(&mut input.value.iter().zip(&input.error).map(|(x, error)| x.abs() + error));
    let largest_weight = largest(&mut folded.filters.iter().map(|&weight| f64::from(weight.abs())));
    let pixels = shape.pixels();
    let plane = |plane: usize| {
        let filter = plane % shape.channels;
        let sums = sums(conv, folded, input, plane / shape.channels, filter);
        let tiny = sums.terms as f64 * (largest_input + largest_weight);
        let bias = folded.bias.as_ref().map_or(0.0, |bias| f64::from(bias[filter]));
        let pixel = |at: usize| {
            let (added, added_error) = residual.map_or((0.0, 0.0), |residual| {
                (residual.value[plane * pixels + at], residual.error[plane * pixels + at])
            });
            let sum_off = sums.carried[at] + sum_error(sums.terms, sums.magnitude[at], tiny, precision);
            // cuDNN's sums are rounded before anything follows.
            let sum_off = if is_by_cudnn { stored::<T>(sums.value[at], sum_off) } else { sum_off };
            let size = sums.value[at].abs() + sum_off + bias.abs() + added.abs() + added_error;
            // Three terms: each passes through two additions at most.
            let finish = if folded.bias.is_some() || residual.is_some() {
                sum_error(3, size, 0.0, Precision::Fp32)
            } else {
                0.0
            };
            let value = sums.value[at] + bias + added;
            clamped(value, sum_off + added_error + finish, lo, hi)
        };
        (0..pixels).map(pixel).collect::<Vec<_>>()
    };
    let elements: Vec<Vec<(f64, f64)>> =
        (0..shape.images * shape.channels).into_par_iter().map(plane).collect();
    let (value, error) = elements.into_iter().flatten().unzip();
    Approximate { shape, value, error }
}

fn sums(conv: &Convolution, folded: &Folded, input: &Approximate, image: usize, filter: usize) -> Sums {
    let shape = &conv.shape;
    let [height, width] = shape.size;
    let [rows, columns] = shape.out_size();
    let [of_row, of_column] = shape.taps;
    let channels = if shape.is_depthwise() { 1 } else { shape.channels };
    let first = if shape.is_depthwise() { filter } else { 0 };
    let weights = &folded.filters[filter * channels * of_row * of_column..][..channels * of_row * of_column];
    let [value, magnitude, carried] = [(); 3].map(|()| vec![0.0; rows * columns]);
    let mut sums = Sums { value, magnitude, carried, terms: 0 };
    for (tap, &weight) in weights.iter().enumerate().filter(|&(_, &weight)| weight != 0.0) {
        sums.terms += 1;
        let (channel, r, s) = (tap / (of_row * of_column), tap / of_column % of_row, tap % of_column);
        let map = (image * shape.channels + first + channel) * height * width;
        let weight = f64::from(weight);
        for row in 0..rows {
            let y = (row * shape.strides[0] + r).checked_sub(shape.padding[0]);
            let Some(y) = y.filter(|&y| y < height) else { continue };
            for column in 0..columns {
                let x = (column * shape.strides[1] + s).checked_sub(shape.padding[1]);
                let Some(x) = x.filter(|&x| x < width) else { continue };
                let (from, to) = (map + y * width + x, row * columns + column);
                sums.value[to] += weight * input.value[from];
                sums.magnitude[to] += weight.abs() * (input.value[from].abs() + input.error[from]);
                sums.carried[to] += weight.abs() * input.error[from];
            }
        }
    }
    sums
}

/// The least exact arithmetic that a device may take, by dense kernels or by sparse ones.
fn precision<T: Number>(conv: &Convolution, options: &LayerOptions) -> Precision {
    let is_cut =
        options.algorithm == Algorithm::CuDnn || conv.may_be_sparse() && options.weights != Held::Dense;
    match options.precision {
        // Tensor cores take them as they are, and their bound is the larger one.
        _ if size_of::<T>() < size_of::<f32>() => Precision::Tensor,
        lacuna::Precision::Fma => Precision::Fp32,
        lacuna::Precision::Single if conv.products_of_a_sum() < LONG_ROWS => Precision::Fp32,
        _ if conv.shape.is_depthwise() && options.algorithm != Algorithm::CuDnn => Precision::Fp32,
        // Of sums by sparse kernels the bound is half of this.
        lacuna::Precision::Single => Precision::SplitBf16,
        _ if is_cut => Precision::Tf32,
        _ => Precision::SplitBf16,
    }
}

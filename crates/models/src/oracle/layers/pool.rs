//! Poolings.
use lacuna::pool::Mode;
use lacuna_reference::Precision;

use crate::network::{Pool, Shape};
use crate::oracle::Approximate;
use crate::oracle::approximate::sum_error;

pub(super) fn pool(pool: &Pool, input: &Approximate, shape: Shape) -> Approximate {
    let sizes = pool.shape(input.shape);
    let [height, width] = sizes.size;
    let [rows, columns] = sizes.out_size();
    // Of a window, the part that is in the map.
    let range = |d: usize, of: usize| {
        let first = of * sizes.strides[d];
        let end = (first + sizes.window[d]).saturating_sub(sizes.padding[d]).min(sizes.size[d]);
        first.saturating_sub(sizes.padding[d])..end
    };
    let element = |at: usize| {
        let (plane, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
        let pixels = range(0, row).flat_map(|y| range(1, column).map(move |x| y * width + x));
        let pixels: Vec<(f64, f64)> = pixels
            .map(|pixel| plane * height * width + pixel)
            .map(|pixel| (input.value[pixel], input.error[pixel]))
            .collect();
        match pool.mode {
            Mode::Max => greatest(&pixels),
            Mode::AverageExcludePadding => mean(&pixels, pixels.len()),
            _ => mean(&pixels, sizes.window[0] * sizes.window[1]),
        }
    };
    let (value, error) = (0..shape.elements()).map(element).unzip();
    Approximate { shape, value, error }
}

/// The greatest element, which may be any that could be the greatest.
fn greatest(pixels: &[(f64, f64)]) -> (f64, f64) {
    let most = |of: fn(&(f64, f64)) -> f64| pixels.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
    let value = most(|&(value, _)| value);
    let (least, greatest) = (most(|&(value, error)| value - error), most(|&(value, error)| value + error));
    (value, (greatest - value).max(value - least))
}

/// A sum over a number: n roundings, and two for the reciprocal.
fn mean(pixels: &[(f64, f64)], count: usize) -> (f64, f64) {
    let (mut sum, mut carried, mut magnitude) = (0.0, 0.0, 0.0);
    for (value, error) in pixels {
        (sum, carried, magnitude) = (sum + value, carried + error, magnitude + value.abs() + error);
    }
    let own = sum_error(pixels.len() + 2, magnitude, 0.0, Precision::Fp32);
    (sum / count as f64, (carried + own) / count as f64)
}

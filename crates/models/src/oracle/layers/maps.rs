//! Maps whose elements are moved, or interpolated.
use lacuna_reference::Precision;

use super::rounded;
use crate::network::{DepthToSpace, PadChannels, Resize, Shape};
use crate::oracle::approximate::sum_error;
use crate::oracle::{Approximate, Number};

/// A result whose elements are some of the input's: `from` tells which, of an element's number.
fn moved(input: &Approximate, shape: Shape, from: impl Fn(usize) -> usize) -> Approximate {
    let (value, error) =
        (0..shape.elements()).map(from).map(|from| (input.value[from], input.error[from])).unzip();
    Approximate { shape, value, error }
}

pub(super) fn flatten_nhwc(input: &Approximate, shape: Shape) -> Approximate {
    let Shape { channels, .. } = input.shape;
    let (len, pixels) = (input.shape.image_len(), input.shape.pixels());
    moved(input, shape, |at| at / len * len + at % channels * pixels + at % len / channels)
}

pub(super) fn depth_to_space(of: &DepthToSpace, input: &Approximate, shape: Shape) -> Approximate {
    let [height, width] = input.shape.size;
    let [rows, columns] = shape.size;
    moved(input, shape, |at| {
        let (plane, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
        let (image, channel) = (plane / shape.channels, plane % shape.channels);
        let square = row % of.block * of.block + column % of.block;
        let plane = image * input.shape.channels + square * shape.channels + channel;
        (plane * height + row / of.block) * width + column / of.block
    })
}

pub(super) fn pad_channels(pad: &PadChannels, input: &Approximate, shape: Shape) -> Approximate {
    let [len, before] = [input.shape.image_len(), pad.before * shape.pixels()];
    let element = |at: usize| {
        let (image, at) = (at / shape.image_len(), at % shape.image_len());
        let at = at.checked_sub(before).filter(|&at| at < len).map(|at| image * len + at);
        at.map_or((0.0, 0.0), |at| (input.value[at], input.error[at]))
    };
    let (value, error) = (0..shape.elements()).map(element).unzip();
    Approximate { shape, value, error }
}

/// Sums of four terms, with factors rounded to the type of values, which `f32` has in its bound.
pub(super) fn resize<T: Number>(resize: &Resize, input: &Approximate, shape: Shape) -> Approximate {
    let [height, width] = input.shape.size;
    let [rows, columns] = shape.size;
    let element = |at: usize| {
        let (plane, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
        let (mut value, mut carried, mut magnitude, mut tiny) = (0.0, 0.0, 0.0, 0.0);
        for (y, of_row) in resize.neighbours(0, height, row) {
            for (x, of_column) in resize.neighbours(1, width, column) {
                let at = (plane * height + y) * width + x;
                let factor = f64::from(rounded::<T>(&[(of_row * of_column) as f32])[0]);
                let size = input.value[at].abs() + input.error[at];
                value += factor * input.value[at];
                carried += factor * input.error[at];
                magnitude += factor * size;
                tiny += 1.0 + size;
            }
        }
        (value, carried + sum_error(5, magnitude, tiny, Precision::Fp32))
    };
    let (value, error) = (0..shape.elements()).map(element).unzip();
    Approximate { shape, value, error }
}

//! Convolution of feature maps, of which only the nonzeros count: clamp(Σ x·w + bias + residual, lo, hi).
//!
//! An output pixel is a sum of products like an element of a sparse product: one for each nonzero of x that a tap of the filter meets.
//! It is judged by the rules of [`Finish::legal`], with the residual as what is added.
use std::marker::PhantomData;

use rayon::prelude::*;

use crate::bound::{self, Finish, Legal, Sum};
use crate::{ErrorReport, Mismatch, Precision, ReferenceError, Value, elements};

/// Sizes of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvShape {
    /// Images.
    pub batch: usize,
    /// Channels of the input.
    pub channels: usize,
    /// Rows and columns of the input.
    pub size: [usize; 2],
    /// Filters: channels of the result.
    pub filters: usize,
    /// Rows and columns of a filter.
    pub taps: [usize; 2],
    /// Rows and columns from one output pixel to the next.
    pub strides: [usize; 2],
    /// Rows of zeros above and below, columns of zeros on both sides.
    pub padding: [usize; 2],
    /// Groups of channels, each with as many filters, which read no other channels.
    pub groups: usize,
}

/// What is convolved.
#[derive(Debug, Clone, Copy)]
pub struct ConvInputs<'i, T> {
    /// The sizes.
    pub shape: ConvShape,
    /// Images × channels × rows × columns.
    pub input: &'i [T],
    /// Filters × channels of a group × rows × columns.
    pub weights: &'i [T],
    /// What is added to each channel of the result.
    pub bias: Option<&'i [T]>,
    /// What is added to each element of the result, as large as it.
    pub residual: Option<&'i [T]>,
    /// The arithmetic that a result may have been computed in.
    pub precision: Precision,
    /// The smallest result.
    pub lo: f32,
    /// The largest.
    pub hi: f32,
}

/// The results in `f64`, and what is needed to judge a result of type `T`.
#[derive(Debug, Clone)]
pub struct ConvReference<T = f32> {
    columns: usize,
    legal: Vec<(Legal, u32)>,
    result: PhantomData<T>,
}

impl ConvShape {
    /// Rows and columns of the result.
    pub fn out_size(&self) -> [usize; 2] {
        [0, 1].map(|d| {
            let padded = self.size[d] + 2 * self.padding[d];
            padded.checked_sub(self.taps[d]).map_or(0, |rest| rest / self.strides[d] + 1)
        })
    }
}

/// A convolution.
///
/// # Errors
/// If an operand is not as large as the shape says, a sum could have more terms than [`Precision::max_terms`], or `lo` is above `hi`.
pub fn conv<T: Value>(inputs: &ConvInputs<'_, T>) -> Result<ConvReference<T>, ReferenceError> {
    let shape = &inputs.shape;
    let [height, width] = shape.size;
    let [rows, columns] = shape.out_size();
    let divides = |number: usize| shape.groups > 0 && number.is_multiple_of(shape.groups);
    if !divides(shape.channels) || !divides(shape.filters) {
        let what = "groups, a divisor of channels and filters";
        return Err(ReferenceError::EpilogueLength { what, expected: 1, got: shape.groups });
    }
    let taps = shape.channels / shape.groups * shape.taps[0] * shape.taps[1];
    let expect = |what, expected: usize, got: usize| match got == expected {
        true => Ok(()),
        false => Err(ReferenceError::EpilogueLength { what, expected: expected as u128, got }),
    };
    let results = shape.batch * shape.filters * rows * columns;
    expect("the input", shape.batch * shape.channels * height * width, inputs.input.len())?;
    expect("the filters", shape.filters * taps, inputs.weights.len())?;
    expect("the bias, one a filter", shape.filters, inputs.bias.map_or(shape.filters, <[T]>::len))?;
    expect("the residual, as large as the result", results, inputs.residual.map_or(results, <[T]>::len))?;
    let max = inputs.precision.max_terms();
    if taps > max as usize {
        return Err(ReferenceError::TooLong { terms: taps, max });
    }
    if inputs.lo.is_nan() || inputs.hi.is_nan() || inputs.lo > inputs.hi {
        return Err(ReferenceError::Clamp { lo: inputs.lo, hi: inputs.hi });
    }
    let weights = T::to_f32s(inputs.weights);
    let legal = (0..results).into_par_iter().map(|at| element(inputs, &weights, at)).collect();
    Ok(ConvReference { columns, legal, result: PhantomData })
}

/// What an element of the result may be, and its terms.
fn element<T: Value>(inputs: &ConvInputs<'_, T>, weights: &[f32], at: usize) -> (Legal, u32) {
    let shape = &inputs.shape;
    let ([height, width], [rows, columns]) = (shape.size, shape.out_size());
    let (plane, pixel) = (at / (rows * columns), at % (rows * columns));
    let (image, filter) = (plane / shape.filters, plane % shape.filters);
    let (row, column) = (pixel / columns, pixel % columns);
    let channels = shape.channels / shape.groups;
    let first = filter / (shape.filters / shape.groups) * channels;
    let of_filter = &weights[filter * channels * shape.taps[0] * shape.taps[1]..];
    let mut sum = Sum { terms: 0, value: 0.0, magnitude: 0.0, tiny: 0.0 };
    for channel in 0..channels {
        let map =
            &inputs.input[(image * shape.channels + first + channel) * height * width..][..height * width];
        for r in 0..shape.taps[0] {
            let Some(y) = (row * shape.strides[0] + r).checked_sub(shape.padding[0]).filter(|&y| y < height)
            else {
                continue;
            };
            for s in 0..shape.taps[1] {
                let x = (column * shape.strides[1] + s).checked_sub(shape.padding[1]);
                let Some(x) = x.filter(|&x| x < width) else { continue };
                let value = map[y * width + x].to_f32();
                if value == 0.0 {
                    continue;
                }
                let weight = of_filter[(channel * shape.taps[0] + r) * shape.taps[1] + s];
                let product = f64::from(value) * f64::from(weight);
                sum.terms += 1;
                sum.tiny += bound::tiny(value, weight);
                sum.value += product;
                sum.magnitude += if product.is_finite() { product.abs() } else { 0.0 };
            }
        }
    }
    let bias = inputs.bias.map(|bias| bias[filter].to_f32());
    let beta = if inputs.residual.is_some() { 1.0 } else { 0.0 };
    let residual = inputs.residual.map_or(0.0, |residual| residual[at].to_f32());
    let finish = Finish { alpha: 1.0, beta, bias, lo: inputs.lo, hi: inputs.hi };
    (finish.legal(&sum, inputs.precision, residual), sum.terms)
}

impl<T: Value> ConvReference<T> {
    /// Checks a result: images × filters × rows × columns.
    ///
    /// # Errors
    /// If `got` has the wrong length, or an element is wrong: told as row and column of all planes one below another.
    pub fn check(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        let judge = |at: usize, got| self.legal[at].0.judge(got);
        elements::check(got, self.legal.len(), self.columns, judge, |at| self.legal[at])
    }

    /// The elements in `f64`.
    pub fn value(&self) -> Vec<f64> {
        self.legal.iter().map(|(legal, _)| legal.value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: ConvShape = ConvShape {
        batch: 1,
        channels: 1,
        size: [3, 3],
        filters: 1,
        taps: [3, 3],
        strides: [1, 1],
        padding: [1, 1],
        groups: 1,
    };

    fn inputs<'i>(shape: ConvShape, input: &'i [f32], weights: &'i [f32]) -> ConvInputs<'i, f32> {
        ConvInputs {
            shape,
            input,
            weights,
            bias: None,
            residual: None,
            precision: Precision::Fp32,
            lo: f32::NEG_INFINITY,
            hi: f32::INFINITY,
        }
    }

    #[test]
    fn a_single_pixel_shows_the_filter_turned_round() {
        let mut input = [0.0; 9];
        input[4] = 2.0;
        let weights: Vec<f32> = (1..10).map(|w| w as f32).collect();
        let reference = conv(&inputs(SHAPE, &input, &weights)).unwrap();
        let expected: Vec<f64> = (1..10).rev().map(|w| 2.0 * f64::from(w)).collect();
        assert_eq!(reference.value(), expected);
    }

    #[test]
    fn strides_and_padding_say_which_pixels() {
        let shape = ConvShape { size: [5, 4], taps: [1, 2], strides: [2, 1], padding: [0, 1], ..SHAPE };
        assert_eq!(shape.out_size(), [3, 5]);
        let input: Vec<f32> = (0..20).map(|x| x as f32).collect();
        let reference = conv(&inputs(shape, &input, &[1.0, 10.0])).unwrap();
        assert_eq!(reference.value()[5..10], [80.0, 98.0, 109.0, 120.0, 11.0]);
        assert_eq!(ConvShape { size: [1, 1], padding: [0, 0], ..SHAPE }.out_size(), [0, 0]);
    }

    #[test]
    fn zeros_hide_what_is_not_finite() {
        let reference =
            |x: f32| conv(&inputs(ConvShape { size: [1, 1], ..SHAPE }, &[x], &[f32::NAN; 9])).unwrap();
        assert!(reference(-0.0).check(&[0.0]).is_ok() && reference(0.0).check(&[f32::NAN]).is_err());
        assert!(reference(1.0).check(&[f32::NAN]).is_ok() && reference(1.0).check(&[0.0]).is_err());
    }

    #[test]
    fn results_that_are_off_are_refused() {
        let shape = ConvShape { size: [1, 1], ..SHAPE };
        let weights = [0.3; 9];
        let base = inputs(shape, &[0.7], &weights);
        let sum = 0.7_f32 * 0.3;
        assert!(conv(&base).unwrap().check(&[sum]).is_ok());
        assert!(conv(&base).unwrap().check(&[sum * 1.000_001]).is_err());
        let added = ConvInputs { bias: Some(&[1.0]), residual: Some(&[-3.0]), lo: -1.5, ..base };
        assert!(conv(&added).unwrap().check(&[-1.5]).is_ok());
        let added = ConvInputs { lo: f32::NEG_INFINITY, ..added };
        assert!(conv(&added).unwrap().check(&[sum - 2.0]).is_ok());
        assert!(conv(&added).unwrap().check(&[sum + 1.0]).is_err());
    }

    #[test]
    fn groups_read_their_own_channels() {
        let shape = ConvShape { channels: 4, filters: 2, groups: 2, taps: [1, 1], padding: [0, 0], ..SHAPE };
        let shape = ConvShape { size: [1, 1], ..shape };
        let reference = conv(&inputs(shape, &[1.0, 2.0, 3.0, 4.0], &[1.0, 10.0, 100.0, 1000.0])).unwrap();
        assert_eq!(reference.value(), [21.0, 4300.0]);
        let odd = ConvShape { groups: 3, ..shape };
        assert!(conv(&inputs(odd, &[1.0; 4], &[1.0; 4])).is_err());
    }

    #[test]
    fn operands_must_fit() {
        let (input, weights) = ([0.0; 9], [0.0; 9]);
        let base = inputs(SHAPE, &input, &weights);
        assert!(conv(&base).is_ok());
        assert!(conv(&ConvInputs { input: &input[1..], ..base }).is_err());
        assert!(conv(&ConvInputs { weights: &weights[1..], ..base }).is_err());
        assert!(conv(&ConvInputs { bias: Some(&[]), ..base }).is_err());
        assert!(conv(&ConvInputs { residual: Some(&input[1..]), ..base }).is_err());
        assert!(conv(&ConvInputs { lo: 1.0, hi: 0.0, ..base }).is_err());
    }
}

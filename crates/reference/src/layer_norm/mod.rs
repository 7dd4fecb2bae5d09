//! Layer normalisation: (x - mean) / √(variance + ε) · weight + bias over the features of each token.
//!
//! [`token`] derives how far a result may be off.
mod token;

use std::marker::PhantomData;

use self::token::Token;
use crate::bound::Legal;
use crate::{ErrorReport, Mismatch, ReferenceError, Value, elements};

/// What is normalised: images × features × pixels without gaps.
#[derive(Debug, Clone, Copy)]
pub struct LayerNormInputs<'i, T> {
    /// x.
    pub input: &'i [T],
    /// Features of a token.
    pub features: usize,
    /// Elements from one feature of a token to the next: 1 of rows, the pixels of maps.
    pub pixels: usize,
    /// The weight, an element a feature; 1 if none.
    pub weight: Option<&'i [T]>,
    /// The bias, an element a feature; nothing is added if none.
    pub bias: Option<&'i [T]>,
    /// ε, finite and not below 0.
    pub epsilon: f32,
}

/// The results in `f64`, and what is needed to judge a result of type `T`.
#[derive(Debug, Clone)]
pub struct LayerNormReference<T = f32> {
    features: usize,
    /// Elements of a row, or of an image.
    width: usize,
    legal: Vec<Legal>,
    result: PhantomData<T>,
}

/// (x - mean) / √(variance + ε) · weight + bias.
///
/// # Errors
/// If x is not whole rows or images, or weight and bias have not an element for each feature.
pub fn layer_norm<T: Value>(
    inputs: &LayerNormInputs<'_, T>,
) -> Result<LayerNormReference<T>, ReferenceError> {
    let &LayerNormInputs { input, features, pixels, weight, bias, epsilon } = inputs;
    let width = features * pixels;
    let images = input.len().checked_div(width).unwrap_or(0);
    let expect = |what, (rows, cols), got| match rows * cols == got {
        true => Ok(()),
        false => Err(ReferenceError::FactorLength { what, rows, cols, got }),
    };
    expect("x", (images, width), input.len())?;
    for (what, parameter) in [("the weight", weight), ("the bias", bias)] {
        if let Some(parameter) = parameter {
            expect(what, (1, features), parameter.len())?;
        }
    }
    let parameter =
        |of: Option<&[T]>, feature: usize, absent| of.map_or(absent, |of| f64::from(of[feature].to_f32()));
    let mut legal = vec![Legal::exactly(0.0); input.len()];
    for first in (0..images).flat_map(|image| image * width..image * width + pixels) {
        let x = |feature: usize| f64::from(input[first + feature * pixels].to_f32());
        let token = Token::of((0..features).map(x), epsilon);
        for feature in 0..features {
            let (weight, bias) = (parameter(weight, feature, 1.0), parameter(bias, feature, 0.0));
            legal[first + feature * pixels] = token.legal(x(feature), weight, bias);
        }
    }
    Ok(LayerNormReference { features, width, legal, result: PhantomData })
}

impl<T: Value> LayerNormReference<T> {
    /// Checks a result, without gaps.
    ///
    /// # Errors
    /// If `got` has the wrong length, or an element is wrong.
    pub fn check(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        let terms = u32::try_from(self.features).unwrap_or(u32::MAX);
        let tell = |at: usize| (self.legal[at], terms);
        elements::check(got, self.legal.len(), self.width, |at, got| self.legal[at].judge(got), tell)
    }

    /// The elements in `f64`.
    pub fn value(&self) -> Vec<f64> {
        self.legal.iter().map(|legal| legal.value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_rows(input: &[f32], features: usize, epsilon: f32) -> LayerNormReference {
        let (weight, bias) = (None, None);
        layer_norm(&LayerNormInputs { input, features, pixels: 1, weight, bias, epsilon }).unwrap()
    }

    #[test]
    fn results_are_those_of_the_formula() {
        // Mean 2.5, variance 1.25; by hand.
        let reference = of_rows(&[1.0, 2.0, 3.0, 4.0], 4, 0.0);
        let third = 0.5 / 1.25_f64.sqrt();
        for (got, expected) in reference.value().iter().zip([-3.0 * third, -third, third, 3.0 * third]) {
            assert!((got - expected).abs() < 1e-12, "{got}, {expected}");
        }
        let with_epsilon = of_rows(&[-1.0, 1.0], 2, 3.0).value();
        assert!((with_epsilon[1] - 0.5).abs() < 1e-12);
        // Two pixels, whose features are apart; weight and bias.
        let (weight, bias) = ([2.0_f32, 4.0], [0.5_f32, -1.0]);
        let inputs = LayerNormInputs {
            input: &[-3.0_f32, 5.0, 3.0, 1.0],
            features: 2,
            pixels: 2,
            weight: Some(&weight),
            bias: Some(&bias),
            epsilon: 0.0,
        };
        assert_eq!(layer_norm(&inputs).unwrap().value(), [-1.5, 2.5, 3.0, -5.0]);
    }

    #[test]
    fn results_that_are_off_are_refused() {
        let accepts = |got: [f32; 4]| of_rows(&[1.0, 2.0, 3.0, 4.0], 4, 0.0).check(&got).is_ok();
        let right = [-1.341_640_8, -0.447_213_6, 0.447_213_6, 1.341_640_8];
        assert!(accepts(right));
        assert!(!accepts([right[0], right[1], right[2] + 4e-6, right[3]]));
        // The variance over n - 1.
        assert!(!accepts(right.map(|x| x * 0.75_f32.sqrt())));
        // A large mean: rounding it to f32 leaves a difference that shows.
        let x = [1e6_f32, 1e6 + 0.0625, 1e6 + 0.125, 1e6 + 0.25];
        let off = x.map(|x| (x - 1_000_000.1) / 0.092_436_f32);
        assert!(of_rows(&x, 4, 0.0).check(&off).is_err());
    }

    #[test]
    fn what_is_not_finite_stays_in_its_token() {
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let reference = of_rows(&[odd, 1.0, -1.0, 1.0], 2, 0.0);
            assert!(reference.check(&[f32::NAN, f32::NAN, -1.0, 1.0]).is_ok());
            assert!(reference.check(&[f32::NAN, 1.0, -1.0, 1.0]).is_err());
        }
        // The squares overflow: the variance is infinite, the result the bias.
        assert!(of_rows(&[1e30, -1e30], 2, 0.0).check(&[0.0, -0.0]).is_ok());
        assert!(of_rows(&[1e30, -1e30], 2, 0.0).check(&[1.0, -1.0]).is_err());
    }

    #[test]
    fn operands_must_fit() {
        let (weight, bias) = (None, None);
        let inputs =
            LayerNormInputs { input: &[1.0_f32; 12], features: 3, pixels: 2, weight, bias, epsilon: 1e-5 };
        assert!(layer_norm(&inputs).is_ok());
        assert!(layer_norm(&LayerNormInputs { features: 5, ..inputs }).is_err());
        assert!(layer_norm(&LayerNormInputs { weight: Some(&[1.0; 2]), ..inputs }).is_err());
        assert!(layer_norm(&LayerNormInputs { bias: Some(&[1.0; 4]), ..inputs }).is_err());
        assert!(layer_norm(&LayerNormInputs { features: 0, ..inputs }).is_err());
        assert!(layer_norm(&LayerNormInputs { features: 0, input: &[], ..inputs }).is_ok());
    }
}

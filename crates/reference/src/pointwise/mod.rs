//! Pointwise (1×1) convolution of feature maps with sparse weights: clamp(w·x + x₀ + bias, lo, hi).
//!
//! It is a sparse product: of the weights, filters × channels, with the pixels that taps of 1×1 meet, all images side by side. So the bounds are those of
//! [`spmm`](crate::spmm()), and only the weights' nonzeros count: a zero of x, or of the padding, times a weight that is not finite is NaN.
use lacuna_matrix::Csr;

use crate::{
    ConvShape, Epilogue, ErrorReport, Mismatch, Precision, ReferenceError, SpmmReference, Value, spmm,
};

/// The results in `f64`, and what is needed to judge a result of type `T`.
#[derive(Debug, Clone)]
pub struct PointwiseReference<T = f32> {
    filters: usize,
    /// Pixels of a channel of the result.
    pixels: usize,
    images: usize,
    /// Filters × pixels of all images.
    product: SpmmReference<T>,
}

/// A convolution with taps of 1×1: `input` is images × channels × rows × columns, `weights` filters × channels.
///
/// # Errors
/// If the shape has other taps or several groups, an operand is not as large as it says, or those of [`spmm`](crate::spmm()).
pub fn pointwise<T: Value>(
    shape: &ConvShape,
    weights: &Csr<T>,
    input: &[T],
) -> Result<PointwiseReference<T>, ReferenceError> {
    let expect = |what, expected: usize, got: usize| match got == expected {
        true => Ok(()),
        false => Err(ReferenceError::EpilogueLength { what, expected: expected as u128, got }),
    };
    let &ConvShape { batch: images, channels, size: [height, width], filters, .. } = shape;
    expect("taps of a filter", 1, shape.taps[0] * shape.taps[1])?;
    expect("groups", 1, shape.groups)?;
    expect("rows of the weights, one a filter", filters, weights.rows())?;
    expect("columns of the weights, one a channel", channels, weights.cols())?;
    expect("the input", images * channels * height * width, input.len())?;
    let [rows, columns] = shape.out_size();
    let pixels = rows * columns;
    let place = |d: usize, at: usize, size: usize| {
        (at * shape.strides[d]).checked_sub(shape.padding[d]).filter(|&at| at < size)
    };
    let mut b = Vec::with_capacity(channels * images * pixels);
    for channel in 0..channels {
        for image in 0..images {
            let map = &input[(image * channels + channel) * height * width..];
            for row in 0..rows {
                let y = place(0, row, height);
                b.extend((0..columns).map(|column| match (y, place(1, column, width)) {
                    (Some(y), Some(x)) => map[y * width + x],
                    // A zero.
                    _ => T::default(),
                }));
            }
        }
    }
    Ok(PointwiseReference { filters, pixels, images, product: spmm(weights, &b, images * pixels)? })
}

impl<T: Value> PointwiseReference<T> {
    /// Has results judged as of this arithmetic. Without a call it is [`Precision::Fp32`].
    ///
    /// # Errors
    /// As [`SpmmReference::precision`].
    pub fn precision(self, precision: Precision) -> Result<Self, ReferenceError> {
        Ok(Self { product: self.product.precision(precision)?, ..self })
    }

    /// Checks a result: images × filters × rows × columns. What it held before, [`Epilogue::c`], lies so too; the bias has an element a filter.
    ///
    /// # Errors
    /// If an operand has the wrong length, or an element is wrong: told as filter, and pixel of all images one behind another.
    pub fn check_with(&self, epilogue: &Epilogue<'_, T>, got: &[T]) -> Result<ErrorReport, Mismatch> {
        let (rows, cols) = (self.images * self.filters, self.pixels);
        if got.len() != rows * cols {
            return Err(Mismatch::Length { rows, cols, got: got.len() });
        }
        // One of another length is refused as none is, where it counts.
        let c = if epilogue.c.len() == got.len() { self.by_filters(epilogue.c) } else { Vec::new() };
        self.product.check_with(&Epilogue { c: &c, ..*epilogue }, &self.by_filters(got))
    }

    /// The elements of w·x in `f64`: filters × pixels of all images.
    pub fn value(&self) -> &[f64] {
        self.product.value()
    }

    /// Images × filters × pixels as filters × images × pixels.
    fn by_filters(&self, maps: &[T]) -> Vec<T> {
        let planes: Vec<&[T]> = maps.chunks_exact(self.pixels.max(1)).collect();
        let of_filter = |filter: usize| planes.iter().skip(filter).step_by(self.filters.max(1));
        (0..self.filters).flat_map(of_filter).flat_map(|plane| plane.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::generate;

    use super::*;
    use crate::{ConvInputs, conv};

    const SHAPE: ConvShape = ConvShape {
        batch: 2,
        channels: 5,
        size: [4, 3],
        filters: 3,
        taps: [1, 1],
        strides: [1, 1],
        padding: [0, 0],
        groups: 1,
    };

    fn weights(shape: &ConvShape) -> Csr<f32> {
        let pattern = generate::uniform(shape.filters, shape.channels, 0.5, 3).unwrap();
        let values = generate::random_values(pattern.nnz(), 4);
        Csr::with_values(pattern, values).unwrap()
    }

    fn input(shape: &ConvShape) -> Vec<f32> {
        generate::random_values(shape.batch * shape.channels * shape.size[0] * shape.size[1], 5)
    }

    /// A convolution with dense filters has the same sums.
    #[test]
    fn it_is_a_convolution_with_many_zero_weights() {
        let shapes = [
            SHAPE,
            ConvShape { strides: [2, 3], ..SHAPE },
            ConvShape { padding: [1, 2], ..SHAPE },
            ConvShape { strides: [3, 2], padding: [2, 1], ..SHAPE },
        ];
        for shape in shapes {
            let (weights, input) = (weights(&shape), input(&shape));
            let dense = weights.to_dense().unwrap();
            let bias = [0.5, -1.0, 0.25];
            let inputs = ConvInputs {
                shape,
                input: &input,
                weights: &dense,
                bias: Some(&bias),
                residual: None,
                precision: Precision::Fp32,
                lo: 0.0,
                hi: f32::INFINITY,
            };
            let expected = conv(&inputs).unwrap().value();
            let got: Vec<f32> = expected.iter().map(|&value| value as f32).collect();
            let reference = pointwise(&shape, &weights, &input).unwrap();
            let epilogue = Epilogue { bias: Some(&bias), lo: 0.0, ..Epilogue::default() };
            reference.check_with(&epilogue, &got).unwrap();
            let mut wrong = got.clone();
            let last = wrong.last_mut().unwrap();
            *last = last.max(0.5) * 1.000_1;
            assert!(reference.check_with(&epilogue, &wrong).is_err());
        }
    }

    #[test]
    fn what_a_result_held_is_added_where_it_lies() {
        let shape = ConvShape { size: [1, 1], channels: 1, filters: 2, ..SHAPE };
        let weights = Csr::new(2, 1, vec![0, 1, 1], vec![0], vec![2.0_f32]).unwrap();
        let reference = pointwise(&shape, &weights, &[3.0, 5.0]).unwrap();
        assert_eq!(reference.value(), [6.0, 10.0, 0.0, 0.0]);
        let before = [1.0, 2.0, 4.0, 8.0];
        let epilogue = Epilogue { beta: 1.0, c: &before, ..Epilogue::default() };
        assert!(reference.check_with(&epilogue, &[7.0, 2.0, 14.0, 8.0]).is_ok());
        assert!(reference.check_with(&epilogue, &[7.0, 14.0, 2.0, 8.0]).is_err());
        assert!(reference.check_with(&epilogue, &[7.0, 2.0, 14.0]).is_err());
        assert!(reference.check_with(&Epilogue { c: &before[1..], ..epilogue }, &before).is_err());
    }

    #[test]
    fn nonzeros_alone_meet_what_is_not_finite() {
        let shape = ConvShape { batch: 1, channels: 2, size: [1, 1], filters: 2, padding: [0, 1], ..SHAPE };
        let weights = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![f32::INFINITY, 1.0]).unwrap();
        let reference = pointwise(&shape, &weights, &[1.0, f32::NAN]).unwrap();
        let got = [f32::NAN, f32::INFINITY, f32::NAN, 0.0, f32::NAN, 0.0];
        assert!(reference.check_with(&Epilogue::default(), &got).is_ok());
    }

    #[test]
    fn operands_must_fit() {
        let (weights, input) = (weights(&SHAPE), input(&SHAPE));
        assert!(pointwise(&SHAPE, &weights, &input).is_ok());
        assert!(pointwise(&SHAPE, &weights, &input[1..]).is_err());
        for other in [
            ConvShape { filters: 4, ..SHAPE },
            ConvShape { channels: 4, ..SHAPE },
            ConvShape { taps: [1, 2], ..SHAPE },
            ConvShape { groups: 5, ..SHAPE },
        ] {
            assert!(pointwise(&other, &weights, &input).is_err(), "{other:?}");
        }
    }
}

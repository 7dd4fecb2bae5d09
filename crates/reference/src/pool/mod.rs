//! Pooling of feature maps: the greatest pixel of each window, or the mean of its pixels.
//!
//! # How far a result may be off
//! A maximum is one of its pixels: nothing is rounded, but either zero stands for both. It is NaN where a pixel is.
//!
//! A mean of n pixels is a sum on any tree, in which each passes through n - 1 roundings at most: as many as the products of a sum of
//! n - 1 products do, with the one of their own ([`bound`](crate::bound)). Then it is divided, in one rounding or two
//! ([`Sum::legal_over`]), by n, or by the pixels of a window, those of the padding among them. By 1 nothing changes.
use std::marker::PhantomData;

use rayon::prelude::*;

use crate::bound::{Legal, Sum};
use crate::{ErrorReport, Mismatch, Precision, ReferenceError, Value, elements};

/// Sizes of a pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolShape {
    /// Planes: images × channels.
    pub planes: usize,
    /// Rows and columns of a plane.
    pub size: [usize; 2],
    /// Rows and columns of a window.
    pub window: [usize; 2],
    /// Rows and columns from one window to the next.
    pub strides: [usize; 2],
    /// Rows above and below, columns on both sides: at most half of a window's.
    pub padding: [usize; 2],
}

/// What is made of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// Its greatest pixel in the map.
    Max,
    /// The sum of its pixels over all that it has, in the map or not.
    AverageIncludePadding,
    /// The sum of its pixels over those that are in the map.
    AverageExcludePadding,
}

/// The results in `f64`, and what is needed to judge a result of type `T`.
#[derive(Debug, Clone)]
pub struct PoolReference<T = f32> {
    columns: usize,
    legal: Vec<(Legal, u32)>,
    result: PhantomData<T>,
}

impl PoolShape {
    /// Rows and columns of the result.
    pub fn out_size(&self) -> [usize; 2] {
        [0, 1].map(|d| {
            let padded = self.size[d] + 2 * self.padding[d];
            padded.checked_sub(self.window[d]).map_or(0, |rest| rest / self.strides[d] + 1)
        })
    }
}

/// A pooling of planes × rows × columns.
///
/// # Errors
/// If the input is not as large as the shape says, a size is 0, padding is more than half a window, or a sum could have too many terms.
pub fn pool<T: Value>(
    shape: &PoolShape,
    mode: PoolMode,
    input: &[T],
) -> Result<PoolReference<T>, ReferenceError> {
    let expect = |what, is_right: bool, expected: usize, got: usize| match is_right {
        true => Ok(()),
        false => Err(ReferenceError::EpilogueLength { what, expected: expected as u128, got }),
    };
    for d in [0, 1] {
        let least = shape.size[d].min(shape.window[d]).min(shape.strides[d]);
        expect("a size, a window or a stride", least > 0, 1, least)?;
        let (most, padding) = (shape.window[d] / 2, shape.padding[d]);
        expect("padding, at most half a window", padding <= most, most, padding)?;
    }
    let len = shape.planes * shape.size[0] * shape.size[1];
    expect("the input", len == input.len(), len, input.len())?;
    let (terms, max) = (shape.window[0] * shape.window[1], Precision::Fp32.max_terms());
    if terms > max as usize {
        return Err(ReferenceError::TooLong { terms, max });
    }
    let [rows, columns] = shape.out_size();
    let results = shape.planes * rows * columns;
    let legal = (0..results).into_par_iter().map(|at| element(shape, mode, input, at)).collect();
    Ok(PoolReference { columns, legal, result: PhantomData })
}

/// What an element of the result may be, and its pixels.
fn element<T: Value>(shape: &PoolShape, mode: PoolMode, input: &[T], at: usize) -> (Legal, u32) {
    let ([height, width], [rows, columns]) = (shape.size, shape.out_size());
    let (plane, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
    // Of the window, the part that is in the map.
    let range = |d: usize, of: usize| {
        let first = of * shape.strides[d];
        let end = (first + shape.window[d]).saturating_sub(shape.padding[d]).min(shape.size[d]);
        first.saturating_sub(shape.padding[d])..end
    };
    let plane = &input[plane * height * width..][..height * width];
    let mut pixels: Vec<f64> = Vec::new();
    for y in range(0, row) {
        pixels.extend(range(1, column).map(|x| f64::from(plane[y * width + x].to_f32())));
    }
    let count = pixels.len() as u32;
    let divisor = match mode {
        PoolMode::Max => return (greatest(&pixels), count),
        PoolMode::AverageIncludePadding => (shape.window[0] * shape.window[1]) as u32,
        PoolMode::AverageExcludePadding => count,
    };
    let value = pixels.iter().sum();
    if divisor == 1 {
        return (same(value), count);
    }
    let magnitude = pixels.iter().filter(|x| x.is_finite()).map(|x| x.abs()).sum();
    let sum = Sum { terms: (count - 1).max(1), value, magnitude, tiny: 0.0 };
    (sum.legal_over(divisor, Precision::Fp32), count)
}

/// The greatest of some numbers, NaN if one is NaN.
fn greatest(numbers: &[f64]) -> Legal {
    let join = |a: f64, b: f64| if b > a || b.is_nan() { b } else { a };
    same(numbers.iter().copied().fold(f64::NEG_INFINITY, join))
}

/// This number, or the other zero.
fn same(value: f64) -> Legal {
    if value == 0.0 { Legal::within(value, 0.0, false) } else { Legal::exactly(value) }
}

impl<T: Value> PoolReference<T> {
    /// Checks a result: planes × rows × columns.
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

    const SHAPE: PoolShape =
        PoolShape { planes: 1, size: [3, 3], window: [3, 2], strides: [2, 2], padding: [1, 1] };
    const MODES: [PoolMode; 3] =
        [PoolMode::Max, PoolMode::AverageIncludePadding, PoolMode::AverageExcludePadding];

    fn ascending() -> Vec<f32> {
        (1..10).map(|x| x as f32).collect()
    }

    #[test]
    fn modes_differ_at_the_border() {
        let value = |mode| pool(&SHAPE, mode, &ascending()).unwrap().value();
        assert_eq!(SHAPE.out_size(), [2, 2]);
        assert_eq!(value(PoolMode::Max), [4.0, 6.0, 7.0, 9.0]);
        assert_eq!(value(PoolMode::AverageIncludePadding), [5.0 / 6.0, 16.0 / 6.0, 11.0 / 6.0, 28.0 / 6.0]);
        assert_eq!(value(PoolMode::AverageExcludePadding), [2.5, 4.0, 5.5, 7.0]);
        let small = PoolShape { size: [1, 1], padding: [0, 0], ..SHAPE };
        assert_eq!(small.out_size(), [0, 0]);
    }

    #[test]
    fn what_is_not_finite_is_in_its_windows() {
        let accepts = |mode, strange: f32, got: f32| {
            let mut input = ascending();
            input[0] = strange;
            let mut result: Vec<f32> =
                pool(&SHAPE, mode, &ascending()).unwrap().value().iter().map(|&x| x as f32).collect();
            result[0] = got;
            pool(&SHAPE, mode, &input).unwrap().check(&result).is_ok()
        };
        for mode in MODES {
            assert!(accepts(mode, f32::NAN, f32::NAN) && !accepts(mode, f32::NAN, 4.0), "{mode:?}");
            assert!(accepts(mode, f32::INFINITY, f32::INFINITY));
        }
        assert!(accepts(PoolMode::Max, f32::NEG_INFINITY, 4.0));
        assert!(accepts(PoolMode::AverageExcludePadding, f32::NEG_INFINITY, f32::NEG_INFINITY));
    }

    #[test]
    fn results_that_are_off_are_refused() {
        let shape = PoolShape { size: [1, 3], window: [1, 3], padding: [0, 0], ..SHAPE };
        let accepts =
            |mode, input: [f32; 3], got: f32| pool(&shape, mode, &input).unwrap().check(&[got]).is_ok();
        let mean = |input: [f32; 3]| (input[0] + input[1] + input[2]) / 3.0;
        let input = [0.1, 0.7, 0.3];
        for mode in &MODES[1..] {
            assert!(accepts(*mode, input, mean(input)) && !accepts(*mode, input, mean(input) + 1e-6));
        }
        assert!(accepts(PoolMode::Max, input, 0.7) && !accepts(PoolMode::Max, input, 0.700_000_1));
        assert!(accepts(PoolMode::Max, [-0.0, 0.0, -1.0], -0.0));
        let one = PoolShape { size: [1, 1], window: [1, 1], ..shape };
        let exact = pool(&one, PoolMode::AverageExcludePadding, &[0.1_f32]).unwrap();
        assert!(exact.check(&[0.1]).is_ok() && exact.check(&[0.1_f32.next_up()]).is_err());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let input = ascending();
        let of = |shape: PoolShape| pool(&shape, PoolMode::Max, &input).is_ok();
        assert!(of(SHAPE));
        assert!(!of(PoolShape { planes: 2, ..SHAPE }));
        assert!(!of(PoolShape { padding: [2, 1], ..SHAPE }));
        assert!(!of(PoolShape { window: [0, 2], padding: [0, 0], ..SHAPE }));
        assert!(!of(PoolShape { strides: [0, 2], ..SHAPE }));
        assert!(!of(PoolShape { window: [1 << 12, 1 << 12], ..SHAPE }));
    }
}

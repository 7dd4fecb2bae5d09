//! Sums as tensor cores make them keep their bounds, and wrong ones do not.

use half::{bf16, f16};
use lacuna_matrix::Csr;
use lacuna_matrix::generate::{random_values, uniform};
use lacuna_reference::{Precision, ReferenceError, SpmmReference, Value, spmm};

/// One instruction, at its worst: products and sum are cut at the place of the last bit of the largest of them, added
/// exactly, and cut to 24 digits. Numbers below the normal ones become zero.
fn add_products(sum: f32, products: &[f64]) -> f32 {
    let addends: Vec<f64> = products.iter().copied().chain([f64::from(sum)]).collect();
    let largest = addends.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    if largest < f64::from(f32::MIN_POSITIVE) {
        return 0.0;
    }
    cut(addends.iter().map(|x| cut_at(*x, exponent(largest) - 23)).sum())
}

/// `x` without what lies below 2 to the power `place`.
fn cut_at(x: f64, place: i32) -> f64 {
    let unit = 2f64.powi(place);
    (x / unit).trunc() * unit
}

/// The `f32` next to `x` towards zero; zero where that is not normal.
fn cut(x: f64) -> f32 {
    if x.abs() < f64::from(f32::MIN_POSITIVE) { 0.0 } else { cut_at(x, exponent(x) - 23) as f32 }
}

fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

/// TF32 by cutting, what the hardware does with an `f32`; subnormals become zero.
fn tf32(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0.0 } else { f32::from_bits(x.to_bits() & !0x1fff) }
}

/// TF32 by rounding.
fn nearest_tf32(x: f32) -> f32 {
    f32::from_bits((x.to_bits() + 0x1000) & !0x1fff)
}

/// C in `f32` as a kernel for tensor cores has it: columns of A in groups of `depth`, absent elements as zeros, and for
/// each group and pair of `parts` (of a, of b) an instruction. The widest of its loops, over K, is split in two.
fn multiply<T: Value>(a: &Csr<T>, b: &[T], n: usize, depth: usize, parts: &[Parts]) -> Vec<f32> {
    let mut c = Vec::new();
    for row in 0..a.rows() {
        let mut dense = vec![0.0f32; a.cols()];
        let (columns, values) = a.row(row);
        columns.iter().zip(values).for_each(|(&k, value)| dense[k as usize] = value.to_f32());
        for j in 0..n {
            let half = |range: std::ops::Range<usize>| {
                let mut sum = 0.0;
                for start in range.step_by(depth) {
                    for (part_of_a, part_of_b) in parts {
                        let products: Vec<f64> = (start..(start + depth).min(dense.len()))
                            .map(|k| {
                                f64::from(part_of_a(dense[k])) * f64::from(part_of_b(b[k * n + j].to_f32()))
                            })
                            .collect();
                        sum = add_products(sum, &products);
                    }
                }
                sum
            };
            let middle = (dense.len() / 2).next_multiple_of(depth);
            c.push(half(0..middle) + half(middle..dense.len()));
        }
    }
    c
}

/// What an instruction takes of each factor.
type Parts = (fn(f32) -> f32, fn(f32) -> f32);

const THREE_TF32: [Parts; 3] = [(tf32, tf32), (tf32, rest), (rest, tf32)];
const TF32: [Parts; 1] = [(tf32, tf32)];
const NEAREST_TF32: [Parts; 1] = [(nearest_tf32, nearest_tf32)];
const AS_IT_IS: [Parts; 1] = [(same, same)];

/// What [`tf32`] leaves over, itself cut.
fn rest(x: f32) -> f32 {
    let above = f32::from_bits(x.to_bits() & !0x1fff);
    tf32(x - above)
}

fn same(x: f32) -> f32 {
    x
}

/// Values in [-1, 1), or with `shift` in [shift - 1, shift + 1), times `scale`.
fn values<T>(len: usize, seed: u64, shift: f32, scale: f32, convert: impl Fn(f32) -> T) -> Vec<T> {
    random_values(len, seed).into_iter().map(|x| convert((x + shift) * scale)).collect()
}

struct Problem<T> {
    a: Csr<T>,
    b: Vec<T>,
    n: usize,
}

impl<T: Value> Problem<T> {
    fn new(shape: (usize, usize, usize), shift: f32, scale: f32, convert: impl Fn(f32) -> T) -> Self {
        let (rows, cols, n) = shape;
        let pattern = uniform(rows, cols, 0.6, 1).unwrap();
        let a = values(pattern.nnz(), 2, shift, scale, &convert);
        Self { a: Csr::with_values(pattern, a).unwrap(), b: values(cols * n, 3, shift, scale, &convert), n }
    }

    fn reference(&self, precision: Precision) -> SpmmReference<T> {
        spmm(&self.a, &self.b, self.n).unwrap().precision(precision).unwrap()
    }
}

const SHAPES: [(usize, usize, usize); 4] = [(5, 8, 3), (20, 64, 9), (9, 300, 5), (2, 5000, 2)];

/// Sums that cancel, sums that do not, and sums whose factors or parts of them are subnormal.
const RANGES: [(f32, f32); 5] = [(0.0, 1.0), (1.5, 1.0), (0.0, 1e-18), (0.5, 3e-20), (1.0, 1e-36)];

#[test]
fn three_tf32_sums_keep_their_bound() {
    for shape in SHAPES {
        for (shift, scale) in RANGES {
            let problem = Problem::new(shape, shift, scale, same);
            let c = multiply(&problem.a, &problem.b, problem.n, 8, &THREE_TF32);
            let report = problem.reference(Precision::ThreeTf32).check(&c).unwrap();
            assert!(report.worst_over_bound > 0.0, "{shape:?} {scale} {report:?}");
        }
    }
}

#[test]
fn tiny_factors_of_large_ones_keep_the_bound() {
    // What is cut from A's subnormal parts is not small beside the products.
    let mut problem = Problem::new((4, 64, 4), 0.0, 1.0, same);
    problem.a.values_mut().iter_mut().for_each(|a| *a *= 1e-37);
    problem.b.iter_mut().for_each(|b| *b *= 1e37);
    let c = multiply(&problem.a, &problem.b, problem.n, 8, &THREE_TF32);
    assert!(problem.reference(Precision::ThreeTf32).check(&c).is_ok());
    // Not for free: the same error elsewhere is one.
    let ordinary = Problem::new((4, 64, 4), 0.0, 1.0, same);
    let mut wrong = multiply(&ordinary.a, &ordinary.b, 4, 8, &THREE_TF32);
    let off = (c[0] - problem.reference(Precision::Fp32).value()[0] as f32).abs();
    assert!(off > 0.0);
    wrong[0] += off;
    assert!(ordinary.reference(Precision::ThreeTf32).check(&wrong).is_err());
}

#[test]
fn tf32_sums_keep_their_bound_cut_or_rounded() {
    for shape in SHAPES {
        for (shift, scale) in RANGES {
            let problem = Problem::new(shape, shift, scale, same);
            for parts in [TF32, NEAREST_TF32] {
                let c = multiply(&problem.a, &problem.b, problem.n, 8, &parts);
                let report = problem.reference(Precision::Tf32).check(&c).unwrap();
                assert!(report.worst_over_bound > 0.0, "{shape:?} {scale} {report:?}");
            }
        }
    }
}

#[test]
fn sums_of_halves_and_bfloat16_keep_their_bound() {
    for shape in SHAPES {
        for (shift, scale) in [(0.0, 1.0), (1.5, 1.0), (0.0, 1e-3)] {
            let problem = Problem::new(shape, shift, scale, f16::from_f32);
            let c = multiply(&problem.a, &problem.b, problem.n, 16, &AS_IT_IS);
            let c: Vec<f16> = c.into_iter().map(f16::from_f32).collect();
            problem.reference(Precision::Tensor).check(&c).unwrap();
        }
        for (shift, scale) in RANGES {
            let problem = Problem::new(shape, shift, scale, bf16::from_f32);
            let c = multiply(&problem.a, &problem.b, problem.n, 16, &AS_IT_IS);
            let c: Vec<bf16> = c.into_iter().map(bf16::from_f32).collect();
            problem.reference(Precision::Tensor).check(&c).unwrap();
        }
    }
}

#[test]
fn less_precise_schemes_fall_out_of_the_bounds_of_better_ones() {
    // All positive, so that cuts add up instead of cancelling.
    let problem = Problem::new((20, 64, 9), 1.5, 1.0, same);
    let three = multiply(&problem.a, &problem.b, problem.n, 8, &THREE_TF32);
    let two = multiply(&problem.a, &problem.b, problem.n, 8, &THREE_TF32[..2]);
    let one = multiply(&problem.a, &problem.b, problem.n, 8, &TF32);
    let check = |precision, c: &[f32]| problem.reference(precision).check(c);
    assert!(check(Precision::Fp32, &three).is_err());
    assert!(check(Precision::ThreeTf32, &two).is_err());
    assert!(check(Precision::ThreeTf32, &one).is_err());
    assert!(check(Precision::Tensor, &one).is_err());
    // Rows of some 26 products: a TF32 sum is off by more than ten times what three of them may be.
    assert!(check(Precision::ThreeTf32, &one).unwrap_err().to_string().contains("180 of 180 elements"));
    assert!(check(Precision::Tf32, &one).is_ok() && check(Precision::Tf32, &two).is_ok());
}

#[test]
fn a_missing_product_falls_out_of_every_bound() {
    let problem = Problem::new((20, 64, 9), 1.5, 1.0, same);
    for precision in [Precision::Fp32, Precision::Tensor, Precision::ThreeTf32, Precision::Tf32] {
        let mut less = problem.a.clone();
        less.values_mut()[17] = 0.0;
        let c = multiply(&less, &problem.b, problem.n, 8, &THREE_TF32);
        let got = problem.reference(precision).check(&c).unwrap_err().to_string();
        // Its row has nine columns. In fp32 the others are too imprecise, too.
        assert!(precision == Precision::Fp32 || got.starts_with("9 of 180 elements"), "{precision:?}: {got}");
    }
}

#[test]
fn what_is_not_finite_follows_ieee_754_in_every_precision() {
    let a = Csr::new(3, 2, vec![0, 2, 3, 3], vec![0, 1, 1], vec![1.0f32, 2.0, 3.0]).unwrap();
    for precision in [Precision::Tensor, Precision::ThreeTf32, Precision::Tf32] {
        let judge =
            |b: [f32; 2], c: [f32; 3]| spmm(&a, &b, 1).unwrap().precision(precision).unwrap().check(&c);
        assert!(judge([f32::NAN, 1.0], [f32::NAN, 3.0, 0.0]).is_ok());
        assert!(judge([f32::NAN, 1.0], [f32::NAN, f32::NAN, 0.0]).is_err());
        assert!(judge([f32::INFINITY, 1.0], [f32::INFINITY, 3.0, 0.0]).is_ok());
        // a₂ = 0 times an infinite part of b must not make a NaN of it.
        assert!(judge([f32::INFINITY, 1.0], [f32::NAN, 3.0, 0.0]).is_err());
        assert!(judge([1.0, 1.0], [3.0, 3.0, -0.0]).is_err());
    }
}

#[test]
fn sums_too_long_for_a_precision_are_refused() {
    let terms = (1 << 20) / 3 + 1;
    let columns = (0..terms as u32).collect();
    let a = Csr::new(1, terms, vec![0, terms as u32], columns, vec![1.0f32; terms]).unwrap();
    let reference = spmm(&a, &vec![1.0; terms], 1).unwrap();
    let got = reference.clone().precision(Precision::ThreeTf32).unwrap_err();
    assert_eq!(got, ReferenceError::TooManyTerms { row: 0, terms, max: (1 << 20) / 3 });
    let reference = reference.precision(Precision::Tf32).unwrap();
    assert!(reference.check(&[terms as f32]).is_ok());
}

//! Sums as tensor cores make them keep their bounds, and wrong ones do not.

use half::{bf16, f16};
use lacuna_matrix::Csr;
use lacuna_matrix::generate::{random_values, uniform};
use lacuna_reference::{Precision, ReferenceError, SpmmReference, Value, spmm};
use proptest::prelude::*;

/// One instruction, at its worst: products and sum are cut at the place of the last bit of the largest of them, added
/// exactly, and cut to 24 digits. Numbers below the normal ones become zero; what is not a number stays.
fn add_products(sum: f32, products: &[f64]) -> f32 {
    let addends: Vec<f64> = products.iter().copied().chain([f64::from(sum)]).collect();
    if addends.iter().any(|x| x.is_nan()) {
        return f32::NAN;
    }
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

/// Columns of A that a kernel takes before it goes on to the next ones.
const GROUP: usize = 16;

/// C in `f32` as a kernel for tensor cores has it: columns of A in groups, absent elements as zeros, and for each group
/// the instructions. The widest of its loops, over K, is split in two. Sums that are not finite are done again in `f32`.
fn multiply<T: Value>(a: &Csr<T>, b: &[T], n: usize, instructions: &[Instruction]) -> Vec<f32> {
    let mut c = Vec::new();
    for row in 0..a.rows() {
        let mut dense = vec![0.0f32; a.cols()];
        let (columns, values) = a.row(row);
        columns.iter().zip(values).for_each(|(&k, value)| dense[k as usize] = value.to_f32());
        for j in 0..n {
            let b = |k: usize| b[k * n + j].to_f32();
            let half = |range: std::ops::Range<usize>| {
                let mut sum = 0.0;
                for group in range.step_by(GROUP) {
                    let group = group..(group + GROUP).min(dense.len());
                    for &Instruction { depth, of_a, of_b } in instructions {
                        for start in group.clone().step_by(depth) {
                            let products: Vec<f64> = (start..(start + depth).min(group.end))
                                .map(|k| f64::from(of_a(dense[k])) * f64::from(of_b(b(k))))
                                .collect();
                            sum = add_products(sum, &products);
                        }
                    }
                }
                sum
            };
            let middle = (dense.len() / 2).next_multiple_of(GROUP).min(dense.len());
            let sum = half(0..middle) + half(middle..dense.len());
            let again = || columns.iter().fold(0.0, |sum, &k| dense[k as usize].mul_add(b(k as usize), sum));
            c.push(if sum.is_finite() { sum } else { again() });
        }
    }
    c
}

/// A product of matrices: how many columns of A it takes at once, and what of each factor.
#[derive(Clone, Copy)]
struct Instruction {
    depth: usize,
    of_a: fn(f32) -> f32,
    of_b: fn(f32) -> f32,
}

const WHOLE: Instruction = Instruction { depth: 8, of_a: tf32, of_b: tf32 };
const REST_OF_A: Instruction = Instruction { depth: 16, of_a: rest, of_b: bfloat };
const REST_OF_B: Instruction = Instruction { depth: 16, of_a: bfloat, of_b: rest };
const SPLIT: [Instruction; 3] = [WHOLE, REST_OF_B, REST_OF_A];
const TF32: [Instruction; 1] = [WHOLE];
const NEAREST_TF32: [Instruction; 1] = [Instruction { depth: 8, of_a: nearest_tf32, of_b: nearest_tf32 }];
const AS_IT_IS: [Instruction; 1] = [Instruction { depth: 16, of_a: same, of_b: same }];

/// The nearest bfloat16; subnormals become zero.
fn bfloat(x: f32) -> f32 {
    let nearest = bf16::from_f32(x).to_f32();
    if nearest.abs() < f32::MIN_POSITIVE { 0.0 } else { nearest }
}

/// What [`tf32`] cuts from a number.
fn low(x: f32) -> f32 {
    x - f32::from_bits(x.to_bits() & !0x1fff)
}

/// That as bfloat16.
fn rest(x: f32) -> f32 {
    bfloat(low(x))
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
fn split_sums_keep_their_bound() {
    for shape in SHAPES {
        for (shift, scale) in RANGES {
            let problem = Problem::new(shape, shift, scale, same);
            let c = multiply(&problem.a, &problem.b, problem.n, &SPLIT);
            let report = problem.reference(Precision::Split).check(&c).unwrap();
            assert!(report.worst_over_bound > 0.0, "{shape:?} {scale} {report:?}");
        }
    }
}

#[test]
fn tiny_factors_of_large_ones_keep_the_bound() {
    // What is cut from A's subnormal parts is not small beside the products.
    let ordinary = Problem::new((4, 64, 4), 0.0, 1.0, same);
    let right = multiply(&ordinary.a, &ordinary.b, 4, &SPLIT);
    for (small, large) in [(1e-37, 1e37), (1e-39, 1e38)] {
        let mut problem = Problem::new((4, 64, 4), 0.0, 1.0, same);
        problem.a.values_mut().iter_mut().for_each(|a| *a *= small);
        problem.b.iter_mut().for_each(|b| *b *= large);
        let c = multiply(&problem.a, &problem.b, problem.n, &SPLIT);
        let reference = problem.reference(Precision::Split);
        assert!(reference.check(&c).is_ok());
        // Not for free: the same error elsewhere is one.
        let off = (c[0] - reference.value()[0] as f32).abs();
        let mut wrong = right.clone();
        wrong[0] += off;
        assert!(ordinary.reference(Precision::Split).check(&wrong).is_err(), "{small}: {off}");
    }
}

#[test]
fn huge_factors_are_multiplied_in_f32() {
    let mut problem = Problem::new((9, 300, 5), 1.5, 1.0, same);
    problem.b.iter_mut().for_each(|b| *b *= 1e-30);
    // Infinite as bfloat16.
    problem.a.values_mut().iter_mut().step_by(40).for_each(|a| *a = f32::MAX);
    let c = multiply(&problem.a, &problem.b, problem.n, &SPLIT);
    assert!(bfloat(f32::MAX).is_infinite());
    for precision in [Precision::Fp32, Precision::Split] {
        problem.reference(precision).check(&c).unwrap();
    }
}

#[test]
fn what_is_not_a_number_is_not_lost_on_the_way() {
    // As bfloat16 the second factor is infinite, and that times zero is no number; what is added after that is zero.
    let a = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![-3.261_478_7e-37, 3.400_239_5e38]).unwrap();
    let b = [3.39e38, 0.0];
    let c = multiply(&a, &b, 1, &SPLIT);
    assert!(c[0] < -110.0, "{c:?}");
    spmm(&a, &b, 1).unwrap().precision(Precision::Split).unwrap().check(&c).unwrap();
}

#[test]
fn the_bound_of_a_split_product_is_not_far_from_its_worst() {
    // The rests are nearly 2⁻¹⁰, and bfloat16 loses nearly 2⁻⁸ of the whole.
    let x = f32::from_bits(0x3f80_7fd0);
    let a = Csr::new(1, 1, vec![0, 1], vec![0], vec![x]).unwrap();
    let reference = spmm(&a, &[x], 1).unwrap().precision(Precision::Split).unwrap();
    let report = reference.check(&multiply(&a, &[x], 1, &SPLIT)).unwrap();
    assert!(report.worst_over_bound > 0.6, "{report:?}");
    // Cut instead of rounded, bfloat16 loses twice as much.
    let truncated = |x: f32| f32::from_bits(x.to_bits() & 0xffff_0000);
    let x = f32::from_bits(0x3f80_ffff);
    let a = Csr::new(1, 1, vec![0, 1], vec![0], vec![x]).unwrap();
    let reference = spmm(&a, &[x], 1).unwrap().precision(Precision::Split).unwrap();
    let correction = 2.0 * truncated(x) * truncated(low(x));
    assert!(reference.check(&[tf32(x) * tf32(x) + correction]).is_err());
    assert!(reference.check(&[tf32(x) * tf32(x) + 2.0 * bfloat(x) * rest(x)]).is_ok());
}

/// Why products in parts are for long rows only: equal products err alike, and the sum by as large a part as each. In rows of
/// 128 that is still more than `f32` may err by.
#[test]
fn short_sums_of_split_products_may_err_by_more_than_f32() {
    let x = f32::from_bits(0x3f80_7fd0);
    for terms in [8, 16, 24, 64, 128] {
        let a =
            Csr::new(1, terms, vec![0, terms as u32], (0..terms as u32).collect(), vec![x; terms]).unwrap();
        let b = vec![x; terms];
        let c = multiply(&a, &b, 1, &SPLIT);
        let check = |precision| spmm(&a, &b, 1).unwrap().precision(precision).unwrap().check(&c);
        assert!(check(Precision::Split).is_ok(), "{terms}");
        assert!(check(Precision::Fp32).is_err(), "{terms}");
    }
}

/// A number of any size.
fn number() -> impl Strategy<Value = f32> {
    prop_oneof![8 => -2.0f32..2.0, 4 => any::<f32>(), 1 => -1e-38f32..1e-38, 1 => 3.39e38f32..=f32::MAX]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(5000) })]

    /// Short sums have the least room for what their products lack.
    #[test]
    fn short_split_sums_of_any_size_keep_their_bound(
        factors in proptest::collection::vec((number(), number()), 1..4),
    ) {
        let (a, b): (Vec<f32>, Vec<f32>) = factors.into_iter().unzip();
        let terms = a.len();
        let a = Csr::new(1, terms, vec![0, terms as u32], (0..terms as u32).collect(), a).unwrap();
        let c = multiply(&a, &b, 1, &SPLIT);
        let checked = spmm(&a, &b, 1).unwrap().precision(Precision::Split).unwrap().check(&c);
        prop_assert!(checked.is_ok(), "{:?} {b:?}: {}", a.values(), checked.unwrap_err());
    }
}

#[test]
fn tf32_sums_keep_their_bound_cut_or_rounded() {
    for shape in SHAPES {
        for (shift, scale) in RANGES {
            let problem = Problem::new(shape, shift, scale, same);
            for parts in [TF32, NEAREST_TF32] {
                let c = multiply(&problem.a, &problem.b, problem.n, &parts);
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
            let c = multiply(&problem.a, &problem.b, problem.n, &AS_IT_IS);
            let c: Vec<f16> = c.into_iter().map(f16::from_f32).collect();
            problem.reference(Precision::Tensor).check(&c).unwrap();
        }
        for (shift, scale) in RANGES {
            let problem = Problem::new(shape, shift, scale, bf16::from_f32);
            let c = multiply(&problem.a, &problem.b, problem.n, &AS_IT_IS);
            let c: Vec<bf16> = c.into_iter().map(bf16::from_f32).collect();
            problem.reference(Precision::Tensor).check(&c).unwrap();
        }
    }
}

#[test]
fn less_precise_schemes_fall_out_of_the_bounds_of_better_ones() {
    // All positive, so that cuts add up instead of cancelling.
    let problem = Problem::new((20, 64, 9), 1.5, 1.0, same);
    let with = |instructions: &[Instruction]| multiply(&problem.a, &problem.b, problem.n, instructions);
    let (split, one) = (with(&SPLIT), with(&TF32));
    let check = |precision, c: &[f32]| problem.reference(precision).check(c);
    assert!(check(Precision::Fp32, &split).is_err());
    // Rows of some 26 products: short enough for a missing part to show in every sum.
    for two in [with(&[WHOLE, REST_OF_A]), with(&[WHOLE, REST_OF_B])] {
        let got = check(Precision::Split, &two).unwrap_err().to_string();
        assert!(got.contains("180 of 180 elements"), "{got}");
        assert!(check(Precision::Tf32, &two).is_ok());
    }
    // A part that is there twice is no better.
    for twice in [REST_OF_A, REST_OF_B] {
        assert!(check(Precision::Split, &with(&[WHOLE, twice, twice])).is_err());
    }
    assert!(check(Precision::Split, &one).unwrap_err().to_string().contains("180 of 180 elements"));
    assert!(check(Precision::Tensor, &one).is_err());
    assert!(check(Precision::Tf32, &one).is_ok());
}

#[test]
fn a_missing_product_falls_out_of_every_bound() {
    let problem = Problem::new((20, 64, 9), 1.5, 1.0, same);
    for precision in [Precision::Fp32, Precision::Tensor, Precision::Split, Precision::Tf32] {
        let mut less = problem.a.clone();
        less.values_mut()[17] = 0.0;
        let c = multiply(&less, &problem.b, problem.n, &SPLIT);
        let got = problem.reference(precision).check(&c).unwrap_err().to_string();
        // Its row has nine columns. In fp32 the others are too imprecise, too.
        assert!(precision == Precision::Fp32 || got.starts_with("9 of 180 elements"), "{precision:?}: {got}");
    }
}

#[test]
fn what_is_not_finite_follows_ieee_754_in_every_precision() {
    let a = Csr::new(3, 2, vec![0, 2, 3, 3], vec![0, 1, 1], vec![1.0f32, 2.0, 3.0]).unwrap();
    for precision in [Precision::Tensor, Precision::Split, Precision::Tf32] {
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
    let got = reference.clone().precision(Precision::Split).unwrap_err();
    assert_eq!(got, ReferenceError::TooManyTerms { row: 0, terms, max: (1 << 20) / 3 });
    let reference = reference.precision(Precision::Tf32).unwrap();
    assert!(reference.check(&[terms as f32]).is_ok());
}

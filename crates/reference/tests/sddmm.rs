//! The oracle of sampled products accepts right results and rejects wrong ones.

use half::f16;
use lacuna_matrix::Pattern;
use lacuna_matrix::generate::{random_values, uniform};
use lacuna_reference::{Mismatch, Precision, ReferenceError, sddmm};

const ROWS: usize = 13;
const COLS: usize = 17;

/// D in `f32`, each value by `sum` of its factors.
fn sampled(
    pattern: &Pattern,
    a: &[f32],
    b: &[f32],
    k: usize,
    sum: impl Fn(&[f32], &[f32]) -> f32,
) -> Vec<f32> {
    let row = |row: usize| {
        let at = move |&column: &u32| (row, column as usize);
        pattern.row_columns(row).iter().map(at)
    };
    let places = (0..pattern.rows()).flat_map(row);
    places.map(|(i, j)| sum(&a[i * k..][..k], &b[j * k..][..k])).collect()
}

fn forward(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| a.mul_add(*b, sum))
}

fn backward(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).rev().fold(0.0, |sum, (a, b)| sum + a * b)
}

fn problem(k: usize) -> (Pattern, Vec<f32>, Vec<f32>) {
    let pattern = uniform(ROWS, COLS, 0.6, 1).unwrap();
    (pattern, random_values(ROWS * k, 2), random_values(COLS * k, 3))
}

#[test]
fn right_results_pass_in_any_order_of_summation() {
    for k in [1, 2, 7, 64, 1000] {
        let (pattern, a, b) = problem(k);
        let reference = sddmm(&pattern, &a, &b, k).unwrap();
        assert_eq!((reference.value().len(), reference.magnitude().len()), (pattern.nnz(), pattern.nnz()));
        for sum in [forward, backward] {
            let report = reference.check(&sampled(&pattern, &a, &b, k, sum)).unwrap();
            assert_eq!(report.checked, pattern.nnz());
            assert!(report.worst_over_bound < 1.0);
        }
    }
}

#[test]
fn a_term_left_out_is_seen_and_told() {
    let k = 64;
    let (pattern, a, b) = problem(k);
    let reference = sddmm(&pattern, &a, &b, k).unwrap();
    let mut got = sampled(&pattern, &a, &b, k, forward);
    let at = pattern.row_offsets()[5] as usize;
    let place = (5, pattern.row_columns(5)[0] as usize);
    got[at] -= a[5 * k] * b[place.1 * k];
    let error = reference.check(&got).unwrap_err();
    let Mismatch::Elements { failures: 1, row, column, terms: 64, .. } = error else { panic!("{error}") };
    assert_eq!((row, column), place);
}

#[test]
fn sums_without_terms_are_plus_zero() {
    let (pattern, ..) = problem(0);
    let reference = sddmm::<f32>(&pattern, &[], &[], 0).unwrap();
    let mut got = vec![0.0; pattern.nnz()];
    assert_eq!(reference.check(&got).unwrap().worst_over_bound, 0.0);
    got[3] = -0.0;
    assert!(reference.check(&got).is_err());
}

#[test]
fn what_is_not_finite_shows_in_its_own_row_alone() {
    let k = 8;
    let (pattern, mut a, b) = problem(k);
    a[4 * k + 3] = f32::NAN;
    let reference = sddmm(&pattern, &a, &b, k).unwrap();
    let mut got = sampled(&pattern, &a, &b, k, forward);
    reference.check(&got).unwrap();
    let nan: Vec<usize> = (0..got.len()).filter(|&at| got[at].is_nan()).collect();
    assert_eq!(nan, pattern.row_range(4).collect::<Vec<_>>());
    got[nan[0]] = 0.0;
    assert!(reference.check(&got).is_err());
}

#[test]
fn results_may_be_scaled_and_rounded() {
    let k = 20;
    let (pattern, a, b) = problem(k);
    let narrow = |values: &[f32]| values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
    let wide = |values: &[f16]| values.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
    let (a, b) = (narrow(&a), narrow(&b));
    let scale = narrow(&random_values(pattern.nnz(), 4));
    let reference = sddmm(&pattern, &a, &b, k).unwrap();
    let sums = sampled(&pattern, &wide(&a), &wide(&b), k, forward);
    reference.check(&narrow(&sums)).unwrap();
    let scaled: Vec<f32> = sums.iter().zip(&scale).map(|(sum, scale)| sum * scale.to_f32()).collect();
    reference.check_scaled(&scale, &narrow(&scaled)).unwrap();
    assert!(reference.check(&narrow(&scaled)).is_err());
    assert!(reference.check_scaled(&scale, &narrow(&sums)).is_err());
}

/// The upper 19 bits of a number.
fn tf32(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & !0x1fff)
}

#[test]
fn the_arithmetic_decides_how_close_a_result_must_be() {
    let k = 64;
    let (pattern, a, b) = problem(k);
    let reference = sddmm(&pattern, &a, &b, k).unwrap();
    let cut = |values: &[f32]| values.iter().map(|&x| tf32(x)).collect::<Vec<_>>();
    let got = sampled(&pattern, &cut(&a), &cut(&b), k, forward);
    let check = |precision| reference.clone().precision(precision).unwrap().check(&got);
    for too_close in [Precision::Fp32, Precision::Tensor, Precision::Split] {
        assert!(check(too_close).is_err(), "{too_close:?}");
    }
    assert!(check(Precision::Tf32).unwrap().worst_over_bound < 1.0);
}

/// Tensor cores may take what is below the normal numbers for zero; `f32` arithmetic may not.
#[test]
fn tiny_factors_may_be_lost_on_tensor_cores() {
    let k = 8;
    let (pattern, mut a, b) = problem(k);
    a.iter_mut().for_each(|value| *value *= 2.0_f32.powi(-130));
    let reference = sddmm(&pattern, &a, &b, k).unwrap();
    let lost = vec![0.0; pattern.nnz()];
    assert!(reference.check(&lost).is_err());
    for precision in [Precision::Split, Precision::Tf32] {
        reference.clone().precision(precision).unwrap().check(&lost).unwrap();
    }
}

#[test]
fn sums_too_long_for_an_arithmetic_are_refused() {
    let k = Precision::Split.max_terms() as usize + 1;
    let pattern = Pattern::new(1, 1, vec![0, 1], vec![0]).unwrap();
    let reference = sddmm(&pattern, &vec![1.0; k], &vec![1.0; k], k).unwrap();
    let error = reference.precision(Precision::Split).unwrap_err();
    assert!(matches!(error, ReferenceError::TooLong { terms, .. } if terms == k), "{error}");
}

#[test]
fn factors_cut_to_tf32_have_a_bound_of_their_own() {
    let k = 64;
    let (pattern, a, b) = problem(k);
    // Of one sign: what is cut then adds up.
    let [a, b] = [a, b].map(|values| values.into_iter().map(f32::abs).collect::<Vec<_>>());
    let cut = |values: &[f32], bits: u32| {
        values.iter().map(|x| f32::from_bits(x.to_bits() >> bits << bits)).collect()
    };
    let of_cut = |bits: u32| {
        let [a, b]: [Vec<f32>; 2] = [cut(&a, bits), cut(&b, bits)];
        sampled(&pattern, &a, &b, k, forward)
    };
    let reference = sddmm(&pattern, &a, &b, k).unwrap();
    let tf32 = reference.clone().precision(Precision::Tf32).unwrap();
    assert!(reference.check(&of_cut(13)).is_err() && tf32.check(&of_cut(13)).is_ok());
    assert!(tf32.check(&of_cut(16)).is_err());
}

#[test]
fn operands_of_the_wrong_length_are_refused() {
    let (pattern, a, b) = problem(8);
    let error = sddmm(&pattern, &a[1..], &b, 8).unwrap_err();
    assert!(matches!(error, ReferenceError::FactorLength { what: "A", rows: ROWS, cols: 8, .. }), "{error}");
    let error = sddmm(&pattern, &a, &b[1..], 8).unwrap_err();
    assert!(matches!(error, ReferenceError::FactorLength { what: "B", rows: COLS, .. }), "{error}");
    let reference = sddmm(&pattern, &a, &b, 8).unwrap();
    let error = reference.check(&[]).unwrap_err();
    assert!(matches!(error, Mismatch::Values { got: 0, .. }), "{error}");
    let error = reference.check_scaled(&[1.0], &vec![0.0; pattern.nnz()]).unwrap_err();
    assert!(matches!(error, Mismatch::Values { what: "values of C", got: 1, .. }), "{error}");
}

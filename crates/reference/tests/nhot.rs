//! The lookup's oracle against `f32` arithmetic, and results that are wrong.

use half::f16;
use lacuna_matrix::generate;
use lacuna_reference::{Mismatch, NHotBags, ReferenceError, nhot, nhot_table_gradient, nhot_weight_gradient};
use proptest::prelude::*;

const OFFSETS: [usize; 5] = [0, 2, 2, 5, 6];
const INDICES: [usize; 6] = [3, 1, 1, 1, 0, 2];
const PLAIN: NHotBags<'_> =
    NHotBags { offsets: &OFFSETS, indices: &INDICES, weights: None, padding: None, mean: false };
/// Rows 1 2, 10 20, 100 200, 1000 2000.
const TABLE: [f32; 8] = [1.0, 2.0, 10.0, 20.0, 100.0, 200.0, 1000.0, 2000.0];

#[test]
fn sums_and_means_by_hand() {
    let sums = nhot(&PLAIN, &TABLE, 2).unwrap();
    assert_eq!(sums.value(), [1010.0, 2020.0, 0.0, 0.0, 21.0, 42.0, 100.0, 200.0]);
    let means = NHotBags { mean: true, padding: Some(1), ..PLAIN };
    let means = nhot(&means, &TABLE, 2).unwrap();
    assert_eq!(means.value(), [1000.0, 2000.0, 0.0, 0.0, 1.0, 2.0, 100.0, 200.0]);
    let weights = [0.5, 2.0, 1.0, -1.0, 3.0, 0.0];
    let weighted = NHotBags { weights: Some(&weights), ..PLAIN };
    let weighted = nhot(&weighted, &TABLE, 2).unwrap();
    assert_eq!(weighted.value(), [520.0, 1040.0, 0.0, 0.0, 3.0, 6.0, 0.0, 0.0]);
}

#[test]
fn gradients_by_hand() {
    let slopes = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let table = nhot_table_gradient(&PLAIN, &slopes, 2, 5).unwrap();
    assert_eq!(table.value(), [5.0, 6.0, 11.0, 14.0, 7.0, 8.0, 1.0, 2.0, 0.0, 0.0]);
    let means = NHotBags { mean: true, padding: Some(0), ..PLAIN };
    let table = nhot_table_gradient(&means, &slopes, 2, 4).unwrap();
    assert_eq!(table.value(), [0.0, 0.0, 5.5, 7.0, 7.0, 8.0, 0.5, 1.0]);
    let weights = nhot_weight_gradient(&means, &slopes, &TABLE, 2).unwrap();
    assert_eq!(weights.value(), [2500.0, 25.0, 85.0, 85.0, 0.0, 2300.0]);
}

proptest! {
    #[test]
    fn f32_arithmetic_keeps_the_bound(n in 1usize..200, seed: u64, mean: bool, reciprocal: bool) {
        let (table, weights) = (generate::random_values(n, seed), generate::random_values(n, seed ^ 1));
        let indices: Vec<usize> = (0..n).collect();
        let bags =
            NHotBags { offsets: &[0, n], indices: &indices, weights: Some(&weights), padding: None, mean };
        let sum = table.iter().zip(&weights).fold(0.0_f32, |sum, (x, w)| w.mul_add(*x, sum));
        let got = match (mean, reciprocal) {
            (false, _) => sum,
            (true, false) => sum / n as f32,
            (true, true) => sum * (1.0 / n as f32),
        };
        let reference = nhot(&bags, &table, 1).unwrap();
        reference.check(&[got]).unwrap();
        let wrong = got + 1e-3 * table.iter().map(|x| x.abs()).sum::<f32>();
        prop_assert!(reference.check(&[wrong]).is_err());
    }
}

#[test]
fn an_empty_bag_is_plus_zero_and_nothing_else() {
    let empty = NHotBags { offsets: &[0, 0], indices: &[], mean: true, ..PLAIN };
    let reference = nhot(&empty, &TABLE, 2).unwrap();
    reference.check(&[0.0, 0.0]).unwrap();
    for wrong in [-0.0, 1e-30, f32::NAN] {
        let error = reference.check(&[0.0, wrong]).unwrap_err();
        assert!(matches!(error, Mismatch::Elements { failures: 1, row: 0, column: 1, .. }), "{error}");
    }
}

#[test]
fn what_is_not_finite_flows_into_its_bag() {
    let mut table = TABLE;
    table[2] = f32::NAN;
    let reference = nhot(&PLAIN, &table, 2).unwrap();
    reference.check(&[f32::NAN, 2020.0, 0.0, 0.0, f32::NAN, 42.0, 100.0, 200.0]).unwrap();
    assert!(reference.check(&[0.0, 2020.0, 0.0, 0.0, 0.0, 42.0, 100.0, 200.0]).is_err());
    let padded = NHotBags { padding: Some(1), ..PLAIN };
    nhot(&padded, &table, 2).unwrap().check(&[1000.0, 2000.0, 0.0, 0.0, 1.0, 2.0, 100.0, 200.0]).unwrap();
}

#[test]
fn rounding_to_16_bits_is_no_error() {
    let halves: Vec<f16> = generate::random_values(8, 1).into_iter().map(f16::from_f32).collect();
    let reference = nhot(&PLAIN, &halves, 2).unwrap();
    let exact: Vec<f16> = reference.value().into_iter().map(f16::from_f64).collect();
    assert_eq!(reference.check(&exact).unwrap().worst_over_bound, 0.0);
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let short = nhot(&PLAIN, &TABLE[..6], 2).unwrap_err();
    assert!(matches!(short, ReferenceError::FactorLength { rows: 4, cols: 2, got: 6, .. }), "{short}");
    let slopes = nhot_table_gradient(&PLAIN, &TABLE[..6], 2, 4).unwrap_err();
    assert!(matches!(slopes, ReferenceError::FactorLength { rows: 4, .. }), "{slopes}");
    let bags = NHotBags { weights: Some(&[1.0]), ..PLAIN };
    let weights = nhot(&bags, &TABLE, 2).unwrap_err();
    assert!(matches!(weights, ReferenceError::Values { expected: 6, got: 1, .. }), "{weights}");
    let error = nhot(&PLAIN, &TABLE, 2).unwrap().check(&[0.0]).unwrap_err();
    assert!(matches!(error, Mismatch::Length { rows: 4, cols: 2, got: 1 }), "{error}");
}

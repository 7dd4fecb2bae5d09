//! The oracle of top-N: order, values, and what it refuses.
use half::bf16;
use lacuna_reference::{Mismatch, ReferenceError, TopNForm, topn};

const INF: f32 = f32::INFINITY;

#[test]
fn order_is_by_value_then_by_index() {
    let row = [1.0, f32::NAN, 3.0, -0.0, 3.0, 0.0, -INF, -f32::NAN, INF];
    let reference = topn(&row, 9, 9, 1.0, TopNForm::Logit).unwrap();
    assert_eq!(reference.indices(), [1, 7, 8, 2, 4, 0, 3, 5, 6]);
    let two = [row.map(bf16::from_f32), [2.0; 9].map(bf16::from_f32)].concat();
    let reference = topn(&two, 9, 2, 1.0, TopNForm::Logit).unwrap();
    assert_eq!(reference.indices(), [1, 7, 0, 1]);
    assert_eq!(reference.value()[2..], [2.0, 2.0]);
}

#[test]
fn values_are_those_of_the_softmax() {
    let row = [0.0_f32, 1.0, 2.0, -INF];
    let sum = 1.0 + 1f64.exp() + 2f64.exp();
    let reference = topn(&row, 4, 4, 1.0, TopNForm::Probability).unwrap();
    for (value, exponent) in reference.value().iter().zip([2.0, 1.0, 0.0, f64::NEG_INFINITY]) {
        assert!((value - f64::exp(exponent) / sum).abs() < 1e-15);
    }
    let right: Vec<f32> = reference.value().iter().map(|&value| value as f32).collect();
    reference.check(&right, &[2, 1, 0, 3]).unwrap();
    reference.check_log_sum_exp(&[sum.ln() as f32]).unwrap();
    let logs = topn(&row, 4, 3, 2.0, TopNForm::LogProbability).unwrap();
    let sum = 1.0 + 0.5f64.exp() + 1f64.exp();
    assert!((logs.value()[0] - (1.0 - sum.ln())).abs() < 1e-15);
    logs.check(&logs.value().iter().map(|&value| value as f32).collect::<Vec<_>>(), &[2, 1, 0]).unwrap();
}

#[test]
fn rows_without_a_softmax_are_nan() {
    for row in [[1.0, f32::NAN], [1.0, INF], [-INF, -INF]] {
        for form in [TopNForm::Probability, TopNForm::LogProbability] {
            assert!(topn(&row, 2, 2, 1.0, form).unwrap().value().iter().all(|value| value.is_nan()));
        }
    }
    let masked = topn(&[-INF, -INF], 2, 1, 1.0, TopNForm::Probability).unwrap();
    masked.check_log_sum_exp(&[-INF]).unwrap();
    assert!(masked.check_log_sum_exp(&[f32::NAN]).is_err());
}

#[test]
fn faults_are_told() {
    let row = [0.5_f32, 2.0, 1.0];
    let reference = topn(&row, 3, 2, 1.0, TopNForm::Logit).unwrap();
    let error = reference.check(&[2.0, 1.0], &[1, 0]).unwrap_err();
    assert!(
        matches!(error, Mismatch::Order { failures: 1, row: 0, place: 1, expected: 2, got: 0, .. }),
        "{error}"
    );
    let error = reference.check(&[2.0, 1.5], &[1, 2]).unwrap_err();
    assert!(matches!(error, Mismatch::Elements { failures: 1, row: 0, column: 1, .. }), "{error}");
    let error = reference.check(&[2.0], &[1, 2]).unwrap_err();
    assert!(matches!(error, Mismatch::Length { rows: 1, cols: 2, got: 1 }), "{error}");
    for (columns, n) in [(3, 0), (3, 4)] {
        let error = topn(&row, columns, n, 1.0, TopNForm::Logit).unwrap_err();
        assert!(matches!(error, ReferenceError::Values { what: "N", .. }), "{error}");
    }
    let error = topn(&row, 2, 1, 1.0, TopNForm::Logit).unwrap_err();
    assert!(matches!(error, ReferenceError::FactorLength { what: "logits", .. }), "{error}");
}

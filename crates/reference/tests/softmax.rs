//! The softmax's oracle against `f32` arithmetic, finite differences, and results that are wrong.

use half::{bf16, f16};
use lacuna_matrix::{Csr, generate};
use lacuna_reference::{Mismatch, ReferenceError, Value, softmax, softmax_gradient};
use proptest::prelude::*;

/// One row of these values.
fn row<T: Value>(values: Vec<T>) -> Csr<T> {
    let n = values.len() as u32;
    Csr::new(1, n as usize, vec![0, n], (0..n).collect(), values).unwrap()
}

/// As a GPU computes it: the exponential, correctly rounded but for a small part of an ulp, and then so many ulp off.
fn computed(x: &[f32], scale: f32, off: impl Fn(usize) -> i32) -> Vec<f32> {
    let greatest = x.iter().map(|x| x * scale.signum()).fold(f32::NEG_INFINITY, f32::max);
    let factor = (f64::from(scale.abs()) * std::f64::consts::LOG2_E) as f32;
    let exponential = |(i, &x): (usize, &f32)| {
        let power = ((x * scale.signum() - greatest) * factor).exp2();
        if power == 0.0 { power } else { f32::from_bits(power.to_bits().saturating_add_signed(off(i))) }
    };
    let exponentials: Vec<f32> = x.iter().enumerate().map(exponential).collect();
    let inverse = exponentials.iter().sum::<f32>().recip();
    exponentials.iter().map(|exponential| exponential * inverse).collect()
}

proptest! {
    #[test]
    fn f32_arithmetic_keeps_the_bound(
        n in 1usize..300, seed: u64, size in -3f32..38.0, scale in prop_oneof![-4f32..-1e-3, 1e-3f32..4.0],
    ) {
        let x: Vec<f32> =
            generate::random_values(n, seed).iter().map(|x| x * 10f32.powf(size)).collect();
        let reference = softmax(&row(x.clone()), scale).unwrap();
        for off in [-1, 0, 1] {
            reference.check(&computed(&x, scale, |_| off)).unwrap();
            reference.check(&computed(&x, scale, |i| if i % 2 == 0 { off } else { -off })).unwrap();
        }
        let total: f64 = reference.value().iter().sum();
        prop_assert!((total - 1.0).abs() < 1e-12);
    }

    #[test]
    fn f32_gradients_keep_the_bound(n in 1usize..300, seed: u64, size in -30f32..30.0, scale in -4f32..4.0) {
        let y = computed(&generate::random_values(n, seed), 3.0, |_| 0);
        let dy: Vec<f32> =
            generate::random_values(n, seed ^ 1).iter().map(|dy| dy * 10f32.powf(size)).collect();
        let sum: f32 = y.iter().zip(&dy).map(|(y, dy)| y * dy).sum();
        let got: Vec<f32> = y.iter().zip(&dy).map(|(y, dy)| scale * y * (dy - sum)).collect();
        softmax_gradient(&row(y), &dy, scale).unwrap().check(&got).unwrap();
    }
}

#[test]
fn rounding_to_16_bits_is_no_error() {
    let x: Vec<f32> = generate::random_values(100, 1).iter().map(|x| 4.0 * x).collect();
    let halves: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
    let reference = softmax(&row(halves), 1.0).unwrap();
    let exact: Vec<f16> = reference.value().iter().map(|&y| f16::from_f64(y)).collect();
    assert_eq!(reference.check(&exact).unwrap().worst_over_bound, 0.0);
    let short: Vec<bf16> = x.iter().map(|&x| bf16::from_f32(x)).collect();
    let reference = softmax(&row(short), 1.0).unwrap();
    let mut got: Vec<bf16> = reference.value().iter().map(|&y| bf16::from_f64(y)).collect();
    reference.check(&got).unwrap();
    got[3] = bf16::from_bits(got[3].to_bits() + 1);
    assert!(reference.check(&got).is_err(), "one place off");
}

#[test]
fn errors_that_arithmetic_does_not_make_are_found() {
    let x: Vec<f32> = generate::random_values(200, 7);
    let reference = softmax(&row(x.clone()), 1.0).unwrap();
    let right: Vec<f32> = reference.value().iter().map(|&y| y as f32).collect();
    assert!(reference.check(&right).unwrap().worst_over_bound < 0.01);
    // A value left out of the sum, and a scale of which a place is lost.
    let without: Vec<f32> = computed(&x[1..], 1.0, |_| 0);
    let wrong: Vec<f32> = [right[0]].into_iter().chain(without).collect();
    assert!(matches!(reference.check(&wrong), Err(Mismatch::Elements { failures: 199, .. })));
    assert!(reference.check(&computed(&x, 1.0001, |_| 0)).is_err());
    let mut swapped = right.clone();
    swapped.swap(3, 4);
    assert!(matches!(reference.check(&swapped), Err(Mismatch::Elements { failures: 2, .. })));
    let mut negative = softmax(&row(vec![0.0f32, f32::NEG_INFINITY]), 1.0).unwrap();
    negative.check(&[1.0, 0.0]).unwrap();
    assert!(negative.check(&[1.0, -0.0]).is_err() && negative.check(&[1.0, 1e-45]).is_err());
    negative = softmax(&row(vec![0.0f32, -1e30]), 1.0).unwrap();
    negative.check(&[1.0, 1e-45]).unwrap();
    assert!(negative.check(&[1.0, -1e-45]).is_err() && negative.check(&[1.0, 1e-44]).is_err());
}

#[test]
fn what_is_not_finite_stays_in_its_row() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let rows = [vec![1.0, nan], vec![1.0, inf], vec![-inf, -inf], vec![-inf, 2.0], vec![3.0, 3.0]];
    let x = Csr::new(5, 2, vec![0, 2, 4, 6, 8, 10], [0, 1].repeat(5), rows.concat()).unwrap();
    let value = softmax(&x, 1.0).unwrap().value();
    assert!(value[..6].iter().all(|y| y.is_nan()));
    assert_eq!(value[6..], [0.0, 1.0, 0.5, 0.5]);
    // By a negative scale -∞ becomes the greatest.
    let value = softmax(&x, -1.0).unwrap().value();
    assert_eq!(value[2..4], [1.0, 0.0]);
    assert!(value[4..8].iter().all(|y| y.is_nan()));
    let gradient = softmax_gradient(&row(vec![0.5f32, 0.5, 0.0]), &[inf, 1.0, 1.0], 1.0).unwrap().value();
    assert!(gradient[0].is_nan() && gradient[1] == f64::NEG_INFINITY && gradient[2].is_nan());
}

#[test]
fn the_gradient_is_the_slope() {
    let x: Vec<f32> = generate::random_values(9, 3);
    let dy: Vec<f32> = generate::random_values(9, 4);
    let scale = 0.75;
    let loss = |x: &[f64]| -> f64 {
        let exponentials: Vec<f64> = x.iter().map(|x| (x * f64::from(scale)).exp()).collect();
        let sum: f64 = exponentials.iter().sum();
        exponentials.iter().zip(&dy).map(|(e, &dy)| e / sum * f64::from(dy)).sum()
    };
    let y: Vec<f32> = softmax(&row(x.clone()), scale).unwrap().value().iter().map(|&y| y as f32).collect();
    let gradient = softmax_gradient(&row(y), &dy, scale).unwrap().value();
    let at: Vec<f64> = x.iter().map(|&x| x.into()).collect();
    for (i, gradient) in gradient.iter().enumerate() {
        let mut near = [at.clone(), at.clone()];
        near[0][i] -= 1e-5;
        near[1][i] += 1e-5;
        let slope = (loss(&near[1]) - loss(&near[0])) / 2e-5;
        assert!((slope - gradient).abs() < 1e-7, "{i}: {slope} and {gradient}");
    }
}

#[test]
fn lengths_are_checked() {
    let y = row(vec![0.5f32, 0.5]);
    let error = softmax_gradient(&y, &[1.0], 1.0).unwrap_err();
    assert!(matches!(error, ReferenceError::Values { what: "dy", expected: 2, got: 1 }), "{error}");
    let error = softmax(&y, 1.0).unwrap().check(&[1.0]).unwrap_err();
    assert!(matches!(error, Mismatch::Values { expected: 2, got: 1, .. }), "{error}");
}

//! What comes after the sum: every way to compute it passes, and wrong ones do not.

use half::f16;
use lacuna_matrix::Csr;
use lacuna_matrix::generate::{random_values, uniform};
use lacuna_reference::bound::{Finish, Sum, Verdict};
use lacuna_reference::{Epilogue, Mismatch, Precision, ReferenceError, SpmmReference, spmm};
use proptest::prelude::*;

const N: usize = 5;
const ROWS: usize = 40;

struct Problem {
    reference: SpmmReference,
    /// The sums in `f32`.
    sums: Vec<f32>,
    before: Vec<f32>,
    bias: Vec<f32>,
}

fn problem() -> Problem {
    let pattern = uniform(ROWS, 60, 0.95, 1).unwrap();
    assert!(pattern.row_lengths().any(|length| length == 0));
    let a = Csr::with_values(pattern.clone(), random_values(pattern.nnz(), 2)).unwrap();
    let b = random_values(60 * N, 3);
    let sums = (0..ROWS * N).map(|at| {
        let (columns, values) = a.row(at / N);
        columns.iter().zip(values).fold(0.0, |sum, (&k, v)| b[k as usize * N + at % N].mul_add(*v, sum))
    });
    Problem {
        sums: sums.collect(),
        reference: spmm(&a, &b, N).unwrap(),
        before: random_values(ROWS * N, 4),
        bias: random_values(ROWS, 5),
    }
}

impl Problem {
    fn check(
        &self,
        epilogue: &Epilogue<'_, f32>,
        element: impl Fn(f32, f32, f32) -> f32,
    ) -> Result<f64, Mismatch> {
        let all = self.sums.iter().zip(&self.before).enumerate();
        let c: Vec<f32> = all.map(|(at, (&sum, &before))| element(sum, before, self.bias[at / N])).collect();
        Ok(self.reference.check_with(epilogue, &c)?.worst_over_bound)
    }
}

#[test]
fn every_order_of_the_terms_passes() {
    let problem = problem();
    let (alpha, beta) = (0.7f32, -1.3f32);
    let (c, bias) = (&problem.before[..], Some(&problem.bias[..]));
    let all = Epilogue { alpha, beta, c, bias, ..Default::default() };
    let orders: [fn(f32, f32, f32) -> f32; 4] = [
        |s, c, bias| 0.7 * s + -1.3 * c + bias,
        |s, c, bias| 0.7f32.mul_add(s, (-1.3f32).mul_add(c, bias)),
        |s, c, bias| (0.7 * s + bias) + -1.3 * c,
        |s, c, bias| (-1.3f32).mul_add(c, 0.7f32.mul_add(s, bias)),
    ];
    for order in orders {
        let worst = problem.check(&all, order).unwrap();
        assert!(worst > 0.0, "{worst}");
    }
    // Something forgotten, exchanged, or applied twice.
    let wrong: [fn(f32, f32, f32) -> f32; 5] = [
        |s, c, _| 0.7 * s + -1.3 * c,
        |s, _, bias| 0.7 * s + bias,
        |s, c, bias| s + -1.3 * c + bias,
        |s, c, bias| -1.3 * s + 0.7 * c + bias,
        |s, c, bias| 0.7 * (s + bias) + -1.3 * c,
    ];
    for element in wrong {
        assert!(problem.check(&all, element).is_err());
    }
}

#[test]
fn each_part_alone() {
    let problem = problem();
    let plain = Epilogue::default();
    assert!(problem.check(&plain, |s, _, _| s).is_ok());
    let scaled = Epilogue { alpha: -3.0, ..plain };
    assert!(problem.check(&scaled, |s, _, _| -3.0 * s).is_ok());
    assert!(problem.check(&scaled, |s, _, _| s).is_err());
    let biased = Epilogue { bias: Some(&problem.bias), ..plain };
    assert!(problem.check(&biased, |s, _, bias| s + bias).is_ok());
    assert!(problem.check(&biased, |s, _, _| s).is_err());
    let added = Epilogue { beta: 1.0, c: &problem.before, ..plain };
    assert!(problem.check(&added, |s, c, _| s + c).is_ok());
    assert!(problem.check(&added, |s, _, _| s).is_err());
    let relu = Epilogue { lo: 0.0, ..plain };
    assert!(problem.check(&relu, |s, _, _| s.max(0.0)).is_ok());
    assert!(problem.check(&relu, |s, _, _| s).is_err());
    let clamped = Epilogue { lo: -0.25, hi: 0.5, ..plain };
    assert!(problem.check(&clamped, |s, _, _| s.clamp(-0.25, 0.5)).is_ok());
    // A clamped result is exact.
    assert!(problem.check(&clamped, |s, _, _| s.clamp(-0.25, 0.5f32.next_up())).is_err());
    // A row of the result is not a column of it.
    let wrong: Vec<f32> = problem.sums.iter().enumerate().map(|(at, s)| s + problem.bias[at % N]).collect();
    assert!(problem.reference.check_with(&biased, &wrong).is_err());
}

/// One element: the reference of some products, judged.
fn passes(sum: Sum, finish: Finish, before: f32, got: f32) -> bool {
    matches!(finish.legal(&sum, Precision::Fp32, before).judge(got), Verdict::Pass(_))
}

/// A sum of one product with 1.
fn one(value: f32) -> Sum {
    let size = f64::from(value.abs());
    Sum { terms: 1, value: f64::from(value), magnitude: if size.is_finite() { size } else { 0.0 }, tiny: 0.0 }
}

const EMPTY: Sum = Sum { terms: 0, value: 0.0, magnitude: 0.0, tiny: 0.0 };

#[test]
fn with_beta_of_zero_c_is_not_read() {
    let problem = problem();
    let beta = 0.0;
    // Not even its length matters.
    for c in [&[f32::NAN; ROWS * N][..], &[]] {
        let epilogue = Epilogue { beta, c, alpha: 2.0, ..Default::default() };
        assert!(problem.check(&epilogue, |s, _, _| 2.0 * s).is_ok());
        assert!(problem.check(&epilogue, |_, _, _| f32::NAN).is_err());
    }
}

#[test]
fn nan_passes_through_the_clamp_and_infinities_do_not() {
    let relu = Finish { lo: 0.0, ..Finish::PLAIN };
    let six = Finish { lo: 0.0, hi: 6.0, ..Finish::PLAIN };
    for finish in [relu, six] {
        assert!(passes(one(f32::NAN), finish, 0.0, f32::NAN));
        assert!(!passes(one(f32::NAN), finish, 0.0, 0.0));
        assert!(passes(one(f32::NEG_INFINITY), finish, 0.0, 0.0));
        assert!(!passes(one(f32::NEG_INFINITY), finish, 0.0, f32::NEG_INFINITY));
    }
    assert!(passes(one(f32::INFINITY), relu, 0.0, f32::INFINITY));
    assert!(
        passes(one(f32::INFINITY), six, 0.0, 6.0) && !passes(one(f32::INFINITY), six, 0.0, f32::INFINITY)
    );
    // A clamp to one number, or to an infinity.
    let three = Finish { lo: 3.0, hi: 3.0, ..Finish::PLAIN };
    assert!(passes(one(1.0), three, 0.0, 3.0) && !passes(one(1.0), three, 0.0, 1.0));
    let up = Finish { lo: f32::INFINITY, ..Finish::PLAIN };
    assert!(passes(one(1.0), up, 0.0, f32::INFINITY) && !passes(one(1.0), up, 0.0, 1.0));
}

#[test]
fn what_is_not_finite_comes_from_every_operand() {
    let all = Finish { alpha: 2.0, beta: 1.0, bias: Some(1.0), ..Finish::PLAIN };
    assert!(passes(one(1.0), all, f32::INFINITY, f32::INFINITY));
    assert!(!passes(one(1.0), all, f32::INFINITY, f32::NAN) && !passes(one(1.0), all, f32::INFINITY, 3.0));
    assert!(passes(one(1.0), all, f32::NAN, f32::NAN) && !passes(one(1.0), all, f32::NAN, 3.0));
    assert!(passes(one(f32::INFINITY), all, f32::NEG_INFINITY, f32::NAN));
    assert!(!passes(one(f32::INFINITY), all, f32::NEG_INFINITY, f32::INFINITY));
    let biased = Finish { bias: Some(f32::NEG_INFINITY), ..Finish::PLAIN };
    assert!(passes(one(1.0), biased, 0.0, f32::NEG_INFINITY));
    // Zero times infinity.
    let nothing = Finish { alpha: 0.0, ..Finish::PLAIN };
    assert!(passes(one(f32::INFINITY), nothing, 0.0, f32::NAN) && passes(one(5.0), nothing, 0.0, 0.0));
    let infinite = Finish { alpha: f32::INFINITY, ..Finish::PLAIN };
    assert!(passes(one(2.0), infinite, 0.0, f32::INFINITY) && passes(EMPTY, infinite, 0.0, f32::NAN));
    assert!(!passes(one(2.0), infinite, 0.0, f32::NAN) && !passes(one(-2.0), infinite, 0.0, f32::INFINITY));
}

#[test]
fn overflow_only_where_the_terms_can() {
    let double = Finish { alpha: 2.0, ..Finish::PLAIN };
    assert!(
        passes(one(f32::MAX), double, 0.0, f32::INFINITY) && !passes(one(f32::MAX), double, 0.0, f32::MAX)
    );
    // In one order twice ¾ of the largest overflows, fused it does not.
    let (less, most) = (Finish { alpha: 2.0, beta: -1.0, ..Finish::PLAIN }, 0.75 * f32::MAX);
    assert!(passes(one(most), less, most, f32::INFINITY) && passes(one(most), less, most, most));
    assert!(!passes(one(most), less, most, f32::NEG_INFINITY) && !passes(one(most), less, most, f32::NAN));
    // Both ways.
    let both = Finish { alpha: 2.0, beta: -2.0, ..Finish::PLAIN };
    for got in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0] {
        assert!(passes(one(f32::MAX), both, f32::MAX, got), "{got}");
    }
    // An overflow is clamped as the infinity that it is.
    let clamped = Finish { hi: 1.0, ..double };
    assert!(passes(one(f32::MAX), clamped, 0.0, 1.0) && !passes(one(f32::MAX), clamped, 0.0, f32::INFINITY));
}

#[test]
fn empty_rows_have_what_is_added_to_them() {
    let finish = Finish { alpha: 3.0, beta: 2.0, bias: Some(0.5), lo: 0.0, hi: 4.0 };
    assert!(passes(EMPTY, finish, 1.0, 2.5) && !passes(EMPTY, finish, 1.0, 2.5f32.next_up().next_up()));
    assert!(passes(EMPTY, finish, -1.0, 0.0) && passes(EMPTY, finish, 2.0, 4.0));
    // A plain sum of nothing is +0, also past a ReLU; scaled it may be a zero of either sign.
    let relu = Finish { lo: 0.0, ..Finish::PLAIN };
    for finish in [Finish::PLAIN, relu] {
        assert!(passes(EMPTY, finish, 0.0, 0.0) && !passes(EMPTY, finish, 0.0, -0.0));
    }
    let scaled = Finish { alpha: -1.0, ..Finish::PLAIN };
    assert!(passes(EMPTY, scaled, 0.0, -0.0) && passes(EMPTY, scaled, 0.0, 0.0));
    // Below zero the sign of a zero is no matter.
    let below = Finish { hi: -1.0, ..Finish::PLAIN };
    assert!(passes(EMPTY, below, 0.0, -1.0) && !passes(EMPTY, below, 0.0, 0.0));
}

#[test]
fn halves_are_finished_in_f32_and_rounded_once() {
    let half = f16::from_f32;
    let a = Csr::new(1, 1, vec![0, 1], vec![0], vec![half(2048.0)]).unwrap();
    let reference = spmm(&a, &[half(1.0)], 1).unwrap();
    // 2048 + 1.5 rounds to 2050; with the sum rounded first, 2048 + 1 would be 2048.
    let epilogue = Epilogue { alpha: 1.0, beta: 1.5, c: &[half(1.0)], ..Default::default() };
    assert!(reference.check_with(&epilogue, &[half(2050.0)]).is_ok());
    assert!(reference.check_with(&epilogue, &[half(2048.0)]).is_err());
    // A clamp that no half is: its end is rounded, too.
    let epilogue = Epilogue { hi: 1000.3, ..Default::default() };
    assert!(reference.check_with(&epilogue, &[half(1000.5)]).is_ok());
    assert!(reference.check_with(&epilogue, &[half(1000.0)]).is_err());
    // One that lies in the middle of two halves becomes the even one.
    let epilogue = Epilogue { alpha: 2.0, hi: 2049.0, ..Default::default() };
    assert!(reference.check_with(&epilogue, &[half(2048.0)]).is_ok());
    assert!(reference.check_with(&epilogue, &[half(2050.0)]).is_err());
    // 2048 · 40 is beyond a half, and clamped it is not.
    let epilogue = Epilogue { alpha: 40.0, ..Default::default() };
    assert!(reference.check_with(&epilogue, &[f16::INFINITY]).is_ok());
    assert!(reference.check_with(&epilogue, &[f16::MAX]).is_err());
    let epilogue = Epilogue { alpha: 40.0, hi: 60_000.0, ..Default::default() };
    assert!(reference.check_with(&epilogue, &[half(60_000.0)]).is_ok());
}

#[test]
fn inputs_are_checked() {
    let problem = problem();
    let refused = |epilogue: Epilogue<'_, f32>| match problem.check(&epilogue, |s, _, _| s).unwrap_err() {
        Mismatch::Reference(error) => error,
        other => panic!("{other}"),
    };
    let got = refused(Epilogue { beta: 1.0, c: &[0.0], ..Default::default() });
    assert_eq!(got.to_string(), "C before, row-major: expected 200 elements, got 1");
    let got = refused(Epilogue { bias: Some(&[0.0; 5]), ..Default::default() });
    assert_eq!(got, ReferenceError::EpilogueLength { what: "bias, one a row of C", expected: 40, got: 5 });
    let got = refused(Epilogue { lo: 2.0, hi: 1.0, ..Default::default() });
    assert_eq!(got, ReferenceError::Clamp { lo: 2.0, hi: 1.0 });
    for (lo, hi) in [(f32::NAN, 1.0), (0.0, f32::NAN)] {
        assert!(matches!(refused(Epilogue { lo, hi, ..Default::default() }), ReferenceError::Clamp { .. }));
    }
}

/// Any value: mostly finite, and now and then infinite or NaN.
fn anything() -> impl Strategy<Value = f32> {
    prop_oneof![8 => any::<f32>(), 8 => -2.0f32..2.0, 2 => Just(0.0), 2 => Just(1.0), 1 => proptest::num::f32::ANY]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(5000) })]

    /// Whatever the numbers, an honest epilogue of an honest sum passes.
    #[test]
    fn honest_epilogues_pass(
        (a, b, before, alpha) in (anything(), anything(), anything(), anything()),
        (beta, bias, ends) in (anything(), proptest::option::of(anything()), (anything(), anything())),
    ) {
        let product = f64::from(a) * f64::from(b);
        let magnitude = if product.is_finite() { product.abs() } else { 0.0 };
        let sum = Sum { terms: 1, value: product, magnitude, tiny: 0.0 };
        let (lo, hi) = match ends {
            (x, y) if x.is_nan() || y.is_nan() => (f32::NEG_INFINITY, f32::INFINITY),
            (x, y) => (x.min(y), x.max(y)),
        };
        let finish = Finish { alpha, beta, bias, lo, hi };
        let clamp = |x: f32| x.clamp(lo, hi);
        let s = a * b;
        let c = if beta == 0.0 { None } else { Some(before) };
        let scaled = if alpha == 1.0 { s } else { alpha * s };
        let mut plain = scaled;
        let mut fused = scaled;
        if let Some(c) = c {
            plain += beta * c;
            fused = beta.mul_add(c, fused);
        }
        if let Some(bias) = bias {
            plain += bias;
            fused += bias;
        }
        let inner = c.map_or(bias.unwrap_or(0.0), |c| beta * c + bias.unwrap_or(0.0));
        for (way, got) in [("plain", plain), ("fused", fused), ("inner", alpha.mul_add(s, inner))] {
            let got = clamp(got);
            prop_assert!(passes(sum, finish, before, got), "{way}: {got:e}, {:?}", finish.legal(&sum, Precision::Fp32, before));
        }
    }
}

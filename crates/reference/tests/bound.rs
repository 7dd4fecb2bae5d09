//! The bound is neither too tight nor too loose, and knows what does not stay finite.

use lacuna_reference::Precision;
use lacuna_reference::bound::{Sum, Verdict};
use proptest::prelude::*;

/// The sum of some products, as the reference computes it.
fn sum(factors: &[(f32, f32)]) -> Sum {
    let products = || factors.iter().map(|&(a, b)| f64::from(a) * f64::from(b));
    let magnitude = products().filter(|product| product.is_finite()).map(f64::abs).sum();
    Sum { terms: factors.len() as u32, value: products().sum(), magnitude, tiny: 0.0 }
}

fn passes(factors: &[(f32, f32)], got: f32) -> bool {
    matches!(sum(factors).legal(Precision::Fp32).judge(got), Verdict::Pass(_))
}

#[test]
fn one_product_allows_one_rounding() {
    let one = [(1.0, 1.0)];
    assert!(passes(&one, 1.0));
    assert!(!passes(&one, 1.0f32.next_up()));
    let (a, b) = (1.1f32, 1.3f32);
    assert!(passes(&[(a, b)], a * b));
    assert!(!passes(&[(a, b)], (a * b).next_up().next_up()));
}

#[test]
fn cancellation_is_judged_by_what_cancels() {
    // The exact sum is 2^-30; the products of 1 leave an f32 sum of 0 within the bound, and 1e-6 outside it.
    let factors = [(1.0, 1.0), (2f32.powi(-30), 1.0), (-1.0, 1.0)];
    assert!(passes(&factors, 0.0));
    assert!(!passes(&factors, 1e-6));
}

#[test]
fn zero_products_leave_no_room() {
    assert!(passes(&[(0.0, 5.0); 3], 0.0));
    assert!(passes(&[(0.0, 5.0); 3], -0.0));
    assert!(!passes(&[(0.0, 5.0); 3], f32::from_bits(1)));
}

#[test]
fn underflow_is_allowed_for_and_no_more() {
    let tiny = f32::from_bits(3);
    // 1.5 of the smallest subnormal rounds to 2 of it, or in either direction.
    assert!(passes(&[(tiny, 0.5)], tiny * 0.5));
    assert!(!passes(&[(tiny, 0.5)], f32::from_bits(3)));
    assert!(passes(&[(1e-30, 1e-30)], 0.0));
    // Flushing a subnormal result to zero is an error.
    assert!(!passes(&[(f32::MIN_POSITIVE, 0.5)], 0.0));
}

#[test]
fn infinite_inputs_give_that_infinity() {
    let up = [(f32::INFINITY, 1.0), (5.0, 1.0)];
    assert!(passes(&up, f32::INFINITY));
    for wrong in [f32::NEG_INFINITY, f32::NAN, f32::MAX, 5.0] {
        assert!(!passes(&up, wrong), "{wrong}");
    }
    for nan in [[(f32::INFINITY, 1.0), (f32::NEG_INFINITY, 1.0)], [(f32::INFINITY, 0.0), (1.0, 1.0)]] {
        assert!(passes(&nan, f32::NAN));
        assert!(!passes(&nan, 1.0) && !passes(&nan, f32::INFINITY));
    }
    // The finite products may overflow to the other infinity first.
    let mixed = [(f32::INFINITY, 1.0), (-f32::MAX, 2.0)];
    assert!(passes(&mixed, f32::NAN) && passes(&mixed, f32::INFINITY) && !passes(&mixed, f32::NEG_INFINITY));
}

#[test]
fn finite_inputs_may_overflow_only_where_a_partial_sum_can() {
    // Beyond f32 in the end: infinite of that sign, and not finite.
    let beyond = [(f32::MAX, 2.0), (1.0, 1.0)];
    assert!(passes(&beyond, f32::INFINITY));
    for wrong in [f32::MAX, f32::NEG_INFINITY, f32::NAN] {
        assert!(!passes(&beyond, wrong), "{wrong}");
    }
    // Within f32 in the end, but either way on the way, as the order has it.
    let through = [(f32::MAX, 2.0), (-f32::MAX, 2.0), (1.0, 1.0)];
    for good in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0] {
        assert!(passes(&through, good), "{good}");
    }
    // The negative part is too small to overflow.
    let up_only = [(f32::MAX, 2.0), (-f32::MAX, 0.9)];
    assert!(passes(&up_only, f32::INFINITY));
    assert!(!passes(&up_only, f32::NEG_INFINITY) && !passes(&up_only, f32::NAN));
    // Within f32 all the way.
    let within = [(f32::MAX, 0.4), (f32::MAX, 0.4)];
    assert!(passes(&within, f32::MAX * 0.8) && !passes(&within, f32::INFINITY));
    // At the edge both are right.
    let edge = [(f32::MAX, 1.0), (f32::MAX, 2f32.powi(-25))];
    assert!(passes(&edge, f32::MAX) && passes(&edge, f32::INFINITY));
}

/// Any value: mostly finite, so that not every sum is NaN, and now and then infinite or NaN.
fn anything() -> impl Strategy<Value = f32> {
    prop_oneof![16 => any::<f32>(), 1 => proptest::num::f32::ANY]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    /// Whatever the values, be they infinite, subnormal or NaN, an honest sum in any order passes.
    #[test]
    fn honest_sums_pass(
        factors in proptest::collection::vec((anything(), anything()), 1..40),
        split in 0..40usize,
    ) {
        let plain = factors.iter().fold(0.0f32, |sum, (a, b)| sum + a * b);
        prop_assert!(passes(&factors, plain), "{plain}");
        let fused = factors.iter().fold(0.0f32, |sum, &(a, b)| a.mul_add(b, sum));
        prop_assert!(passes(&factors, fused), "{fused}");
        let (left, right) = factors.split_at(split.min(factors.len()));
        let halves = |part: &[(f32, f32)]| part.iter().rev().fold(0.0f32, |sum, &(a, b)| a.mul_add(b, sum));
        let split = halves(left) + halves(right);
        prop_assert!(passes(&factors, split), "{split}");
    }

    /// The same with values near the ends of the range, where products overflow and underflow.
    #[test]
    fn honest_sums_pass_at_the_ends(
        factors in proptest::collection::vec(
            (prop_oneof![1e18f32..3e19, -3e19f32..-1e18, 1e-23f32..1e-22], prop_oneof![1e18f32..1.9e19, 1e-23f32..1e-22]),
            1..12,
        ),
    ) {
        let plain = factors.iter().fold(0.0f32, |sum, (a, b)| sum + a * b);
        prop_assert!(passes(&factors, plain), "{plain}");
        let fused = factors.iter().rev().fold(0.0f32, |sum, &(a, b)| a.mul_add(b, sum));
        prop_assert!(passes(&factors, fused), "{fused}");
    }
}

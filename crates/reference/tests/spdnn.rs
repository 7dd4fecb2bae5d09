//! The oracle of feed-forward networks: by hand, against `f32` arithmetic, and what is wrong or undecided.

use lacuna_matrix::generate::{random_values, uniform};
use lacuna_matrix::{Csr, Pattern};
use lacuna_reference::{Mismatch, ReferenceError, SpdnnLayer, SpdnnReference, spdnn};
use proptest::prelude::*;

const INF: f32 = f32::INFINITY;
const IDENTITY: (f32, f32) = (-INF, INF);
const CHALLENGE: (f32, f32) = (0.0, 32.0);

/// Weights as rows of (input, weight).
fn weights(inputs: usize, rows: &[&[(u32, f32)]]) -> Csr<f32> {
    let mut offsets = vec![0];
    offsets.extend(rows.iter().scan(0, |end, row| {
        *end += row.len() as u32;
        Some(*end)
    }));
    let (columns, values) = rows.iter().copied().flatten().copied().unzip();
    Csr::new(rows.len(), inputs, offsets, columns, values).unwrap()
}

fn layer<'a>(weights: &'a Csr<f32>, bias: &'a [f32], (lo, hi): (f32, f32)) -> SpdnnLayer<'a> {
    SpdnnLayer { weights, bias, lo, hi, tensor_cores: false }
}

/// The network in `f32`, each sum in an order drawn from `seed`, the bias first or last.
fn evaluate(features: &[f32], layers: &[SpdnnLayer<'_>], seed: u64, fused: bool) -> Vec<f32> {
    let rows = features.len() / layers[0].weights.cols();
    let (mut y, mut state) = (features.to_vec(), seed);
    for layer in layers {
        let (inputs, outputs) = (layer.weights.cols(), layer.weights.rows());
        let output = |at: usize| {
            let (row, output) = (at / outputs, at % outputs);
            let (columns, values) = layer.weights.row(output);
            let mut edges: Vec<_> = columns.iter().zip(values).collect();
            edges.sort_by_cached_key(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 33
            });
            let bias = layer.bias[output % layer.bias.len()];
            let first = if state & 1 << 40 == 0 { 0.0 } else { bias };
            let sum = edges.iter().fold(first, |sum, &(&column, &w)| {
                let x = y[row * inputs + column as usize];
                if fused { w.mul_add(x, sum) } else { sum + w * x }
            });
            let sum = if state & 1 << 40 == 0 { sum + bias } else { sum };
            sum.clamp(layer.lo, layer.hi)
        };
        y = (0..rows * outputs).map(output).collect();
    }
    y
}

fn accepts(reference: &SpdnnReference, scores: &[f32]) -> bool {
    reference.check(scores).is_ok()
}

#[test]
fn two_layers_by_hand() {
    let first = weights(2, &[&[(0, 1.0), (1, -1.0)], &[(0, 0.5), (1, 2.0)], &[]]);
    let second = weights(3, &[&[(0, 4.0), (2, 1.0)], &[(1, -1.0), (2, 3.0)]]);
    let layers = [layer(&first, &[0.5, -0.25, 1.5], CHALLENGE), layer(&second, &[-1.0], CHALLENGE)];
    // Rows 3 1 → 2.5 3.25 1.5, 1 2 → 0 4.25 1.5, and 0 0 → 0.5 0 1.5.
    let reference = spdnn(&[3.0, 1.0, 1.0, 2.0, 0.0, 0.0], &layers).unwrap();
    let scores = [10.5, 0.25, 0.5, 0.0, 2.5, 3.5];
    assert_eq!(reference.value(), scores.map(f64::from));
    assert_eq!(reference.check(&scores).unwrap().worst_over_bound, 0.0);
    assert_eq!(reference.categories().unwrap(), [0, 1, 2]);
    for at in 0..6 {
        let mut wrong = scores;
        wrong[at] += 1e-4;
        let error = reference.check(&wrong).unwrap_err();
        assert!(
            matches!(error, Mismatch::Elements { failures: 1, checked: 6, terms: 2, row, column, .. }
                if (row, column) == (at / 2, at % 2)),
            "{error}"
        );
    }
}

#[test]
fn errors_add_up_over_layers_and_no_more() {
    let (first, second) = (weights(1, &[&[(0, 1.3)]]), weights(1, &[&[(0, 1.7)]]));
    let layers = [layer(&first, &[0.0], IDENTITY), layer(&second, &[0.0], IDENTITY)];
    let reference = spdnn(&[1.3], &layers).unwrap();
    // Two roundings make the number below of the nearest one.
    let nearest = (f64::from(1.3f32) * f64::from(1.3f32) * f64::from(1.7f32)) as f32;
    assert_eq!(1.7 * (1.3 * 1.3f32), nearest.next_down());
    for right in [nearest.next_down(), nearest, nearest.next_up()] {
        assert!(accepts(&reference, &[right]), "{right}");
    }
    for wrong in [nearest.next_down().next_down(), nearest.next_up().next_up()] {
        assert!(!accepts(&reference, &[wrong]), "{wrong}");
    }
    // One layer has one rounding.
    let reference = spdnn(&[1.3], &layers[..1]).unwrap();
    let nearest = 1.3f32 * 1.3;
    assert!(accepts(&reference, &[nearest]) && !accepts(&reference, &[nearest.next_up().next_up()]));
}

#[test]
fn the_clamp_takes_errors_away() {
    let first = weights(2, &[&[(0, 10.1), (1, 10.1)], &[(0, -0.1), (1, -0.7)], &[(0, 0.1), (1, 0.7)]]);
    let layers = [layer(&first, &[-0.3], CHALLENGE)];
    let reference = spdnn(&[1.7, 1.9], &layers).unwrap();
    let sum = 0.1 * 1.7 + 0.7 * 1.9 - 0.3;
    assert!(accepts(&reference, &[32.0, 0.0, sum]) && accepts(&reference, &[32.0, -0.0, sum]));
    let one = f32::from_bits(1);
    for wrong in [[32f32.next_down(), 0.0, sum], [32f32.next_up(), 0.0, sum], [32.0, one, sum]] {
        assert!(!accepts(&reference, &wrong), "{wrong:?}");
    }
    // What comes of the ends is as exact as of inputs.
    let second = weights(3, &[&[(0, 1.0)], &[(1, 5.0)]]);
    let reference = spdnn(&[1.7, 1.9], &[layers[0], layer(&second, &[0.0], IDENTITY)]).unwrap();
    assert!(accepts(&reference, &[32.0, 0.0]) && !accepts(&reference, &[32.0, one]));
}

#[test]
fn an_output_without_edges_is_its_bias() {
    let (empty, after) = (weights(3, &[&[], &[], &[]]), weights(3, &[&[(0, 1.0), (1, 1.0), (2, 1.0)]]));
    let layers = [layer(&empty, &[0.1, -4.0, 100.0], CHALLENGE), layer(&after, &[0.0], IDENTITY)];
    let reference = spdnn(&[f32::NAN; 6], &layers[..1]).unwrap();
    assert!(accepts(&reference, &[0.1, 0.0, 32.0, 0.1, 0.0, 32.0]));
    assert!(!accepts(&reference, &[0.1f32.next_up(), 0.0, 32.0, 0.1, 0.0, 32.0]));
    assert!(accepts(&spdnn(&[f32::NAN; 6], &layers).unwrap(), &[32.1; 2]));
    let infinite = [layer(&empty, &[INF, f32::NAN, -INF], IDENTITY)];
    let reference = spdnn(&[0.0; 3], &infinite).unwrap();
    assert!(accepts(&reference, &[INF, f32::NAN, -INF]) && !accepts(&reference, &[INF, 0.0, -INF]));
}

#[test]
fn nan_reaches_what_has_an_edge_from_it() {
    let first = weights(2, &[&[(0, 1.0)], &[(0, 1.0), (1, 0.0)], &[(1, f32::NAN)], &[]]);
    let second = weights(4, &[&[(0, 2.0), (3, 1.0)], &[(1, 1.0)], &[(0, 1.0), (2, -1.0)]]);
    let layers = [layer(&first, &[1.0], CHALLENGE), layer(&second, &[0.5], CHALLENGE)];
    let reference = spdnn(&[2.0, f32::NAN, 2.0, 0.0], &layers).unwrap();
    let (nan, first_row) = (f32::NAN, [7.5, f32::NAN, f32::NAN]);
    assert!(accepts(&reference, &[first_row, [7.5, 3.5, nan]].concat()));
    for wrong in [[7.5, 0.0, nan], [7.5, nan, 32.0], [nan, nan, nan]] {
        assert!(!accepts(&reference, &[wrong, [7.5, 3.5, nan]].concat()), "{wrong:?}");
    }
    assert!(!accepts(&reference, &[first_row, [7.5, nan, nan]].concat()));
    // NaN is not zero.
    let only = weights(1, &[&[(0, 1.0)]]);
    let reference = spdnn(&[0.0, nan], &[layer(&only, &[0.0], CHALLENGE)]).unwrap();
    assert_eq!(reference.categories().unwrap(), [1]);
}

#[test]
fn infinities_keep_their_sign() {
    let w = weights(
        3,
        &[&[(0, 2.0), (1, 1.0)], &[(0, -0.1), (1, 1.0)], &[(0, 0.0)], &[(1, 3.0)], &[(0, 1.0), (2, 1.0)]],
    );
    let features = [INF, 1.0, -INF];
    let reference = spdnn(&features, &[layer(&w, &[0.0], IDENTITY)]).unwrap();
    let right = [INF, -INF, f32::NAN, 3.0, f32::NAN];
    assert!(accepts(&reference, &right));
    for (at, wrong) in [(0, f32::MAX), (0, -INF), (0, f32::NAN), (1, INF), (2, 0.0), (3, INF), (4, INF)] {
        let mut scores = right;
        scores[at] = wrong;
        assert!(!accepts(&reference, &scores), "{scores:?}");
    }
    let sum = weights(5, &[&[(0, 1.0), (1, 1.0), (3, -2.0)], &[(2, 1.0)]]);
    let layers = [layer(&w, &[0.0], CHALLENGE), layer(&sum, &[0.0], IDENTITY)];
    let reference = spdnn(&features, &layers).unwrap();
    assert!(accepts(&reference, &[26.0, f32::NAN]) && !accepts(&reference, &[26.0, 0.0]));
    let endless = weights(1, &[&[(0, INF)]]);
    let reference = spdnn(&[1.0, -2.0, 0.0], &[layer(&endless, &[0.0], IDENTITY)]).unwrap();
    assert!(accepts(&reference, &[INF, -INF, f32::NAN]) && !accepts(&reference, &[INF, INF, f32::NAN]));
}

#[test]
fn sums_may_overflow_where_they_can() {
    let max = f32::MAX;
    let w = weights(2, &[&[(0, 2.0), (1, 1.0)], &[(0, 2.0), (1, -2.0)], &[(0, 1.0), (1, 6e-8)]]);
    let first = layer(&w, &[1.0], IDENTITY);
    let reference = spdnn(&[max, max], &[first]).unwrap();
    for open in [INF, -INF, f32::NAN, 1.0] {
        assert!(accepts(&reference, &[INF, open, INF]) && accepts(&reference, &[INF, open, max]), "{open}");
    }
    for wrong in [[max, 1.0, INF], [f32::NAN, 1.0, INF], [INF, 1.0, 0.9 * max], [INF, 1.0, f32::NAN]] {
        assert!(!accepts(&reference, &wrong), "{wrong:?}");
    }
    // The clamp leaves less open, NaN as well.
    let reference = spdnn(&[max, max], &[SpdnnLayer { lo: 0.0, hi: 32.0, ..first }]).unwrap();
    for open in [0.0, 1.0, 32.0, f32::NAN] {
        assert!(accepts(&reference, &[32.0, open, 32.0]), "{open}");
    }
    assert!(!accepts(&reference, &[32.0, 33.0, 32.0]) && !accepts(&reference, &[32.0, -1.0, 32.0]));
    let after = weights(3, &[&[(1, 1.0)]]);
    let reference = spdnn(&[max, max], &[first, layer(&after, &[0.0], CHALLENGE)]).unwrap();
    assert!(accepts(&reference, &[f32::NAN]) && accepts(&reference, &[7.0]) && !accepts(&reference, &[33.0]));
}

#[test]
fn categories_are_rows_that_are_not_zero_or_undecided() {
    // 0.1 + 0.2 - 0.3 is about -7e-9 of these f32, but not in each order of f32 sums.
    let w = weights(3, &[&[(0, 0.1), (1, 0.2), (2, -0.3)], &[(0, 1.0)]]);
    let positive = [layer(&w, &[-0.5, 0.0], CHALLENGE)];
    let reference =
        spdnn(&[0.0, 5.0, 1.0, 0.0, 0.0, -0.0, 9.0, 0.0, 0.0, -1.0, 0.0, 0.0], &positive).unwrap();
    assert_eq!(reference.categories().unwrap(), [0, 2]);
    let open = [layer(&w, &[0.0], CHALLENGE)];
    let reference = spdnn(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0], &open).unwrap();
    assert_eq!(reference.categories().unwrap(), [1]);
    let first = weights(3, &[&[(0, 0.1), (1, 0.2), (2, -0.3)]]);
    let reference = spdnn(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0], &[layer(&first, &[0.0], CHALLENGE)]).unwrap();
    assert_eq!(reference.categories().unwrap_err(), ReferenceError::Undecided { row: 1 });
    assert!(accepts(&reference, &[0.0, 0.0]) && accepts(&reference, &[-0.0, 1e-8]));
    assert!(!accepts(&reference, &[1e-8, 0.0]) && !accepts(&reference, &[0.0, 1e-6]));
    // A negative score is not zero.
    let reference = spdnn(&[0.0, -1.0, 0.0], &[layer(&w, &[0.0], IDENTITY)]).unwrap();
    assert_eq!(reference.categories().unwrap(), [0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (first, second) = (weights(2, &[&[(0, 1.0)], &[], &[]]), weights(3, &[&[], &[]]));
    let layers = [layer(&first, &[0.0; 3], IDENTITY), layer(&second, &[1.0, 2.0], IDENTITY)];
    let error = |features: &[f32], layers: &[SpdnnLayer<'_>]| spdnn(features, layers).unwrap_err();
    assert_eq!(error(&[1.0], &[]), ReferenceError::NoLayers);
    let features = error(&[1.0; 3], &layers);
    assert!(matches!(features, ReferenceError::FactorLength { rows: 1, cols: 2, got: 3, .. }), "{features}");
    let width = error(&[1.0; 4], &[layers[0], layers[0]]);
    assert_eq!(width, ReferenceError::LayerInputs { layer: 1, expected: 3, got: 2 });
    for bias in [&[][..], &[1.0; 3]] {
        let length = error(&[1.0; 4], &[layers[0], SpdnnLayer { bias, ..layers[1] }]);
        assert_eq!(length, ReferenceError::LayerBias { layer: 1, outputs: 2, got: bias.len() });
    }
    for (lo, hi) in [(1.0, 0.0), (f32::NAN, 1.0), (0.0, f32::NAN)] {
        let clamp = error(&[1.0; 4], &[SpdnnLayer { lo, hi, ..layers[0] }, layers[1]]);
        assert!(matches!(clamp, ReferenceError::Clamp { .. }), "{clamp}");
    }
    let reference = spdnn(&[1.0; 4], &layers).unwrap();
    let length = reference.check(&[1.0, 2.0, 1.0]).unwrap_err();
    assert!(matches!(length, Mismatch::Length { rows: 2, cols: 2, got: 3 }), "{length}");
    assert!(accepts(&spdnn(&[], &layers).unwrap(), &[]));
    assert_eq!(spdnn(&[], &layers).unwrap().categories().unwrap(), [0u32; 0]);
}

const WIDTHS: [usize; 6] = [40, 60, 50, 30, 70, 20];
const CLAMPS: [(f32, f32); 5] = [(0.0, INF), (-1.0, 1.0), IDENTITY, (0.0, 1.5), (-2.0, INF)];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn f32_arithmetic_keeps_the_bounds(seed in 0u64..1 << 40, rows in 1usize..9, fused: bool) {
        let shapes = WIDTHS.windows(2).zip(seed + 1..);
        let networks: Vec<(Csr<f32>, Vec<f32>)> = shapes.map(|(widths, seed)| {
            let pattern = uniform(widths[1], widths[0], 0.9, seed).unwrap();
            let values = random_values(pattern.nnz(), seed ^ 1 << 50);
            let bias = random_values(if seed % 2 == 0 { 1 } else { widths[1] }, seed ^ 1 << 51);
            (Csr::with_values(pattern, values).unwrap(), bias)
        }).collect();
        let layers: Vec<SpdnnLayer<'_>> =
            networks.iter().zip(CLAMPS).map(|((w, bias), clamp)| layer(w, bias, clamp)).collect();
        let features = random_values(rows * WIDTHS[0], seed);
        let reference = spdnn(&features, &layers).unwrap();
        for order in 0..4 {
            let scores = evaluate(&features, &layers, seed ^ order << 45, fused);
            let report = reference.check(&scores).unwrap();
            prop_assert!(report.worst_over_bound > 0.0);
            for at in [0, scores.len() - 1] {
                for sign in [-1.0, 1.0] {
                    let mut wrong = scores.clone();
                    wrong[at] += sign * 1e-3;
                    prop_assert!(!accepts(&reference, &wrong), "{at}");
                }
            }
        }
        for index in 0..layers.len() {
            let mut other = layers.clone();
            other[index].bias = &[0.25];
            prop_assert!(!accepts(&reference, &evaluate(&features, &other, seed, fused)), "{index}");
        }
    }

    /// Whatever the values, an honest evaluation passes.
    #[test]
    fn honest_scores_pass(
        values in proptest::collection::vec(
            prop_oneof![16 => any::<f32>(), 16 => -4f32..4.0, 1 => proptest::num::f32::ANY], 6 * 8 + 4 * 6 + 10 + 5 * 8),
        clamps in proptest::collection::vec(
            prop_oneof![Just(IDENTITY), Just(CHALLENGE), Just((0.0, INF)), Just((-1e30, 1e38))], 2),
        seed: u64,
        fused: bool,
    ) {
        let (first, rest) = values.split_at(6 * 8);
        let (second, rest) = rest.split_at(4 * 6);
        let (bias, features) = rest.split_at(10);
        let full = |rows, cols, values: &[f32]| {
            let pattern = Pattern::new(
                rows,
                cols,
                (0..=rows).map(|row| (row * cols) as u32).collect(),
                (0..rows * cols).map(|at| (at % cols) as u32).collect(),
            );
            Csr::with_values(pattern.unwrap(), values.to_vec()).unwrap()
        };
        let (first, second) = (full(6, 8, first), full(4, 6, second));
        let layers = [layer(&first, &bias[..6], clamps[0]), layer(&second, &bias[6..], clamps[1])];
        let scores = evaluate(features, &layers, seed, fused);
        prop_assert!(spdnn(features, &layers).unwrap().check(&scores).is_ok(), "{scores:?}");
    }
}

#[test]
fn deep_networks_stay_decided() {
    // Each of 128 neurons has 32 edges of 1/16, as in the Sparse DNN Challenge: what errs doubles in each layer.
    let patterns: Vec<Pattern> = (0..40).map(|seed| uniform(128, 128, 0.75, seed).unwrap()).collect();
    let networks = patterns.into_iter().map(|pattern| {
        let values = vec![1.0 / 16.0; pattern.nnz()];
        Csr::with_values(pattern, values).unwrap()
    });
    let networks: Vec<Csr<f32>> = networks.collect();
    let layers: Vec<SpdnnLayer<'_>> = networks.iter().map(|w| layer(w, &[-0.3], CHALLENGE)).collect();
    let rows = 90;
    let draws = random_values(rows * 128, 5).into_iter().enumerate();
    let features: Vec<f32> =
        draws.map(|(at, x)| f32::from(u8::from(x.abs() < (at / 128) as f32 / 250.0))).collect();
    let reference = spdnn(&features, &layers).unwrap();
    let scores = evaluate(&features, &layers, 3, true);
    reference.check(&scores).unwrap();
    let alive = scores.chunks(128).enumerate().filter(|(_, row)| row.iter().any(|&x| x != 0.0));
    let alive: Vec<u32> = alive.map(|(row, _)| row as u32).collect();
    assert_eq!(reference.categories().unwrap(), alive);
    assert!(!alive.is_empty() && alive.len() < rows, "{}", alive.len());
}

//! Attention's oracle: right results pass, wrong ones do not, and gradients are those of finite differences.
use half::f16;
use lacuna_matrix::{Pattern, generate};
use lacuna_reference::{
    AttentionGradients, Heads, Precision, ScoreMod, attention, attention_backward,
    attention_backward_by_tiles,
};

const SCALE: f32 = 0.3;

fn operands(rows: usize, cols: usize, dim: usize) -> [Vec<f32>; 3] {
    [(rows, 1), (cols, 2), (cols, 3)].map(|(tokens, seed)| generate::random_values(tokens * dim, seed))
}

fn heads<'a>([q, k, v]: [&'a [f32]; 3], dim: usize) -> Heads<'a, f32> {
    Heads { q, k, v, dim, scale: SCALE, score_mod: ScoreMod::default() }
}

/// Plain `f32` attention, key by key.
fn plain(mask: &Pattern, heads: Heads<'_, f32>) -> (Vec<f32>, Vec<f32>) {
    let (mut o, mut logarithms) = (Vec::new(), Vec::new());
    let dim = heads.dim;
    for row in 0..mask.rows() {
        let keys = mask.row_columns(row);
        let score = |&key: &u32| {
            let (q, k) = (&heads.q[row * dim..][..dim], &heads.k[key as usize * dim..][..dim]);
            heads.scale * q.iter().zip(k).map(|(q, k)| q * k).sum::<f32>()
        };
        let scores: Vec<f32> = keys.iter().map(score).collect();
        let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f32> = scores.iter().map(|score| (score - max).exp()).collect();
        let sum: f32 = weights.iter().sum();
        for column in 0..dim {
            let products =
                keys.iter().zip(&weights).map(|(&key, w)| w * heads.v[key as usize * dim + column]);
            let product: f32 = products.sum();
            o.push(if keys.is_empty() { 0.0 } else { product / sum });
        }
        logarithms.push(max + sum.ln());
    }
    (o, logarithms)
}

#[test]
fn plain_arithmetic_passes_and_small_faults_do_not() {
    for (rows, cols, dim) in [(20, 30, 8), (7, 300, 33), (5, 5, 1)] {
        let mask = generate::uniform(rows, cols, 0.6, 4).unwrap();
        let [q, k, v] = operands(rows, cols, dim);
        let heads = heads([&q, &k, &v], dim);
        let reference = attention(&mask, heads).unwrap();
        let (mut o, mut logarithms) = plain(&mask, heads);
        assert!(reference.check(&o).unwrap().worst_over_bound < 1.0);
        assert!(reference.check_logsumexp(&logarithms).unwrap().worst_over_bound < 1.0);
        let row = (0..rows).find(|&row| !mask.row_columns(row).is_empty()).unwrap();
        o[row * dim] += 3e-4;
        logarithms[row] += 3e-4;
        assert!(reference.check(&o).is_err() && reference.check_logsumexp(&logarithms).is_err());
    }
}

#[test]
fn large_scores_have_room_that_they_need_and_no_more() {
    let mask = generate::uniform(10, 40, 0.5, 4).unwrap();
    let [mut q, k, v] = operands(10, 40, 16);
    q.iter_mut().for_each(|q| *q *= 1e4);
    let heads = heads([&q, &k, &v], 16);
    let reference = attention(&mask, heads).unwrap();
    let (mut o, _) = plain(&mask, heads);
    reference.check(&o).unwrap();
    o[3] *= 1.05;
    assert!(reference.check(&o).is_err());
}

#[test]
fn what_is_not_finite_is_where_it_must_be() {
    // Keys 0, 1; key 2 alone; none; keys 0 and 3.
    let mask = Pattern::new(4, 4, vec![0, 2, 3, 3, 5], vec![0, 1, 2, 0, 3]).unwrap();
    let q = [1.0f32; 4];
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let k = [0.0, f32::NEG_INFINITY, f32::NEG_INFINITY, nan];
    let v = [2.0, 5.0, 1.0, 1.0];
    let check = |v: &[f32], o: &[f32]| {
        let heads = Heads { q: &q, k: &k, v, dim: 1, scale: 1.0, score_mod: ScoreMod::default() };
        attention(&mask, heads).unwrap().check(o).is_ok()
    };
    assert!(check(&v, &[2.0, nan, 0.0, nan]));
    for wrong in [
        [nan, nan, 0.0, nan],
        [2.0, 1.0, 0.0, nan],
        [2.0, nan, nan, nan],
        [2.0, nan, -0.0, nan],
        [2.0, nan, 0.0, 2.0],
    ] {
        assert!(!check(&v, &wrong), "{wrong:?}");
    }
    // A weight of 0 meets an infinity.
    assert!(check(&[2.0, inf, 1.0, 1.0], &[nan, nan, 0.0, nan]));
    // A usual one does.
    assert!(check(&[inf, 5.0, 1.0, 1.0], &[inf, nan, 0.0, nan]));
    let heads = Heads { q: &q, k: &k, v: &v, dim: 1, scale: 1.0, score_mod: ScoreMod::default() };
    let reference = attention(&mask, heads).unwrap();
    reference.check_logsumexp(&[0.0, f32::NEG_INFINITY, f32::NEG_INFINITY, nan]).unwrap();
    assert!(reference.check_logsumexp(&[0.0, 0.0, f32::NEG_INFINITY, nan]).is_err());
}

#[test]
fn lengths_are_checked() {
    let mask = generate::uniform(4, 5, 0.5, 1).unwrap();
    let [q, k, v] = operands(4, 5, 3);
    for (q, k, v) in [(&q[1..], &k[..], &v[..]), (&q, &k[1..], &v), (&q, &k, &v[1..])] {
        let error = attention(&mask, heads([q, k, v], 3)).unwrap_err().to_string();
        assert!(error.contains(" 3 elements"), "{error}");
    }
    let reference = attention(&mask, heads([&q, &k, &v], 3)).unwrap();
    assert!(reference.check(&q[1..]).is_err());
}

/// Σ G ⊙ O, whose gradients are those of the operands for the gradient G of O.
fn loss(mask: &Pattern, operands: &[Vec<f32>; 3], g: &[f32], dim: usize, score_mod: ScoreMod) -> f64 {
    let [q, k, v] = operands;
    let reference = attention(mask, Heads { score_mod, ..heads([q, k, v], dim) }).unwrap();
    let element = |at: usize| f64::from(g[at]) * reference.value(at / dim, at % dim);
    (0..g.len()).map(element).sum()
}

/// Holds gradients to differences of the loss.
fn expect_differences(
    mask: &Pattern,
    operands: &[Vec<f32>; 3],
    (g, dim, score_mod): (&[f32], usize, ScoreMod),
    gradients: &AttentionGradients,
) {
    const STEP: f32 = 1.0 / 1024.0;
    for (which, gradient) in gradients.values().into_iter().enumerate() {
        for (at, &expected) in gradient.iter().enumerate() {
            let moved = |by: f32| {
                let mut moved = operands.clone();
                moved[which][at] += by;
                (f64::from(moved[which][at]), loss(mask, &moved, g, dim, score_mod))
            };
            let ((high, above), (low, below)) = (moved(STEP), moved(-STEP));
            let slope = (above - below) / (high - low);
            // The third derivative is small, and so is the square of the step.
            assert!(
                (slope - expected).abs() < 2e-6,
                "operand {which}, element {at}: {slope}, not {expected}"
            );
        }
    }
}

#[test]
fn gradients_within_a_cap_and_by_distance_are_those_of_finite_differences() {
    let (rows, cols, dim) = (6, 9, 4);
    let mask = generate::uniform(rows, cols, 0.5, 4).unwrap();
    let operands = operands(rows, cols, dim);
    let g = generate::random_values(rows * dim, 7);
    let [q, k, v] = &operands;
    for (softcap, slope) in [(Some(0.3), 0.0), (None, 0.2), (Some(0.5), -0.1)] {
        let score_mod = ScoreMod { softcap, slope };
        let heads = Heads { score_mod, ..heads([q, k, v], dim) };
        let gradients = attention_backward_by_tiles(&mask, heads, &g, 1).unwrap();
        expect_differences(&mask, &operands, (&g, dim, score_mod), &gradients);
    }
}

#[test]
fn caps_and_slopes_change_scores() {
    // Two queries and three keys: the last query is as far as the last key.
    let mask = Pattern::of_rows(3, [&[0, 1, 2][..], &[0, 2]]).unwrap();
    let (q, k, v) = ([1.0, 2.0], [3.0, -1.0, 0.5], [1.0, 2.0, 4.0]);
    let score_mod = ScoreMod { softcap: Some(2.0), slope: 0.25 };
    let heads = Heads { q: &q, k: &k, v: &v, dim: 1, scale: 0.5, score_mod };
    let reference = attention(&mask, heads).unwrap();
    let score = |query: usize, key: usize| {
        let scaled = 0.5 * f64::from(q[query]) * f64::from(k[key]);
        2.0 * (scaled / 2.0).tanh() - 0.25 * (query as f64 + 1.0 - key as f64).abs()
    };
    for (query, keys) in [(0, &[0, 1, 2][..]), (1, &[0, 2])] {
        let weights: Vec<f64> = keys.iter().map(|&key| score(query, key).exp()).collect();
        let sum: f64 = weights.iter().sum();
        assert!((reference.logsumexp(query) - sum.ln()).abs() < 1e-12);
        let products = keys.iter().zip(&weights).map(|(&key, weight)| weight * f64::from(v[key]));
        assert!((reference.value(query, 0) - products.sum::<f64>() / sum).abs() < 1e-12);
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let (rows, cols, dim) = (6, 9, 4);
    let mask = generate::uniform(rows, cols, 0.5, 4).unwrap();
    let operands = operands(rows, cols, dim);
    let g = generate::random_values(rows * dim, 7);
    let [q, k, v] = &operands;
    let gradients = attention_backward(&mask, heads([q, k, v], dim), &g, Precision::Fp32).unwrap();
    expect_differences(&mask, &operands, (&g, dim, ScoreMod::default()), &gradients);
    // The values themselves are right, and a small fault is not.
    let rounded = |of: &[f64]| -> Vec<f32> { of.iter().map(|&x| x as f32).collect() };
    let [dq, dk, dv] = gradients.values().map(rounded);
    assert!(
        gradients.check_q(&dq).is_ok() && gradients.check_k(&dk).is_ok() && gradients.check_v(&dv).is_ok()
    );
    let wrong = |mut of: Vec<f32>| {
        let largest = (0..of.len()).max_by(|&a, &b| of[a].abs().total_cmp(&of[b].abs())).unwrap();
        of[largest] *= 1.0001;
        of
    };
    assert!(gradients.check_q(&wrong(dq)).is_err());
    assert!(gradients.check_k(&wrong(dk)).is_err());
    assert!(gradients.check_v(&wrong(dv)).is_err());
}

#[test]
fn gradients_by_tiles_are_the_same_within_a_wider_bound() {
    let (rows, cols, dim) = (6, 9, 4);
    let mask = generate::uniform(rows, cols, 0.5, 4).unwrap();
    let halves = |values: &[f32]| -> Vec<f16> { values.iter().map(|&x| f16::from_f32(x)).collect() };
    let [q, k, v] = operands(rows, cols, dim).map(|of| halves(&of));
    let g = halves(&generate::random_values(rows * dim, 7));
    let heads = Heads { q: &q, k: &k, v: &v, dim, scale: 0.5, score_mod: ScoreMod::default() };
    let by_steps = attention_backward(&mask, heads, &g, Precision::Tensor).unwrap();
    let mut by_tiles = attention_backward_by_tiles(&mask, heads, &g, 2).unwrap();
    for (tiles, steps) in by_tiles.values().into_iter().zip(by_steps.values()) {
        assert!(tiles.iter().zip(steps).all(|(a, b)| (a - b).abs() < 1e-12), "{tiles:?}, not {steps:?}");
    }
    // Right ones pass, and an error of a hundredth of the largest does not.
    let passes = |of: &AttentionGradients, wrong: Option<usize>| {
        let mut of_all =
            of.values().map(|values| halves(&values.iter().map(|&x| x as f32).collect::<Vec<_>>()));
        if let Some(which) = wrong {
            let largest =
                of_all[which].iter_mut().max_by(|a, b| a.to_f32().abs().total_cmp(&b.to_f32().abs()));
            let largest = largest.unwrap();
            *largest = f16::from_f32(1.01 * largest.to_f32());
        }
        let [d_q, d_k, d_v] = of_all;
        [of.check_q(&d_q).is_ok(), of.check_k(&d_k).is_ok(), of.check_v(&d_v).is_ok()]
    };
    assert_eq!(passes(&by_tiles, None), [true; 3]);
    for which in 0..3 {
        assert_eq!(passes(&by_tiles, Some(which)), [0, 1, 2].map(|other| other != which), "operand {which}");
    }
    // Of two heads that share K and V: their gradients are sums, and that of Q is not.
    let other = by_tiles.clone();
    by_tiles.add_keys(&other);
    let [d_q, d_k, d_v] = by_tiles.values();
    let [q_of_one, k_of_one, v_of_one] = other.values();
    let twice = |of_one: &[f64]| -> Vec<f64> { of_one.iter().map(|x| 2.0 * x).collect() };
    assert_eq!((d_q, d_k, d_v), (q_of_one, &twice(k_of_one)[..], &twice(v_of_one)[..]));
}

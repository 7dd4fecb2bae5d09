//! Pruning against its plain definition, by sorting.
use lacuna_models::prune::{self, CubicSchedule, LayerStats, Patterns, PruneError};
use lacuna_models::weights::{Tensor, Weights};
use proptest::prelude::*;

fn vector(values: &[f32]) -> Tensor {
    Tensor::new(vec![values.len()], values.to_vec()).unwrap()
}

/// The same by sorting: magnitudes, and then the later ones first.
fn by_sorting(values: &[f32], zeros: usize) -> Vec<f32> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].abs().total_cmp(&values[b].abs()).then(b.cmp(&a)));
    let mut pruned = values.to_vec();
    order[..zeros].iter().for_each(|&index| pruned[index] = 0.0);
    pruned
}

fn numbers() -> impl Strategy<Value = Vec<f32>> {
    // Few different values, so that there are ties, and any others.
    let value = prop_oneof![
        prop::sample::select(vec![0.0_f32, -0.0, 0.5, -0.5, 0.25, 1e-40, f32::INFINITY]),
        -2.0_f32..2.0,
    ];
    prop::collection::vec(value, 0..80)
}

proptest! {
    #[test]
    fn a_tensor_is_pruned_as_by_sorting(values in numbers(), sparsity in 0.0_f64..=1.0) {
        let mut pruned = vector(&values);
        prune::tensor(&mut pruned, sparsity).unwrap();
        let zeros = (values.len() as f64 * sparsity).round() as usize;
        prop_assert_eq!(pruned.values(), by_sorting(&values, zeros));
        let again = pruned.clone();
        prune::tensor(&mut pruned, sparsity).unwrap();
        prop_assert_eq!(again, pruned);
    }

    #[test]
    fn all_tensors_are_pruned_as_one(first in numbers(), second in numbers(), sparsity in 0.0_f64..=1.0) {
        let mut weights = Weights::new();
        weights.insert("b", vector(&second));
        weights.insert("a", vector(&first));
        prune::global(&mut weights, sparsity, |_, _| true).unwrap();
        let all = [first.clone(), second.clone()].concat();
        let expected = by_sorting(&all, (all.len() as f64 * sparsity).round() as usize);
        prop_assert_eq!(weights.get("a", &[first.len()]).unwrap().values(), &expected[..first.len()]);
        prop_assert_eq!(weights.get("b", &[second.len()]).unwrap().values(), &expected[first.len()..]);
    }
}

#[test]
fn of_equal_magnitudes_the_first_stay() {
    let mut tensor = vector(&[1.0, -1.0, 1.0, -1.0, f32::NAN]);
    prune::tensor(&mut tensor, 0.4).unwrap();
    assert_eq!(&tensor.values()[..4], [1.0, -1.0, 0.0, 0.0]);
    assert!(tensor.values()[4].is_nan());
}

#[test]
fn biases_stay_and_each_matrix_has_its_share() {
    let mut weights = Weights::new();
    weights.insert("small", Tensor::new(vec![2, 2], vec![0.1, 0.2, 0.3, 0.4]).unwrap());
    weights.insert("great", Tensor::new(vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap());
    weights.insert("bias", vector(&[0.01, 0.02]));
    let before = weights.clone();
    prune::each(&mut weights, 0.5, prune::is_matrix).unwrap();
    assert_eq!(weights.get("small", &[2, 2]).unwrap().values(), [0.0, 0.0, 0.3, 0.4]);
    assert_eq!(weights.get("great", &[2, 2]).unwrap().values(), [0.0, 0.0, 3.0, 4.0]);
    assert_eq!(weights.get("bias", &[2]), before.get("bias", &[2]));

    let mut weights = before;
    let patterns = Patterns::new(["all"]);
    prune::global(&mut weights, 1.0, |name, _| patterns.fit(name)).unwrap();
    assert_eq!(weights.get("small", &[2, 2]).unwrap().values(), [0.0; 4]);
    assert_eq!(weights.get("great", &[2, 2]).unwrap().values(), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn patterns_are_parts_in_order() {
    let patterns = Patterns::new(["layer1*weight", "fc", "none"]);
    for (name, fits) in
        [("layer1.0.weight", true), ("weight.layer1", false), ("x.fc.bias", true), ("layer2.weight", false)]
    {
        assert_eq!(patterns.fit(name), fits, "{name}");
    }
    assert_eq!(patterns.unused(["layer1.weight", "fc"].into_iter()), ["none"]);
    assert!(Patterns::new(["*"]).fit("anything") && !Patterns::default().fit("anything"));
}

#[test]
fn sparsity_follows_the_cubic_schedule() {
    let schedule = CubicSchedule::new(0.5, 0.9, 1_000, 100, 4).unwrap();
    let expected = [
        (0, 0.0),
        (999, 0.0),
        (1_000, 0.5),
        (1_099, 0.5),
        // 0.9 − 0.4·(3/4)³, and so on.
        (1_100, 0.731_25),
        (1_250, 0.85),
        (1_300, 0.893_75),
        (1_400, 0.9),
        (u64::MAX, 0.9),
    ];
    for (step, sparsity) in expected {
        assert!((schedule.sparsity(step) - sparsity).abs() < 1e-12, "{step}: {}", schedule.sparsity(step));
    }
    let pruned: Vec<u64> = (900..1_600).filter(|&step| schedule.is_pruning(step)).collect();
    assert_eq!((pruned, schedule.end()), (vec![1_000, 1_100, 1_200, 1_300, 1_400], 1_400));
}

#[test]
fn nonsense_is_refused() {
    let mut weights = Weights::new();
    for got in [-0.1, 1.5, f64::NAN, f64::INFINITY] {
        let error = prune::each(&mut weights, got, prune::is_matrix).unwrap_err();
        assert!(error.to_string().contains("expected from 0 to 1"), "{error}");
        assert!(prune::global(&mut weights, got, prune::is_matrix).is_err());
        assert!(prune::tensor(&mut vector(&[]), got).is_err());
        assert!(
            CubicSchedule::new(got, 1.0, 0, 1, 1).is_err() && CubicSchedule::new(0.0, got, 0, 1, 1).is_err()
        );
    }
    assert!(matches!(CubicSchedule::new(0.9, 0.5, 0, 1, 1), Err(PruneError::Decreases { .. })));
    assert!(matches!(CubicSchedule::new(0.0, 0.5, 0, 0, 1), Err(PruneError::NoSteps { what: "interval" })));
    assert!(matches!(CubicSchedule::new(0.0, 0.5, 0, 1, 0), Err(PruneError::NoSteps { what: "prunings" })));
    assert!(matches!(CubicSchedule::new(0.0, 0.5, 1, u64::MAX, 1), Err(PruneError::TooLong { .. })));
}

#[test]
fn statistics_are_those_of_the_matrix() {
    // Rows of 1, 3 and 0 nonzeros: mean 4/3, variance 14/9.
    let values = vec![0.0, 1.0, 0.0, 0.0, 2.0, f32::NAN, 0.0, 3.0, 0.0, -0.0, 0.0, 0.0];
    let layer = LayerStats::of("conv", &Tensor::new(vec![3, 2, 1, 2], values).unwrap()).unwrap();
    let stats = layer.stats;
    assert_eq!((layer.shape, stats.rows, stats.cols, stats.nnz), (vec![3, 2, 1, 2], 3, 4, 4));
    assert!((stats.sparsity - 2.0 / 3.0).abs() < 1e-12 && (stats.mean_row_length - 4.0 / 3.0).abs() < 1e-12);
    assert!((stats.row_length_cov - (14.0_f64 / 9.0).sqrt() / (4.0 / 3.0)).abs() < 1e-12);
    let number = LayerStats::of("x", &Tensor::new(vec![], vec![1.0]).unwrap()).unwrap().stats;
    assert_eq!((number.rows, number.cols, number.nnz), (1, 1, 1));
    let many = Tensor::new(vec![1 << 31, 0], vec![]).unwrap();
    assert!(LayerStats::of("rows", &many).unwrap_err().to_string().contains("rows"));
}

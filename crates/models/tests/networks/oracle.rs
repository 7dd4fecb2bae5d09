//! The oracle's layers are those of `lacuna-reference`, of inputs that are exact.
use half::f16;
use lacuna::matrix::generate;
use lacuna_models::model::Options;
use lacuna_models::network::{Conv, Network, Operation, Pool, Shape};
use lacuna_models::oracle::{self, Approximate, Number};
use lacuna_models::weights::Weights;
use lacuna_reference::{ConvInputs, ConvShape, PoolMode, PoolShape, Precision, conv, pool};
use proptest::prelude::*;

/// A network of one layer, its weights, an input, and what the oracle makes of it.
fn run<T: Number>(input: Shape, layer: Operation) -> Option<(Weights, Vec<T>, Approximate)> {
    let mut builder = Network::builder(input);
    let out = builder.layer("it", layer, &[builder.input()]).ok()?;
    let network = builder.finish(out).ok()?;
    let weights = Weights::drawn(&network, 4).ok()?;
    let x: Vec<T> = generate::random_values(input.elements(), 6).into_iter().map(T::from_f32).collect();
    let result = oracle::run(&network, &weights, &Options::dense(), &x).ok()?;
    Some((weights, x, result))
}

fn are_near(got: &Approximate, expected: &[f64]) -> bool {
    let is_near = |(got, expected): (&f64, &f64)| (got - expected).abs() <= 1e-12;
    got.value.len() == expected.len() && got.value.iter().zip(expected).all(is_near)
}

proptest! {
    #[test]
    fn convolutions_are_the_references(
        images in 1_usize..3,
        channels in 1_usize..5,
        filters in 1_usize..5,
        size in [1_usize..7, 1_usize..7],
        taps in [1_usize..4, 1_usize..4],
        strides in [1_usize..4, 1_usize..4],
        padding in [0_usize..3, 0_usize..3],
        is_depthwise in any::<bool>(),
    ) {
        let layer = if is_depthwise { Conv::depthwise(taps) } else { Conv::new(filters, taps) };
        let layer = layer.strides(strides).padding(padding).bias().relu();
        // Taps that are larger than the padded map are refused.
        if let Some((weights, x, result)) = run::<f32>(Shape::maps(images, channels, size), layer.into()) {
            let (filters, groups) = if is_depthwise { (channels, channels) } else { (filters, 1) };
            let weight = weights.get("it.weight", &[filters, channels / groups, taps[0], taps[1]]).unwrap();
            let bias = weights.get("it.bias", &[filters]).unwrap();
            let shape = ConvShape { batch: images, channels, size, filters, taps, strides, padding, groups };
            let inputs = ConvInputs {
                shape,
                input: &x,
                weights: weight.values(),
                bias: Some(bias.values()),
                residual: None,
                precision: Precision::Fp32,
                lo: 0.0,
                hi: f32::INFINITY,
            };
            let reference = conv(&inputs).unwrap();
            prop_assert!(are_near(&result, &reference.value()));
            // What is right to the reference is so to the oracle, and the bounds are alike: a hundredth of a thousandth is beyond both.
            let got: Vec<f32> = result.value.iter().map(|&value| value as f32).collect();
            prop_assert!(reference.check(&got).is_ok() && result.check("it", &got).is_ok());
            let off: Vec<f32> = got.iter().map(|&value| value * 1.000_01 + 1e-4).collect();
            prop_assert!(reference.check(&off).is_err() && result.check("it", &off).is_err());
        }
    }

    /// What is right to the reference in 16 bits is so to the oracle, and two numbers further is wrong to both.
    #[test]
    fn convolutions_are_the_references_in_16_bits(
        channels in 1_usize..9,
        filters in 1_usize..5,
        size in [3_usize..7, 3_usize..7],
        is_linear in any::<bool>(),
    ) {
        let taps = if is_linear { [1, 1] } else { [3, 3] };
        let layer = Conv::new(filters, taps).bias();
        let (weights, x, result) = run::<f16>(Shape::maps(1, channels, size), layer.into()).unwrap();
        let tensor = |name: &str, shape: &[usize]| -> Vec<f16> {
            weights.get(name, shape).unwrap().values().iter().copied().map(f16::from_f32).collect()
        };
        let weight = tensor("it.weight", &[filters, channels, taps[0], taps[1]]);
        let bias = tensor("it.bias", &[filters]);
        let inputs = ConvInputs {
            shape: ConvShape { batch: 1, channels, size, filters, taps, strides: [1, 1], padding: [0, 0], groups: 1 },
            input: &x,
            weights: &weight,
            bias: Some(&bias),
            residual: None,
            precision: Precision::Tensor,
            lo: f32::NEG_INFINITY,
            hi: f32::INFINITY,
        };
        let reference = conv(&inputs).unwrap();
        prop_assert!(are_near(&result, &reference.value()));
        let got: Vec<f16> = result.value.iter().map(|&value| f16::from_f64(value)).collect();
        prop_assert!(reference.check(&got).is_ok() && result.check("it", &got).is_ok());
        let off: Vec<f16> = got.iter().map(|value| f16::from_bits(value.to_bits() + 2)).collect();
        prop_assert!(reference.check(&off).is_err() && result.check("it", &off).is_err());
    }

    #[test]
    fn poolings_are_the_references(
        images in 1_usize..3,
        channels in 1_usize..4,
        size in [1_usize..7, 1_usize..7],
        window in [1_usize..5, 1_usize..5],
        strides in [1_usize..4, 1_usize..4],
        padding in [0_usize..3, 0_usize..3],
        is_max in any::<bool>(),
    ) {
        let (layer, mode) = if is_max {
            (Pool::max(window, strides), PoolMode::Max)
        } else {
            (Pool::average(window, strides), PoolMode::AverageIncludePadding)
        };
        if let Some((_, x, result)) = run::<f32>(Shape::maps(images, channels, size), layer.padding(padding).into()) {
            let shape = PoolShape { planes: images * channels, size, window, strides, padding };
            let reference = pool(&shape, mode, &x).unwrap();
            prop_assert!(are_near(&result, &reference.value()));
            let got: Vec<f32> = result.value.iter().map(|&value| value as f32).collect();
            prop_assert!(reference.check(&got).is_ok() && result.check("it", &got).is_ok());
        }
    }
}

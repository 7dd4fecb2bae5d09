//! What is refused, and what errors name.
use lacuna::Device;
use lacuna::conv::Algorithm;
use lacuna_models::model::{Held, LayerOptions, Model, ModelError, Options};
use lacuna_models::network::{
    Concat, Conv, DepthToSpace, Flatten, Linear, Network, NetworkError, Pool, Problem, Shape,
};
use lacuna_models::networks::{DenseNet, MobileNetV1, ResNet, Vgg};
use lacuna_models::oracle::{self, OracleError};
use lacuna_models::weights::{Tensor, Weights};

fn small() -> Network {
    let mut builder = Network::builder(Shape::maps(1, 2, [4, 4]));
    let conv = Conv::new(3, [3, 3]).padding([1, 1]).norm("norm").relu();
    let x = builder.layer("conv", conv, &[builder.input()]).unwrap();
    let x = builder.layer("flatten", Flatten, &[x]).unwrap();
    let x = builder.layer("fc", Linear::new(2), &[x]).unwrap();
    builder.finish(x).unwrap()
}

fn planned(weights: &Weights, options: &Options) -> Result<Model, ModelError> {
    let stream = Device::simulator().stream().unwrap();
    Model::plan(&stream, &small(), weights, options)
}

#[test]
fn layers_that_do_not_fit_are_named() {
    let mut builder = Network::builder(Shape::maps(1, 2, [4, 4]));
    let input = builder.input();
    let x = builder.layer("a", Conv::new(3, [1, 1]).bias(), &[input]).unwrap();
    let mut refused = |name: &str, operation: lacuna_models::network::Operation, inputs: &[_]| {
        builder.layer(name, operation, inputs).unwrap_err()
    };
    let problem = |error: NetworkError| match error {
        NetworkError::Layer { layer, problem } => (layer, problem),
        other => panic!("{other}"),
    };
    let (layer, found) = problem(refused("fc", Linear::new(3).into(), &[x]));
    assert_eq!((layer.as_str(), found), ("fc", Problem::NotFlat { got: Shape::maps(1, 3, [4, 4]) }));
    let larger = Conv::new(3, [1, 1]).relu().residual();
    assert!(matches!(problem(refused("b", larger.into(), &[x, input])).1, Problem::Shape { .. }));
    assert!(matches!(problem(refused("b", Concat.into(), &[])).1, Problem::Inputs { got: 0, .. }));
    assert!(matches!(
        problem(refused("b", Pool::max([2, 2], [1, 1]).padding([2, 0]).into(), &[x])).1,
        Problem::Size { what: "the padding", .. }
    ));
    for block in [0, 2, usize::MAX] {
        let error = problem(refused("b", DepthToSpace::new(block).into(), &[x])).1;
        assert!(matches!(error, Problem::Size { what: "the block", .. }));
    }
    let same = Conv::new(3, [3, 3]).strides([2, 2]).same();
    assert!(matches!(problem(refused("b", same.into(), &[x])).1, Problem::Asymmetric { .. }));
    let huge = Conv::new(usize::MAX, [1, 1]);
    assert!(matches!(problem(refused("b", huge.into(), &[x])).1, Problem::Size { .. }));
    let error = refused("a", Concat.into(), &[x]);
    assert_eq!(error, NetworkError::Name { layer: "a".into(), name: "a".into() });
    // A batch norm and a bias may not share a tensor.
    let error = refused("b", Conv::new(3, [1, 1]).norm("a").into(), &[x]);
    assert_eq!(error, NetworkError::Name { layer: "b".into(), name: "a.weight".into() });
    let mut other = Network::builder(Shape::matrix(1, 1));
    assert!(matches!(problem(other.layer("b", Concat, &[x]).unwrap_err()), (_, Problem::Foreign)));
    assert_eq!(builder.clone().finish(input).unwrap_err(), NetworkError::Output);
}

#[test]
fn sizes_of_networks_that_mean_nothing_are_refused() {
    assert!(MobileNetV1 { width: f64::NAN, ..Default::default() }.network(1).is_err());
    assert!(MobileNetV1 { divisor: 0, ..Default::default() }.network(1).is_err());
    assert!(ResNet { width: 0, ..ResNet::R50 }.network(1).is_err());
    assert!(DenseNet { blocks: [1, 0, 1, 1], ..DenseNet::D121 }.network(1).is_err());
    let error = Vgg { size: [16, 16], ..Vgg::V16 }.network(1).unwrap_err();
    assert!(error.to_string().contains("features.30"), "{error}");
}

#[test]
fn tensors_that_do_not_fit_are_named() {
    let weights = Weights::drawn(&small(), 1).unwrap();
    assert!(planned(&weights, &Options::default()).is_ok());
    let without = |left_out: &str| {
        let mut some = Weights::new();
        for (name, tensor) in weights.iter().filter(|(name, _)| *name != left_out) {
            some.insert(name, tensor.clone());
        }
        some
    };
    for name in ["conv.weight", "norm.running_mean", "fc.bias"] {
        let error = planned(&without(name), &Options::default()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("layer"), "{error}");
        assert!(matches!(
            oracle::run(&small(), &without(name), &Options::default(), &[0.0; 32]),
            Err(OracleError::Weights { .. })
        ));
    }
    let mut wrong = weights.clone();
    wrong.insert("fc.weight", Tensor::new(vec![48, 2], vec![0.0; 96]).unwrap());
    let error = planned(&wrong, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("fc.weight") && error.contains("[2, 48]") && error.contains("[48, 2]"), "{error}");
    wrong.insert("norm.running_var", Tensor::new(vec![3], vec![1.0, -1.0, 1.0]).unwrap());
    let error = planned(&wrong, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("norm.running_var"), "{error}");
}

#[test]
fn options_that_cannot_be_are_refused() {
    let weights = Weights::drawn(&small(), 1).unwrap();
    let sparse = LayerOptions { weights: Held::Sparse, ..LayerOptions::default() };
    let error = planned(&weights, &Options::default().layer("conv", sparse)).unwrap_err();
    assert!(matches!(error, ModelError::NotSparse { layer, .. } if layer == "conv"));
    let error = planned(&weights, &Options::default().layer("cnov", sparse)).unwrap_err();
    assert!(matches!(error, ModelError::UnknownLayer { layer } if layer == "cnov"));
    let algorithm = Algorithm::DepthwisePlanes;
    let planes = LayerOptions { algorithm, ..LayerOptions::default() };
    let error = planned(&weights, &Options::default().layer("conv", planes)).unwrap_err();
    let of_library = |error: ModelError| match error {
        ModelError::Layer { layer, source } => (layer, *source),
        other => panic!("{other}"),
    };
    let (layer, error) = of_library(error);
    assert!(layer == "conv" && matches!(error, lacuna::Error::Illegal { .. }));
    let (layer, error) = of_library(planned(&weights, &Options::cudnn()).unwrap_err());
    assert!(layer == "conv" && matches!(error, lacuna::Error::Unsupported { .. }));
}

#[test]
fn buffers_of_another_length_are_refused_and_the_simulator_has_no_graphs() {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let weights = Weights::drawn(&small(), 1).unwrap();
    let mut model = Model::plan(&stream, &small(), &weights, &Options::default()).unwrap();
    let input = device.zeros::<f32>(32).unwrap();
    let mut output = device.zeros::<f32>(2).unwrap();
    let short = model.run(&stream, input.slice(1..).unwrap(), output.as_slice_mut()).unwrap_err();
    assert!(matches!(short, ModelError::Length { what: "input", expected: 32, got: 31 }));
    let short = model.run(&stream, input.as_slice(), output.slice_mut(..1).unwrap()).unwrap_err();
    assert!(matches!(short, ModelError::Length { what: "output", expected: 2, got: 1 }));
    let error = model.capture(&stream, input.as_slice(), output.as_slice_mut()).unwrap_err();
    assert!(matches!(error, ModelError::Device(lacuna::Error::Unsupported { .. })), "{error}");
    model.run(&stream, input.as_slice(), output.as_slice_mut()).unwrap();
}

#[test]
fn a_result_that_is_off_is_refused() {
    let network = small();
    let weights = Weights::drawn(&network, 1).unwrap();
    let expected = oracle::run(&network, &weights, &Options::default(), &[0.5; 32]).unwrap();
    let mut got: Vec<f32> = expected.value.iter().map(|&value| value as f32).collect();
    assert!(expected.check("it", &got).unwrap().bound_over_greatest < 1e-3);
    got[1] *= 1.01;
    assert!(matches!(expected.check("it", &got), Err(OracleError::Wrong { at: 1, .. })));
    got[1] = f32::NAN;
    assert!(matches!(expected.check("it", &got), Err(OracleError::Wrong { at: 1, .. })));
    assert!(expected.check("it", &got[1..]).is_err());
}

//! Networks with values of 16 bits are as right as their type allows, and what it cannot hold is told.
use half::{bf16, f16};
use lacuna::Device;
use lacuna::conv::{Algorithm, MapLayout};
use lacuna::matrix::generate;
use lacuna_models::model::{LayerOptions, Model, ModelError, Options};
use lacuna_models::network::{
    Concat, Conv, DepthToSpace, FlattenNhwc, Linear, Network, Operation, Pad, PadChannels, Pool, Resize,
    Sampling, Shape, ValueId,
};
use lacuna_models::networks::{DenseNet, MobileNetV1, ResNet, Transformer, Vgg};
use lacuna_models::oracle::{self, OracleError};
use lacuna_models::weights::{Tensor, Weights};

use crate::common::{Run, pruned, run, run_as};
use crate::layers::all;

const LAYOUTS: [MapLayout; 2] = [MapLayout::Nchw, MapLayout::Nhwc];

/// Runs a network in both types; gives that of `f16`.
fn of_both(network: &Network, weights: &Weights, options: &Options) -> Run {
    let coarse = run_as::<bf16>(network, weights, options);
    let run = run_as::<f16>(network, weights, options);
    assert!(run.worst_layer > 0.0 && coarse.worst_layer > 0.0);
    // Eleven digits in place of eight; behind many layers both bounds may be infinite.
    assert!(run.whole.bound_over_greatest <= coarse.whole.bound_over_greatest);
    run
}

#[test]
fn every_layer_is_right() {
    for layout in LAYOUTS {
        let network = all(2);
        let weights = Weights::drawn(&network, 3).unwrap();
        for (weights, options) in
            [(weights.clone(), Options::dense()), (pruned(&weights, 0.75), Options::default())]
        {
            of_both(&network, &weights, &options.layout(layout));
        }
    }
}

#[test]
fn maps_are_moved_and_resized() {
    for layout in LAYOUTS {
        let mut builder = Network::builder(Shape::maps(2, 18, [5, 4]));
        let mut add = |name: &str, operation: Operation, inputs: &[ValueId]| {
            builder.layer(name, operation, inputs).unwrap()
        };
        let x = ValueId::INPUT;
        let a = add("space", DepthToSpace::new(3).into(), &[x]);
        let b = add("resized", Resize::bilinear([30, 7], Sampling::HalfPixel).into(), &[a]);
        let c = add("more", PadChannels::zeros(2, 3).into(), &[a]);
        let d = add("margin", Pad::zeros([1, 2], [3, 0]).value(-0.3).into(), &[x]);
        // Below the least number of `f16`, as the margin of a maximum is.
        let e = add("least", Pad::zeros([1, 1], [1, 1]).value(f32::MIN).into(), &[x]);
        let e = add("max", Pool::max([3, 3], [2, 2]).into(), &[e]);
        let rows = [("rb", b), ("rc", c), ("rd", d), ("re", e)];
        let rows = rows.map(|(name, value)| add(name, FlattenNhwc.into(), &[value]));
        let all = add("all", Concat.into(), &rows);
        let network = builder.finish(all).unwrap();
        let run = of_both(&network, &Weights::new(), &Options::dense().layout(layout));
        assert!(run.whole.bound_over_greatest < 3e-3, "{:?}", run.whole);
    }
}

#[test]
fn the_transformer_is_right_and_its_layers_share_room() {
    let mask = generate::band_random(64, 6, 0.7, 3).unwrap().into();
    let small = Transformer { layers: 2, heads: 2, hidden: 16, filter: 32, mask, vocabulary: Some(10) };
    let network = small.network(2).unwrap();
    let dense = Weights::drawn(&network, 11).unwrap();
    for layout in LAYOUTS {
        for weights in [&dense, &pruned(&dense, 0.8)] {
            let run = of_both(&network, weights, &Options::default().layout(layout));
            assert!(run.whole.error_over_greatest < 5e-3, "{:?}", run.whole);
            let rooms = run.report.layers.iter().filter(|layer| layer.name.ends_with("attention"));
            let rooms: Vec<usize> = rooms.map(|layer| layer.workspace_bytes).collect();
            let room = if layout == MapLayout::Nchw { 2 * 4 * 16 * 64 } else { 0 };
            assert_eq!(rooms, [room, 0]);
        }
    }
}

#[test]
fn attention_on_tensor_cores_rounds_weights() {
    // Heads of 64 features, and keys side by side: warpgroups take them.
    let mask = generate::band_random(512, 512, 1.0, 3).unwrap().into();
    let network = Transformer { layers: 1, heads: 1, hidden: 64, filter: 64, mask, vocabulary: Some(8) };
    let network = network.network(1).unwrap();
    let weights = Weights::drawn(&network, 11).unwrap();
    let options = Options::default().layout(MapLayout::Nhwc);
    for run in [run_as::<f16>(&network, &weights, &options), run_as::<bf16>(&network, &weights, &options)] {
        let attention = run.report.layers.iter().find(|layer| layer.name.ends_with("attention")).unwrap();
        assert!(attention.kernel.contains("_wgmma_"), "{}", attention.kernel);
        assert!((0.1..=1.0).contains(&run.worst_layer), "{}", run.worst_layer);
    }
}

#[test]
fn networks_of_papers_are_right() {
    let mobilenet = MobileNetV1 { width: 0.125, size: [32, 32], classes: 10, ..MobileNetV1::default() };
    let resnet = ResNet { width: 4, size: [32, 32], classes: 10, blocks: [1, 2, 3, 1] };
    let densenet = DenseNet { growth: 4, size: [32, 32], classes: 10, blocks: [2, 3, 4, 2] };
    let vgg = Vgg { width: 4, hidden: 16, size: [32, 32], classes: 10, ..Vgg::V16 };
    for (network, layout) in [
        (mobilenet.network(2), MapLayout::Nhwc),
        (resnet.network(2), MapLayout::Nchw),
        (resnet.network(1), MapLayout::Nhwc),
        (densenet.network(1), MapLayout::Nchw),
        (vgg.network(1), MapLayout::Nchw),
    ] {
        let network = network.unwrap();
        let weights = Weights::drawn(&network, 11).unwrap();
        let options = Options::dense().layout(layout);
        let half = run_as::<f16>(&network, &weights, &options);
        assert!(half.worst_layer > 0.0 && half.whole.error_over_greatest < 1e-2, "{:?}", half.whole);
        let single = run(&network, &weights, &options);
        assert_eq!(2 * half.report.sum_bytes, single.report.sum_bytes);
        assert!(half.report.peak_bytes < single.report.peak_bytes);
    }
}

/// Of `small` with these weights.
fn planned(options: &Options, weight: f32) -> Result<Model<f16>, ModelError> {
    let stream = Device::simulator().stream().unwrap();
    let (network, weights) = small(weight);
    Model::plan(&stream, &network, &weights, options)
}

/// Two layers; the second has one weight.
fn small(weight: f32) -> (Network, Weights) {
    let mut builder = Network::builder(Shape::maps(1, 2, [4, 4]));
    let x = builder.layer("conv", Conv::new(1, [3, 3]).padding([1, 1]), &[ValueId::INPUT]).unwrap();
    let x = builder.layer("mean", Pool::global_average(), &[x]).unwrap();
    let x = builder.layer("fc", Linear { bias: false, ..Linear::new(1) }, &[x]).unwrap();
    let network = builder.finish(x).unwrap();
    let mut weights = Weights::new();
    weights.insert("conv.weight", Tensor::new(vec![1, 2, 3, 3], vec![1.0; 18]).unwrap());
    weights.insert("fc.weight", Tensor::new(vec![1, 1], vec![weight]).unwrap());
    (network, weights)
}

#[test]
fn what_a_layer_cannot_have_is_told() {
    assert!(planned(&Options::default(), 65_504.0).is_ok());
    let error = planned(&Options::default(), 1e5).unwrap_err();
    assert!(error.to_string().contains("layer fc") && error.to_string().contains("bf16"), "{error}");
    assert!(matches!(error, ModelError::Range { value: "f16", got: 1e5, .. }));
    // Zeros of 16-bit maps are multiplied.
    let algorithm = Algorithm::SparseTile { tile: [7, 7], filters: 2 };
    let layer = LayerOptions { algorithm, ..LayerOptions::default() };
    let error = planned(&Options::default().layer("conv", layer), 1.0).unwrap_err();
    assert!(error.to_string().contains("layer conv") && error.to_string().contains("take one of"), "{error}");
}

#[test]
fn results_beyond_the_largest_number_are_infinite_and_told() {
    let (network, weights) = small(60_000.0);
    let stream = Device::simulator().stream().unwrap();
    let mut model = Model::<f16>::plan(&stream, &network, &weights, &Options::default()).unwrap();
    let input = [f16::ONE; 32];
    let device = stream.device();
    let mut output = device.zeros::<f16>(1).unwrap();
    model.run(&stream, device.upload(&input).unwrap().as_slice(), output.as_slice_mut()).unwrap();
    let got = output.download(&stream).unwrap();
    assert_eq!(got, [f16::INFINITY]);
    let expected = oracle::run(&network, &weights, &Options::default(), &input).unwrap();
    assert!(matches!(expected.check("it", &got), Err(OracleError::Wrong { at: 0, .. })));
}

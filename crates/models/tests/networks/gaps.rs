//! Planes without whole vectors of pixels lie apart in front of sparse weights, and behind them.
use lacuna::Device;
use lacuna::conv::{Algorithm, MapLayout};
use lacuna_models::memory::Memory;
use lacuna_models::model::{LayerOptions, Model, Options};
use lacuna_models::network::{Add, Builder, Conv, Network, Operation, Pool, Shape, ValueId};
use lacuna_models::weights::Weights;

use crate::common::{input, pruned, run, run_as};

/// Depthwise and pointwise layers by turns, on maps of 7 × 7 pixels, and a pooling.
fn chain(images: usize) -> Network {
    let mut builder = Network::builder(Shape::maps(images, 6, [7, 7]));
    let depthwise = || Conv::depthwise([3, 3]).padding([1, 1]).relu();
    let mut value = builder.input();
    let layers: [(&str, Operation); 5] = [
        ("first", depthwise().into()),
        ("sparse", Conv::new(10, [1, 1]).relu().into()),
        ("second", depthwise().into()),
        ("last", Conv::new(9, [1, 1]).into()),
        ("pool", Pool::global_average().into()),
    ];
    for (name, operation) in layers {
        value = builder.layer(name, operation, &[value]).unwrap();
    }
    builder.finish(value).unwrap()
}

fn weights(network: &Network, zeros: f64) -> Weights {
    pruned(&Weights::drawn(network, 3).unwrap(), zeros)
}

/// Of each value but the input: elements from one plane to the next, where there are gaps.
fn strides(network: &Network, zeros: f64, options: &Options) -> Vec<Option<usize>> {
    let stream = Device::simulator().stream().unwrap();
    let model = Model::<f32>::plan(&stream, network, &weights(network, zeros), options).unwrap();
    model.memory().places()[1..].iter().map(|place| place.plane_stride).collect()
}

#[test]
fn results_are_those_of_planes_without_gaps() {
    for images in [1, 2] {
        let network = chain(images);
        let (weights, options) = (weights(&network, 0.8), Options::default());
        assert_eq!(strides(&network, 0.8, &options), [Some(52), Some(52), Some(52), Some(52), None]);
        let checked = run(&network, &weights, &options);
        assert!(checked.worst_layer > 0.0 && checked.worst_layer <= 1.0);
        let checked = run_as::<half::f16>(&network, &weights, &options);
        assert!(checked.worst_layer > 0.0 && checked.worst_layer <= 1.0);
    }
}

#[test]
fn the_hundredth_run_is_as_the_first() {
    let network = chain(2);
    let stream = Device::simulator().stream().unwrap();
    let device = stream.device();
    let weights = weights(&network, 0.8);
    let mut model = Model::<f32>::plan(&stream, &network, &weights, &Options::default()).unwrap();
    let input = device.upload(&input(&network)).unwrap();
    let mut output = device.zeros::<f32>(network.output_shape().elements()).unwrap();
    let mut results = (0..100).map(|_| {
        model.run(&stream, input.as_slice(), output.as_slice_mut()).unwrap();
        output.download(&stream).unwrap()
    });
    let first = results.next().unwrap();
    assert_eq!(results.last().unwrap(), first);
}

#[test]
fn there_are_gaps_for_sparse_weights_alone() {
    let network = chain(1);
    let options = Options::default();
    let nowhere = vec![None; 5];
    assert_eq!(strides(&network, 0.0, &options), nowhere);
    assert_eq!(strides(&network, 0.8, &Options::dense()), nowhere);
    assert_eq!(strides(&network, 0.0, &options.clone().layout(MapLayout::Nhwc)), nowhere);
    // The second depthwise layer by an algorithm that somebody asked for: it may know no gaps.
    let direct = LayerOptions { algorithm: Algorithm::AnyDepthwise, ..options.layers };
    assert_eq!(strides(&network, 0.8, &options.layer("second", direct)), nowhere);
}

#[test]
fn there_are_none_where_others_read() {
    let add = |builder: &mut Builder, sparse: ValueId, second: ValueId| {
        builder.layer("add", Add::new(), &[sparse, second]).unwrap()
    };
    let mut builder = Network::builder(Shape::maps(1, 6, [7, 7]));
    let input = builder.input();
    let first = builder.layer("first", Conv::new(6, [3, 3]).padding([1, 1]), &[input]).unwrap();
    let sparse = builder.layer("sparse", Conv::new(6, [1, 1]), &[first]).unwrap();
    let second = builder.layer("second", Conv::new(6, [1, 1]), &[sparse]).unwrap();
    let sum = add(&mut builder, sparse, second);
    let network = builder.finish(sum).unwrap();
    assert_eq!(strides(&network, 0.8, &Options::default()), [None; 4]);
    // Whole vectors need no gaps, and a plan of memory alone knows of none.
    let mut builder = Network::builder(Shape::maps(1, 6, [6, 6]));
    let input = builder.input();
    let first = builder.layer("first", Conv::new(6, [3, 3]).padding([1, 1]), &[input]).unwrap();
    let sparse = builder.layer("sparse", Conv::new(6, [1, 1]), &[first]).unwrap();
    let pool = builder.layer("pool", Pool::global_average(), &[sparse]).unwrap();
    let network = builder.finish(pool).unwrap();
    assert_eq!(strides(&network, 0.8, &Options::default()), [None; 3]);
    let memory = Memory::plan(&chain(1), MapLayout::Nchw, 4);
    assert!(memory.places().iter().all(|place| place.plane_stride.is_none()));
}

/// 49 pixels of a map, and as many of its result, but others: a stride and padding move them.
#[test]
fn strides_and_padding_are_kept() {
    let mut builder = Network::builder(Shape::maps(2, 6, [7, 7]));
    let mut value = builder.input();
    let layers: [(&str, Operation); 4] = [
        ("first", Conv::new(6, [3, 3]).padding([1, 1]).into()),
        ("strided", Conv::new(8, [1, 1]).strides([2, 2]).padding([3, 3]).into()),
        ("last", Conv::new(5, [3, 3]).padding([1, 1]).into()),
        ("pool", Pool::global_average().into()),
    ];
    for (name, operation) in layers {
        value = builder.layer(name, operation, &[value]).unwrap();
    }
    let network = builder.finish(value).unwrap();
    assert_eq!(network.shapes()[2].pixels(), 49);
    assert_eq!(strides(&network, 0.8, &Options::default()), [None; 4]);
    let checked = run(&network, &weights(&network, 0.8), &Options::default());
    assert!(checked.worst_layer > 0.0 && checked.worst_layer <= 1.0);
}

//! The networks of papers, cut to a size for the simulator, are right layer by layer and as a whole.
use lacuna::Device;
use lacuna_models::model::{Model, ModelError, Options};
use lacuna_models::network::Network;
use lacuna_models::networks::{DenseNet, MobileNetV1, ResNet, Vgg};
use lacuna_models::weights::Weights;

use crate::common::{input, pruned, run};

fn check(network: Network, zeros: f64) {
    let weights = pruned(&Weights::drawn(&network, 11).unwrap(), zeros);
    let run = run(&network, &weights, &Options::default());
    assert!(run.worst_layer > 0.0 && run.worst_layer <= 1.0);
    // The bound that is carried through deep networks says nothing; what is really off is this little.
    assert!(run.whole.error_over_greatest < 5e-5, "{:?}", run.whole);
    assert_eq!(run.whole.checked, network.output_shape().elements());
    assert!(run.report.peak_bytes < run.report.sum_bytes);
}

#[test]
fn mobilenet() {
    let small = MobileNetV1 { width: 0.125, size: [32, 32], classes: 10, ..MobileNetV1::default() };
    check(small.network(1).unwrap(), 0.0);
    check(small.network(2).unwrap(), 0.9);
}

#[test]
fn resnet() {
    let small = ResNet { width: 4, size: [32, 32], classes: 10, ..ResNet::R50 };
    check(small.network(1).unwrap(), 0.8);
    // Of the deeper ones stages differ in their number of blocks alone.
    check(ResNet { blocks: [1, 2, 3, 1], ..small }.network(2).unwrap(), 0.0);
    check(ResNet { blocks: ResNet::R152.blocks, size: [16, 16], ..small }.network(1).unwrap(), 0.8);
}

#[test]
fn densenet() {
    let small = DenseNet { growth: 4, size: [32, 32], classes: 10, ..DenseNet::D121 };
    check(small.network(1).unwrap(), 0.0);
    // Of the others blocks differ in their number of layers alone.
    check(DenseNet { blocks: [2, 3, 4, 2], ..small }.network(2).unwrap(), 0.8);
}

#[test]
fn vgg() {
    let small = Vgg { width: 4, hidden: 16, size: [32, 32], classes: 10, ..Vgg::V16 };
    check(small.network(1).unwrap(), 0.0);
    check(Vgg { stages: Vgg::V19.stages, ..small }.network(2).unwrap(), 0.8);
}

#[test]
fn layers_one_by_one_make_the_same_however_often_each_runs() {
    let small = ResNet { width: 4, size: [16, 16], classes: 10, blocks: [1, 2, 1, 1] };
    let network = small.network(2).unwrap();
    let weights = pruned(&Weights::drawn(&network, 11).unwrap(), 0.8);
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let mut model = Model::plan(&stream, &network, &weights, &Options::default()).unwrap();
    let input = device.upload(&input(&network)).unwrap();
    let mut output = device.zeros::<f32>(network.output_shape().elements()).unwrap();
    model.run(&stream, input.as_slice(), output.as_slice_mut()).unwrap();
    let expected = output.download(&stream).unwrap();
    let mut output = device.zeros::<f32>(expected.len()).unwrap();
    for layer in 0..network.layers().len() {
        for _ in 0..2 {
            model.run_layer(&stream, layer, input.as_slice(), output.as_slice_mut()).unwrap();
        }
    }
    assert_eq!(output.download(&stream).unwrap(), expected);
    let layers = network.layers().len();
    let error = model.run_layer(&stream, layers, input.as_slice(), output.as_slice_mut()).unwrap_err();
    assert!(matches!(error, ModelError::NoLayer { number, layers: of } if number == layers && of == layers));
}

//! The networks of papers, cut to a size for the simulator, are right layer by layer and as a whole.
use lacuna_models::model::Options;
use lacuna_models::network::Network;
use lacuna_models::networks::{DenseNet, MobileNetV1, ResNet, Vgg};
use lacuna_models::weights::Weights;

use crate::common::{pruned, run};

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

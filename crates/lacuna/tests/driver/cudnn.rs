//! Convolutions by a cuDNN that is a C file, too, and computes on the host; kernels do not run.
use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::thread;

use half::f16;
use lacuna::conv::{Algorithm, MapLayout, Operands, Options, Shape};
use lacuna::{Conv, Device, Error, Precision, Value};
use lacuna_vendor::Search;
use lacuna_vendor::cudnn::CuDnn;

use crate::{compile, journal_beside};

fn cudnn(folder: &Path) {
    compile("../vendor/tests/vendor/fake/cudnn.c", &folder.join("libcudnn.so.9"));
}

fn options(layout: MapLayout) -> Options {
    Options::default().layout(layout).algorithm(Algorithm::CuDnn)
}

/// Small whole numbers: sums of any order are exact.
fn numbers<T: Value>(count: usize, seed: usize) -> Vec<T> {
    (0..count).map(|i| T::from_f32(((i * 7 + seed) % 5) as f32 - 1.0)).collect()
}

/// The sums of a convolution on a device; on the simulator by the library's choice. It is run by another thread than that of the plan.
fn sums<T: Value>(device: &Device, shape: Shape, options: Options) -> Vec<T> {
    let options = if device.is_simulator() { options.algorithm(Algorithm::Auto) } else { options };
    let stream = device.stream().unwrap();
    let plan = Conv::<T>::plan(device, shape, options).unwrap();
    let weights = device.upload(&numbers::<T>(shape.filters_len(), 3)).unwrap();
    let filters = plan.pack(&stream, weights.as_slice()).unwrap();
    let input = device.upload(&numbers::<T>(shape.input_len(), 1)).unwrap();
    let mut out = device.upload(&vec![T::from_f32(f32::NAN); shape.output_len()]).unwrap();
    let operands = Operands::new(input.as_slice(), &filters, out.as_slice_mut());
    thread::scope(|scope| scope.spawn(|| plan.run(&stream, operands)).join().unwrap()).unwrap();
    assert_eq!(plan.cudnn_algorithm().is_some(), !device.is_simulator());
    out.download(&stream).unwrap()
}

fn compare<T: Value + PartialEq>(shape: Shape, options: Options) {
    let [by_cudnn, simulated] =
        [Device::cuda(0).unwrap(), Device::simulator()].map(|device| sums::<T>(&device, shape, options));
    assert!(by_cudnn == simulated, "{shape:?} {options:?}: {by_cudnn:?}, not {simulated:?}");
    assert!(by_cudnn.iter().any(|sum| sum.to_f32() != 0.0));
}

#[test]
fn the_sums_are_those_of_our_kernels() {
    let work = || {
        let usual = Shape::new(3, [5, 6], 4, [3, 2]).strides([2, 1]).padding([1, 0]).batch(2);
        let depthwise = Shape::depthwise(3, [4, 5], [3, 3]).padding([1, 1]);
        compare::<f32>(usual, options(MapLayout::Nchw));
        compare::<f16>(usual, options(MapLayout::Nchw));
        compare::<f32>(usual, options(MapLayout::Nchw).precision(Precision::Tf32));
        compare::<f32>(depthwise, options(MapLayout::Nchw));
        compare::<f32>(depthwise, options(MapLayout::Nhwc));
    };
    let test = "cudnn::the_sums_are_those_of_our_kernels";
    if let Some(journal) = journal_beside(test, &[], cudnn, work) {
        let count = |call| journal.iter().filter(|word| *word == call).count();
        assert_eq!((count("cudnnCreate"), count("cudnnDestroy")), (5, 5), "{journal:?}");
        assert_eq!((count("cudnnConvolutionForward"), count("launch")), (5, 0), "{journal:?}");
    }
}

/// Writes a word of its own to the journal.
fn mark(word: &str) {
    let mut journal = OpenOptions::new().append(true).open(env::var_os("FAKE_JOURNAL").unwrap()).unwrap();
    writeln!(journal, "{word}").unwrap();
}

#[test]
fn a_run_only_gives_work_to_the_stream_and_the_plan_ends_in_its_context() {
    let work = || {
        let device = Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        let shape = Shape::new(2, [3, 4], 2, [2, 2]);
        let plan = Conv::<f32>::plan(&device, shape, options(MapLayout::Nchw)).unwrap();
        // What the fake's second algorithm takes.
        assert_eq!((plan.cudnn_algorithm(), plan.workspace_bytes()), (Some("implicit_precomp_gemm"), 1024));
        let numbers = device.upload(&[1.0_f32; 24]).unwrap();
        let filters = plan.pack(&stream, numbers.slice(..16).unwrap()).unwrap();
        let mut out = device.zeros::<f32>(12).unwrap();
        let bias = Some(numbers.slice(..2).unwrap());
        for bias in [None, bias, bias] {
            mark("run");
            let operands =
                Operands { bias, ..Operands::new(numbers.as_slice(), &filters, out.as_slice_mut()) };
            plan.run(&stream, operands).unwrap();
        }
        mark("end");
        drop(device);
        drop(plan);
    };
    let test = "cudnn::a_run_only_gives_work_to_the_stream_and_the_plan_ends_in_its_context";
    let Some(journal) = journal_beside(test, &[("FAKE_ALL", "1")], cudnn, work) else { return };
    let after = |word| journal.iter().skip_while(move |&known| known != word).map(String::as_str);
    let runs: Vec<&str> = after("run").take_while(|&word| word != "end").collect();
    let run = ["run", "cudnnSetStream", "cudnnSetConvolutionMathType", "cudnnConvolutionForward"];
    let expected = [&run[..], &run, &["load", "launch"], &run, &["launch"]].concat();
    assert_eq!(runs, expected);
    let end: Vec<&str> = after("end").filter(|word| !word.contains("Descriptor")).collect();
    let ends = ["end", "wait", "cudnnDestroy"];
    assert_eq!((&end[..3], end.last()), (&ends[..], Some(&"release")), "{journal:?}");
}

#[test]
fn what_fails_in_the_library_is_told() {
    let work = || {
        let device = Device::cuda(0).unwrap();
        let shape = Shape::new(2, [3, 4], 2, [2, 2]);
        let error = Conv::<f32>::plan(&device, shape, options(MapLayout::Nchw)).unwrap_err();
        assert!(matches!(error, Error::Library { .. }) && !error.is_usage(), "{error}");
        let said = "cuDNN failed: cudnnCreateFilterDescriptor returned CUDNN_STATUS_EXECUTION_FAILED (5000)";
        assert!(error.to_string().starts_with(said), "{error}");
    };
    let test = "cudnn::what_fails_in_the_library_is_told";
    let variables = [("FAKE_FAIL", "cudnnCreateFilterDescriptor")];
    if let Some(journal) = journal_beside(test, &variables, cudnn, work) {
        assert_eq!(journal[journal.len() - 2..], ["cudnnDestroy", "release"]);
    }
}

#[test]
fn what_cudnn_cannot_do_is_illegal() {
    let work = || {
        let device = Device::cuda(0).unwrap();
        let stream = device.stream().unwrap();
        let plan = |shape| Conv::<f32>::plan(&device, shape, options(MapLayout::Nchw));
        let error = plan(Shape::new(0, [3, 4], 2, [2, 2])).unwrap_err();
        assert!(matches!(error, Error::Illegal { .. }), "{error}");
        assert!(error.to_string().contains("channels is 0"), "{error}");

        let shape = Shape::new(2, [3, 4], 2, [2, 2]);
        let plan = plan(shape).unwrap();
        let numbers = device.upload(&[1.0_f32; 25]).unwrap();
        let filters = plan.pack(&stream, numbers.slice(..16).unwrap()).unwrap();
        let mut out = device.zeros::<f32>(12).unwrap();
        let operands = Operands::new(numbers.slice(1..).unwrap(), &filters, out.as_slice_mut());
        let error = plan.run(&stream, operands).unwrap_err();
        assert!(matches!(error, Error::Illegal { .. }), "{error}");
        assert!(error.to_string().contains("aligned"), "{error}");
    };
    let test = "cudnn::what_cudnn_cannot_do_is_illegal";
    if let Some(journal) = journal_beside(test, &[], cudnn, work) {
        assert!(!journal.iter().any(|word| word == "cudnnConvolutionForward"), "{journal:?}");
    }
}

#[test]
fn without_the_library_the_plan_is_refused() {
    let work = || {
        // A machine may have one where the system's loader looks.
        let Err(missing) = CuDnn::load(&Search::from_env()) else { return };
        let device = Device::cuda(0).unwrap();
        let shape = Shape::new(2, [3, 4], 2, [2, 2]);
        let error = Conv::<f32>::plan(&device, shape, options(MapLayout::Nchw)).unwrap_err();
        assert!(matches!(error, Error::NoLibrary { .. }) && error.is_missing(), "{error}");
        let text = error.to_string();
        assert!(text.starts_with(&missing.to_string()) && text.contains("libcudnn.so.9"), "{text}");
        assert!(text.ends_with("or leave the choice of the algorithm to Lacuna"), "{text}");
        assert!(Conv::<f32>::plan(&device, shape, Options::default()).is_ok());
    };
    journal_beside("cudnn::without_the_library_the_plan_is_refused", &[], |_| (), work);
}

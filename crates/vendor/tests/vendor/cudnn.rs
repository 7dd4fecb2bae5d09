//! cuDNN: convolutions in both formats, the sequence of calls, their arguments, and errors.

use half::{bf16, f16};
use lacuna_vendor::cudnn::{
    Algorithm, ConvProblem, ConvSizes, Convolution, CuDnn, Found, Handle, Math, MathType, WORKSPACE_BYTES,
};
use lacuna_vendor::{DataType, Error, Search, Version, Workspace};

use crate::fake::{Fake, STREAM, address, address_mut, allocate};

// One image of 2 channels of 3 × 4, 2 filters of 2 × 2 taps; one row of padding, strides of 2 and 1: out is 2 × 3.
const INPUT: [f32; 24] = [
    1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, //
    2.0, 0.0, 1.0, 0.0, 0.0, 3.0, 0.0, 1.0, 1.0, 0.0, 2.0, 0.0,
];
const WEIGHTS: [f32; 16] = [1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, -1.0, 0.0, 1.0, -1.0, 0.0, 1.0, 1.0, 1.0, 1.0];
const BIAS: [f32; 2] = [-8.0, 1.0];
pub(crate) const OUT: [f32; 12] = [2.0, 2.0, 4.0, 15.0, 21.0, 19.0, 1.0, -1.0, -2.0, 1.0, 2.0, 0.0];
const BIAS_RELU: [f32; 12] = [0.0, 0.0, 0.0, 7.0, 13.0, 11.0, 2.0, 0.0, 0.0, 2.0, 3.0, 1.0];
const RELU: [f32; 12] = [2.0, 2.0, 4.0, 15.0, 21.0, 19.0, 1.0, 0.0, 0.0, 1.0, 2.0, 0.0];
const GROUPED: [f32; 12] = [2.0, 3.0, 4.0, 15.0, 17.0, 19.0, 0.0, -1.0, 0.0, 0.0, 4.0, 0.0];

pub(crate) const SIZES: ConvSizes = ConvSizes {
    data_type: DataType::F32,
    batch: 1,
    channels: 2,
    size: [3, 4],
    filters: 2,
    taps: [2, 2],
    strides: [2, 1],
    padding: [1, 0],
    groups: 1,
    channels_last: false,
};

pub(crate) fn fake() -> (Fake, Handle) {
    let fake = Fake::build("cudnn.c", "libcudnn.so.9");
    let handle = CuDnn::load(&fake.search()).unwrap().handle().unwrap();
    (fake, handle)
}

pub(crate) fn problem(out: &mut [f32; 12]) -> ConvProblem {
    arrays(DataType::F32, &INPUT, &WEIGHTS, out)
}

fn arrays<T>(data_type: DataType, input: &[T], weights: &[T], out: &mut [T]) -> ConvProblem {
    ConvProblem {
        sizes: ConvSizes { data_type, ..SIZES },
        input: address(input),
        weights: address(weights),
        bias: None,
        relu: false,
        out: address_mut(out),
        stream: STREAM,
    }
}

fn bind(handle: &Handle, problem: &ConvProblem, math: Math) -> Result<Convolution, Error> {
    // SAFETY: the arrays are live host arrays, in which the fake computes.
    unsafe { handle.convolution(problem, math, allocate) }
}

/// Runs the fastest algorithm.
fn run(handle: &Handle, problem: &ConvProblem, math: Math) -> Found {
    let convolution = bind(handle, problem, math).unwrap();
    let found = convolution.algorithms().unwrap()[0];
    convolution.run(&found).unwrap();
    found
}

/// `values` of `shape`, channels first, with their channels last.
fn channels_last<T: Copy>(values: &[T], [n, c, h, w]: [usize; 4]) -> Vec<T> {
    let place = |n, at: usize, c_at| (n * c + c_at) * h * w + at;
    (0..n)
        .flat_map(|n| (0..h * w).flat_map(move |at| (0..c).map(move |c_at| (n, at, c_at))))
        .map(|(n, at, c_at)| values[place(n, at, c_at)])
        .collect()
}

#[test]
fn the_library_tells_its_version_without_a_handle() {
    let fake = Fake::build("cudnn.c", "libcudnn.so.9");
    let cudnn = CuDnn::load(&fake.search()).unwrap();
    assert_eq!(cudnn.version().unwrap(), Version { major: 9, minor: 28, patch: 0 });
    assert_eq!(fake.live(), 0);
}

#[test]
fn the_calls_come_in_order_and_leave_nothing_behind() {
    let (fake, handle) = fake();
    let mut out = [f32::NAN; 12];
    let convolution = bind(&handle, &problem(&mut out), Math::Fma).unwrap();
    assert_eq!(fake.live(), 5, "a handle and four descriptors");
    let found = convolution.algorithms().unwrap();
    convolution.run(&found[0]).unwrap();
    assert_eq!(out, OUT);
    drop((handle, convolution));
    let expected = [
        "cudnnGetProperty",
        "cudnnCreate",
        "cudnnCreateTensorDescriptor",
        "cudnnSetTensor4dDescriptor(nchw,f32,1,2,3,4)",
        "cudnnCreateFilterDescriptor",
        "cudnnSetFilter4dDescriptor(nchw,f32,2,2,2,2)",
        "cudnnCreateConvolutionDescriptor",
        "cudnnSetConvolution2dDescriptor(1,0,2,1)",
        "cudnnSetConvolutionGroupCount(1)",
        "cudnnCreateTensorDescriptor",
        "cudnnSetTensor4dDescriptor(nchw,f32,1,2,2,3)",
        "cudnnSetStream",
        "cudnnSetConvolutionMathType(fma)",
        "cudnnFindConvolutionForwardAlgorithmEx",
        "cudnnSetStream",
        "cudnnSetConvolutionMathType(fma)",
        "cudnnConvolutionForward(1)",
        "cudnnDestroyTensorDescriptor",
        "cudnnDestroyFilterDescriptor",
        "cudnnDestroyConvolutionDescriptor",
        "cudnnDestroyTensorDescriptor",
        "cudnnDestroy",
    ];
    assert_eq!(fake.journal(), expected);
    assert_eq!(fake.live(), 0);
}

#[test]
fn a_bias_and_relu_follow_in_the_same_call() {
    let (fake, handle) = fake();
    let mut out = [f32::NAN; 12];
    let problem = ConvProblem { bias: Some(address(&BIAS)), relu: true, ..problem(&mut out) };
    fake.journal();
    run(&handle, &problem, Math::Fma);
    assert_eq!(out, BIAS_RELU);
    let journal = fake.journal();
    let first = [
        "cudnnCreateTensorDescriptor",
        "cudnnSetTensor4dDescriptor(nchw,f32,1,2,1,1)",
        "cudnnCreateActivationDescriptor",
        "cudnnSetActivationDescriptor(relu)",
    ];
    assert_eq!(journal[..4], first);
    assert!(journal.contains(&"cudnnConvolutionBiasActivationForward(1)".to_owned()), "{journal:?}");
    assert!(!journal.contains(&"cudnnSetTensor".to_owned()), "{journal:?}");
    assert_eq!(fake.live(), 1, "the handle");
}

#[test]
fn a_bias_alone_has_one_algorithm() {
    let (_fake, handle) = fake();
    let mut out = [f32::NAN; 12];
    let problem = ConvProblem { bias: Some(address(&BIAS)), ..problem(&mut out) };
    let convolution = bind(&handle, &problem, Math::TensorCores).unwrap();
    let found = convolution.algorithms().unwrap();
    assert!(found.iter().all(|found| found.algorithm == Algorithm::ImplicitPrecompGemm), "{found:?}");
    convolution.run(&found[0]).unwrap();
    assert_eq!((out[0], out[11]), (OUT[0] - 8.0, OUT[11] + 1.0));
    // The algorithm of another problem is refused by the library.
    let plain = bind(&handle, &ConvProblem { bias: None, ..problem }, Math::TensorCores).unwrap();
    let winograd =
        plain.algorithms().unwrap().into_iter().find(|found| found.algorithm == Algorithm::Winograd);
    assert!(convolution.run(&winograd.unwrap()).unwrap_err().is_unsupported());
}

#[test]
fn relu_alone_gets_a_bias_of_zeros() {
    let (fake, handle) = fake();
    let mut out = [f32::NAN; 12];
    let dirty = |bytes| {
        let memory = vec![0x7fu8; if bytes == WORKSPACE_BYTES { 512 } else { bytes + 256 }];
        let address = (memory.as_ptr().expose_provenance() as u64).next_multiple_of(256);
        Ok::<_, Error>(Workspace::new(address, memory))
    };
    let problem = ConvProblem { relu: true, ..problem(&mut out) };
    // SAFETY: the arrays are live host arrays, in which the fake computes; it never reads the workspace.
    let convolution = unsafe { handle.convolution(&problem, Math::Fma, dirty) }.unwrap();
    assert_eq!(
        fake.journal()[14..],
        ["cudnnSetTensor4dDescriptor(nchw,f32,1,2,2,3)", "cudnnSetStream", "cudnnSetTensor"]
    );
    convolution.run(&convolution.algorithms().unwrap()[0]).unwrap();
    assert_eq!(out, RELU);
}

#[test]
fn channels_may_be_last() {
    let (fake, handle) = fake();
    let input = channels_last(&INPUT, [1, 2, 3, 4]);
    let weights = channels_last(&WEIGHTS, [2, 2, 2, 2]);
    let mut out = [f32::NAN; 12];
    let problem = arrays(DataType::F32, &input, &weights, &mut out);
    let sizes = ConvSizes { channels_last: true, ..SIZES };
    run(&handle, &ConvProblem { sizes, ..problem }, Math::Fma);
    assert_eq!(out[..], channels_last(&OUT, [1, 2, 2, 3]));
    assert!(fake.journal().contains(&"cudnnSetFilter4dDescriptor(nhwc,f32,2,2,2,2)".to_owned()));
}

#[test]
fn groups_are_convolved_apart() {
    let (fake, handle) = fake();
    let mut out = [f32::NAN; 12];
    // Each filter has the first 4 or the second 4 weights, and its own channel.
    let sizes = ConvSizes { groups: 2, ..SIZES };
    run(&handle, &ConvProblem { sizes, ..problem(&mut out) }, Math::Fma);
    assert_eq!(out, GROUPED);
    let journal = fake.journal();
    assert!(journal.contains(&"cudnnSetFilter4dDescriptor(nchw,f32,2,1,2,2)".to_owned()), "{journal:?}");
    assert!(journal.contains(&"cudnnSetConvolutionGroupCount(2)".to_owned()), "{journal:?}");
}

/// Convolves a batch of two in a type of 16 bits.
fn narrow<T: Copy + Default>(data_type: DataType, from: fn(f32) -> T, to: fn(T) -> f32) {
    let (fake, handle) = fake();
    let (weights, bias) = (WEIGHTS.map(from), BIAS.map(from));
    let input: Vec<T> = INPUT.iter().chain(&INPUT).map(|&x| from(x)).collect();
    let mut out = [T::default(); 24];
    let problem = arrays(data_type, &input, &weights, &mut out);
    let sizes = ConvSizes { batch: 2, ..problem.sizes };
    let problem = ConvProblem { sizes, bias: Some(address(&bias)), relu: true, ..problem };
    fake.journal();
    let found = run(&handle, &problem, Math::TensorCores);
    assert_eq!(out.map(to)[..], [BIAS_RELU, BIAS_RELU].concat());
    let journal = fake.journal();
    assert!(
        journal.contains(&format!("cudnnSetTensor4dDescriptor(nchw,{data_type},2,2,3,4)")),
        "{journal:?}"
    );
    let maths: Vec<_> = journal.iter().filter(|call| call.contains("MathType")).collect();
    assert_eq!(maths, ["cudnnSetConvolutionMathType(tensor)", "cudnnSetConvolutionMathType(default)"]);
    assert_eq!(found.math_type, MathType::Default, "the fastest of the fake's");
}

#[test]
fn halves_and_bfloat16_are_multiplied_on_tensor_cores() {
    narrow(DataType::F16, f16::from_f32, f16::to_f32);
    narrow(DataType::Bf16, bf16::from_f32, bf16::to_f32);
}

#[test]
fn algorithms_come_fastest_first_and_in_the_arithmetic_asked_for() {
    use Algorithm::{Gemm, ImplicitPrecompGemm, Winograd};
    let (_fake, handle) = fake();
    let mut out = [0.0; 12];
    let problem = problem(&mut out);
    let found = |math| {
        let found = bind(&handle, &problem, math).unwrap().algorithms().unwrap();
        found
            .iter()
            .map(|found| (found.algorithm, found.math_type, found.time_ms, found.workspace_bytes))
            .collect::<Vec<_>>()
    };
    let fma = [(ImplicitPrecompGemm, 0.5, 1024), (Winograd, 1.0, 0), (Gemm, 2.5, 4096)];
    assert_eq!(found(Math::Fma), fma.map(|(algorithm, time, bytes)| (algorithm, MathType::Fma, time, bytes)));
    let tensor = found(Math::TensorCores);
    assert_eq!(tensor[0], (ImplicitPrecompGemm, MathType::Default, 0.25, 1024));
    assert_eq!(tensor.len(), 4);
    assert_eq!(Winograd.name(), "winograd");
}

#[test]
fn a_failed_call_names_its_function() {
    let (fake, handle) = fake();
    let mut out = [0.0; 12];
    let convolution = bind(&handle, &problem(&mut out), Math::Fma).unwrap();
    let found = convolution.algorithms().unwrap();
    fake.fail("cudnnConvolutionForward", 5000);
    let error = convolution.run(&found[0]).unwrap_err();
    let expected = "cudnnConvolutionForward returned CUDNN_STATUS_EXECUTION_FAILED (5000): a kernel failed";
    assert!(error.to_string().starts_with(expected), "{error}");
    fake.fail("cudnnFindConvolutionForwardAlgorithmEx", 3000);
    assert!(convolution.algorithms().unwrap_err().is_unsupported());
}

#[test]
fn a_descriptor_that_fails_frees_those_before_it() {
    let (fake, handle) = fake();
    let mut out = [0.0; 12];
    let problem = ConvProblem { relu: true, ..problem(&mut out) };
    for function in [
        "cudnnCreateTensorDescriptor",
        "cudnnSetFilter4dDescriptor",
        "cudnnSetConvolutionGroupCount",
        "cudnnSetActivationDescriptor",
        "cudnnSetTensor",
    ] {
        fake.fail(function, 2000);
        let error = bind(&handle, &problem, Math::Fma).unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("{function} returned CUDNN_STATUS_BAD_PARAM")),
            "{error}"
        );
        assert_eq!(fake.live(), 1, "the handle");
    }
}

#[test]
fn without_memory_there_is_no_convolution() {
    let (fake, handle) = fake();
    let mut out = [0.0; 12];
    let problem = problem(&mut out);
    // SAFETY: no workspace is given, so nothing runs.
    let error = unsafe { handle.convolution(&problem, Math::Fma, |_| Err("the GPU is full")) }.unwrap_err();
    assert_eq!(error.to_string(), "no workspace of 268435456 bytes on the GPU: the GPU is full");
    assert_eq!(fake.live(), 1, "the handle");
}

#[test]
fn impossible_problems_never_reach_the_library() {
    let (fake, handle) = fake();
    fake.journal();
    let mut out = [0.0; 12];
    let good = problem(&mut out);
    let far = 1 << 31;
    let sized = |sizes| ConvProblem { sizes, ..good };
    let refused = [
        (sized(ConvSizes { batch: 0, ..SIZES }), "batch is 0"),
        (sized(ConvSizes { channels: 0, ..SIZES }), "channels is 0"),
        (sized(ConvSizes { size: [3, 0], ..SIZES }), "size[1] is 0"),
        (sized(ConvSizes { filters: 0, ..SIZES }), "filters is 0"),
        (sized(ConvSizes { taps: [0, 2], ..SIZES }), "taps[0] is 0"),
        (sized(ConvSizes { strides: [2, 0], ..SIZES }), "strides[1] is 0"),
        (sized(ConvSizes { padding: [far, 0], ..SIZES }), "padding[0] is 2147483648"),
        (sized(ConvSizes { groups: 0, ..SIZES }), "groups is 0"),
        (sized(ConvSizes { groups: 3, ..SIZES }), "2 channels and 2 filters do not split into 3 groups"),
        (
            sized(ConvSizes { filters: 3, groups: 2, ..SIZES }),
            "2 channels and 3 filters do not split into 2 groups",
        ),
        (sized(ConvSizes { taps: [6, 2], ..SIZES }), "the height of out is 0"),
        (sized(ConvSizes { taps: [2, 5], ..SIZES }), "the width of out is 0"),
        (
            sized(ConvSizes { padding: [far - 1, 0], strides: [1, 1], ..SIZES }),
            "the height of out is 4294967296",
        ),
        (sized(ConvSizes { batch: 1 << 27, size: [8, 8], ..SIZES }), "the length of input is 17179869184"),
        (sized(ConvSizes { filters: far - 1, ..SIZES }), "the length of weights is 17179869176"),
        (ConvProblem { input: 0, ..good }, "input: device address 0x0"),
        (ConvProblem { weights: good.weights + 2, ..good }, "weights: device address"),
        (ConvProblem { bias: Some(0), ..good }, "bias: device address 0x0"),
        (ConvProblem { out: good.input + 92, ..good }, "the output overlaps input"),
        (ConvProblem { out: good.weights, ..good }, "the output overlaps weights"),
        (ConvProblem { bias: Some(good.out + 44), ..good }, "the output overlaps bias"),
    ];
    for (problem, message) in refused {
        let error = bind(&handle, &problem, Math::Fma).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
    }
    assert_eq!(fake.journal(), [""; 0]);
}

#[test]
fn an_older_version_is_named() {
    let folder = tempfile::tempdir().unwrap();
    Fake::compile("cudnn.c", &folder.path().join("libcudnn.so"), &["-DMAJOR=7"]);
    let missing = CuDnn::load(&Search::in_folders([folder.path()])).unwrap_err();
    assert_eq!(missing.failures()[0].reason, "it is too old: major version 7, and 8 is needed");
}

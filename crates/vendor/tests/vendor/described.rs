//! cuDNN's convolutions of given sizes: what its heuristic says, and runs on any arrays.

use lacuna_vendor::cudnn::{Algorithm, Arrays, ConvProblem, Math, MathType};

use crate::cudnn::{OUT, SIZES, fake, problem};
use crate::fake::STREAM;

#[test]
fn the_heuristic_gives_the_first_algorithm_that_may_be_taken() {
    let (fake, handle) = fake();
    let mut out = [f32::NAN; 12];
    let problem = problem(&mut out);
    let conv = handle.describe(&SIZES, Math::Fma).unwrap();
    assert_eq!(fake.live(), 5, "a handle and four descriptors");
    fake.journal();
    // Not the first of the ranking, nor the larger, the non-deterministic and the missing one after it.
    let wanted = [Algorithm::Direct, Algorithm::FftTiling, Algorithm::Gemm, Algorithm::ImplicitPrecompGemm];
    let found = conv.choose(&wanted).unwrap().unwrap();
    let expected = (Algorithm::ImplicitPrecompGemm, MathType::Fma, 1024);
    assert_eq!((found.algorithm, found.math_type, found.workspace_bytes), expected);
    let math = "cudnnSetConvolutionMathType(fma)";
    let sizes =
        ["5", "3", "1"].map(|algorithm| format!("cudnnGetConvolutionForwardWorkspaceSize({algorithm})"));
    let expected =
        [math, "cudnnGetConvolutionForwardAlgorithm_v7", math, &sizes[0], math, &sizes[1], math, &sizes[2]];
    assert_eq!(fake.journal(), expected);

    let ConvProblem { input, weights, out: to, .. } = problem;
    let arrays = Arrays { input, weights, out: to, workspace: 4096 };
    // SAFETY: the arrays are live host arrays, in which the fake computes; it never reads the workspace.
    unsafe { conv.run(&found, STREAM, &arrays) }.unwrap();
    assert_eq!(out, OUT);
    assert_eq!(fake.journal(), ["cudnnSetStream", math, "cudnnConvolutionForward(1)"]);
    drop((conv, handle));
    assert_eq!(fake.live(), 0);
}

#[test]
fn tensor_cores_are_for_those_who_ask_and_none_may_be_found() {
    let (fake, handle) = fake();
    let conv = handle.describe(&SIZES, Math::TensorCores).unwrap();
    let found = conv.choose(&Algorithm::ALL).unwrap().unwrap();
    assert_eq!((found.algorithm, found.math_type), (Algorithm::WinogradNonfused, MathType::Default));
    let precomp = conv.choose(&[Algorithm::ImplicitPrecompGemm]).unwrap().unwrap();
    assert_eq!(precomp.math_type, MathType::Default, "as it was ranked");
    assert_eq!(conv.choose(&[Algorithm::Fft, Algorithm::Direct]).unwrap(), None);
    fake.fail("cudnnGetConvolutionForwardWorkspaceSize", 4000);
    assert!(!conv.choose(&Algorithm::ALL).unwrap_err().is_unsupported());
    fake.fail("cudnnGetConvolutionForwardAlgorithm_v7", 3000);
    assert!(conv.choose(&Algorithm::ALL).unwrap_err().is_unsupported());
}

//! cuBLAS: row-major products through a column-major library, settings before each run, and errors.

use half::{bf16, f16};
use lacuna_vendor::cublas::{CuBlas, Gemm, GemmProblem, Handle, Math};
use lacuna_vendor::{DataType, Error, Version};

use crate::fake::{Fake, STREAM, address, address_mut, allocate};

const A: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const B: [f32; 12] = [1.0, 0.0, 2.0, 1.0, 0.0, 1.0, 1.0, 2.0, 3.0, 1.0, 0.0, 1.0];
const PRODUCT: [f32; 8] = [10.0, 5.0, 4.0, 8.0, 22.0, 11.0, 13.0, 20.0];

fn fake() -> (Fake, Handle) {
    let fake = Fake::build("cublas.c", "libcublas.so.13");
    let handle = CuBlas::load(&fake.search()).unwrap().handle().unwrap();
    (fake, handle)
}

fn problem(c: &mut [f32; 8]) -> GemmProblem {
    arrays(DataType::F32, &A, &B, c)
}

fn arrays<T>(data_type: DataType, a: &[T], b: &[T], c: &mut [T]) -> GemmProblem {
    let (a, b, c) = (address(a), address(b), address_mut(c));
    GemmProblem {
        data_type,
        m: 2,
        k: 3,
        n: 4,
        batch: 1,
        transposed_b: false,
        shared_a: false,
        a,
        b,
        c,
        stream: STREAM,
    }
}

fn bind(handle: &Handle, problem: &GemmProblem, math: Math) -> Result<Gemm, Error> {
    // SAFETY: the arrays are live host arrays, in which the fake computes.
    unsafe { handle.gemm(problem, math, allocate) }
}

#[test]
fn the_library_tells_its_version_without_a_handle() {
    let fake = Fake::build("cublas.c", "libcublas.so.13");
    let cublas = CuBlas::load(&fake.search()).unwrap();
    assert_eq!(cublas.version().unwrap(), Version { major: 13, minor: 1, patch: 2 });
    assert_eq!(fake.live(), 0);
}

#[test]
fn a_row_major_product_comes_out_row_major() {
    let (_fake, handle) = fake();
    let mut c = [f32::NAN; 8];
    let gemm = bind(&handle, &problem(&mut c), Math::Fp32).unwrap();
    gemm.run().unwrap();
    assert_eq!(c, PRODUCT);
}

#[test]
fn a_transposed_b_gives_the_same_product() {
    let (_fake, handle) = fake();
    let transposed = [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11].map(|at: usize| B[at]);
    let mut c = [f32::NAN; 8];
    let problem = arrays(DataType::F32, &A, &transposed, &mut c);
    bind(&handle, &GemmProblem { transposed_b: true, ..problem }, Math::Fp32).unwrap().run().unwrap();
    assert_eq!(c, PRODUCT);
}

#[test]
fn the_products_of_a_batch_lie_one_behind_the_other() {
    let (fake, handle) = fake();
    let twice: Vec<f32> =
        B.iter().chain(&B).enumerate().map(|(at, x)| if at < 12 { *x } else { 2.0 * x }).collect();
    let (a, mut c) = ([A, A].concat(), [f32::NAN; 16]);
    let problem = GemmProblem { batch: 2, ..arrays(DataType::F32, &a, &twice, &mut c) };
    let gemm = bind(&handle, &problem, Math::Tf32).unwrap();
    fake.journal();
    gemm.run().unwrap();
    assert_eq!(fake.journal()[2..], ["cublasSetMathMode(tf32)", "cublasGemmStridedBatchedEx(f32)"]);
    assert_eq!((&c[..8], &c[8..]), (&PRODUCT[..], &PRODUCT.map(|x| 2.0 * x)[..]));

    let mut c = [f32::NAN; 16];
    let shared = GemmProblem { batch: 2, shared_a: true, ..arrays(DataType::F32, &A, &twice, &mut c) };
    bind(&handle, &shared, Math::Fp32).unwrap().run().unwrap();
    assert_eq!((&c[..8], &c[8..]), (&PRODUCT[..], &PRODUCT.map(|x| 2.0 * x)[..]));

    let halves = |values: &[f32]| values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
    let (a, b, mut c) = (halves(&a), halves(&twice), [f16::ZERO; 16]);
    let problem = GemmProblem { batch: 2, ..arrays(DataType::F16, &a, &b, &mut c) };
    bind(&handle, &problem, Math::Fp32).unwrap().run().unwrap();
    assert_eq!(c[8..], PRODUCT.map(|x| f16::from_f32(2.0 * x)));
}

/// Multiplies in a type of 16 bits.
fn narrow_product<T: Copy + Default>(data_type: DataType, from: fn(f32) -> T, to: fn(T) -> f32) {
    let (fake, handle) = fake();
    let (a, b, mut c) = (A.map(from), B.map(from), [T::default(); 8]);
    let problem = arrays(data_type, &a, &b, &mut c);
    let gemm = bind(&handle, &problem, Math::Fp32).unwrap();
    fake.journal();
    gemm.run().unwrap();
    let call = format!("cublasGemmEx({data_type})");
    let expected = ["cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasSetMathMode(default)", &call];
    assert_eq!(fake.journal(), expected);
    assert_eq!(c.map(to), PRODUCT);
    let error = bind(&handle, &problem, Math::Tf32).unwrap_err();
    let expected = format!("tf32 is for values of f32, and these are {data_type}; take fp32");
    assert_eq!(error.to_string(), expected);
    // The arrays are half as long as those of fp32: B may start where A ends.
    let beside = GemmProblem { b: problem.a + 12, c: problem.a + 36, ..problem };
    assert!(bind(&handle, &beside, Math::Fp32).is_ok());
    let error = bind(&handle, &GemmProblem { c: beside.c - 2, ..beside }, Math::Fp32).unwrap_err();
    assert!(error.to_string().starts_with("the output overlaps b"), "{error}");
}

#[test]
fn halves_and_bfloat16_are_multiplied_with_sums_in_fp32() {
    narrow_product(DataType::F16, f16::from_f32, f16::to_f32);
    narrow_product(DataType::Bf16, bf16::from_f32, bf16::to_f32);
}

#[test]
fn each_run_makes_its_own_settings() {
    let (fake, handle) = fake();
    let (mut c, mut d) = ([0.0; 8], [0.0; 8]);
    let full = bind(&handle, &problem(&mut c), Math::Fp32).unwrap();
    let rounded = bind(&handle, &problem(&mut d), Math::Tf32).unwrap();
    drop(handle);
    fake.journal();
    for (gemm, mode) in [(&full, "default"), (&rounded, "tf32"), (&full, "default")] {
        gemm.run().unwrap();
        let mode = format!("cublasSetMathMode({mode})");
        assert_eq!(fake.journal(), ["cublasSetStream_v2", "cublasSetWorkspace_v2", &mode, "cublasSgemm_v2"]);
    }
    drop((full, rounded));
    assert_eq!(fake.journal(), ["cublasDestroy_v2"]);
    assert_eq!(fake.live(), 0);
}

#[test]
fn a_failed_run_names_its_function() {
    let (fake, handle) = fake();
    let mut c = [0.0; 8];
    let gemm = bind(&handle, &problem(&mut c), Math::Fp32).unwrap();
    fake.fail("cublasSgemm_v2", 13);
    let error = gemm.run().unwrap_err();
    assert!(
        error.to_string().starts_with("cublasSgemm_v2 returned CUBLAS_STATUS_EXECUTION_FAILED (13)"),
        "{error}"
    );
}

#[test]
fn impossible_problems_never_reach_the_library() {
    let (fake, handle) = fake();
    fake.journal();
    let mut c = [0.0; 8];
    let good = problem(&mut c);
    let refused = [
        (GemmProblem { k: 0, ..good }, "k is 0"),
        (GemmProblem { batch: 0, ..good }, "batch is 0"),
        (GemmProblem { batch: 1 << 30, m: 1 << 30, k: 1 << 30, ..good }, "a: device address"),
        (GemmProblem { n: 1 << 31, ..good }, "n is 2147483648"),
        (GemmProblem { a: 0, ..good }, "a: device address 0x0"),
        (GemmProblem { b: u64::MAX - 7, ..good }, "b: device address"),
        (GemmProblem { c: good.a, ..good }, "the output overlaps a"),
        (GemmProblem { batch: 2, c: good.a + 24, ..good }, "the output overlaps a"),
    ];
    for (problem, message) in refused {
        let error = bind(&handle, &problem, Math::Fp32).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
    }
    assert_eq!(fake.journal(), [""; 0]);
}

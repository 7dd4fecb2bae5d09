//! cuSPARSE: the sequence of calls, their arguments, and errors.

use half::{bf16, f16};
use lacuna_vendor::cusparse::{CuSparse, Handle, Spmm, SpmmAlgorithm, SpmmProblem};
use lacuna_vendor::{DataType, Error, Version, Workspace};

use crate::fake::{Fake, STREAM, address, address_mut, allocate};

// A = [[0 2 0 1] [0 0 0 0] [3 0 0 0]]
const ROW_OFFSETS: [i32; 4] = [0, 2, 2, 3];
const COL_INDICES: [i32; 3] = [1, 3, 0];
const VALUES: [f32; 3] = [2.0, 1.0, 3.0];
const B: [f32; 8] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
const PRODUCT: [f32; 6] = [13.0, 16.0, 0.0, 0.0, 3.0, 6.0];

fn fake() -> (Fake, Handle) {
    let fake = Fake::build("cusparse.c", "libcusparse.so.12");
    let handle = CuSparse::load(&fake.search()).unwrap().handle().unwrap();
    (fake, handle)
}

fn problem(c: &mut [f32; 6]) -> SpmmProblem {
    arrays(DataType::F32, &VALUES, &B, c)
}

fn arrays<T>(data_type: DataType, values: &[T], b: &[T], c: &mut [T]) -> SpmmProblem {
    SpmmProblem {
        data_type,
        m: 3,
        k: 4,
        n: 2,
        nnz: 3,
        row_offsets: address(&ROW_OFFSETS),
        col_indices: address(&COL_INDICES),
        values: address(values),
        b: address(b),
        c: address_mut(c),
        stream: STREAM,
    }
}

fn bind(handle: &Handle, problem: &SpmmProblem, algorithm: SpmmAlgorithm) -> Result<Spmm, Error> {
    // SAFETY: the arrays are live host arrays, in which the fake computes.
    unsafe { handle.spmm(problem, algorithm, allocate) }
}

#[test]
fn the_library_tells_its_version_and_path_without_a_handle() {
    let fake = Fake::build("cusparse.c", "libcusparse.so.12");
    let cusparse = CuSparse::load(&fake.search()).unwrap();
    let version = cusparse.version().unwrap();
    assert_eq!(version, Version { major: 12, minor: 5, patch: 10 });
    assert_eq!(version.to_string(), "12.5.10");
    assert!(cusparse.path().ends_with("libcusparse.so.12"));
    assert_eq!(fake.live(), 0);
}

#[test]
fn every_algorithm_multiplies_and_leaves_nothing_behind() {
    let (fake, handle) = fake();
    for algorithm in SpmmAlgorithm::ALL {
        let mut c = [f32::NAN; 6];
        let spmm = bind(&handle, &problem(&mut c), algorithm).unwrap();
        spmm.preprocess().unwrap();
        spmm.run().unwrap();
        assert_eq!(c, PRODUCT, "{algorithm:?}");
        assert_eq!(spmm.workspace_bytes(), if algorithm == SpmmAlgorithm::Default { 0 } else { 512 });
        assert_eq!(fake.live(), 4, "a handle and three descriptors");
    }
    assert_eq!(fake.live(), 1, "the handle");
    drop(handle);
    assert_eq!(fake.live(), 0);
}

/// Multiplies in a type of 16 bits.
fn narrow_product<T: Copy + Default>(data_type: DataType, from: fn(f32) -> T, to: fn(T) -> f32) {
    let (_fake, handle) = fake();
    for algorithm in SpmmAlgorithm::ALL {
        let (values, b, mut c) = (VALUES.map(from), B.map(from), [T::default(); 6]);
        let spmm = bind(&handle, &arrays(data_type, &values, &b, &mut c), algorithm).unwrap();
        spmm.run().unwrap();
        assert_eq!(c.map(to), PRODUCT, "{data_type} {algorithm:?}");
    }
}

#[test]
fn halves_and_bfloat16_are_multiplied_with_sums_in_fp32() {
    narrow_product(DataType::F16, f16::from_f32, f16::to_f32);
    narrow_product(DataType::Bf16, bf16::from_f32, bf16::to_f32);
}

#[test]
fn the_calls_come_in_order() {
    let (fake, handle) = fake();
    let mut c = [0.0; 6];
    let spmm = bind(&handle, &problem(&mut c), SpmmAlgorithm::Csr3).unwrap();
    spmm.preprocess().unwrap();
    spmm.run().unwrap();
    drop(handle);
    drop(spmm);
    let expected = [
        "cusparseGetProperty",
        "cusparseCreate",
        "cusparseCreateCsr",
        "cusparseCreateDnMat",
        "cusparseCreateDnMat",
        "cusparseSetStream",
        "cusparseSpMM_bufferSize(alg3)",
        "cusparseSetStream",
        "cusparseSpMM_preprocess(alg3)",
        "cusparseSetStream",
        "cusparseSpMM(alg3)",
        "cusparseDestroySpMat",
        "cusparseDestroyDnMat",
        "cusparseDestroyDnMat",
        "cusparseDestroy",
    ];
    assert_eq!(fake.journal(), expected);
}

#[test]
fn an_unsupported_algorithm_says_so_and_frees_its_descriptors() {
    let (fake, handle) = fake();
    fake.fail("cusparseSpMM_bufferSize", 10);
    let error = bind(&handle, &problem(&mut [0.0; 6]), SpmmAlgorithm::Csr1).unwrap_err();
    assert!(error.is_unsupported(), "{error}");
    assert_eq!(fake.live(), 1, "the handle");
}

#[test]
fn a_second_descriptor_that_fails_frees_the_first() {
    let (fake, handle) = fake();
    fake.fail("cusparseCreateDnMat", 2);
    let error = bind(&handle, &problem(&mut [0.0; 6]), SpmmAlgorithm::Csr1).unwrap_err();
    assert!(
        error.to_string().starts_with("cusparseCreateDnMat returned CUSPARSE_STATUS_ALLOC_FAILED (2)"),
        "{error}"
    );
    assert_eq!(fake.live(), 1, "the handle");
}

#[test]
fn without_a_context_there_is_no_handle() {
    let fake = Fake::build("cusparse.c", "libcusparse.so.12");
    fake.fail("cusparseCreate", 1);
    let error = CuSparse::load(&fake.search()).unwrap().handle().unwrap_err();
    assert!(error.to_string().contains("no CUDA context is current"), "{error}");
}

#[test]
fn impossible_problems_never_reach_the_library() {
    let (fake, handle) = fake();
    fake.journal();
    let mut c = [0.0; 6];
    let good = problem(&mut c);
    let refused = [
        (SpmmProblem { m: 0, ..good }, "m is 0"),
        (SpmmProblem { n: 0, ..good }, "n is 0"),
        (SpmmProblem { nnz: 0, ..good }, "nnz is 0"),
        (SpmmProblem { k: usize::MAX, ..good }, "k is 18446744073709551615"),
        (SpmmProblem { nnz: 1 << 31, ..good }, "nnz is 2147483648"),
        (SpmmProblem { m: i32::MAX as usize, ..good }, "m + 1 is 2147483648"),
        (SpmmProblem { b: 0, ..good }, "b: device address 0x0"),
        (SpmmProblem { col_indices: good.col_indices + 2, ..good }, "col_indices: device address"),
        (SpmmProblem { c: good.b + 28, ..good }, "the output overlaps b"),
    ];
    for (problem, message) in refused {
        let error = bind(&handle, &problem, SpmmAlgorithm::Default).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
        assert!(!error.is_unsupported());
    }
    assert_eq!(fake.journal(), [""; 0]);
}

#[test]
fn an_allocator_that_fails_or_returns_a_bad_address_is_an_error() {
    let (fake, handle) = fake();
    let mut c = [0.0; 6];
    let problem = problem(&mut c);
    // SAFETY: no workspace is given, so nothing runs.
    let error =
        unsafe { handle.spmm(&problem, SpmmAlgorithm::Csr2, |_| Err("the GPU is full")) }.unwrap_err();
    assert_eq!(error.to_string(), "no workspace of 512 bytes on the GPU: the GPU is full");
    let crooked = |_| Ok::<_, Error>(Workspace::new(128, ()));
    // SAFETY: the workspace is refused, so nothing runs.
    let error = unsafe { handle.spmm(&problem, SpmmAlgorithm::Csr2, crooked) }.unwrap_err();
    assert!(matches!(error, Error::Address { what: "workspace", .. }), "{error}");
    assert_eq!(fake.live(), 1, "the handle");
}

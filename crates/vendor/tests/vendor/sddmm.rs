//! cuSPARSE's SDDMM: the product, the sequence of calls, and errors.

use half::f16;
use lacuna_vendor::cusparse::{CuSparse, Handle, Sddmm, SddmmProblem};
use lacuna_vendor::{DataType, Error};

use crate::fake::{Fake, STREAM, address, address_mut, allocate};

// C has nonzeros at (0, 1), (0, 3) and (2, 0); A is 3 × 2, B 4 × 2.
const ROW_OFFSETS: [i32; 4] = [0, 2, 2, 3];
const COL_INDICES: [i32; 3] = [1, 3, 0];
const A: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const B: [f32; 8] = [1.0, 0.0, 2.0, 1.0, 7.0, 7.0, 3.0, 2.0];
const SAMPLED: [f32; 3] = [4.0, 7.0, 5.0];

fn fake() -> (Fake, Handle) {
    let fake = Fake::build("cusparse.c", "libcusparse.so.12");
    let handle = CuSparse::load(&fake.search()).unwrap().handle().unwrap();
    (fake, handle)
}

fn arrays<T>(data_type: DataType, a: &[T], b: &[T], values: &mut [T]) -> SddmmProblem {
    SddmmProblem {
        data_type,
        m: 3,
        k: 2,
        n: 4,
        nnz: 3,
        a: address(a),
        b: address(b),
        transposed_b: true,
        row_offsets: address(&ROW_OFFSETS),
        col_indices: address(&COL_INDICES),
        values: address_mut(values),
        stream: STREAM,
    }
}

fn bind(handle: &Handle, problem: &SddmmProblem) -> Result<Sddmm, Error> {
    // SAFETY: the arrays are live host arrays, in which the fake computes.
    unsafe { handle.sddmm(problem, allocate) }
}

#[test]
fn products_are_sampled_and_the_calls_come_in_order() {
    let (fake, handle) = fake();
    let mut values = [f32::NAN; 3];
    let sddmm = bind(&handle, &arrays(DataType::F32, &A, &B, &mut values)).unwrap();
    assert_eq!((sddmm.workspace_bytes(), fake.live()), (256, 4), "a handle and three descriptors");
    sddmm.preprocess().unwrap();
    sddmm.run().unwrap();
    assert_eq!(values, SAMPLED);
    drop((handle, sddmm));
    let expected = [
        "cusparseGetProperty",
        "cusparseCreate",
        "cusparseCreateDnMat",
        "cusparseCreateDnMat",
        "cusparseCreateCsr",
        "cusparseSetStream",
        "cusparseSDDMM_bufferSize",
        "cusparseSetStream",
        "cusparseSDDMM_preprocess",
        "cusparseSetStream",
        "cusparseSDDMM",
        "cusparseDestroyDnMat",
        "cusparseDestroyDnMat",
        "cusparseDestroySpMat",
        "cusparseDestroy",
    ];
    assert_eq!((fake.journal(), fake.live()), (expected.map(String::from).into(), 0));
}

#[test]
fn b_may_be_stored_by_rows_of_k() {
    let (_fake, handle) = fake();
    // The same B, 2 × 4.
    let b = [1.0, 2.0, 7.0, 3.0, 0.0, 1.0, 7.0, 2.0];
    let mut values = [f32::NAN; 3];
    let problem = SddmmProblem { transposed_b: false, ..arrays(DataType::F32, &A, &b, &mut values) };
    let sddmm = bind(&handle, &problem).unwrap();
    sddmm.preprocess().unwrap();
    sddmm.run().unwrap();
    assert_eq!(values, SAMPLED);
}

#[test]
fn halves_are_multiplied_where_the_library_takes_them() {
    let (fake, handle) = fake();
    let (a, b, mut values) = (A.map(f16::from_f32), B.map(f16::from_f32), [f16::ZERO; 3]);
    let problem = arrays(DataType::F16, &a, &b, &mut values);
    bind(&handle, &problem).unwrap().run().unwrap();
    assert_eq!(values.map(f16::to_f32), SAMPLED);
    fake.fail("cusparseSDDMM_bufferSize", 10);
    assert!(bind(&handle, &problem).unwrap_err().is_unsupported());
    assert_eq!(fake.live(), 1, "the handle");
}

#[test]
fn impossible_problems_never_reach_the_library() {
    let (fake, handle) = fake();
    fake.journal();
    let mut values = [0.0; 3];
    let good = arrays(DataType::F32, &A, &B, &mut values);
    let refused = [
        (SddmmProblem { k: 0, ..good }, "k is 0"),
        (SddmmProblem { nnz: 0, ..good }, "nnz is 0"),
        (SddmmProblem { n: 1 << 31, ..good }, "n is 2147483648"),
        (SddmmProblem { m: i32::MAX as usize, ..good }, "m + 1 is 2147483648"),
        (SddmmProblem { a: 0, ..good }, "a: device address 0x0"),
        (SddmmProblem { row_offsets: good.row_offsets + 1, ..good }, "row_offsets: device address"),
        (SddmmProblem { values: good.b + 28, ..good }, "the output overlaps b"),
    ];
    for (problem, message) in refused {
        let error = bind(&handle, &problem).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
    }
    assert_eq!(fake.journal(), [""; 0]);
}

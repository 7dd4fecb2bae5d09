//! Transposed matrices of every type, and of batches, on the simulator.
use std::sync::Arc;

use half::{bf16, f16};
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::{CsrMatrix, Device, Error, Index, Spmm, Value};

/// Matrices of a batch.
const BATCH: usize = 3;
/// Columns of B.
const N: usize = 8;

/// Small whole numbers: they and their sums are exact in every type.
fn numbers(len: usize, seed: usize) -> impl Iterator<Item = f32> {
    (0..len).map(move |i| ((i * 7 + seed * 3) % 5) as f32 - 2.0)
}

fn as_type<T: Value>(numbers: impl Iterator<Item = f32>) -> Vec<T> {
    numbers.map(T::from_f32).collect()
}

/// A batch is transposed, changed and transposed again, and multiplied; all is compared with the host's transpose.
fn check<T: Value + std::fmt::Debug, I: Index>(nnz: usize) {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let pattern = Arc::new(generate::uniform_nnz(37, 53, nnz, 1).unwrap());
    let host = |which: usize| {
        Csr::with_values(Arc::clone(&pattern), as_type::<T>(numbers(nnz, which))).unwrap().transpose()
    };
    let values = |first: usize| (first..first + BATCH).flat_map(|which| as_type::<T>(numbers(nnz, which)));
    let a = CsrMatrix::<T, I>::with_index(
        &device,
        &Csr::with_values(Arc::clone(&pattern), vec![T::from_f32(0.0); nnz]).unwrap(),
    );
    let a = a.unwrap();
    let batch = a.with_value_batch::<T>(BATCH, &values(0).collect::<Vec<T>>()).unwrap();
    let mut t = batch.transposed(&stream).unwrap();
    assert_eq!((t.rows(), t.cols(), t.batch()), (53, 37, BATCH));
    for first in [0, 5] {
        let newer = a.with_value_batch::<T>(BATCH, &values(first).collect::<Vec<T>>()).unwrap();
        t.update_from(&stream, &newer).unwrap();
        for which in 0..BATCH {
            let got = t.batch_values(which).unwrap().download(&stream).unwrap();
            assert_eq!(got, host(first + which).values(), "{} {}, matrix {which}", T::TYPE, I::TYPE);
        }
    }

    let plan = Spmm::plan(&t, N).unwrap();
    let b = as_type::<T>(numbers(plan.input_len(), 9));
    let on_device = device.upload(&b).unwrap();
    let mut c = device.uninitialized::<T>(plan.output_len()).unwrap();
    plan.run(&stream, &t, on_device.as_slice(), c.as_slice_mut()).unwrap();
    let c = c.download(&stream).unwrap();
    for which in 0..BATCH {
        let transposed = host(5 + which);
        for row in 0..53 {
            let (columns, values) = transposed.row(row);
            for column in 0..N {
                let term = |(&k, value): (&u32, &T)| {
                    value.to_f32() * b[(which * 37 + k as usize) * N + column].to_f32()
                };
                let sum: f32 = columns.iter().zip(values).map(term).sum();
                assert_eq!(
                    c[(which * 53 + row) * N + column],
                    T::from_f32(sum),
                    "matrix {which}, {row}, {column}"
                );
            }
        }
    }
}

#[test]
fn all_types_and_batches() {
    for nnz in [1, 517, 520] {
        check::<f32, u32>(nnz);
        check::<f32, u16>(nnz);
        check::<f16, u32>(nnz);
        check::<f16, u16>(nnz);
        check::<bf16, u32>(nnz);
        check::<bf16, u16>(nnz);
    }
}

#[test]
fn types_and_batches_of_one_pattern_share_its_transpose() {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let pattern = generate::uniform(20, 30, 0.7, 1).unwrap();
    let host = Csr::with_values(pattern, vec![1.0_f32; 180]).unwrap();
    let a = CsrMatrix::<f32, u16>::with_index(&device, &host).unwrap();
    let halves = a.with_value_batch(2, &vec![f16::ONE; 360]).unwrap();
    let (t, u) = (a.transposed(&stream).unwrap(), halves.transposed(&stream).unwrap());
    assert_eq!(u.values().unwrap().download(&stream).unwrap(), vec![f16::ONE; 180]);
    // A plan is made for the pattern: values of another type follow by the same one.
    let again = t.with_value_batch(2, &vec![f16::ONE; 360]).unwrap();
    let plan = Spmm::plan(&u, N).unwrap();
    let b = device.upload(&vec![f16::ONE; plan.input_len()]).unwrap();
    let mut c = device.zeros::<f16>(plan.output_len()).unwrap();
    plan.run(&stream, &again, b.as_slice(), c.as_slice_mut()).unwrap();
}

#[test]
fn rows_that_16_bits_cannot_count_are_refused() {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let of_rows = |rows: usize| {
        let mut offsets = vec![0; rows];
        offsets.push(1);
        let host = Csr::with_values(Pattern::new(rows, 2, offsets, vec![1]).unwrap(), vec![2.0_f32]).unwrap();
        CsrMatrix::<f32, u16>::with_index(&device, &host).unwrap().transposed(&stream)
    };
    let t = of_rows(65_535).unwrap();
    assert_eq!((t.rows(), t.cols(), t.nnz()), (2, 65_535, 1));
    let error = of_rows(65_536).unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 65_535, got: 65_536, .. }), "{error}");
    assert!(error.to_string().contains("rows"), "{error}");
}

#[test]
fn another_batch_is_refused_and_none_is_no_work() {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let host = Csr::with_values(generate::uniform_nnz(4, 6, 10, 1).unwrap(), vec![1.0_f32; 10]).unwrap();
    let a = CsrMatrix::new(&device, &host).unwrap();
    let two = a.with_value_batch(2, &[1.0_f32; 20]).unwrap();
    let mut t = a.transposed(&stream).unwrap();
    let error = t.update_from(&stream, &two).unwrap_err();
    assert!(matches!(error, Error::Parameter { what: "the batch of A", .. }), "{error}");
    assert!(error.to_string().contains('2'), "{error}");
    let none = a.with_value_batch::<f32>(0, &[]).unwrap().transposed(&stream).unwrap();
    assert_eq!((none.batch(), none.values().is_err()), (0, true));
}

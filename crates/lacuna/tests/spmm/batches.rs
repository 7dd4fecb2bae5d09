//! Batches: many B, many A of one pattern, and how they lie.
use half::f16;
use lacuna::{Spmm, Value, spmm};

use crate::support::{integers, matrix, on_device, product};

const M: usize = 9;
const K: usize = 33;
const N: usize = 12;
const BATCH: usize = 3;

#[test]
fn many_b_one_a() {
    let host = matrix::<f32>(M, K);
    let (device, stream, a) = on_device::<f32, u32>(&host);
    let contents = integers::<f32>(BATCH * K * N, 1);
    let b = device.upload(&contents).unwrap();
    let plan = Spmm::plan_with(&a, N, spmm::Options::default().batch(BATCH)).unwrap();
    assert_eq!((plan.input_len(), plan.output_len()), (BATCH * K * N, BATCH * M * N));
    let mut c = device.uninitialized(plan.output_len()).unwrap();
    plan.run(&stream, &a, b.as_slice(), c.as_slice_mut()).unwrap();
    let expected: Vec<f32> = contents.chunks(K * N).flat_map(|b| product(&host, b, N, N)).collect();
    assert_eq!(c.download(&stream).unwrap(), expected);
}

/// Values of another type than the pattern was uploaded with, and nonzeros that are no multiple of four.
#[test]
fn many_a_one_b() {
    let host = matrix::<f32>(M, K);
    let (device, stream, a) = on_device::<f32, u16>(&host);
    let nnz = host.nnz();
    assert!(!nnz.is_multiple_of(4), "{nnz}");
    let mut values = integers::<f16>(BATCH * nnz, 2);
    let mut a = a.with_value_batch(BATCH, &values).unwrap();
    assert_eq!(a.batch(), BATCH);
    // The last matrix gets other values afterwards.
    let last = integers::<f16>(nnz, 9);
    values[(BATCH - 1) * nnz..].copy_from_slice(&last);
    a.batch_values_mut(BATCH - 1).unwrap().upload(&last).unwrap();

    let contents = integers::<f16>(K * N, 1);
    let b = device.upload(&contents).unwrap();
    let plan = Spmm::plan_with(&a, N, spmm::Options::default().batch(BATCH).b_batch_stride(0)).unwrap();
    assert_eq!(plan.input_len(), K * N);
    let mut c = device.uninitialized(plan.output_len()).unwrap();
    plan.run(&stream, &a, b.as_slice(), c.as_slice_mut()).unwrap();
    let expected: Vec<f32> = values
        .chunks(nnz)
        .flat_map(|values| {
            let pattern = host.pattern().clone();
            let host = lacuna::matrix::Csr::with_values(pattern, values.to_vec()).unwrap();
            product(&host, &contents, N, N)
        })
        .collect();
    let c: Vec<f32> = c.download(&stream).unwrap().into_iter().map(Value::to_f32).collect();
    assert_eq!(c, expected);
}

/// Heads side by side in wide rows, as attention has them.
#[test]
fn side_by_side() {
    const WIDE: usize = BATCH * N + 5;
    let host = matrix::<f32>(M, K);
    let (device, stream, a) = on_device::<f32, u32>(&host);
    let contents = integers::<f32>(K * WIDE, 1);
    let b = device.upload(&contents).unwrap();
    let options = spmm::Options::default().batch(BATCH);
    let options = options.b_stride(WIDE).b_batch_stride(N).c_stride(WIDE).c_batch_stride(N);
    let plan = Spmm::plan_with(&a, N, options).unwrap();
    let mut c = device.upload(&vec![77.0; M * WIDE]).unwrap();
    plan.run(&stream, &a, b.as_slice(), c.as_slice_mut()).unwrap();
    let c = c.download(&stream).unwrap();
    for head in 0..BATCH {
        let expected = product(&host, &contents[head * N..], N, WIDE);
        for (row, expected) in expected.chunks(N).enumerate() {
            assert_eq!(c[row * WIDE + head * N..][..N], *expected, "head {head}, row {row}");
        }
    }
    assert!(c.chunks(WIDE).all(|row| row[BATCH * N..] == [77.0; 5]), "the gap was written");
}

/// More products than a grid has along z.
#[test]
fn more_products_than_a_grid_holds() {
    const MANY: usize = 65_535 + 2;
    let host = lacuna::matrix::Csr::new(1, 2, vec![0, 1], vec![1], vec![3.0]).unwrap();
    let (device, stream, a) = on_device::<f32, u32>(&host);
    let values: Vec<f32> = (0..MANY).map(|at| (at % 1000) as f32).collect();
    let a = a.with_value_batch(MANY, &values).unwrap();
    let contents = integers::<f32>(MANY * 2, 1);
    let b = device.upload(&contents).unwrap();
    let plan = Spmm::plan(&a, 1).unwrap();
    let mut c = device.uninitialized(MANY).unwrap();
    let run = || plan.run(&stream, &a, b.as_slice(), c.as_slice_mut());
    let ((), launches) = device.record(run).unwrap();
    assert_eq!(launches.len(), 2);
    let expected: Vec<f32> = values.iter().zip(contents.chunks(2)).map(|(value, b)| value * b[1]).collect();
    assert!(c.download(&stream).unwrap() == expected);
}

#[test]
fn a_batch_of_none_does_nothing() {
    let (device, stream, a) = on_device::<f32, u32>(&matrix(M, K));
    let plan = Spmm::plan_with(&a, N, spmm::Options::default().batch(0)).unwrap();
    let (b, mut c) = (device.zeros(0).unwrap(), device.zeros(0).unwrap());
    let run = || plan.run(&stream, &a, b.as_slice(), c.as_slice_mut());
    let ((), launches) = device.record(run).unwrap();
    assert!(launches.is_empty());
}

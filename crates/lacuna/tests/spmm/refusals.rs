//! Options and operands that make no sense, refused by errors that say what would.
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Device, Error, Spmm, spmm};

use crate::support::{matrix, on_device};

const M: usize = 5;
const K: usize = 8;
const N: usize = 4;

fn refusal(options: spmm::Options) -> Error {
    let (_, _, a) = on_device::<f32, u32>(&matrix(M, K));
    let error = Spmm::plan_with(&a, N, options).unwrap_err();
    assert!(error.is_usage());
    error
}

/// Whether the error's text has all these parts.
fn says(error: &Error, parts: &[&str]) {
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn limits_out_of_order() {
    let usual = spmm::Options::default();
    for (lo, hi) in [(1.0, 0.0), (f32::NAN, 1.0), (0.0, f32::NAN)] {
        let error = refusal(usual.clamp(lo, hi));
        assert!(matches!(error, Error::Parameter { .. }));
        says(&error, &["clamp", &lo.to_string(), &hi.to_string()]);
    }
}

#[test]
fn strides() {
    let usual = spmm::Options::default();
    for (options, name) in [(usual.b_stride(3), "the stride of B"), (usual.c_stride(3), "the stride of C")] {
        let error = refusal(options);
        assert!(matches!(error, Error::Parameter { .. }));
        says(&error, &[name, "is 3", "N = 4"]);
    }
    for options in [usual.b_stride(1 << 30), usual.c_stride(1 << 30), usual.b_stride(usize::MAX)] {
        assert!(matches!(refusal(options), Error::TooLarge { .. }));
    }
    for options in [usual.batch(usize::MAX), usual.batch(3).b_batch_stride(usize::MAX / 2)] {
        assert!(matches!(refusal(options), Error::TooLarge { .. }));
    }
}

#[test]
fn products_over_each_other() {
    for apart in [0, M * N - 1] {
        let error = refusal(spmm::Options::default().batch(2).c_batch_stride(apart));
        assert!(matches!(error, Error::Parameter { .. }));
        says(&error, &["the batch stride of C", "20"]);
    }
}

#[test]
fn lengths_with_strides() {
    let (device, stream, a) = on_device::<f32, u32>(&matrix(M, K));
    let plan = Spmm::plan_with(&a, N, spmm::Options::default().b_stride(6).c_stride(7)).unwrap();
    assert_eq!((plan.input_len(), plan.output_len()), (7 * 6 + 4, 4 * 7 + 4));
    for (b, c, fits) in
        [(46, 32, true), (48, 35, true), (45, 32, false), (49, 32, false), (46, 31, false), (46, 36, false)]
    {
        let (b_buffer, mut c_buffer) = (device.zeros(b).unwrap(), device.zeros(c).unwrap());
        let result = plan.run(&stream, &a, b_buffer.as_slice(), c_buffer.as_slice_mut());
        assert_eq!(result.is_ok(), fits, "{b} {c}");
        if let Err(error) = result {
            assert!(matches!(error, Error::Length { .. }));
            says(&error, &["row to row"]);
        }
    }
}

#[test]
fn biases() {
    let (device, stream, a) = on_device::<f32, u32>(&matrix(M, K));
    let plan = Spmm::plan(&a, N).unwrap();
    let (b, mut c) = (device.zeros(K * N).unwrap(), device.zeros(M * N).unwrap());
    for len in [0, M - 1, M + 1] {
        let bias = device.zeros(len).unwrap();
        let operands =
            spmm::Operands { a: &a, b: b.as_slice(), c: c.as_slice_mut(), bias: Some(bias.as_slice()) };
        let error = plan.run_with(&stream, operands).unwrap_err();
        assert!(matches!(error, Error::Length { .. }));
        says(&error, &["the bias", "each row"]);
    }
    let bias = Device::simulator().zeros(M).unwrap();
    let operands =
        spmm::Operands { a: &a, b: b.as_slice(), c: c.as_slice_mut(), bias: Some(bias.as_slice()) };
    assert!(matches!(plan.run_with(&stream, operands).unwrap_err(), Error::OtherDevice { .. }));
}

#[test]
fn batches_that_do_not_fit() {
    let (device, stream, a) = on_device::<f32, u32>(&matrix(M, K));
    let mut two = a.with_value_batch(2, &vec![1.0; 2 * a.nnz()]).unwrap();
    let plan = Spmm::plan_with(&a, N, spmm::Options::default().batch(3)).unwrap();
    let (b, mut c) = (device.zeros(3 * K * N).unwrap(), device.zeros(3 * M * N).unwrap());
    let error = plan.run(&stream, &two, b.as_slice(), c.as_slice_mut()).unwrap_err();
    assert!(matches!(error, Error::Parameter { .. }));
    says(&error, &["the batch of A", "is 2", "3"]);

    assert!(matches!(two.batch_values_mut(2).unwrap_err(), Error::Parameter { .. }));
    let error = a.with_value_batch(2, &vec![1.0; a.nnz()]).unwrap_err();
    assert!(matches!(error, Error::Length { .. }));
    let error = a.with_value_batch(usize::MAX, &[1.0]).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }));
}

#[test]
fn sixteen_bits_count_65535_columns() {
    let device = Device::simulator();
    let wide = |cols: usize| Csr::new(1, cols, vec![0, 1], vec![cols as u32 - 1], vec![2.0]).unwrap();
    let error = CsrMatrix::<f32, u16>::with_index(&device, &wide(65_536)).unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 65_535, got: 65_536, .. }));
    says(&error, &["16-bit"]);

    let a = CsrMatrix::<f32, u16>::with_index(&device, &wide(65_535)).unwrap();
    let stream = device.stream().unwrap();
    let plan = Spmm::plan(&a, 1).unwrap();
    let mut contents = vec![0.0; 65_535];
    contents[65_534] = 5.0;
    let (b, mut c) = (device.upload(&contents).unwrap(), device.zeros(1).unwrap());
    plan.run(&stream, &a, b.as_slice(), c.as_slice_mut()).unwrap();
    assert_eq!(c.download(&stream).unwrap(), [10.0]);
}

//! Every type of values and indices, with every kernel of it.
use half::{bf16, f16};
use lacuna::{Index, Spmm, Value, spmm};

use crate::support::{integers, matrix, on_device, product};

const M: usize = 13;
const K: usize = 50;

/// Each kernel, with N that its vectors allow, that fill no tile, and that need several.
fn every_kernel<T: Value, I: Index>() {
    let host = matrix::<T>(M, K);
    let (device, stream, a) = on_device::<T, I>(&host);
    for n in [1, 2, 6, 20, 72, 264] {
        let b = integers::<T>(K * n, 1);
        let expected = product(&host, &b, n, n);
        let b = device.upload(&b).unwrap();
        for choice in spmm::choose(&spmm::Problem::of(&a, n, 8)) {
            let plan = Spmm::plan_with(&a, n, spmm::Options::default().algorithm(choice.algorithm)).unwrap();
            assert_eq!(plan.choice().entry.name, choice.entry.name);
            let mut c = device.uninitialized(M * n).unwrap();
            plan.run(&stream, &a, b.as_slice(), c.as_slice_mut()).unwrap();
            let c: Vec<f32> = c.download(&stream).unwrap().into_iter().map(T::to_f32).collect();
            assert_eq!(c, expected, "{} with N = {n}", choice.entry.name);
        }
    }
}

#[test]
fn f32_u16() {
    every_kernel::<f32, u16>();
}
#[test]
fn f16_u32() {
    every_kernel::<f16, u32>();
}
#[test]
fn f16_u16() {
    every_kernel::<f16, u16>();
}
#[test]
fn bf16_u32() {
    every_kernel::<bf16, u32>();
}
#[test]
fn bf16_u16() {
    every_kernel::<bf16, u16>();
}

/// Slices at any element, and strides that no vector divides.
fn any_alignment<T: Value>() {
    const N: usize = 24;
    let host = matrix::<T>(M, K);
    let (device, stream, a) = on_device::<T, u32>(&host);
    for stride in [N, N + 1, N + 2, N + 4, N + 8] {
        let contents = integers::<T>(8 + K * stride, 1);
        let b = device.upload(&contents).unwrap();
        let options = spmm::Options::default().b_stride(stride).c_stride(stride);
        let plan = Spmm::plan_with(&a, N, options).unwrap();
        assert!(stride.is_multiple_of(plan.choice().entry.tile.vector as usize), "{stride}");
        for offset in 0..8 {
            let expected = product(&host, &contents[offset..], N, stride);
            let mut c = device.zeros::<T>(8 + M * stride).unwrap();
            let part_b = b.slice(offset..offset + plan.input_len()).unwrap();
            let part_c = c.slice_mut(offset..offset + plan.output_len()).unwrap();
            plan.run(&stream, &a, part_b, part_c).unwrap();
            let c = c.download(&stream).unwrap();
            for (row, expected) in expected.chunks(N).enumerate() {
                let c = c[offset + row * stride..][..N].iter().map(|c| c.to_f32());
                assert!(c.eq(expected.iter().copied()), "stride {stride}, offset {offset}, row {row}");
            }
        }
    }
}

#[test]
fn any_alignment_of_each_type() {
    any_alignment::<f32>();
    any_alignment::<f16>();
    any_alignment::<bf16>();
}

/// Sums are f32 until the epilogue is done: what the type of C cannot hold on the way does no harm.
fn sums_in_f32<T: Value>(large: f32, finished: f32) {
    let values = [large, large, 1.0].map(T::from_f32).to_vec();
    let host = lacuna::matrix::Csr::new(1, 3, vec![0, 3], vec![0, 1, 2], values).unwrap();
    let (device, stream, a) = on_device::<T, u32>(&host);
    let b = device.upload(&[large, large, 3.0].map(T::from_f32)).unwrap();
    let bias = device.upload(&[T::from_f32(2.0)]).unwrap();
    let mut c = device.upload(&[T::from_f32(4.0)]).unwrap();
    let options = spmm::Options::default().alpha(1.0 / large).beta(0.5).clamp(-1.0, f32::INFINITY);
    let plan = Spmm::plan_with(&a, 1, options).unwrap();
    let operands =
        spmm::Operands { a: &a, b: b.as_slice(), c: c.as_slice_mut(), bias: Some(bias.as_slice()) };
    plan.run_with(&stream, operands).unwrap();
    // 2·large + 3/large + 0.5·4 + 2, rounded to the type.
    assert_eq!(c.download(&stream).unwrap(), [T::from_f32(finished)]);
}

#[test]
fn sums_and_epilogues_are_f32() {
    sums_in_f32::<f32>(1024.0, 2.0 * 1024.0 + 3.0 / 1024.0 + 4.0);
    // 2·1024² is more than the greatest half.
    sums_in_f32::<f16>(1024.0, 2052.0);
    // Beside 512, a bfloat16 that was rounded after each step would lose both twos.
    sums_in_f32::<bf16>(256.0, 516.0);
}

#[test]
fn one_shot_takes_each_type() {
    let host = matrix::<bf16>(M, K);
    let b = integers::<bf16>(K * 5, 1);
    let c = lacuna::spmm(&host, &b, 5).unwrap();
    let c: Vec<f32> = c.into_iter().map(bf16::to_f32).collect();
    assert_eq!(c, product(&host, &b, 5, 5));
}

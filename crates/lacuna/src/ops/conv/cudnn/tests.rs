//! The kernel that follows cuDNN, on the simulator.
use half::f16;

use super::*;
use crate::Device;

/// Numbers that every type has.
fn numbers<T: Value>(count: usize, seed: usize) -> Vec<T> {
    (0..count).map(|i| T::from_f32(((i * 7 + seed) % 11) as f32 - 5.0)).collect()
}

/// In place, with all that may follow: more elements than a block has threads.
fn follow<T: Value + PartialEq>(layout: MapLayout) {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let (batch, channels, size) = (2, 3, [7, 9]);
    let (pixels, count) = (size[0] * size[1], batch * channels * size[0] * size[1]);
    let (sums, residuals) = (numbers::<T>(count, 1), numbers::<T>(count, 4));
    let biases = [0.5, -1.0, 3.0].map(T::from_f32);
    let mut out = device.upload(&sums).unwrap();
    let (residual, bias) = (device.upload(&residuals).unwrap(), device.upload(&biases).unwrap());
    let mut nonzeros = device.upload(&[7_u32]).unwrap();
    let map = layout.map(channels, size, size_of::<T>());
    let target = Target::<T::Device> {
        out: out.as_slice_mut().pointer(),
        residual: residual.as_slice().pointer(),
        bias: bias.as_slice().pointer(),
        nonzeros: nonzeros.as_slice_mut().pointer(),
        map,
        lo: 0.0,
        hi: 6.0,
        tiles_x: 1,
        tiles: 1,
        channels_last: u32::from(layout == MapLayout::Nhwc),
    };
    finish(&stream, target.out, map, count, target).unwrap();
    let expected: Vec<T> = (0..count)
        .map(|at| {
            let channel = if layout == MapLayout::Nhwc { at % channels } else { at / pixels % channels };
            let sum = sums[at].to_f32() + biases[channel].to_f32() + residuals[at].to_f32();
            T::from_f32(sum.clamp(0.0, 6.0))
        })
        .collect();
    let got = out.download(&stream).unwrap();
    assert!(got == expected, "{layout:?}: {got:?}, not {expected:?}");
    let counted = expected.iter().filter(|result| result.to_f32() != 0.0).count();
    assert_eq!(nonzeros.download(&stream).unwrap(), [7 + counted as u32]);
}

#[test]
fn what_follows_is_done_in_place_in_both_layouts() {
    follow::<f32>(MapLayout::Nchw);
    follow::<f32>(MapLayout::Nhwc);
    follow::<f16>(MapLayout::Nchw);
    follow::<f16>(MapLayout::Nhwc);
}

#[test]
fn filters_come_to_lie_with_their_channels_last() {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let (filters, channels, taps) = (3, 5, [2, 3]);
    let given = numbers::<f16>(filters * channels * 6, 2);
    let on_device = device.upload(&given).unwrap();
    let packed = channels_last(&stream, on_device.as_slice(), channels, taps).unwrap();
    let place = |at: usize| (at / (6 * channels) * channels + at % channels) * 6 + at / channels % 6;
    let expected: Vec<f16> = (0..given.len()).map(|at| given[place(at)]).collect();
    assert_eq!(packed.download(&stream).unwrap(), expected);
}

//! Past what a grid has, and what 31 and 32 bits can count.
use anyhow::Result;
use half::f16;
use lacuna::DenseTranspose;
use lacuna::dense_transpose::Options;
use lacuna_reference::dense_transpose;

use super::conform;
use crate::{Case, Context, Effort, Number};

/// The most blocks of a grid along y and along z.
const MAX_BLOCKS: usize = 65_535;
/// Columns of a tile.
const TILE: usize = 64;

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, about: &str, check: fn(&Context<'_>) -> Result<f64>| {
        Case::new(format!("dense_transpose/huge/{name}"), about, check).effort(Effort::Gpu)
    };
    vec![
        case("batch", "more matrices than a grid has blocks", |cx| conform(cx, [MAX_BLOCKS + 3, 2, 1])),
        case("columns", "more tiles of columns than a grid has blocks", |cx| {
            conform(cx, [1, 1, MAX_BLOCKS * TILE + 70])
        }),
        case("rows", "more tiles of rows than 16 bits count", |cx| {
            conform(cx, [1, (MAX_BLOCKS + 2) * TILE + 6, 1])
        }),
        case("strides", "rows of both from 2^31 and 2^32 bytes on", |cx| {
            apart(cx, Options::default().input_stride(1 << 29).out_stride((1 << 29) + 2))
        }),
        case("batch_strides", "matrices of both from 2^31 and 2^32 bytes on", |cx| {
            apart(cx, Options::default().batch(3).input_batch_stride(1 << 29).out_batch_stride((1 << 29) + 2))
        }),
    ]
}

/// Rows and columns of a matrix whose rows, or matrices of which, lie gigabytes apart.
const FEW: usize = 3;

fn apart(cx: &Context<'_>, options: Options) -> Result<f64> {
    apart_as::<f32>(cx, options)?;
    // As many bytes, in twice the elements.
    let twice = |stride: Option<usize>| stride.map(|stride| 2 * stride);
    let mut halves = options;
    (halves.input_stride, halves.out_stride) = (twice(options.input_stride), twice(options.out_stride));
    halves.input_batch_stride = twice(options.input_batch_stride);
    halves.out_batch_stride = twice(options.out_batch_stride);
    apart_as::<f16>(cx, halves)
}

fn apart_as<T: Number>(cx: &Context<'_>, options: Options) -> Result<f64> {
    let plan = DenseTranspose::<T>::plan_with(cx.device, FEW, FEW, options)?;
    let values: Vec<T> = (1..=options.batch * FEW * FEW).map(|i| T::from_f32(i as f32)).collect();
    let (mut input, mut out) =
        (cx.device.zeros::<T>(plan.input_len())?, cx.device.zeros::<T>(plan.output_len())?);
    // Where a row begins.
    let place = |row: usize, stride: Option<usize>, batch_stride: Option<usize>| {
        let stride = stride.unwrap_or(FEW);
        row / FEW * batch_stride.unwrap_or(FEW * stride) + row % FEW * stride
    };
    for (row, values) in values.chunks_exact(FEW).enumerate() {
        let start = place(row, options.input_stride, options.input_batch_stride);
        input.slice_mut(start..start + FEW)?.upload(values)?;
    }
    plan.run(cx.stream, input.as_slice(), out.as_slice_mut())?;
    let mut result = Vec::new();
    for row in 0..options.batch * FEW {
        let start = place(row, options.out_stride, options.out_batch_stride);
        result.extend(out.slice(start..start + FEW)?.download(cx.stream)?);
    }
    Ok(dense_transpose(&values, options.batch, [FEW, FEW])?.check(&result)?.worst_over_bound)
}

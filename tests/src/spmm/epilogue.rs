//! What options make of a product: alpha, beta, bias and limits; gaps between rows; batches.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::{CsrMatrix, Index, Spmm, spmm};

use super::conform::legal;
use super::guarded::Placement;
use super::product::Product;
use crate::{Case, Context, Number};

const M: usize = 29;
const K: usize = 45;

/// An option, what it is, and whether there is a bias.
type Options = (&'static str, &'static str, bool, fn(spmm::Options) -> spmm::Options);

const EPILOGUES: [Options; 8] = [
    ("alpha", "C = -0.75·A·B", false, |usual| usual.alpha(-0.75)),
    ("beta", "C = A·B + 0.5·C", false, |usual| usual.beta(0.5)),
    ("bias", "C = A·B + bias", true, |usual| usual),
    ("relu", "C = max(A·B, 0)", false, spmm::Options::relu),
    ("clamp", "C = A·B between -0.25 and 0.5", false, |usual| usual.clamp(-0.25, 0.5)),
    ("linear", "C = max(A·B + bias, 0)", true, spmm::Options::relu),
    ("all", "C = 1.5·A·B - 2·C + bias between -1 and 3", true, |usual| {
        usual.alpha(1.5).beta(-2.0).clamp(-1.0, 3.0)
    }),
    ("nothing", "alpha = 0 and beta = 1 leave C as it is", false, |usual| usual.alpha(0.0).beta(1.0)),
];

/// Strides beyond N of B and C, and batches: how many, and whether they lie side by side.
const LAYOUTS: [(&str, [usize; 2], usize, bool); 7] = [
    ("strides", [40, 48], 1, false),
    ("odd_strides", [7, 1], 1, false),
    ("stride_of_b", [3, 0], 1, false),
    ("batch", [0, 0], 3, false),
    ("batch_of_strides", [4, 8], 3, false),
    ("batch_of_odd_strides", [5, 9], 2, false),
    ("side_by_side", [12, 8], 4, true),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, about, bias, options) in EPILOGUES {
        cases.push(Case::new(format!("spmm/epilogue/{name}"), about, move |cx| {
            epilogue(cx, options(spmm::Options::default()), bias)
        }));
    }
    for (name, gaps, batch, beside) in LAYOUTS {
        let about = format!("gaps of {} in B and {} in C, {batch} products", gaps[0], gaps[1]);
        cases
            .push(Case::new(format!("spmm/layout/{name}"), about, move |cx| layout(cx, gaps, batch, beside)));
    }
    cases.push(Case::new("spmm/layout/values", "a batch of A with one pattern and one B", values));
    cases.push(Case::new("spmm/epilogue/special", "NaN, infinities and zeros in an epilogue", special));
    cases
}

fn pattern(seed: u64) -> Result<Pattern> {
    Ok(generate::uniform(M, K, 0.7, seed)?)
}

fn epilogue(cx: &Context<'_>, options: spmm::Options, bias: bool) -> Result<f64> {
    let worst = epilogue_of::<f32, u32>(cx, options, bias)?;
    let halves = epilogue_of::<f16, u16>(cx, options, bias).context("f16")?;
    Ok(worst.max(halves).max(epilogue_of::<bf16, u32>(cx, options, bias).context("bf16")?))
}

/// Every kind of N, and for one every algorithm.
fn epilogue_of<T: Number, I: Index>(cx: &Context<'_>, options: spmm::Options, bias: bool) -> Result<f64> {
    let pattern = pattern(cx.seed)?;
    let mut worst = 0.0_f64;
    for n in [1, 6, 24, 33, 130] {
        let product = Product::<T>::new(&pattern, n, options, cx.seed)?.bias(bias);
        for at in [Placement::WHOLE, Placement::slices(2, 1)] {
            worst = worst.max(product.check::<I>(cx, at)?);
        }
        if n == 24 {
            let a = CsrMatrix::<T, I>::with_index(cx.device, &product.a[0])?;
            for choice in legal(&a, n, options.precision) {
                let product = product.options(options.algorithm(choice.algorithm));
                worst = worst.max(product.check::<I>(cx, Placement::WHOLE)?);
            }
        }
    }
    Ok(worst)
}

fn layout(cx: &Context<'_>, gaps: [usize; 2], batch: usize, beside: bool) -> Result<f64> {
    let worst = layout_of::<f32, u32>(cx, gaps, batch, beside)?;
    let halves = layout_of::<f16, u16>(cx, gaps, batch, beside).context("f16")?;
    Ok(worst.max(halves).max(layout_of::<bf16, u32>(cx, gaps, batch, beside).context("bf16")?))
}

fn layout_of<T: Number, I: Index>(
    cx: &Context<'_>,
    gaps: [usize; 2],
    batch: usize,
    beside: bool,
) -> Result<f64> {
    let pattern = pattern(cx.seed)?;
    let mut worst = 0.0_f64;
    for n in [1, 20, 40] {
        let [b_stride, c_stride] = gaps.map(|gap| gap + if beside { batch * n } else { n });
        let mut options = spmm::Options::default().b_stride(b_stride).c_stride(c_stride).batch(batch);
        if beside {
            options = options.b_batch_stride(n).c_batch_stride(n);
        }
        for options in [options, options.beta(1.0).relu()] {
            for at in [Placement::WHOLE, Placement::slices(8, 16), Placement::slices(3, 2)] {
                worst = worst.max(Product::<T>::new(&pattern, n, options, cx.seed)?.check::<I>(cx, at)?);
            }
        }
    }
    Ok(worst)
}

fn values(cx: &Context<'_>) -> Result<f64> {
    let options = spmm::Options::default().batch(3).b_batch_stride(0);
    let worst = values_of::<f32, u32>(cx, options)?;
    Ok(worst.max(values_of::<f16, u16>(cx, options)?).max(values_of::<bf16, u32>(cx, options)?))
}

fn values_of<T: Number, I: Index>(cx: &Context<'_>, options: spmm::Options) -> Result<f64> {
    let pattern = pattern(cx.seed)?;
    let mut product = Product::<T>::new(&pattern, 24, options, cx.seed)?;
    for seed in [5, 6] {
        product.push_matrix(&pattern, cx.seed ^ seed)?;
    }
    product.check::<I>(cx, Placement::WHOLE)
}

/// Rows 0 to 3 of A are NaN, +∞, 1 and empty; B is 0 beside NaN for the rest.
fn special(cx: &Context<'_>) -> Result<f64> {
    let values = vec![f32::NAN, f32::INFINITY, 1.0];
    let a = Csr::new(4, 2, vec![0, 1, 2, 3, 3], vec![0, 0, 0], values)?;
    let a = CsrMatrix::new(cx.device, &a)?;
    let bits = |values: [f32; 4]| values.map(|value| if value.is_nan() { u32::MAX } else { value.to_bits() });
    let run = |options: spmm::Options, b: f32, c: f32, expected: [f32; 4]| -> Result<()> {
        let plan = Spmm::plan_with(&a, 1, options)?;
        let b = cx.device.upload(&[b, f32::NAN])?;
        let mut buffer = cx.device.upload(&[c; 4])?;
        plan.run(cx.stream, &a, b.as_slice(), buffer.as_slice_mut())?;
        let got: Vec<f32> = buffer.download(cx.stream)?;
        let got = [got[0], got[1], got[2], got[3]];
        ensure!(bits(got) == bits(expected), "{options:?}: {got:?}, but {expected:?} is expected");
        Ok(())
    };
    let (nan, infinite) = (f32::NAN, f32::INFINITY);
    let usual = spmm::Options::default();
    run(usual, 2.0, nan, [nan, infinite, 2.0, 0.0])?;
    run(usual.clamp(-1.0, 1.5), 2.0, nan, [nan, 1.5, 1.5, 0.0])?;
    run(usual.relu(), -2.0, nan, [nan, 0.0, 0.0, 0.0])?;
    run(usual.alpha(2.0).beta(1.0), 2.0, nan, [nan; 4])?;
    run(usual.beta(1.0), 2.0, -infinite, [nan, nan, -infinite, -infinite])?;
    run(usual.alpha(0.0), 2.0, nan, [nan, nan, 0.0, 0.0])?;
    run(usual.alpha(-1.0).relu(), 2.0, nan, [nan, 0.0, 0.0, -0.0])?;
    Ok(0.0)
}

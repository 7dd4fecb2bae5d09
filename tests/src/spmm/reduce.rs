//! Means, and the greatest and the least products: with their winners and gradients.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::spmm::{NO_WINNER, Reduce, Winning};
use lacuna::{CsrMatrix, Error, Index, Spmm, spmm};
use lacuna_cases::number::rounded;
use lacuna_cases::pattern::{of_rows, spread};
use lacuna_reference::Extremum;

use super::guarded::Placement;
use super::product::Product;
use crate::expect::refused;
use crate::{Case, Context, Number};

/// Every reduction but the sum, which all other cases have.
const OTHERS: [Reduce; 3] = [Reduce::Mean, Reduce::Max, Reduce::Min];

/// The reductions that compare.
const EXTREMA: [(Reduce, Extremum); 2] = [(Reduce::Max, Extremum::Greatest), (Reduce::Min, Extremum::Least)];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spmm/reduce/columns", "any N and alignment, by each reduction", columns),
        Case::new("spmm/reduce/epilogue", "epilogues of each reduction", epilogue),
        Case::new("spmm/reduce/layout", "gaps and batches, by each reduction", layout),
        Case::new("spmm/reduce/winners", "which nonzero won, and gradients", winners),
        Case::new("spmm/reduce/long", "a row of 5003 among short ones", long),
        Case::new("spmm/reduce/wide", "columns above 65,535", wide),
        Case::new("spmm/reduce/special", "NaN, infinities, zeros and ties", special),
        Case::new("spmm/reduce/empty", "M, K, N or the nonzeros are 0", empty),
        Case::new("spmm/reduce/batch_gradients", "gradients of a batch with gaps", batch_gradients),
        Case::new(
            "spmm/reduce/refusals",
            "reductions without winners, and operands that do not fit",
            refusals,
        ),
    ]
}

/// Rows of all lengths up to 40, and empty ones.
fn pattern() -> Result<Pattern> {
    let lengths = [0, 7, 0, 40, 1, 2, 3, 4, 5, 31, 32, 33, 0, 16, 17, 9, 1, 0];
    let rows: Vec<Vec<u32>> = lengths.iter().map(|&length| spread(length, 45)).collect();
    of_rows(45, &rows)
}

/// Checks in each pair of types.
macro_rules! in_types {
    ($check:ident($($argument:expr),*)) => {{
        let worst: f64 = $check::<f32, u32>($($argument),*).context("f32 and u32")?;
        let worst = worst.max($check::<f32, u16>($($argument),*).context("f32 and u16")?);
        let worst = worst.max($check::<f16, u32>($($argument),*).context("f16 and u32")?);
        let worst = worst.max($check::<f16, u16>($($argument),*).context("f16 and u16")?);
        let worst = worst.max($check::<bf16, u32>($($argument),*).context("bf16 and u32")?);
        worst.max($check::<bf16, u16>($($argument),*).context("bf16 and u16")?)
    }};
}

fn columns(cx: &Context<'_>) -> Result<f64> {
    OTHERS.iter().try_fold(0.0, |worst: f64, &reduce| Ok(worst.max(in_types!(columns_of(cx, reduce)))))
}

/// By the library's choice, and for one N by every algorithm.
fn columns_of<T: Number, I: Index>(cx: &Context<'_>, reduce: Reduce) -> Result<f64> {
    let (pattern, mut worst) = (pattern()?, 0.0_f64);
    for n in [1, 6, 24, 33, 130] {
        let options = spmm::Options::default().reduce(reduce);
        let product = Product::<T>::new(&pattern, n, options, cx.seed)?;
        for at in [Placement::WHOLE, Placement::slices(2, 1), Placement::slices(8, 16)] {
            worst = worst.max(product.check::<I>(cx, at).with_context(|| format!("{reduce:?}, N = {n}"))?);
        }
        if n == 24 {
            let a = CsrMatrix::<T, I>::with_index(cx.device, &product.a[0])?;
            for choice in legal(&a, n, reduce) {
                let product = product.options(options.algorithm(choice.algorithm));
                worst = worst.max(product.check::<I>(cx, Placement::WHOLE)?);
            }
        }
    }
    Ok(worst)
}

fn legal<T: Number, I: Index>(a: &CsrMatrix<T, I>, n: usize, reduce: Reduce) -> Vec<spmm::Choice> {
    spmm::choose(&spmm::Problem { reduce, ..spmm::Problem::of(a, n, 8) })
}

fn epilogue(cx: &Context<'_>) -> Result<f64> {
    let usual = spmm::Options::default();
    let all = usual.alpha(-1.5).beta(0.5).clamp(-0.75, 0.5);
    let mut worst = 0.0_f64;
    for reduce in OTHERS {
        for (options, bias) in [(usual.relu(), false), (all, true), (usual.alpha(0.25), false)] {
            let options = options.reduce(reduce);
            worst = worst.max(in_types!(epilogue_of(cx, options, bias)));
        }
    }
    Ok(worst)
}

fn epilogue_of<T: Number, I: Index>(cx: &Context<'_>, options: spmm::Options, bias: bool) -> Result<f64> {
    let product = Product::<T>::new(&pattern()?, 24, options, cx.seed)?.bias(bias);
    product.check::<I>(cx, Placement::WHOLE).with_context(|| format!("{options:?}"))
}

fn layout(cx: &Context<'_>) -> Result<f64> {
    let usual = spmm::Options::default();
    let mut worst = 0.0_f64;
    for reduce in OTHERS {
        for options in [
            usual.b_stride(40).c_stride(48),
            usual.b_stride(27).c_stride(25),
            usual.batch(3),
            usual.batch(2).b_stride(48).b_batch_stride(24).c_stride(48).c_batch_stride(24),
            usual.batch(3).b_batch_stride(0),
        ] {
            worst = worst.max(in_types!(layout_of(cx, options.reduce(reduce))));
        }
    }
    Ok(worst)
}

/// A batch of B with one A, and with one A each.
fn layout_of<T: Number, I: Index>(cx: &Context<'_>, options: spmm::Options) -> Result<f64> {
    let pattern = pattern()?;
    let mut product = Product::<T>::new(&pattern, 24, options, cx.seed)?;
    let worst = product.check::<I>(cx, Placement::WHOLE).with_context(|| format!("{options:?}"))?;
    for matrix in 1..options.batch {
        product.push_matrix(&pattern, cx.seed ^ matrix as u64)?;
    }
    Ok(worst.max(product.check::<I>(cx, Placement::slices(8, 8))?))
}

fn winners(cx: &Context<'_>) -> Result<f64> {
    let pattern = pattern()?;
    [1, 7, 24, 130].into_iter().try_fold(0.0, |worst: f64, n| {
        let values = generate::random_values(pattern.nnz(), cx.seed ^ 1);
        let b = generate::random_values(pattern.cols() * n, cx.seed ^ 2);
        Ok(worst.max(in_types!(by_all_algorithms(cx, &pattern, &values, &b, n, spmm::Options::default()))))
    })
}

fn long(cx: &Context<'_>) -> Result<f64> {
    let pattern = of_rows(6000, &[spread(3, 6000), spread(5003, 6000), vec![], spread(1, 6000)])?;
    let values = generate::random_values(pattern.nnz(), cx.seed ^ 1);
    let b = generate::random_values(pattern.cols() * 8, cx.seed ^ 2);
    by_all_algorithms::<f32, u32>(cx, &pattern, &values, &b, 8, spmm::Options::default())
}

fn wide(cx: &Context<'_>) -> Result<f64> {
    let cols = 70_000;
    let pattern = of_rows(cols, &[vec![0, 65_535, 65_536, 69_999], vec![], vec![69_999]])?;
    let values = generate::random_values(pattern.nnz(), cx.seed ^ 1);
    let b = generate::random_values(cols * 4, cx.seed ^ 2);
    let worst = by_all_algorithms::<f32, u32>(cx, &pattern, &values, &b, 4, spmm::Options::default())?;
    Ok(worst.max(by_all_algorithms::<f16, u32>(cx, &pattern, &values, &b, 4, spmm::Options::default())?))
}

/// NaN, infinities and zeros of both signs meet in A and in B, and many products are alike.
fn special(cx: &Context<'_>) -> Result<f64> {
    let lengths = [0, 1, 2, 3, 5, 8, 20, 37];
    let rows: Vec<Vec<u32>> = lengths.iter().map(|&length| spread(length, 40)).collect();
    let pattern = of_rows(40, &rows)?;
    let infinite = f32::INFINITY;
    let kinds: [&[f32]; 6] = [
        &[1.0, -1.0, 2.0],
        &[f32::NAN, 1.0, 2.0, 3.0, 4.0],
        &[-infinite, infinite, 0.0, 1.0],
        &[-infinite],
        &[-0.0, 0.0],
        &[1e30, -1e30, 1e-30],
    ];
    let pick = |kind: &[f32], len: usize, salt: u64| -> Vec<f32> {
        let drawn = generate::random_values(len, cx.seed ^ salt);
        drawn
            .iter()
            .map(|x| kind[(((x + 1.0) / 2.0 * kind.len() as f32) as usize).min(kind.len() - 1)])
            .collect()
    };
    let n = 24;
    for of_a in kinds {
        for of_b in kinds {
            let (values, b) = (pick(of_a, pattern.nnz(), 5), pick(of_b, 40 * n, 6));
            by_all_algorithms::<f32, u32>(cx, &pattern, &values, &b, n, spmm::Options::default())
                .with_context(|| format!("A of {of_a:?}, B of {of_b:?}"))?;
        }
    }
    Ok(0.0)
}

/// The greatest and the least product by every legal algorithm, with winners, and the gradients by these.
pub(super) fn by_all_algorithms<T: Number, I: Index>(
    cx: &Context<'_>,
    pattern: &Pattern,
    values: &[f32],
    b: &[f32],
    n: usize,
    usual: spmm::Options,
) -> Result<f64> {
    let (host, b) = (Csr::with_values(pattern.clone(), rounded::<T>(values))?, rounded::<T>(b));
    let a = CsrMatrix::<T, I>::with_index(cx.device, &host)?;
    let on_device = cx.device.upload(&b)?;
    let gradient: Vec<T> = rounded(&generate::random_values(pattern.rows() * n, cx.seed ^ 3));
    let mut worst = 0.0_f64;
    for (reduce, extremum) in EXTREMA {
        let reference = lacuna_reference::spmm_extremum(&host, &b, n, extremum)?;
        let choices = legal(&a, n, reduce);
        ensure!(!choices.is_empty(), "{reduce:?} has no algorithm");
        for choice in choices {
            let check = || -> Result<f64> {
                let options = usual.reduce(reduce).algorithm(choice.algorithm);
                let plan = Spmm::plan_with(&a, n, options)?;
                let mut c = cx.device.upload(&vec![T::POISON; plan.output_len()])?;
                plan.run(cx.stream, &a, on_device.as_slice(), c.as_slice_mut())?;
                let alone = c.download(cx.stream)?;
                let report = reference.check_with(&lacuna_reference::Epilogue::default(), &alone)?;
                let mut winners = cx.device.upload(&vec![0xdead_beef_u32; plan.winners_len()])?;
                let operands =
                    spmm::Operands { a: &a, b: on_device.as_slice(), c: c.as_slice_mut(), bias: None };
                plan.run_with_winners(cx.stream, operands, winners.as_slice_mut())?;
                let bits = |values: &[T]| values.iter().map(|value| value.bits()).collect::<Vec<_>>();
                ensure!(bits(&c.download(cx.stream)?) == bits(&alone), "with winners C is another");
                let got = winners.download(cx.stream)?;
                let other = got.iter().zip(reference.winners()).position(|(got, expected)| got != expected);
                if let Some(at) = other {
                    let expected = reference.winners()[at];
                    anyhow::bail!(
                        "row {}, column {}: {} won, not {expected}",
                        at / n.max(1),
                        at % n.max(1),
                        got[at]
                    );
                }
                Ok(report.worst_over_bound)
            };
            worst = worst.max(check().with_context(|| format!("{reduce:?}, {}", choice.entry.name))?);
        }
        worst = worst.max(gradients(cx, &a, &host, &b, n, reduce, reference.winners(), &gradient)?);
    }
    Ok(worst)
}

/// Both gradients by these winners.
#[expect(clippy::too_many_arguments, reason = "the operands of both, and what they are checked by")]
fn gradients<T: Number, I: Index>(
    cx: &Context<'_>,
    a: &CsrMatrix<T, I>,
    host: &Csr<T>,
    b: &[T],
    n: usize,
    reduce: Reduce,
    winners: &[u32],
    gradient: &[T],
) -> Result<f64> {
    let plan = Spmm::plan_with(a, n, spmm::Options::default().reduce(reduce))?;
    let (winners_there, gradient_there) = (cx.device.upload(winners)?, cx.device.upload(gradient)?);
    let winning = Winning { gradient: gradient_there.as_slice(), winners: winners_there.as_slice() };
    let [of_values, of_b] = lacuna_reference::spmm_extremum_gradient(host, b, n, winners, gradient);

    let mut d_a = a.with_values(&vec![T::POISON; a.nnz()])?;
    let b = cx.device.upload(b)?;
    plan.values_gradient(cx.stream, winning, b.as_slice(), &mut d_a)?;
    let values =
        of_values.check(&d_a.values()?.download(cx.stream)?).context("the gradient of A's values")?;

    let mut d_b = cx.device.upload(&vec![T::POISON; plan.input_len()])?;
    plan.b_gradient(cx.stream, a, winning, d_b.as_slice_mut())?;
    let dense = of_b.check(&d_b.download(cx.stream)?).context("the gradient of B")?;
    Ok(values.worst_over_bound.max(dense.worst_over_bound))
}

fn empty(cx: &Context<'_>) -> Result<f64> {
    for (rows, cols, n) in [(0, 5, 4), (3, 0, 4), (3, 5, 0), (3, 5, 4), (0, 0, 0)] {
        let pattern = of_rows(cols, &vec![vec![]; rows])?;
        let host = Csr::with_values(pattern, Vec::<f32>::new())?;
        let a = CsrMatrix::new(cx.device, &host)?;
        for reduce in [Reduce::Sum, Reduce::Mean, Reduce::Max, Reduce::Min] {
            let plan = Spmm::plan_with(&a, n, spmm::Options::default().reduce(reduce))?;
            let b = cx.device.upload(&vec![f32::NAN; cols * n])?;
            let mut c = cx.device.upload(&vec![f32::NAN; rows * n])?;
            plan.run(cx.stream, &a, b.as_slice(), c.as_slice_mut())?;
            let zeros = c.download(cx.stream)?.iter().all(|x| x.to_bits() == 0);
            ensure!(zeros, "{reduce:?} of {rows}×{cols}: an empty row is not +0");
            if matches!(reduce, Reduce::Mean | Reduce::Sum) {
                continue;
            }
            let mut winners = cx.device.upload(&vec![7_u32; plan.winners_len()])?;
            let operands = spmm::Operands { a: &a, b: b.as_slice(), c: c.as_slice_mut(), bias: None };
            plan.run_with_winners(cx.stream, operands, winners.as_slice_mut())?;
            let got = winners.download(cx.stream)?;
            ensure!(got.iter().all(|&winner| winner == NO_WINNER), "an empty row has a winner");
            let host_b = vec![f32::NAN; cols * n];
            gradients(cx, &a, &host, &host_b, n, reduce, &got, &vec![f32::NAN; rows * n])?;
        }
    }
    Ok(0.0)
}

/// Two products of one pattern, with values of their own, whose operands have gaps.
fn batch_gradients(cx: &Context<'_>) -> Result<f64> {
    let (pattern, n, batch, stride) = (pattern()?, 6, 2, 9);
    let draw = |len: usize, salt: u64| generate::random_values(len, cx.seed ^ salt);
    let values = [draw(pattern.nnz(), 1), draw(pattern.nnz(), 2)];
    let (rows, cols) = (pattern.rows(), pattern.cols());
    let hosts = values.each_ref().map(|values| Csr::with_values(pattern.clone(), values.clone()));
    let a = CsrMatrix::new(cx.device, &Csr::with_values(pattern.clone(), values[0].clone())?)?;
    let a = a.with_value_batch(batch, &values.concat())?;
    let options = spmm::Options::default().reduce(Reduce::Max).batch(batch).b_stride(stride).c_stride(stride);
    let plan = Spmm::plan_with(&a, n, options)?;
    let gap = 12345.0;
    let spread_out = |matrices: &[Vec<f32>; 2]| -> Vec<f32> {
        let rows = matrices.iter().flat_map(|matrix| matrix.chunks(n));
        rows.flat_map(|row| row.iter().copied().chain([gap; 3])).collect()
    };
    let b = [draw(cols * n, 3), draw(cols * n, 4)];
    let gradient = [draw(rows * n, 5), draw(rows * n, 6)];
    let (b_there, gradient_there) =
        (cx.device.upload(&spread_out(&b))?, cx.device.upload(&spread_out(&gradient))?);
    let mut c = cx.device.upload(&vec![gap; rows * stride * batch])?;
    let mut winners = cx.device.upload(&vec![0_u32; plan.winners_len()])?;
    let operands = spmm::Operands { a: &a, b: b_there.as_slice(), c: c.as_slice_mut(), bias: None };
    plan.run_with_winners(cx.stream, operands, winners.as_slice_mut())?;
    let winning = Winning { gradient: gradient_there.as_slice(), winners: winners.as_slice() };
    let mut d_a = a.with_zeros::<f32>(batch)?;
    plan.values_gradient(cx.stream, winning, b_there.as_slice(), &mut d_a)?;
    let mut d_b = cx.device.upload(&vec![gap; cols * stride * batch])?;
    plan.b_gradient(cx.stream, &a, winning, d_b.as_slice_mut())?;

    let (got, d_b) = (winners.download(cx.stream)?, d_b.download(cx.stream)?);
    let mut worst = 0.0_f64;
    for (product, host) in hosts.into_iter().enumerate() {
        let host = host?;
        let expected = lacuna_reference::spmm_extremum(&host, &b[product], n, Extremum::Greatest)?;
        let won = &got[product * rows * n..][..rows * n];
        ensure!(won == expected.winners(), "product {product}: other winners");
        let [of_values, of_b] =
            lacuna_reference::spmm_extremum_gradient(&host, &b[product], n, won, &gradient[product]);
        let values = d_a.batch_values(product)?.download(cx.stream)?;
        worst = worst.max(of_values.check(&values).context("the gradient of A's values")?.worst_over_bound);
        let whole = d_b[product * cols * stride..][..cols * stride].chunks(stride);
        ensure!(whole.clone().all(|row| row[n..].iter().all(|&x| x == gap)), "a gap was written");
        let own: Vec<f32> = whole.flat_map(|row| row[..n].to_vec()).collect();
        worst = worst.max(of_b.check(&own).context("the gradient of B")?.worst_over_bound);
    }
    Ok(worst)
}

fn refusals(cx: &Context<'_>) -> Result<f64> {
    let host = Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
    let a = CsrMatrix::new(cx.device, &host)?;
    let b = cx.device.zeros::<f32>(12)?;
    let mut c = cx.device.zeros::<f32>(8)?;
    let mut winners = cx.device.zeros::<u32>(8)?;
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { .. });
    let is_length = |error: &Error| matches!(error, Error::Length { .. });
    for reduce in [Reduce::Sum, Reduce::Mean] {
        let plan = Spmm::plan_with(&a, 4, spmm::Options::default().reduce(reduce))?;
        let operands = spmm::Operands { a: &a, b: b.as_slice(), c: c.as_slice_mut(), bias: None };
        let result = plan.run_with_winners(cx.stream, operands, winners.as_slice_mut());
        refused("winners of it", result, is_parameter, &["reduction", "Max or Min", &format!("{reduce:?}")])?;
    }
    let options = spmm::Options::default().reduce(Reduce::Max);
    let plan = Spmm::plan_with(&a, 4, options)?;
    let operands = spmm::Operands { a: &a, b: b.as_slice(), c: c.as_slice_mut(), bias: None };
    let result = plan.run_with_winners(cx.stream, operands, winners.slice_mut(1..)?);
    refused("winners one short", result, is_length, &["winners", "7", "8"])?;
    let (gradient, short) = (c.as_slice(), winners.slice(1..)?);
    let mut d_b = cx.device.zeros::<f32>(12)?;
    let result = plan.b_gradient(cx.stream, &a, Winning { gradient, winners: short }, d_b.as_slice_mut());
    refused("winners of gradients one short", result, is_length, &["winners", "7", "8"])?;
    let winning = Winning { gradient: c.slice(1..)?, winners: winners.as_slice() };
    let mut d_a = a.with_zeros::<f32>(1)?;
    let result = plan.values_gradient(cx.stream, winning, b.as_slice(), &mut d_a);
    refused("a gradient of C one short", result, is_length, &["gradient of C", "7", "8"])?;

    // Tensor cores add up: they cannot compare.
    let tiles = spmm::Algorithm::MmaTile { rows: 64, columns: 128, slices: 2 };
    let result = Spmm::plan_with(&a, 4, options.algorithm(tiles));
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { .. });
    refused("tiles that compare", result, is_illegal, &["MmaTile", "RowSplit"])?;

    // The gradient of a B that products share is the sum of theirs.
    let two = a.with_value_batch::<f32>(2, &[1.0; 6])?;
    let plan = Spmm::plan_with(&two, 4, options.batch(2).b_batch_stride(0))?;
    let (gradient, winners) = (cx.device.zeros::<f32>(16)?, cx.device.zeros::<u32>(16)?);
    let winning = Winning { gradient: gradient.as_slice(), winners: winners.as_slice() };
    let result = plan.b_gradient(cx.stream, &two, winning, d_b.as_slice_mut());
    refused("one B for two products", result, is_parameter, &["the batch stride of B"])?;
    Ok(0.0)
}

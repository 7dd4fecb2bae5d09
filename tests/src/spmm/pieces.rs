//! Rows that are cut into pieces.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::{Pattern, generate};
use lacuna::spmm::Reduce;
use lacuna::{CsrMatrix, Error, Index, Spmm, spmm};
use lacuna_cases::pattern::{of_rows, spread};

use super::guarded::Placement;
use super::product::Product;
use super::reduce::by_all_algorithms;
use crate::expect::refused;
use crate::{Case, Context, Number};

const REDUCTIONS: [Reduce; 4] = [Reduce::Sum, Reduce::Mean, Reduce::Max, Reduce::Min];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spmm/pieces/lengths", "pieces of any length, by every algorithm and reduction", lengths),
        Case::new("spmm/pieces/columns", "any N and alignment", columns),
        Case::new("spmm/pieces/epilogue", "an epilogue after the join, once for each element", epilogue),
        Case::new("spmm/pieces/batch", "batches with gaps and values of their own", batch),
        Case::new("spmm/pieces/winners", "winners of pieces, with ties across them", winners),
        Case::new("spmm/pieces/infinite", "NaN and infinities in some pieces", infinite),
        Case::new(
            "spmm/pieces/chosen",
            "the library cuts a row of 20,000 by itself, and a clone does as much",
            chosen,
        ),
        Case::new("spmm/pieces/refusals", "pieces of nothing", refusals),
    ]
}

/// Two long rows among short and empty ones, which begin anywhere.
fn pattern() -> Result<Pattern> {
    let lengths = [3, 700, 0, 1, 40, 513, 2, 0, 9];
    let rows: Vec<Vec<u32>> = lengths.iter().map(|&length| spread(length, 800)).collect();
    of_rows(800, &rows)
}

fn lengths(cx: &Context<'_>) -> Result<f64> {
    let mut worst = 0.0_f64;
    for reduce in REDUCTIONS {
        for longest in [1, 30, 128, 600] {
            let options = spmm::Options::default().reduce(reduce).longest_piece(longest);
            worst = worst.max(by_every_algorithm::<f32, u32>(cx, options, 8).context("f32")?);
        }
        let options = spmm::Options::default().reduce(reduce).longest_piece(100);
        worst = worst.max(by_every_algorithm::<f32, u16>(cx, options, 8).context("f32 and u16")?);
        worst = worst.max(by_every_algorithm::<f16, u16>(cx, options, 8).context("f16")?);
        worst = worst.max(by_every_algorithm::<bf16, u32>(cx, options, 8).context("bf16")?);
    }
    Ok(worst)
}

/// Every algorithm that cuts rows.
fn by_every_algorithm<T: Number, I: Index>(
    cx: &Context<'_>,
    options: spmm::Options,
    n: usize,
) -> Result<f64> {
    let product = Product::<T>::new(&pattern()?, n, options, cx.seed)?;
    let a = CsrMatrix::<T, I>::with_index(cx.device, &product.a[0])?;
    let spmm::Options { reduce, longest_piece, .. } = options;
    let choices = spmm::choose(&spmm::Problem { reduce, longest_piece, ..spmm::Problem::of(&a, n, 8) });
    let mut cut = 0;
    let mut worst = 0.0_f64;
    for choice in choices {
        let options = options.algorithm(choice.algorithm);
        let is_cut = Spmm::plan_with(&a, n, options)?.longest_piece() == longest_piece;
        if is_cut {
            cut += 1;
            let product = product.options(options);
            let checked = product.check::<I>(cx, Placement::WHOLE);
            worst = worst.max(checked.with_context(|| format!("{reduce:?}, pieces of {longest_piece:?}"))?);
        }
    }
    ensure!(cut > 1, "{cut} algorithms cut rows");
    Ok(worst)
}

fn columns(cx: &Context<'_>) -> Result<f64> {
    let mut worst = 0.0_f64;
    for reduce in REDUCTIONS {
        for n in [1, 7, 16, 17, 33, 130] {
            let options = spmm::Options::default().reduce(reduce).longest_piece(64);
            let options = options.precision(lacuna::Precision::Fma);
            let product = Product::<f32>::new(&pattern()?, n, options, cx.seed)?;
            for at in [Placement::WHOLE, Placement::slices(2, 1), Placement::slices(4, 8)] {
                worst =
                    worst.max(product.check::<u32>(cx, at).with_context(|| format!("{reduce:?}, N = {n}"))?);
            }
        }
    }
    Ok(worst)
}

fn epilogue(cx: &Context<'_>) -> Result<f64> {
    let all = spmm::Options::default().alpha(-1.5).beta(0.5).clamp(-2.0, 1.5).longest_piece(64);
    let mut worst = 0.0_f64;
    for reduce in REDUCTIONS {
        let product =
            Product::<f32>::new(&pattern()?, 24, row_split(all.reduce(reduce)), cx.seed)?.bias(true);
        worst = worst.max(product.check::<u32>(cx, Placement::WHOLE)?);
    }
    Ok(worst)
}

/// By a kernel that cuts rows, whatever the library would choose.
fn row_split(options: spmm::Options) -> spmm::Options {
    options.algorithm(spmm::Algorithm::RowSplit { vector: 4, lanes: 8, split: 4, warps: 8 })
}

fn batch(cx: &Context<'_>) -> Result<f64> {
    let mut worst = 0.0_f64;
    for reduce in REDUCTIONS {
        let options = spmm::Options::default().reduce(reduce).longest_piece(50).batch(3);
        let options = row_split(options.b_stride(28).c_stride(24));
        let pattern = pattern()?;
        let mut product = Product::<f32>::new(&pattern, 20, options, cx.seed)?;
        worst = worst.max(product.check::<u32>(cx, Placement::WHOLE)?);
        for seed in [5, 6] {
            product.push_matrix(&pattern, cx.seed ^ seed)?;
        }
        worst = worst.max(product.check::<u32>(cx, Placement::WHOLE)?);
    }
    Ok(worst)
}

fn winners(cx: &Context<'_>) -> Result<f64> {
    let pattern = pattern()?;
    let mut worst = 0.0_f64;
    for (longest, n) in [(1, 8), (50, 24), (300, 70)] {
        let options = spmm::Options::default().longest_piece(longest);
        let values = generate::random_values(pattern.nnz(), cx.seed ^ 1);
        let b = generate::random_values(pattern.cols() * n, cx.seed ^ 2);
        worst = worst.max(by_all_algorithms::<f32, u32>(cx, &pattern, &values, &b, n, options)?);
        // All products are alike, then 0 of both signs.
        let ones = vec![1.0; pattern.cols() * n];
        for value in [1.0, 0.0, -0.0, f32::NEG_INFINITY] {
            let values = vec![value; pattern.nnz()];
            by_all_algorithms::<f32, u32>(cx, &pattern, &values, &ones, n, options)
                .with_context(|| format!("all values {value}"))?;
        }
    }
    Ok(worst)
}

fn infinite(cx: &Context<'_>) -> Result<f64> {
    let (pattern, n) = (pattern()?, 8);
    let options = spmm::Options::default().longest_piece(60);
    let b = generate::random_values(pattern.cols() * n, cx.seed ^ 2);
    for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = generate::random_values(pattern.nnz(), cx.seed ^ 1);
        for at in [3 + 10, 3 + 699, 3 + 700 + 41 + 300, 3 + 700 + 41 + 301] {
            values[at] = special;
        }
        by_all_algorithms::<f32, u32>(cx, &pattern, &values, &b, n, options)?;
        by_all_algorithms::<f16, u32>(cx, &pattern, &values, &b, n, options)?;
    }
    Ok(0.0)
}

fn chosen(cx: &Context<'_>) -> Result<f64> {
    let mut rows: Vec<Vec<u32>> = (0..300).map(|row| vec![row * 7 % 20_000, 19_999]).collect();
    rows[211] = (0..20_000).collect();
    let pattern = of_rows(20_000, &rows)?;
    let product = Product::<f32>::new(&pattern, 16, spmm::Options::default(), cx.seed)?;
    let a = CsrMatrix::new(cx.device, &product.a[0])?;
    let plan = Spmm::plan(&a, 16)?;
    let longest = plan.longest_piece();
    ensure!(longest.is_some_and(|length| (32..=10_000).contains(&length)), "cut to {longest:?}");
    let b = cx.device.upload(&generate::random_values(plan.input_len(), cx.seed))?;
    let run = |plan: &Spmm| -> Result<Vec<f32>> {
        let mut c = cx.device.upload(&vec![f32::NAN; plan.output_len()])?;
        plan.run(cx.stream, &a, b.as_slice(), c.as_slice_mut())?;
        Ok(c.download(cx.stream)?)
    };
    ensure!(run(&plan)? == run(&plan.clone())?, "a clone comes to other sums");
    product.check::<u32>(cx, Placement::WHOLE)
}

fn refusals(cx: &Context<'_>) -> Result<f64> {
    let product = Product::<f32>::new(&pattern()?, 4, spmm::Options::default(), cx.seed)?;
    let a = CsrMatrix::<f32, u32>::new(cx.device, &product.a[0])?;
    let plan = Spmm::plan_with(&a, 4, spmm::Options::default().longest_piece(0));
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { .. });
    refused("pieces of nothing", plan, is_parameter, &["the longest piece", "at least 1"])?;
    let whole = Spmm::plan_with(&a, 4, spmm::Options::default().longest_piece(usize::MAX))?;
    ensure!(whole.longest_piece().is_none(), "a row was cut that should be whole");
    Ok(0.0)
}

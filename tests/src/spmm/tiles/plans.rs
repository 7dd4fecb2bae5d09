//! Plans on tensor cores: options, alignment, and what plans of one pattern share.
use std::sync::Barrier;

use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::{Pattern, generate};
use lacuna::{CsrMatrix, Error, Index, Precision, Spmm, spmm};

use super::super::arithmetic::{is_tiles, precision_of};
use super::super::conform::legal;
use super::super::guarded::Placement;
use super::super::product::Product;
use crate::expect::{refused, same_bits};
use crate::spmm::Problem;
use crate::{Case, Context, Number};

const M: usize = 21;
const K: usize = 200;
/// A multiple of 8, and of no tile's columns.
const N: usize = 40;

/// A case that makes `$check` for all types of values and indices, and for both precisions of `f32`.
macro_rules! case {
    ($name:literal, $about:literal, $check:ident) => {
        Case::new(concat!("spmm/tiles/", $name), $about, |cx| {
            let errors = [
                $check::<f32, u32>(cx, Precision::Single).context("f32"),
                $check::<f32, u16>(cx, Precision::Tf32).context("f32 as TF32"),
                $check::<f16, u16>(cx, Precision::Single).context("f16"),
                $check::<bf16, u32>(cx, Precision::Single).context("bf16"),
            ];
            errors.into_iter().try_fold(0.0, |worst: f64, error| Ok(worst.max(error?)))
        })
    };
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        case!("epilogue", "alpha, beta, bias and limits", epilogue),
        case!("layout", "gaps between rows, and batches of A and B", layout),
        case!("alignment", "addresses and strides that are no multiples of what a kernel copies", alignment),
        case!("threads", "plans made on several threads at once share one pattern's masks", threads),
        case!("two_types", "matrices of one pattern, with values of two sizes", two_types),
        case!("values_mut", "values are replaced between runs of one plan", values_mut),
        case!("transposed", "the pattern of Aᵀ has masks of its own", transposed),
    ]
}

fn pattern(seed: u64) -> Result<Pattern> {
    Ok(generate::uniform(M, K, 0.3, seed)?)
}

fn problem<T: Number>(seed: u64) -> Result<Problem<T>> {
    Problem::draw(pattern(seed)?, N, seed)?.rounded()
}

/// The kernels on tensor cores for N, none on devices that have none.
fn tiles<T: Number, I: Index>(a: &CsrMatrix<T, I>, precision: Precision) -> Result<Vec<spmm::Choice>> {
    let tiles: Vec<spmm::Choice> = legal(a, N, precision).into_iter().filter(is_tiles).collect();
    let has_tensor_cores = a.device().info().sm >= 80;
    ensure!(tiles.is_empty() != has_tensor_cores, "{} kernels on tensor cores are offered", tiles.len());
    Ok(tiles)
}

fn options(precision: Precision, choice: &spmm::Choice) -> spmm::Options {
    spmm::Options::default().precision(precision).algorithm(choice.algorithm)
}

/// C by a plan, checked: the largest error over its bound, and C.
fn checked<T: Number, I: Index>(
    cx: &Context<'_>,
    plan: &Spmm<T, I>,
    a: &CsrMatrix<T, I>,
    problem: &Problem<T>,
) -> Result<(f64, Vec<T>)> {
    let b = cx.device.upload(&problem.b)?;
    let mut c = cx.device.upload(&vec![T::POISON; plan.output_len()])?;
    plan.run(cx.stream, a, b.as_slice(), c.as_slice_mut())?;
    let c = c.download(cx.stream)?;
    let reference = lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?;
    let report = reference.precision(precision_of(plan.choice()))?.check(&c)?;
    Ok((report.worst_over_bound, c))
}

fn epilogue<T: Number, I: Index>(cx: &Context<'_>, precision: Precision) -> Result<f64> {
    let product = Product::<T>::new(&pattern(cx.seed)?, N, spmm::Options::default(), cx.seed)?;
    let a = CsrMatrix::<T, I>::with_index(cx.device, &product.a[0])?;
    let mut worst = 0.0_f64;
    for choice in tiles(&a, precision)? {
        let usual = options(precision, &choice);
        let all = usual.alpha(1.5).beta(-2.0).clamp(-9.0, 7.0);
        for (options, bias) in [(all, true), (usual.alpha(-0.75).relu(), false), (usual, true)] {
            let product = product.options(options).bias(bias);
            worst = worst.max(product.check::<I>(cx, Placement::slices(8, 24))?);
        }
    }
    Ok(worst)
}

fn layout<T: Number, I: Index>(cx: &Context<'_>, precision: Precision) -> Result<f64> {
    let pattern = pattern(cx.seed)?;
    let one = Product::<T>::new(&pattern, N, spmm::Options::default(), cx.seed)?;
    let mut three = one.clone();
    three.push_matrix(&pattern, cx.seed ^ 5)?;
    three.push_matrix(&pattern, cx.seed ^ 6)?;
    let a = CsrMatrix::<T, I>::with_index(cx.device, &one.a[0])?;
    let mut worst = 0.0_f64;
    for choice in tiles(&a, precision)? {
        // As little as the kernel allows.
        let vector = choice.entry.tile.vector as usize;
        let usual = options(precision, &choice).b_stride(N + vector).c_stride(N + 3 * vector);
        let batch = usual.batch(3);
        let beside = batch.b_stride(3 * N + vector).c_stride(3 * N).b_batch_stride(N).c_batch_stride(N);
        let subjects = [
            one.options(usual),
            one.options(beside.beta(1.0)),
            three.options(batch.b_batch_stride(0)),
            three.options(batch.relu()),
        ];
        for subject in subjects {
            worst = worst.max(subject.check::<I>(cx, Placement::WHOLE)?);
        }
    }
    Ok(worst)
}

fn alignment<T: Number, I: Index>(cx: &Context<'_>, precision: Precision) -> Result<f64> {
    let problem = problem::<T>(cx.seed)?;
    let a = CsrMatrix::<T, I>::with_index(cx.device, &problem.a)?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { .. });
    let most = 16 / size_of::<T>();
    let b = cx.device.upload(&[problem.b.clone(), vec![T::CANARY; most]].concat())?;
    let mut c = cx.device.upload(&vec![T::POISON; M * N + most])?;
    for choice in tiles(&a, precision)? {
        let usual = options(precision, &choice);
        let plan = Spmm::plan_with(&a, N, usual)?;
        let algorithm = format!("{:?}", choice.algorithm);
        let says = [&algorithm, "aligned", "RowSplit { vector: 1"];
        // Four elements of 16 bits are enough for some.
        for offset in [1, 2] {
            let result = plan.run(cx.stream, &a, b.slice(offset..offset + K * N)?, c.slice_mut(..M * N)?);
            refused("B not aligned", result, is_illegal, &says)?;
            let result = plan.run(cx.stream, &a, b.slice(..K * N)?, c.slice_mut(offset..offset + M * N)?);
            refused("C not aligned", result, is_illegal, &says)?;
        }
        let layouts = [
            (usual.b_stride(N + 1), "a stride of B"),
            (usual.c_stride(N + 2), "a stride of C"),
            (usual.batch(2).b_batch_stride(K * N + 1), "a batch stride of B"),
            (usual.batch(2).c_batch_stride(M * N + 2), "a batch stride of C"),
        ];
        for (options, what) in layouts {
            let says = [&algorithm, "strides", "RowSplit { vector: 1"];
            refused(what, Spmm::plan_with(&a, N, options), is_illegal, &says)?;
        }
        refused("N", Spmm::plan_with(&a, N + 1, usual), is_illegal, &[&algorithm, "N = 41"])?;
    }

    // The library's choice falls back to narrower copies, or to rows.
    let mut worst = 0.0_f64;
    for gaps in [[1, 0], [0, 1], [most / 2, most]] {
        let options = spmm::Options::default()
            .precision(precision)
            .b_stride(N + gaps[0])
            .c_stride(N + gaps[1])
            .batch(2);
        for at in [Placement::WHOLE, Placement::slices(0, 1), Placement::slices(most / 2, 0)] {
            let product = Product::<T>::new(problem.a.pattern(), N, options, cx.seed)?;
            worst = worst.max(product.check::<I>(cx, at)?);
        }
    }
    Ok(worst)
}

fn threads<T: Number, I: Index>(cx: &Context<'_>, precision: Precision) -> Result<f64> {
    let problem = problem::<T>(cx.seed)?;
    let a = CsrMatrix::<T, I>::with_index(cx.device, &problem.a)?;
    let Some(choice) = tiles(&a, precision)?.into_iter().next() else { return Ok(0.0) };
    let start = Barrier::new(4);
    let plan_and_run = || {
        let stream = cx.device.stream();
        start.wait();
        let stream = stream?;
        let plan = Spmm::plan_with(&a, N, options(precision, &choice))?;
        checked(&Context { stream: &stream, ..*cx }, &plan, &a, &problem)
    };
    let results: Result<Vec<(f64, Vec<T>)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(plan_and_run)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread returns its errors")).collect()
    });
    let results = results?;
    for (_, c) in &results {
        same_bits("two threads", &results[0].1, c, N)?;
    }
    Ok(results[0].0)
}

fn two_types<T: Number, I: Index>(cx: &Context<'_>, precision: Precision) -> Result<f64> {
    if size_of::<T>() == 4 {
        let (first, second) = (problem::<T>(cx.seed)?, problem::<f16>(cx.seed)?);
        of_one_pattern::<T, f16, I>(cx, precision, &first, &second)
    } else {
        let (first, second) = (problem::<T>(cx.seed)?, problem::<f32>(cx.seed)?);
        of_one_pattern::<T, f32, I>(cx, precision, &first, &second)
    }
}

/// Multiplies a matrix, one with other values of its pattern, and the first again.
fn of_one_pattern<T: Number, U: Number, I: Index>(
    cx: &Context<'_>,
    precision: Precision,
    first: &Problem<T>,
    second: &Problem<U>,
) -> Result<f64> {
    let a = CsrMatrix::<T, I>::with_index(cx.device, &first.a)?;
    let other = a.with_value_batch(1, second.a.values())?;
    let check_first = || -> Result<f64> {
        tiles(&a, precision)?.iter().try_fold(0.0, |worst: f64, choice| {
            let plan = Spmm::plan_with(&a, N, options(precision, choice))?;
            Ok(worst.max(checked(cx, &plan, &a, first)?.0))
        })
    };
    let mut worst = check_first()?;
    for choice in tiles(&other, Precision::Single)? {
        let plan = Spmm::plan_with(&other, N, options(Precision::Single, &choice))?;
        worst = worst.max(checked(cx, &plan, &other, second).context("values of another type")?.0);
    }
    Ok(worst.max(check_first().context("again")?))
}

fn values_mut<T: Number, I: Index>(cx: &Context<'_>, precision: Precision) -> Result<f64> {
    let problem = problem::<T>(cx.seed)?;
    let other = Problem::draw(pattern(cx.seed)?, N, cx.seed ^ 77)?.rounded::<T>()?;
    ensure!(problem.a.values() != other.a.values(), "the values are the same");
    let mut a = CsrMatrix::<T, I>::with_index(cx.device, &problem.a)?;
    let mut worst = 0.0_f64;
    for choice in tiles(&a, precision)? {
        let plan = Spmm::plan_with(&a, N, options(precision, &choice))?;
        let (before, first) = checked(cx, &plan, &a, &problem)?;
        a.values_mut()?.upload(other.a.values())?;
        let (after, _) = checked(cx, &plan, &a, &other).context("after the values were replaced")?;
        a.values_mut()?.upload(problem.a.values())?;
        let (_, again) = checked(cx, &plan, &a, &problem)?;
        same_bits("values, others, the first again", &first, &again, N)?;
        worst = worst.max(before).max(after);
    }
    Ok(worst)
}

fn transposed<T: Number, I: Index>(cx: &Context<'_>, precision: Precision) -> Result<f64> {
    // A row of Aᵀ has as many nonzeros as a column of A.
    let pattern = generate::uniform(K, M, 0.3, cx.seed)?;
    let problem = Problem::draw(pattern, N, cx.seed)?.rounded::<T>()?;
    let a = CsrMatrix::<T, I>::with_index(cx.device, &problem.a)?;
    let t = a.transposed(cx.stream)?;
    let transpose = problem.a.transpose();
    let b = Problem::draw(Pattern::clone(transpose.pattern()), N, cx.seed)?.rounded::<T>()?.b;
    let expected: Problem<T> = Problem { a: transpose, b, n: N };
    // Masks of A, too: they must not be taken for those of Aᵀ.
    // Rows of A are too short for some.
    for choice in legal(&a, N, precision).into_iter().filter(is_tiles).take(1) {
        checked(cx, &Spmm::plan_with(&a, N, options(precision, &choice))?, &a, &problem)?;
    }
    let mut worst = 0.0_f64;
    for choice in tiles(&t, precision)? {
        let plan = Spmm::plan_with(&t, N, options(precision, &choice))?;
        worst = worst.max(checked(cx, &plan, &t, &expected)?.0);
    }
    Ok(worst)
}

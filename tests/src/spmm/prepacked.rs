//! Prepacked matrices: what the cases of `tiles`, which try them too, do not reach.
use anyhow::{Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::generate;
use lacuna::spmm::MEDIUM_ROWS;
use lacuna::{CsrMatrix, Error, Precision, SparseSoftmax, Spmm, spmm};

use super::arithmetic::is_for_packs;
use super::conform::{conform_prepacked, legal};
use super::guarded::Placement;
use super::problem::Problem;
use super::product::Product;
use crate::expect::refused;
use crate::{Case, Context, Number};

/// The compute capability with kernels for packs.
const SM: u32 = 90;
/// Kernels for packs of 16-bit values, and those of them that take N in fours.
const HALVES: usize = 14;
const HALVES_IN_FOURS: usize = 3;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        case("dense", HALVES, "more than is loaded ahead, in every step", |seed| {
            Problem::generated(generate::uniform(67, 700, 0.3, seed), 24, seed)
        }),
        case("by_turns", HALVES, "steps with more than is loaded ahead, and others with little", |seed| {
            // Two of five, so that a producer group has both, whether it takes every second step, every third or every fourth.
            let has = |row: u32, column: u32| column / 256 % 5 < 2 || (row + column).is_multiple_of(9);
            let row = |row: u32| (0..2700).filter(|&column| has(row, column)).collect();
            Problem::of_rows(2700, &(0..65).map(row).collect::<Vec<_>>(), 8, seed)
        }),
        case("few", HALVES, "a nonzero here and there, so that packs are mostly filling", |seed| {
            Problem::generated(generate::uniform(130, 1500, 0.995, seed), 40, seed)
        }),
        case(
            "fours",
            HALVES_IN_FOURS,
            "of 16-bit values rows of B that begin at multiples of 8 bytes",
            |seed| Problem::generated(generate::uniform(130, 900, 0.9, seed), 44, seed),
        ),
    ];
    cases.push(Case::new("spmm/prepacked/epilogue", "alpha, beta, bias, and a batch of B", epilogue));
    cases.push(Case::new(
        "spmm/prepacked/refusals",
        "what would change the values, and other matrices",
        refusals,
    ));
    cases
}

fn case(name: &str, halves: usize, about: &str, make: fn(u64) -> Result<Problem>) -> Case {
    Case::new(format!("spmm/prepacked/{name}"), about, move |cx| {
        let problem = make(cx.seed)?;
        // Those of three products want rows that are long enough.
        let split = if problem.a.nnz() < MEDIUM_ROWS * problem.a.rows() { 0 } else { 4 };
        let expected = if cx.device.info().sm == SM { [halves, halves, split, 4] } else { [0; 4] };
        let checked = [
            conform_prepacked::<f16, u16>(cx, &problem, Precision::Single)?,
            conform_prepacked::<bf16, u32>(cx, &problem, Precision::Single)?,
            conform_prepacked::<f32, u32>(cx, &problem, Precision::Single)?,
            conform_prepacked::<f32, u16>(cx, &problem, Precision::Tf32)?,
        ];
        let found = checked.map(|(_, kernels)| kernels);
        ensure!(found == expected, "{found:?} kernels for packs");
        Ok(checked.into_iter().fold(0.0, |worst, (error, _)| worst.max(error)))
    })
}

/// C = alpha·A·B + beta·C + bias, for three B, by each kernel for packs.
fn epilogue(cx: &Context<'_>) -> Result<f64> {
    let singles = epilogue_of::<f32>(cx, Precision::Single)?.max(epilogue_of::<f32>(cx, Precision::Tf32)?);
    Ok(singles.max(epilogue_of::<f16>(cx, Precision::Single)?))
}

fn epilogue_of<T: Number>(cx: &Context<'_>, precision: Precision) -> Result<f64> {
    let pattern = generate::uniform(100, 600, 0.8, cx.seed)?;
    let options = spmm::Options::default().batch(3).alpha(1.5).beta(-2.0).precision(precision);
    let product = Product::<T>::new(&pattern, 32, options, cx.seed)?.bias(true).prepacked();
    let a = CsrMatrix::<T>::prepacked(cx.device, &product.a[0])?;
    let choices = legal(&a, 32, precision);
    choices.iter().filter(|choice| is_for_packs(choice)).try_fold(0.0, |worst: f64, choice| {
        let product = product.options(options.algorithm(choice.algorithm));
        Ok(worst.max(product.check::<u32>(cx, Placement::WHOLE)?))
    })
}

fn refusals(cx: &Context<'_>) -> Result<f64> {
    let problem =
        Problem::generated(generate::uniform(70, 300, 0.8, cx.seed), 16, cx.seed)?.rounded::<f16>()?;
    let mut a = CsrMatrix::<f16>::prepacked(cx.device, &problem.a)?;
    let is_packed = |error: &Error| matches!(error, Error::Prepacked { .. });
    refused("values_mut", a.values_mut().map(|_| ()), is_packed, &["packed", "CsrMatrix::new"])?;
    let softmax = SparseSoftmax::plan(&a)?;
    refused("a softmax in place", softmax.run_in_place(cx.stream, &mut a), is_packed, &["packed"])?;

    let choices = spmm::choose(&lacuna::spmm::Problem::of(&a, 16, 8));
    let packed = choices.iter().find(|choice| is_for_packs(choice));
    ensure!(packed.is_some() == (cx.device.info().sm == SM), "kernels for packs: {packed:?}");
    let Some(packed) = packed else { return Ok(0.0) };
    let plan = Spmm::plan_with(&a, 16, spmm::Options::default().algorithm(packed.algorithm))?;
    let sibling = a.with_values(problem.a.values())?;
    let b = cx.device.upload(&problem.b)?;
    let mut c = cx.device.zeros::<f16>(plan.output_len())?;
    let run = plan.run(cx.stream, &sibling, b.as_slice(), c.as_slice_mut());
    let is_not_packed = |error: &Error| matches!(error, Error::NotPrepacked { .. });
    refused("another matrix of the pattern", run, is_not_packed, &["CsrMatrix::prepacked"])?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { .. });
    let plan = Spmm::plan_with(&sibling, 16, spmm::Options::default().algorithm(packed.algorithm));
    refused("packs of a matrix that has none", plan.map(|_| ()), is_illegal, &["PrepackedTile"])?;
    Ok(0.0)
}

//! Prepacked matrices: what the cases of `tiles`, which try them too, do not reach.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::generate;
use lacuna::{CsrMatrix, Error, SparseSoftmax, Spmm, spmm};

use super::conform::conform_prepacked;
use super::problem::Problem;
use crate::expect::refused;
use crate::{Case, Context};

/// The compute capability with kernels for packs.
const SM: u32 = 90;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        case("dense", "more than is loaded ahead, in every step", |seed| {
            Problem::generated(generate::uniform(67, 1400, 0.3, seed), 24, seed)
        }),
        case("by_turns", "steps with more than is loaded ahead, and others with little", |seed| {
            // Two of five, so that a producer group has both, whether it takes every second step, every third or every fourth.
            let has = |row: u32, column: u32| column / 256 % 5 < 2 || (row + column).is_multiple_of(9);
            let row = |row: u32| (0..5400).filter(|&column| has(row, column)).collect();
            Problem::of_rows(5400, &(0..65).map(row).collect::<Vec<_>>(), 8, seed)
        }),
        case("few", "a nonzero here and there, so that packs are mostly filling", |seed| {
            Problem::generated(generate::uniform(130, 1500, 0.995, seed), 40, seed)
        }),
    ];
    cases.push(Case::new("spmm/prepacked/epilogue", "alpha, beta, bias, and a batch of B", epilogue));
    cases.push(Case::new(
        "spmm/prepacked/refusals",
        "what would change the values, and other matrices",
        refusals,
    ));
    cases
}

fn case(name: &str, about: &str, make: fn(u64) -> Result<Problem>) -> Case {
    Case::new(format!("spmm/prepacked/{name}"), about, move |cx| {
        let problem = make(cx.seed)?;
        let kernels = if cx.device.info().sm == SM { 6 } else { 0 };
        let (halves, of_halves) = conform_prepacked::<f16, u16>(cx, &problem)?;
        let (brains, of_brains) = conform_prepacked::<bf16, u32>(cx, &problem)?;
        let (singles, of_singles) = conform_prepacked::<f32, u32>(cx, &problem)?;
        let found = [of_halves, of_brains, of_singles];
        ensure!(found == [kernels, kernels, 0], "{found:?} kernels for packs");
        Ok(halves.max(brains).max(singles))
    })
}

/// C = alpha·A·B + beta·C + bias, for three B, by each kernel for packs: against the kernel that takes none but is otherwise
/// the same sum, whose results the other cases check.
fn epilogue(cx: &Context<'_>) -> Result<f64> {
    let problem =
        Problem::generated(generate::uniform(100, 600, 0.8, cx.seed), 32, cx.seed)?.rounded::<f16>()?;
    let n = problem.n;
    let b = cx.device.upload(&problem.b.repeat(3))?;
    let bias = cx.device.upload(&[f16::from_f32(0.5); 100])?;
    let run = |a: &CsrMatrix<f16>, options: spmm::Options| -> Result<Vec<f16>> {
        let plan = Spmm::plan_with(a, n, options.batch(3).alpha(1.5).beta(-2.0))?;
        let mut c = cx.device.upload(&vec![f16::from_f32(0.25); plan.output_len()])?;
        let operands =
            spmm::Operands { a, b: b.as_slice(), c: c.as_slice_mut(), bias: Some(bias.as_slice()) };
        plan.run_with(cx.stream, operands)?;
        Ok(c.download(cx.stream)?)
    };
    let packed = CsrMatrix::prepacked(cx.device, &problem.a)?;
    let unpacked = CsrMatrix::new(cx.device, &problem.a)?;
    let packed_problem = lacuna::spmm::Problem { batch: 3, ..lacuna::spmm::Problem::of(&packed, n, 8) };
    for choice in spmm::choose(&packed_problem) {
        let spmm::Scheme::PrepackedTile { chunks, blocks, .. } = choice.entry.tile.scheme else { continue };
        let twin = spmm::choose(&lacuna::spmm::Problem { prepacked: false, ..packed_problem }).into_iter().find(|twin| {
            twin.entry.tile.block_columns == choice.entry.tile.block_columns
                && matches!(twin.entry.tile.scheme, spmm::Scheme::WgmmaTile { chunks: c, blocks: b, .. } if (c, b) == (chunks, blocks))
        });
        let twin = twin.with_context(|| format!("{} has no twin", choice.entry.name))?;
        let ours = run(&packed, spmm::Options::default().algorithm(choice.algorithm))?;
        let theirs = run(&unpacked, spmm::Options::default().algorithm(twin.algorithm))?;
        ensure!(ours == theirs, "{} and {} differ", choice.entry.name, twin.entry.name);
    }
    Ok(0.0)
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
    let packed =
        choices.iter().find(|choice| matches!(choice.entry.tile.scheme, spmm::Scheme::PrepackedTile { .. }));
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

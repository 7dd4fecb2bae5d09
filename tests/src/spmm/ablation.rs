//! Kernels and row orders that are there for measurements.
use anyhow::{Result, ensure};
use lacuna::matrix::generate;
use lacuna::{CsrMatrix, Error, RowOrder, Spmm, spmm};

use super::conform::conform_by;
use super::problem::Problem;
use crate::expect::{refused, same_bits};
use crate::{Case, Context};
use lacuna_cases::pattern::spread;

const IDEAS: [spmm::Idea; 2] = [spmm::Idea::ResidueHandling, spmm::Idea::IndexPreScaling];
/// Lanes and subwarps of the kernels that each idea has.
const SHAPES: [(u32, u32); 2] = [(32, 1), (8, 4)];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spmm/ablation/kernels", "kernels that differ in one idea, by their names", kernels),
        Case::new("spmm/ablation/row_order", "rows as they stand: the same bits as longest first", row_order),
        Case::new(
            "spmm/ablation/refusals",
            "B beyond 32-bit offsets, and shapes without such a kernel",
            refusals,
        ),
    ]
}

fn algorithm(idea: spmm::Idea, lanes: u32, split: u32) -> spmm::Algorithm {
    spmm::Algorithm::Ablation { idea, vector: 4, lanes, split, warps: 8 }
}

fn kernels(cx: &Context<'_>) -> Result<f64> {
    let every_length: Vec<Vec<u32>> = (0..=40).map(|length| spread(length, 300)).collect();
    let stages = [1, 127, 128, 129, 1, 1, 130, 255, 256, 257, 3, 131].map(|length| spread(length, 300));
    let problems = [
        Problem::of_rows(300, &every_length, 12, cx.seed)?,
        Problem::of_rows(300, &stages, 4, cx.seed)?,
        Problem::generated(generate::uniform(23, 53, 0.6, cx.seed), 132, cx.seed)?,
        Problem::of_rows(65_535, &[vec![65_534], vec![], vec![0, 65_534]], 8, cx.seed)?,
    ];
    let mut worst: f64 = 0.0;
    for problem in &problems {
        let a = CsrMatrix::new(cx.device, &problem.a)?;
        for idea in IDEAS {
            for (lanes, split) in SHAPES {
                let options = spmm::Options::default().algorithm(algorithm(idea, lanes, split));
                let plan = Spmm::plan_with(&a, problem.n, options)?;
                worst = worst.max(conform_by(cx, problem, plan.choice())?);
            }
        }
    }
    Ok(worst)
}

fn row_order(cx: &Context<'_>) -> Result<f64> {
    let pattern = generate::with_row_cov(41, 90, 20.0, 1.0, cx.seed);
    let problem = Problem::generated(pattern, 36, cx.seed)?;
    let b = cx.device.upload(&problem.b)?;
    let product = |order: RowOrder| -> Result<Vec<f32>> {
        let a = CsrMatrix::<f32>::with_row_order(cx.device, &problem.a, order)?;
        let plan = Spmm::plan(&a, problem.n)?;
        let mut c = cx.device.upload(&vec![f32::NAN; plan.output_len()])?;
        plan.run(cx.stream, &a, b.as_slice(), c.as_slice_mut())?;
        Ok(c.download(cx.stream)?)
    };
    let natural = product(RowOrder::Unsorted)?;
    same_bits(
        "rows as they stand, then longest first",
        &natural,
        &product(RowOrder::LongestFirst)?,
        problem.n,
    )?;
    Ok(lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?.check(&natural)?.worst_over_bound)
}

fn refusals(cx: &Context<'_>) -> Result<f64> {
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { .. });
    // 2¹⁴ rows of B of 2¹⁸ bytes are one more than 32-bit offsets can tell apart from the mark for no element.
    let (cols, n) = (1 << 14, 1 << 16);
    let problem = Problem { b: Vec::new(), ..Problem::of_rows(cols, &[vec![cols as u32 - 1]], 0, cx.seed)? };
    let a = CsrMatrix::new(cx.device, &problem.a)?;
    let plan = |idea, n| Spmm::plan_with(&a, n, spmm::Options::default().algorithm(algorithm(idea, 32, 1)));
    let says = [&(cols * n * size_of::<f32>()).to_string(), "32-bit offsets", "RowSplit {"];
    refused("B of 4 GiB", plan(spmm::Idea::IndexPreScaling, n), is_illegal, &says)?;
    ensure!(plan(spmm::Idea::IndexPreScaling, n - 4).is_ok(), "B of less than 4 GiB was refused");
    ensure!(plan(spmm::Idea::ResidueHandling, n).is_ok(), "a kernel without byte offsets was refused");
    refused("N = 6", plan(spmm::Idea::ResidueHandling, 6), is_illegal, &["ResidueHandling", "N = 6"])?;
    let other = spmm::Options::default().algorithm(algorithm(spmm::Idea::ResidueHandling, 16, 2));
    refused("another shape", Spmm::plan_with(&a, 8, other), is_illegal, &["lanes: 16", "RowSplit {"])?;
    // Byte offsets take 32 bits of a stage; the columns of the others have 16 there.
    let problem = Problem::of_rows(1 << 16, &[vec![(1 << 16) - 1]], 8, cx.seed)?;
    let a = CsrMatrix::new(cx.device, &problem.a)?;
    let plan = |idea| Spmm::plan_with(&a, 8, spmm::Options::default().algorithm(algorithm(idea, 32, 1)));
    refused("K = 65,536", plan(spmm::Idea::ResidueHandling), is_illegal, &["ResidueHandling", "RowSplit {"])?;
    conform_by(cx, &problem, plan(spmm::Idea::IndexPreScaling)?.choice())
}

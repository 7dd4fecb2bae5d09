//! Many matrices as the blocks of one.
use anyhow::{Context as _, Result};
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Spmm};

use super::arithmetic::precision_of;
use super::conform::conform;
use super::problem::Problem;
use super::{Effort, Placement};
use crate::{Case, Context, Number};
use lacuna_cases::pattern::spread;

/// Columns of every block's B.
const N: usize = 12;

/// Name, what it is, and how the blocks are made from a seed.
type Blocks = (&'static str, &'static str, Effort, fn(u64) -> Result<Vec<Problem>>);

const CASES: [Blocks; 4] = [
    ("alike", "blocks of one size", Effort::Quick, |seed| {
        let block = |seed| Problem::generated(generate::uniform(17, 23, 0.6, seed), N, seed);
        (0..5).map(|index| block(seed ^ index)).collect()
    }),
    ("unlike", "blocks that share no size with each other", Effort::Quick, |seed| {
        let sizes = [(1, 40), (33, 2), (8, 8), (5, 129)];
        let block = |(rows, cols)| Problem::generated(generate::uniform(rows, cols, 0.5, seed), N, seed);
        sizes.into_iter().map(block).collect()
    }),
    ("empty", "blocks without rows, columns and nonzeros among others", Effort::Quick, |seed| {
        let rows: [(usize, &[Vec<u32>]); 6] = [
            (9, &[]),
            (30, &[spread(11, 30), vec![], spread(30, 30)]),
            (0, &[vec![], vec![]]),
            (7, &[vec![], vec![]]),
            (40, &[spread(1, 40)]),
            (3, &[]),
        ];
        rows.into_iter().map(|(cols, rows)| Problem::of_rows(cols, rows, N, seed)).collect()
    }),
    ("long", "blocks with rows long enough for tensor cores", Effort::Slow, |seed| {
        let block = |seed| Problem::generated(generate::uniform(40, 96, 0.1, seed), N, seed);
        (0..3).map(|index| block(seed ^ index)).collect()
    }),
];

pub(super) fn cases() -> Vec<Case> {
    let case = |(name, about, effort, make): Blocks| {
        Case::new(format!("spmm/blocks/{name}"), about, move |cx| check(cx, &make(cx.seed)?)).effort(effort)
    };
    CASES.into_iter().map(case).collect()
}

/// Checks the product of the matrix with these blocks on its diagonal, and the blocks' B one under the other: as one
/// product, and each block's rows of C as the product of that block.
fn check(cx: &Context<'_>, blocks: &[Problem]) -> Result<f64> {
    let matrices: Vec<&Csr<f32>> = blocks.iter().map(|block| &block.a).collect();
    let a = Csr::block_diagonal(&matrices)?;
    let whole = Problem { a, b: blocks.iter().flat_map(|block| &block.b).copied().collect(), n: N };
    let mut worst = conform(cx, &whole, &Placement::USUAL)?;

    let a = CsrMatrix::new(cx.device, &whole.a)?;
    let plan = Spmm::plan(&a, N)?;
    let b = cx.device.upload(&whole.b)?;
    let mut c = cx.device.upload(&vec![f32::POISON; plan.output_len()])?;
    plan.run(cx.stream, &a, b.as_slice(), c.as_slice_mut())?;
    let c = c.download(cx.stream)?;
    let mut rest = &c[..];
    for (index, block) in blocks.iter().enumerate() {
        let (own, below) = rest.split_at(block.a.rows() * N);
        let reference =
            lacuna_reference::spmm(&block.a, &block.b, N)?.precision(precision_of(plan.choice()))?;
        let report = reference.check(own).with_context(|| format!("block {index}"))?;
        worst = worst.max(report.worst_over_bound);
        rest = below;
    }
    Ok(worst)
}

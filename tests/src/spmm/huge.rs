//! Past what 16, 24, 31 and 32 bits can count.
use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::{CsrMatrix, Precision, Spmm};

use super::conform::{conform_by, conform_to, legal};
use super::problem::{Problem, spread};
use super::{Placement, case};
use crate::{Case, Context, Effort};

/// The most blocks of a grid along y: tiles of columns.
const MAX_TILES: usize = 65_535;

/// Rows that are checked where there are too many for the oracle to do all.
const SAMPLES: usize = 64;

pub(super) fn cases() -> Vec<Case> {
    let on_gpu = |name, about, check: fn(&Context<'_>) -> Result<f64>| {
        Case::new(format!("spmm/huge/{name}"), about, check).effort(Effort::Gpu)
    };
    vec![
        on_gpu("b_above_2e31_bytes", "offsets in B above 2^31 bytes", |cx| sampled(cx, 64, 66_000)),
        on_gpu("b_above_2e32_bytes", "offsets in B above 2^32 bytes", |cx| sampled(cx, 64, 132_000)),
        on_gpu("c_above_2e31_bytes", "offsets in C above 2^31 bytes", |cx| sampled(cx, 66_000, 64)),
        on_gpu("c_above_2e32_bytes", "offsets in C above 2^32 bytes", |cx| sampled(cx, 132_000, 64)),
        Case::new(
            "spmm/huge/single_columns_above_65535",
            "more tiles than a grid has, one column each, one row",
            single_columns,
        )
        .effort(Effort::Slow),
        on_gpu("tiles_above_65535", "more tiles of 128 columns than a grid has", tiles),
        case(
            "spmm/huge/narrow_tiles_above_65535".into(),
            "more tiles than a grid has, for kernels with few columns a tile".into(),
            Effort::Gpu,
            |seed| Problem::of_rows(5, &[vec![0, 4], vec![], vec![1, 2, 3]], 2 * MAX_TILES + 7, seed),
        ),
        case(
            "spmm/huge/nonzeros_above_2e24".into(),
            "more nonzeros than f32 can count".into(),
            Effort::Gpu,
            |seed| Problem::generated(generate::uniform_nnz(8192, 8192, (1 << 24) + 4097, seed), 8, seed),
        ),
        case(
            "spmm/huge/rows_above_65535".into(),
            "more rows than a grid has blocks along y".into(),
            Effort::Gpu,
            |seed| Problem::generated(generate::uniform_nnz(600_000, 64, 1_000_003, seed), 4, seed),
        ),
    ]
}

/// N = 8192 with few nonzeros, so that B or C has gigabytes. The oracle does some rows, the last among them.
fn sampled(cx: &Context<'_>, rows: usize, cols: usize) -> Result<f64> {
    let n = 8192;
    let pattern = last_columns(rows, cols)?;
    let values = generate::random_values(pattern.nnz(), cx.seed);
    // A short table over and over: drawing a billion values would take longer than all the rest.
    let table = generate::random_values(10_007, cx.seed ^ 2);
    let mut b = vec![0.0; cols * n];
    b.chunks_mut(table.len()).for_each(|chunk| chunk.copy_from_slice(&table[..chunk.len()]));
    let problem = Problem { a: Csr::with_values(pattern, values)?, b, n };
    let some = (0..SAMPLES).map(|i| (i + 1) * rows / SAMPLES - 1);
    let reference = lacuna_reference::spmm_rows(&problem.a, &problem.b, n, some)?;
    conform_to(cx, &problem, &reference, &[])
}

/// Seven nonzeros a row, spread over the columns up to the last.
fn last_columns(rows: usize, cols: usize) -> Result<Pattern> {
    let columns: Vec<u32> = (0..rows).flat_map(|_| spread(7, cols)).collect();
    let offsets = (0..=rows as u32).map(|row| row * 7).collect();
    Ok(Pattern::new(rows, cols, offsets, columns)?)
}

/// The kernel with the fewest columns a block has them launched in several grids at the least work: even the
/// simulator can do that.
fn single_columns(cx: &Context<'_>) -> Result<f64> {
    let problem = Problem::of_rows(3, &[vec![0, 2]], MAX_TILES + 130, cx.seed)?;
    let legal = legal(&CsrMatrix::new(cx.device, &problem.a)?, problem.n, Precision::Single);
    let narrowest = legal.into_iter().min_by_key(|choice| (choice.tile.block_columns, choice.threads));
    let narrowest = narrowest.context("no algorithm is legal")?;
    let columns = narrowest.tile.block_columns as usize;
    ensure!(problem.n > columns * MAX_TILES, "tiles have {columns} columns: N no longer tests the limit");
    conform_by(cx, &problem, &narrowest)
}

fn tiles(cx: &Context<'_>) -> Result<f64> {
    let n = 128 * MAX_TILES + 132;
    let problem = Problem::of_rows(3, &[vec![0, 2], vec![1]], n, cx.seed)?;
    let plan = Spmm::plan(&CsrMatrix::new(cx.device, &problem.a)?, n)?;
    let columns = plan.choice().tile.block_columns as usize;
    ensure!(n > columns * MAX_TILES, "tiles have {columns} columns: N = {n} no longer tests the limit");
    let reference = lacuna_reference::spmm(&problem.a, &problem.b, n)?;
    conform_to(cx, &problem, &reference, &[Placement::slices(1, 1)])
}

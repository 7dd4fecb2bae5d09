//! Past what 16, 24, 31 and 32 bits can count.
use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use half::f16;
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::{CsrMatrix, LONG_ROWS, Precision, Spmm};

use super::conform::{conform_by, conform_on_cheapest_tiles, conform_to, legal};
use super::problem::Problem;
use super::tiles::MIN_SM;
use super::{Placement, case};
use crate::{Case, Context, Effort, Number};
use lacuna_cases::number::rounded;
use lacuna_cases::pattern::spread;

/// The most blocks of a grid along y: tiles of columns.
const MAX_TILES: usize = 65_535;

/// Columns of B and C where one of them has gigabytes.
const N: usize = 8192;

/// Rows that are checked where there are too many for the oracle to do all.
const SAMPLES: usize = 64;

/// What a case does.
type Check = fn(&Context<'_>) -> Result<f64>;

pub(super) fn cases() -> Vec<Case> {
    let on_gpu =
        |name, about, check: Check| Case::new(format!("spmm/huge/{name}"), about, check).effort(Effort::Gpu);
    let mut cases = vec![
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
    ];
    // Few rows of a large B: masks of more would be refused, being much larger than the nonzeros.
    let on_tiles: [(&str, Check); 6] = [
        ("b_split", |cx| sampled_on_tiles::<f32>(cx, Precision::Single, 32, 132_000)),
        ("b_tf32", |cx| sampled_on_tiles::<f32>(cx, Precision::Tf32, 32, 132_000)),
        ("b_f16", |cx| sampled_on_tiles::<f16>(cx, Precision::Single, 16, 264_000)),
        ("c_split", |cx| sampled_on_tiles::<f32>(cx, Precision::Single, 132_000, 64)),
        ("c_tf32", |cx| sampled_on_tiles::<f32>(cx, Precision::Tf32, 132_000, 64)),
        ("c_f16", |cx| sampled_on_tiles::<f16>(cx, Precision::Single, 264_000, 64)),
    ];
    cases.extend(on_tiles.map(|(name, check)| {
        let about = "offsets above 2^32 bytes, on tensor cores";
        Case::new(format!("spmm/huge/tiles_{name}_above_2e32_bytes"), about, check).effort(Effort::Gpu)
    }));
    cases
}

/// [`N`] columns with few nonzeros, so that B or C has gigabytes. The oracle does some rows, the last among them.
fn sampled(cx: &Context<'_>, rows: usize, cols: usize) -> Result<f64> {
    let problem = long_columns::<f32>(cx, last_columns(rows, cols, 7)?)?;
    let some = (0..SAMPLES).map(|i| (i + 1) * rows / SAMPLES - 1);
    let reference = lacuna_reference::spmm_rows(&problem.a, &problem.b, N, some)?;
    conform_to(cx, &problem, &reference, &[])
}

/// As [`sampled`], by a kernel on tensor cores. Offsets that pass 2³² bytes pass 2³¹ on the way. Half of the oracle's rows
/// are the last, all of them beyond.
fn sampled_on_tiles<T: Number>(
    cx: &Context<'_>,
    precision: Precision,
    rows: usize,
    cols: usize,
) -> Result<f64> {
    if cx.device.info().sm < MIN_SM {
        // There are no such kernels: cases of `tiles` check that none is offered.
        return Ok(0.0);
    }
    let problem = long_columns::<T>(cx, last_columns(rows, cols, LONG_ROWS)?)?;
    let few = SAMPLES / 2;
    let some: BTreeSet<usize> =
        (0..few).map(|i| i * rows / few).chain(rows.saturating_sub(few)..rows).collect();
    let reference = lacuna_reference::spmm_rows(&problem.a, &problem.b, N, some)?;
    conform_on_cheapest_tiles(cx, &problem, &reference, precision)
}

/// This pattern with drawn values, and B of [`N`] columns.
fn long_columns<T: Number>(cx: &Context<'_>, pattern: Pattern) -> Result<Problem<T>> {
    let values = generate::random_values(pattern.nnz(), cx.seed);
    // A short table over and over: drawing a billion values would take longer than all the rest.
    let table: Vec<T> = rounded(&generate::random_values(10_007, cx.seed ^ 2));
    let mut b = vec![T::from_f32(0.0); pattern.cols() * N];
    b.chunks_mut(table.len()).for_each(|chunk| chunk.copy_from_slice(&table[..chunk.len()]));
    Ok(Problem { a: Csr::with_values(pattern, rounded(&values))?, b, n: N })
}

/// So many nonzeros a row, spread over the columns up to the last.
fn last_columns(rows: usize, cols: usize, nonzeros: usize) -> Result<Pattern> {
    let columns: Vec<u32> = (0..rows).flat_map(|_| spread(nonzeros, cols)).collect();
    let offsets = (0..=rows).map(|row| (row * nonzeros) as u32).collect();
    Ok(Pattern::new(rows, cols, offsets, columns)?)
}

/// The kernel with the fewest columns a block has them launched in several grids at the least work: even the
/// simulator can do that.
fn single_columns(cx: &Context<'_>) -> Result<f64> {
    let problem = Problem::of_rows(3, &[vec![0, 2]], MAX_TILES + 130, cx.seed)?;
    let legal = legal(&CsrMatrix::new(cx.device, &problem.a)?, problem.n, Precision::Single);
    let narrowest =
        legal.into_iter().min_by_key(|choice| (choice.entry.tile.block_columns, choice.entry.threads));
    let narrowest = narrowest.context("no algorithm is legal")?;
    let columns = narrowest.entry.tile.block_columns as usize;
    ensure!(problem.n > columns * MAX_TILES, "tiles have {columns} columns: N no longer tests the limit");
    conform_by(cx, &problem, &narrowest)
}

fn tiles(cx: &Context<'_>) -> Result<f64> {
    let n = 128 * MAX_TILES + 132;
    let problem = Problem::of_rows(3, &[vec![0, 2], vec![1]], n, cx.seed)?;
    let plan = Spmm::plan(&CsrMatrix::new(cx.device, &problem.a)?, n)?;
    let columns = plan.choice().entry.tile.block_columns as usize;
    ensure!(n > columns * MAX_TILES, "tiles have {columns} columns: N = {n} no longer tests the limit");
    let reference = lacuna_reference::spmm(&problem.a, &problem.b, n)?;
    conform_to(cx, &problem, &reference, &[Placement::slices(1, 1)])
}

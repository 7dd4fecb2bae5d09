//! Kernels one right after the other, each on what the one before has written: launches may begin early, work may not.
use std::mem;

use anyhow::{Result, ensure};
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Error, Spmm, spmm};

use crate::{Case, Context};

/// Columns of B.
const N: usize = 32;
/// Columns that may be loaded at once.
const VECTOR: u32 = 4;

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new(
        "device/chains/permutations",
        "a permutation many times over, by every kernel, in a stream and recorded",
        permutations,
    )]
}

/// Moves every row far away, so that what a block reads was written by others.
fn permutation(rows: usize) -> Result<Csr<f32>> {
    let to = |row: usize| ((row * 5 + 3) % rows) as u32;
    Ok(Csr::new(rows, rows, (0..=rows as u32).collect(), (0..rows).map(to).collect(), vec![1.0; rows])?)
}

fn permutations(cx: &Context<'_>) -> Result<f64> {
    // 5 has no factor in common with either, so that rows only move.
    let (rows, steps) = if cx.device.is_simulator() { (36, 3) } else { (4096, 50) };
    let host = permutation(rows)?;
    let start: Vec<f32> = (0..rows * N).map(|index| (index % 1021) as f32).collect();
    let mut end = start.clone();
    for _ in 0..steps {
        end = host.col_indices().iter().flat_map(|&row| end[row as usize * N..][..N].to_vec()).collect();
    }

    let a = CsrMatrix::new(cx.device, &host)?;
    for choice in spmm::choose(&spmm::Problem::of(&a, N, VECTOR)) {
        let plan = Spmm::plan_with(&a, N, spmm::Options::default().algorithm(choice.algorithm))?;
        let (mut from, mut to) = (cx.device.upload(&start)?, cx.device.zeros(rows * N)?);
        for _ in 0..steps {
            plan.run(cx.stream, &a, from.as_slice(), to.as_slice_mut())?;
            mem::swap(&mut from, &mut to);
        }
        ensure!(from.download(cx.stream)? == end, "{}: rows were lost in a stream", choice.entry.name);
        if cx.device.is_simulator() {
            continue;
        }
        from.upload(&start)?;
        let mut graph = cx.stream.capture(|stream| {
            for _ in 0..steps / 2 {
                plan.run(stream, &a, from.as_slice(), to.as_slice_mut())?;
                plan.run(stream, &a, to.as_slice(), from.as_slice_mut())?;
            }
            Ok::<(), Error>(())
        })?;
        // SAFETY: the plan, A and both buffers live to the end of this round, and only this stream uses them.
        unsafe { graph.replay(cx.stream)? };
        ensure!(from.download(cx.stream)? == end, "{}: rows were lost in a graph", choice.entry.name);
    }
    Ok(0.0)
}

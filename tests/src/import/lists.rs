//! Lists of columns as an indexer leaves them: attention to the keys with the greatest scores.
use anyhow::{Result, ensure};
use half::f16;
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::{CsrMatrix, SparseAttention, TopN, Value};
use lacuna_cases::pattern::of_rows;

use crate::expect::same_bits;
use crate::{Case, Context, Number};

pub(super) fn cases() -> Vec<Case> {
    let about = "keys by top-N of scores, causal: a pattern of lists, and attention by it";
    vec![Case::new("import/lists/attention", about, attention)]
}

fn attention(cx: &Context<'_>) -> Result<f64> {
    let (tokens, kept) = if cx.device.is_simulator() { (70, 9) } else { (2048, 300) };
    let scores = generate::random_values(tokens * tokens, cx.seed);
    let plan = TopN::plan(cx.device, tokens, tokens, kept)?;
    let (mut values, mut lists) = (cx.device.zeros(plan.output_len())?, cx.device.zeros(plan.output_len())?);
    let on_device = cx.device.upload(&scores)?;
    plan.run(cx.stream, on_device.as_slice(), values.as_slice_mut(), lists.as_slice_mut())?;

    let rows: Vec<Vec<u32>> =
        (0..tokens).map(|row| greatest(&scores[row * tokens..][..tokens], kept, row)).collect();
    let pattern = of_rows(tokens, &rows)?;
    let shape = [tokens, tokens];
    let mask = CsrMatrix::<f32>::from_lists(cx.stream, shape, lists.as_slice(), kept, Some(0))?;
    attend::<f32>(cx, &mask, &pattern)?;
    attend::<f16>(cx, &mask.with_zeros(0)?, &pattern)?;
    Ok(0.0)
}

/// Up to so many columns with the greatest scores, of which those up to `last` stay, ascending.
fn greatest(scores: &[f32], kept: usize, last: usize) -> Vec<u32> {
    let mut columns: Vec<u32> = (0..scores.len() as u32).collect();
    columns.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b)));
    columns.truncate(kept);
    columns.retain(|&column| column as usize <= last);
    columns.sort_unstable();
    columns
}

/// Attention by a mask on the device is that by the host's pattern.
fn attend<T: Number + Value>(cx: &Context<'_>, mask: &CsrMatrix<T>, pattern: &Pattern) -> Result<()> {
    const DIM: usize = 32;
    let ours = CsrMatrix::<T>::new(
        cx.device,
        &Csr::with_values(pattern.clone(), vec![T::default(); pattern.nnz()])?,
    )?;
    ensure!(mask.stats() == ours.stats(), "the pattern has other statistics");
    let operand = |seed: u64| {
        let values = generate::random_values(pattern.rows() * DIM, cx.seed ^ seed);
        cx.device.upload(&lacuna_cases::number::rounded::<T>(&values))
    };
    let [q, k, v] = [operand(1)?, operand(2)?, operand(3)?];
    let run = |mask: &CsrMatrix<T>| -> Result<Vec<T>> {
        let plan = SparseAttention::plan(mask, DIM)?;
        let mut o = cx.device.zeros::<T>(plan.output_len())?;
        plan.run(cx.stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut())?;
        Ok(o.download(cx.stream)?)
    };
    same_bits("the host's pattern, then the lists'", &run(&ours)?, &run(mask)?, DIM)
}

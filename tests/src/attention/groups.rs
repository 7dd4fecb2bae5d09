//! Heads that share K and V in groups. Results are those of K and V repeated for each head, bit by bit, by every kernel.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Index, SparseAttention, attention};

use super::Problem;
use crate::expect::same_bits;
use crate::{Case, Context, Number};

const TOKENS: usize = 70;
const DIM: usize = 64;
const HEADS: usize = 6;
/// Heads that share K and V.
const GROUP: usize = 3;

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new("attention/groups/of_three", "six heads, of which three share K and V", |cx| {
        let problem = Problem::draw(generate::band_random(TOKENS, 20, 0.5, cx.seed)?, DIM, HEADS, cx.seed);
        every_kernel::<f32, u32>(cx, &problem).context("f32")?;
        every_kernel::<f16, u16>(cx, &problem.rounded()).context("f16, u16")?;
        every_kernel::<bf16, u32>(cx, &problem.rounded()).context("bf16")?;
        Ok(0.0)
    })]
}

fn every_kernel<T: Number, I: Index>(cx: &Context<'_>, problem: &Problem<T>) -> Result<()> {
    let mask = Csr::with_values(problem.mask.clone(), vec![T::CANARY; problem.mask.nnz()])?;
    let mask = CsrMatrix::<T, I>::with_index(cx.device, &mask)?;
    let (len, each) = (TOKENS * DIM, attention::Options::default().batch(HEADS));
    // Of K and V the first heads are those of the groups.
    let shared = |of_all: &[T]| of_all[..HEADS / GROUP * len].to_vec();
    let repeated = |shared: &[T]| shared.chunks(len).flat_map(|head| head.repeat(GROUP)).collect::<Vec<_>>();
    let (k, v) = (shared(&problem.k), shared(&problem.v));
    let [legal, ..] = SparseAttention::plan_with(&mask, DIM, each.kv_group(GROUP))?.legal();
    for choice in legal {
        let name = choice.entry.name;
        let run = |options: attention::Options, k: &[T], v: &[T]| -> Result<Vec<T>> {
            let plan = SparseAttention::plan_with(&mask, DIM, options.algorithm(choice.algorithm))?;
            ensure!(plan.key_len() == k.len() && plan.query_len() == problem.q.len(), "lengths");
            let [q, k, v] = [&problem.q[..], k, v].map(|values| cx.device.upload(values));
            let mut o = cx.device.upload(&vec![T::CANARY; plan.output_len()])?;
            plan.run(cx.stream, q?.as_slice(), k?.as_slice(), v?.as_slice(), o.as_slice_mut())?;
            Ok(o.download(cx.stream)?)
        };
        let expected = run(each, &repeated(&k), &repeated(&v)).context(name)?;
        same_bits(name, &expected, &run(each.kv_group(GROUP), &k, &v).context(name)?, DIM)?;
    }
    Ok(())
}

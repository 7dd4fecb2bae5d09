//! The gradients of Q, K and V by blocks.
mod unseen;

use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::attention::{Algorithm, BlockBackwardOperands, Mask, MaskBlocks, Operands, Options};
use lacuna::matrix::generate;
use lacuna::{BlockAttention, Buffer, Device, Error, Precision, ValueType};
use lacuna_reference::{AttentionGradients, Heads, attention_backward_by_tiles};

use self::unseen::{unseen, unseen_of_groups};
use super::rules::{blocks, documents, global, side_by_side};
use super::{Effort, Problem};
use crate::expect::{refused, same_bits};
use crate::{Case, Context, Number};
use lacuna_cases::number::rounded;

/// Name, what it is, the mask, the dimension, and what else is asked for.
type Backward = (&'static str, &'static str, fn() -> lacuna::Result<Mask>, usize, Options);

pub(super) fn cases() -> Vec<Case> {
    let heads = |heads| Options::default().batch(heads);
    let cases: [Backward; 12] = [
        ("causal", "a causal mask", || Mask::causal(140), 40, heads(1)),
        ("lower_right", "causal, more keys than queries", || Mask::causal_lower_right(70, 150), 64, heads(2)),
        ("no_keys", "causal, queries without keys", || Mask::causal_lower_right(150, 70), 16, heads(1)),
        ("stages", "more keys than stages hold, rows of 128 elements", || Mask::full(5, 330), 128, heads(1)),
        (
            "short_rows",
            "more keys than stages hold, rows of 16 elements",
            || Mask::full(5, 330),
            16,
            heads(1),
        ),
        ("queries", "more queries than stages hold", || Mask::full(330, 5), 128, heads(1)),
        (
            "wide_stages",
            "more keys than stages hold, rows of 200 elements",
            || Mask::full(5, 200),
            200,
            heads(1),
        ),
        ("wide_queries", "more queries than stages hold, rows of 256", || Mask::full(200, 5), 256, heads(2)),
        ("blocks", "blocks of 30 × 31, keys that nobody sees", blocks, 24, heads(1)),
        ("documents", "packed sequences, causal in each", documents, 72, heads(2)),
        ("nothing", "no token", || Mask::causal(0), 8, heads(2)),
        ("groups", "heads side by side that share K and V", global, 16, side_by_side()),
    ];
    let case = |(name, about, mask, dim, options): Backward| {
        Case::new(format!("attention/block_backward/{name}"), about, move |cx| {
            let (mask, scaled) = (mask()?, options.scale(0.3));
            let problem = Problem::draw(mask.to_pattern()?, dim, options.batch, cx.seed);
            let f16s = check::<f16>(cx, &mask, &problem.rounded(), options, true).context("f16")?;
            let bf16s = check::<bf16>(cx, &mask, &problem.rounded(), scaled, false).context("bf16")?;
            let in_parts = options.precision(Precision::Tf32);
            let f32s = check::<f32>(cx, &mask, &problem, in_parts, true).context("f32")?;
            Ok(f16s.max(bf16s).max(f32s))
        })
    };
    let mut cases: Vec<Case> = cases.into_iter().map(case).collect();
    cases.push(Case::new("attention/block_backward/unseen", "what is not finite and not seen", |cx| {
        // Two warpgroups divide the work on the keys of long rows.
        let f16s =
            unseen::<f16>(cx, 16).context("f16")?.max(unseen::<f16>(cx, 136).context("f16, long rows")?);
        Ok(f16s
            .max(unseen::<f32>(cx, 16).context("f32")?)
            .max(unseen::<f32>(cx, 68).context("f32, long rows")?)
            .max(unseen::<f32>(cx, 132).context("f32, half blocks")?))
    }));
    cases.push(Case::new(
        "attention/block_backward/unseen_of_groups",
        "what is not finite in one of two heads that share keys",
        unseen_of_groups,
    ));
    cases.push(Case::new(
        "attention/block_backward/by_warps",
        "a plan by warps has gradients by warps",
        by_warps,
    ));
    cases.push(Case::new(
        "attention/block_backward/refusals",
        "what gradients by blocks do not take",
        refusals,
    ));
    cases.push(
        Case::new(
            "attention/block_backward/large",
            "2048 tokens, a window and global tokens, causal",
            |cx| {
                let global = Mask::global(2048, 2048, &[0, 900], &[0, 1, 900])?;
                let mask = Mask::sliding_window(2048, 300)?.or(&global)?.and(&Mask::causal(2048)?)?;
                let problem = Problem::draw(mask.to_pattern()?, 64, 3, cx.seed).rounded();
                check::<f16>(cx, &mask, &problem, Options::default().batch(3), true)
            },
        )
        .effort(Effort::Gpu),
    );
    cases
}

/// Forward and backward: the largest error of the gradients over its bound, by the library's choice of kernels, or by all.
pub(super) fn check<T: Number>(
    cx: &Context<'_>,
    mask: &Mask,
    problem: &Problem<T>,
    options: Options,
    every_kernel: bool,
) -> Result<f64> {
    if has_no_kernel::<T>(cx.device, problem.dim) {
        return Ok(0.0);
    }
    let plan = BlockAttention::<T>::plan_with(&MaskBlocks::new(cx.device, mask)?, problem.dim, options)?;
    let pass = Pass::new(cx, problem, &plan)?;
    let most = if every_kernel { usize::MAX } else { 1 };
    let mut worst = 0.0_f64;
    for names in kernels(&plan, problem.dim)?.into_iter().take(most) {
        worst = worst.max(pass.check(cx, &plan, names)?.0);
    }
    Ok(worst)
}

/// Whether the device has no gradients by blocks for rows of so many elements: without warpgroups there are none of `f32` for more than 128.
fn has_no_kernel<T: Number>(device: &Device, dim: usize) -> bool {
    let sm = device.info().sm;
    sm < 80 || T::TYPE == ValueType::F32 && dim > 128 && sm / 10 != 9
}

/// The kernels of Q's gradient with those of K and V, so that each runs once; the library's choice first. The simulator takes time by the rows
/// that a kernel is for: those four times as long as the problem's run the cases of longer rows.
fn kernels<T: Number>(plan: &BlockAttention<T>, dim: usize) -> Result<Vec<[&'static str; 2]>> {
    let [of_queries, of_keys] = plan.backward_kernels()?.map(|mut names| {
        names.retain(|name| dimension_of(name).is_none_or(|dimension| dimension <= 3 * dim.max(64)));
        names
    });
    let most = of_queries.len().max(of_keys.len());
    let at = |names: &[&'static str], i: usize| names[i.min(names.len() - 1)];
    Ok((0..most).map(|i| [at(&of_queries, i), at(&of_keys, i)]).collect())
}

/// The longest rows that a kernel takes: its name has half of it, as `_l32`.
fn dimension_of(kernel: &str) -> Option<usize> {
    let half = kernel.split('_').find_map(|word| word.strip_prefix('l')?.parse::<usize>().ok())?;
    Some(2 * half)
}

/// A forward pass, and the gradient of its O.
struct Pass<'a, T: Number> {
    problem: &'a Problem<T>,
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
    o: Vec<T>,
    logsumexp: Vec<f32>,
    d_o: Vec<T>,
}

impl<'a, T: Number> Pass<'a, T> {
    fn new(cx: &Context<'_>, problem: &'a Problem<T>, plan: &BlockAttention<T>) -> Result<Self> {
        let [q, k, v] =
            [(&problem.q, plan.query_len()), (&problem.k, plan.key_len()), (&problem.v, plan.key_len())]
                .map(|(values, len)| values[..len].to_vec());
        let d_o = rounded(&generate::random_values(plan.output_len(), cx.seed ^ 9));
        let slopes = slopes_on(cx, problem)?;
        let [q_on, k_on, v_on] = [&q, &k, &v].map(|values| cx.device.upload(values));
        let (mut o, mut logsumexp) =
            (cx.device.zeros::<T>(plan.output_len())?, cx.device.zeros::<f32>(plan.logsumexp_len())?);
        plan.run_with(
            cx.stream,
            Operands {
                q: q_on?.as_slice(),
                k: k_on?.as_slice(),
                v: v_on?.as_slice(),
                o: o.as_slice_mut(),
                logsumexp: Some(logsumexp.as_slice_mut()),
                alibi_slopes: slopes.as_ref().map(|slopes| slopes.as_slice()),
            },
        )?;
        let (o, logsumexp) = (o.download(cx.stream)?, logsumexp.download(cx.stream)?);
        Ok(Self { problem, q, k, v, o, logsumexp, d_o })
    }

    /// Holds the gradients by these kernels to the oracle: gives the largest error over its bound, and them.
    fn check(
        &self,
        cx: &Context<'_>,
        plan: &BlockAttention<T>,
        names: [&str; 2],
    ) -> Result<(f64, [Vec<T>; 3])> {
        let gradients = self.run(cx, plan, names).with_context(|| names.join(", "))?;
        let error = self.compare(plan, &gradients).with_context(|| names.join(", "))?;
        Ok((error, gradients))
    }

    /// The gradients of Q, K and V by these kernels, twice in one workspace.
    fn run(&self, cx: &Context<'_>, plan: &BlockAttention<T>, names: [&str; 2]) -> Result<[Vec<T>; 3]> {
        let mut workspace = plan.workspace_with(names)?;
        ensure!(workspace.entries() == names, "{:?}", workspace.entries());
        let upload = |values: &[T]| cx.device.upload(values);
        let (q, k, v, o, d_o) =
            (upload(&self.q)?, upload(&self.k)?, upload(&self.v)?, upload(&self.o)?, upload(&self.d_o)?);
        let (logsumexp, slopes) = (cx.device.upload(&self.logsumexp)?, slopes_on(cx, self.problem)?);
        let mut both = vec![];
        for _ in 0..2 {
            let [d_q, d_k, d_v] =
                [&self.q, &self.k, &self.v].map(|of| cx.device.upload(&vec![T::POISON; of.len()]));
            let (mut d_q, mut d_k, mut d_v) = (d_q?, d_k?, d_v?);
            let operands = BlockBackwardOperands {
                q: q.as_slice(),
                k: k.as_slice(),
                v: v.as_slice(),
                o: o.as_slice(),
                logsumexp: logsumexp.as_slice(),
                alibi_slopes: slopes.as_ref().map(|slopes| slopes.as_slice()),
                d_o: d_o.as_slice(),
                d_q: d_q.as_slice_mut(),
                d_k: d_k.as_slice_mut(),
                d_v: d_v.as_slice_mut(),
            };
            plan.backward(cx.stream, operands, &mut workspace)?;
            both.push([d_q.download(cx.stream)?, d_k.download(cx.stream)?, d_v.download(cx.stream)?]);
        }
        let (last, first) = (both.remove(1), both.remove(0));
        for (first, last) in first.iter().zip(&last) {
            same_bits("two runs", first, last, self.problem.dim)?;
        }
        Ok(last)
    }

    /// Holds gradients to the oracle: gives the largest error over its bound.
    fn compare(&self, plan: &BlockAttention<T>, [d_q, d_k, d_v]: &[Vec<T>; 3]) -> Result<f64> {
        let Problem { mask, dim, heads, .. } = self.problem;
        let (options, scale) = (plan.options(), plan.scale());
        let (group, queries, keys) = (options.kv_group, mask.rows(), mask.cols());
        let of_head = |values: &[T], tokens, strides, head| head_of(values, [tokens, *dim], strides, head);
        let of_q = [options.q_stride, options.q_batch_stride];
        let of_kv = [options.kv_stride, options.kv_batch_stride];
        let of_o = [options.o_stride, options.o_batch_stride];
        let mut worst = 0.0_f64;
        for kv_head in 0..heads / group {
            let [k, v, d_k, d_v] =
                [&self.k, &self.v, d_k, d_v].map(|values| of_head(values, keys, of_kv, kv_head));
            let mut of_group: Option<AttentionGradients> = None;
            for head in kv_head * group..(kv_head + 1) * group {
                let q = of_head(&self.q, queries, of_q, head);
                let d_o = of_head(&self.d_o, queries, of_o, head);
                let operands =
                    Heads { q: &q, k: &k, v: &v, dim: *dim, scale, score_mod: self.problem.score_mod(head) };
                let reference = attention_backward_by_tiles(mask, operands, &d_o, group as u32)?;
                let report = reference.check_q(&of_head(d_q, queries, of_q, head));
                worst = worst.max(report.context("the gradient of Q")?.worst_over_bound);
                match &mut of_group {
                    Some(of_group) => of_group.add_keys(&reference),
                    None => of_group = Some(reference),
                }
            }
            let reference = of_group.context("a group has a head")?;
            let reports = [
                reference.check_k(&d_k).context("the gradient of K")?,
                reference.check_v(&d_v).context("the gradient of V")?,
            ];
            worst = reports.iter().map(|report| report.worst_over_bound).fold(worst, f64::max);
        }
        Ok(worst)
    }
}

/// A problem's slopes on the device.
fn slopes_on<T>(cx: &Context<'_>, problem: &Problem<T>) -> Result<Option<Buffer<f32>>> {
    Ok(problem.slopes.as_ref().map(|slopes| cx.device.upload(slopes)).transpose()?)
}

/// A head's rows, one after another.
fn head_of<T: Number>(
    values: &[T],
    [tokens, dim]: [usize; 2],
    [stride, batch_stride]: [Option<usize>; 2],
    head: usize,
) -> Vec<T> {
    let stride = stride.unwrap_or(dim);
    let first = head * batch_stride.unwrap_or(tokens * stride);
    (0..tokens).flat_map(|token| values[first + token * stride..][..dim].to_vec()).collect()
}

fn by_warps(cx: &Context<'_>) -> Result<f64> {
    if has_no_kernel::<f16>(cx.device, 64) {
        return Ok(0.0);
    }
    let mask = MaskBlocks::new(cx.device, &Mask::causal(20)?)?;
    let options = Options::default().algorithm(Algorithm::MmaTile { queries: 64, dimension: 64 });
    let plan = BlockAttention::<f16>::plan_with(&mask, 64, options)?;
    let workspace = plan.workspace()?;
    let [of_queries, of_keys] = workspace.entries();
    ensure!(of_queries.contains("_mma_dq_") && of_keys.contains("_mma_dkv_"), "{of_queries}, {of_keys}");
    let legal = plan.backward_kernels()?;
    ensure!([legal[0][0], legal[1][0]] == [of_queries, of_keys], "{legal:?}");
    Ok(0.0)
}

fn refusals(cx: &Context<'_>) -> Result<f64> {
    if has_no_kernel::<f16>(cx.device, 72) {
        return Ok(0.0);
    }
    let mask = MaskBlocks::new(cx.device, &Mask::causal(20)?)?;
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { operation: "attention", .. });
    let shared = BlockAttention::<f16>::plan_with(&mask, 8, Options::default().batch(2).kv_batch_stride(0))?;
    refused("K and V that heads share", shared.workspace(), is_parameter, &["the batch stride of K"])?;
    let shared = BlockAttention::<f16>::plan_with(&mask, 8, Options::default().batch(2).q_batch_stride(0))?;
    refused("Q that heads share", shared.workspace(), is_parameter, &["the batch stride of Q"])?;

    let is_pattern = |error: &Error| matches!(error, Error::NeedsPattern { .. });
    let plan = BlockAttention::<f16>::plan(&mask, 8)?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: "attention", .. });
    let [of_queries, of_keys] = plan.backward_kernels()?.map(|names| names[0]);
    let workspace = plan.workspace_with([of_keys, of_queries]);
    refused("kernels in a wrong place", workspace, is_illegal, &[of_keys, of_queries])?;

    let len = plan.query_len();
    let zeros = |len| cx.device.zeros::<f16>(len);
    let (q, o, long) = (zeros(len)?, zeros(len)?, zeros(len + 8)?);
    let logsumexp = cx.device.zeros::<f32>(plan.logsumexp_len() + 1)?;
    let (mut d_q, mut d_k, mut d_v) = (zeros(len + 8)?, zeros(len)?, zeros(len)?);
    let mut run = |d_o: lacuna::Slice<'_, f16>, of_queries: usize, logarithms, workspace: &mut _| {
        let operands = BlockBackwardOperands {
            q: q.as_slice(),
            k: q.as_slice(),
            v: q.as_slice(),
            o: o.as_slice(),
            logsumexp: logsumexp.slice(..logarithms)?,
            alibi_slopes: None,
            d_o,
            d_q: d_q.slice_mut(of_queries..of_queries + len)?,
            d_k: d_k.as_slice_mut(),
            d_v: d_v.as_slice_mut(),
        };
        plan.backward(cx.stream, operands, workspace)
    };
    let mut own = plan.workspace()?;
    run(q.as_slice(), 0, 20, &mut own)?;
    let is_length = |error: &Error| matches!(error, Error::Length { operation: "attention", .. });
    refused("a long gradient", run(long.as_slice(), 0, 20, &mut own), is_length, &["the gradient of O"])?;
    refused("a logarithm more", run(q.as_slice(), 0, 21, &mut own), is_length, &["the logarithms"])?;
    refused(
        "an odd element",
        run(q.as_slice(), 1, 20, &mut own),
        is_pattern,
        &["a gradient is not aligned"],
    )?;
    let other = BlockAttention::<f16>::plan(&MaskBlocks::new(cx.device, &Mask::causal(20)?)?, 8)?;
    let workspace = &mut other.workspace()?;
    refused("another's room", run(q.as_slice(), 0, 20, workspace), is_parameter, &["the workspace"])?;
    // Of the same mask, with rows for which other kernels were chosen.
    let mut of_long_rows = BlockAttention::<f16>::plan(&mask, 72)?.workspace()?;
    refused(
        "longer rows' room",
        run(q.as_slice(), 0, 20, &mut of_long_rows),
        is_parameter,
        &["the workspace"],
    )?;
    let elsewhere = Device::simulator().upload(&vec![f16::ZERO; len])?;
    let is_elsewhere = |error: &Error| matches!(error, Error::OtherDevice { .. });
    refused("another device", run(elsewhere.as_slice(), 0, 20, &mut own), is_elsewhere, &["gradient of O"])?;
    Ok(0.0)
}

//! Masks by rule, as blocks without a CSR pattern: within the bounds of the oracle, and the bits of the plan that has the pattern.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::attention::{Algorithm, Mask, MaskBlocks, Operands, Options};
use lacuna::matrix::{Csr, Pattern};
use lacuna::{BlockAttention, CsrMatrix, Device, Error, Precision, SparseAttention};
use lacuna_reference::AttentionArithmetic;

use super::conform::compare;
use super::{Effort, Problem};
use crate::expect::{refused, same_bits};
use crate::{Case, Context, Number};

/// Name, what it is, the mask, the dimension, and what else is asked for.
type Rule = (&'static str, &'static str, fn() -> lacuna::Result<Mask>, usize, Options);

fn heads(heads: usize) -> Options {
    Options::default().batch(heads)
}

pub(super) fn cases() -> Vec<Case> {
    let rules: [Rule; 12] = [
        ("causal", "a causal mask", || Mask::causal(140), 40, heads(1)),
        ("lower_right", "causal, more keys than queries", || Mask::causal_lower_right(70, 150), 32, heads(2)),
        ("no_keys", "causal, queries without keys", || Mask::causal_lower_right(150, 70), 16, heads(1)),
        ("window", "a sliding window", || Mask::sliding_window(150, 70), 16, heads(1)),
        ("full", "more keys than stages hold, rows of 128 elements", || Mask::full(5, 330), 128, heads(1)),
        ("blocks", "blocks of 30 × 31", blocks, 24, heads(1)),
        ("widest", "causal, rows of 200 elements", || Mask::causal_lower_right(140, 150), 200, heads(1)),
        ("documents", "packed sequences, causal in each", documents, 64, heads(2)),
        ("global", "a window and global tokens", global, 16, heads(1)),
        ("one", "one token", || Mask::causal(1), 8, heads(3)),
        ("nothing", "no token", || Mask::causal(0), 8, heads(2)),
        ("strides", "heads side by side that share K and V", documents, 16, side_by_side()),
    ];
    let case = |(name, about, mask, dim, options): Rule| {
        Case::new(format!("attention/rules/{name}"), about, move |cx| check(cx, mask()?, dim, options))
    };
    let mut cases: Vec<Case> = rules.into_iter().map(case).collect();
    cases.push(
        Case::new("attention/rules/large", "2048 tokens, a window and global tokens, causal", |cx| {
            let global = Mask::global(2048, 2048, &[0, 900], &[0, 1, 900])?;
            let mask = Mask::sliding_window(2048, 300)?.or(&global)?.and(&Mask::causal(2048)?)?;
            check(cx, mask, 64, heads(8))
        })
        .effort(Effort::Gpu),
    );
    cases.push(Case::new(
        "attention/rules/order",
        "second tiles of multiprocessors, in reverse order",
        |cx| {
            // Of 5 tiles of 64 queries and 44 heads, 132 multiprocessors take 3 first and 2 in reverse order.
            let mask = Mask::sliding_window(257, 3)?;
            let problem = Problem::draw(mask.to_pattern()?, 8, 44, cx.seed).rounded::<f16>();
            let smallest = Algorithm::WgmmaTile { queries: 64, dimension: 64 };
            let has_it = cx.device.info().sm == 90;
            let options = if has_it { heads(44).algorithm(smallest) } else { heads(44) };
            check_as(cx, &mask, &problem, options, 1)
        },
    ));
    cases.push(Case::new("attention/rules/refusals", "what kernels by blocks do not take", refusals));
    cases
}

pub(super) fn blocks() -> lacuna::Result<Mask> {
    let seen = Pattern::of_rows(5, [&[0, 1, 4][..], &[], &[2], &[0, 1, 2, 3, 4]])?;
    Mask::blocks(100, 131, [30, 31], seen)
}

pub(super) fn documents() -> lacuna::Result<Mask> {
    Mask::documents(&[30, 1, 63, 0, 36])?.and(&Mask::causal(130)?)
}

pub(super) fn global() -> lacuna::Result<Mask> {
    Mask::sliding_window(130, 9)?.or(&Mask::global(130, 130, &[3, 100], &[5, 64])?)
}

/// Four heads, of which two share K and V, in rows of all heads.
pub(super) fn side_by_side() -> Options {
    Options::default().heads_side_by_side(4, 16).kv_group(2).kv_stride(2 * 16)
}

fn check(cx: &Context<'_>, mask: Mask, dim: usize, options: Options) -> Result<f64> {
    let problem = Problem::draw(mask.to_pattern()?, dim, options.batch, cx.seed);
    let f16s = check_as::<f16>(cx, &mask, &problem.rounded(), options, usize::MAX).context("f16")?;
    let worst = f16s.max(check_as::<bf16>(cx, &mask, &problem.rounded(), options, 1).context("bf16")?);
    let options = options.precision(Precision::Tf32);
    Ok(worst.max(check_as::<f32>(cx, &mask, &problem, options, usize::MAX).context("f32")?))
}

/// By tiles of so many sizes, the library's choice first.
fn check_as<T: Number>(
    cx: &Context<'_>,
    mask: &Mask,
    problem: &Problem<T>,
    options: Options,
    sizes: usize,
) -> Result<f64> {
    let blocks = MaskBlocks::new(cx.device, mask)?;
    if has_no_kernel(cx.device) {
        let sm = cx.device.info().sm;
        let plan = BlockAttention::<T>::plan_with(&blocks, problem.dim, options);
        let is_refused = |error: &Error| matches!(error, Error::NeedsPattern { .. });
        let here = format!("compute capability {}.{}", sm / 10, sm % 10);
        refused("this GPU", plan, is_refused, &["8.0", &here, "SparseAttention"])?;
        return Ok(0.0);
    }
    let ones = vec![T::CANARY; problem.mask.nnz()];
    let pattern = CsrMatrix::<T>::new(cx.device, &Csr::with_values(problem.mask.clone(), ones)?)?;
    ensure!(blocks.elements() == problem.mask.nnz() as u64, "{} elements", blocks.elements());
    let plan = BlockAttention::<T>::plan_with(&blocks, problem.dim, options)?;
    let legal = plan.legal();
    // Without warpgroups long rows have tiles of one size.
    let sizes_at_least = if problem.dim > 128 { 1 } else { 2 };
    ensure!(legal.len() >= sizes_at_least && legal[0] == *plan.choice(), "{legal:?}");
    let mut worst = 0.0_f64;
    for choice in legal.into_iter().take(sizes) {
        let options = options.algorithm(choice.algorithm);
        let by_blocks = BlockAttention::<T>::plan_with(&blocks, problem.dim, options)?;
        let by_pattern = SparseAttention::<T>::plan_with(&pattern, problem.dim, options)?;
        let lens = [by_blocks.query_len(), by_blocks.key_len(), by_blocks.output_len()];
        ensure!(lens == [by_pattern.query_len(), by_pattern.key_len(), by_pattern.output_len()], "{lens:?}");
        let rule = run(cx, problem, lens, |operands| by_blocks.run_with(cx.stream, operands))?;
        let list = run(cx, problem, lens, |operands| by_pattern.run_with(cx.stream, operands))?;
        same_bits(choice.entry.name, &list.0, &rule.0, problem.dim)?;
        same_bits(choice.entry.name, &list.1, &rule.1, 1)?;
        // The oracle takes heads one after another.
        if options.q_stride.is_none() {
            let tiles = AttentionArithmetic::Tiles;
            let error = compare(problem, by_blocks.scale(), &rule.0, Some(&rule.1), tiles);
            worst = worst.max(error.context(choice.entry.name)?);
        }
    }
    Ok(worst)
}

/// Whether the device has no kernels by blocks.
fn has_no_kernel(device: &Device) -> bool {
    device.info().sm < 80
}

/// O and the logarithms of Q, K and V of these lengths: the first elements of the problem's.
fn run<T: Number>(
    cx: &Context<'_>,
    problem: &Problem<T>,
    [queries, keys, output]: [usize; 3],
    run: impl FnOnce(Operands<'_, T>) -> lacuna::Result<()>,
) -> Result<(Vec<T>, Vec<f32>)> {
    let Problem { mask, heads, q, k, v, .. } = problem;
    let [q, k, v] = [&q[..queries], &k[..keys], &v[..keys]].map(|operand| cx.device.upload(operand));
    let (q, k, v) = (q?, k?, v?);
    let mut o = cx.device.upload(&vec![T::POISON; output])?;
    let mut logsumexp = cx.device.upload(&vec![f32::POISON; heads * mask.rows()])?;
    run(Operands {
        q: q.as_slice(),
        k: k.as_slice(),
        v: v.as_slice(),
        o: o.as_slice_mut(),
        logsumexp: Some(logsumexp.as_slice_mut()),
        alibi_slopes: None,
    })?;
    Ok((o.download(cx.stream)?, logsumexp.download(cx.stream)?))
}

fn refusals(cx: &Context<'_>) -> Result<f64> {
    let mask = MaskBlocks::new(cx.device, &Mask::causal(20)?)?;
    let usual = Options::default();
    let is_refused = |error: &Error| matches!(error, Error::NeedsPattern { operation: "attention", .. });
    let instead = "Mask::to_pattern";
    for (precision, dim) in [(Precision::Single, 64), (Precision::Fma, 64), (Precision::Tf32, 260)] {
        let plan = BlockAttention::<f32>::plan_with(&mask, dim, usual.precision(precision));
        let here = format!("here are f32, {precision:?}, d = {dim}, 10 keys a query");
        refused("f32", plan, is_refused, &["f16 and bf16", &here, instead])?;
    }
    for dim in [4, 20, 264] {
        let plan = BlockAttention::<f16>::plan(&mask, dim);
        refused("a dimension", plan, is_refused, &["up to 256", &format!("d = {dim}"), instead])?;
    }
    let plan = BlockAttention::<f16>::plan_with(&mask, 64, usual.kv_stride(68));
    refused("a stride", plan, is_refused, &["strides of multiples of 4", instead])?;
    for scale in [0.0, -1.0] {
        let plan = BlockAttention::<f16>::plan_with(&mask, 64, usual.scale(scale));
        refused("a scale", plan, is_refused, &["a scale not above 0", instead])?;
    }
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { operation: "attention", .. });
    refused("no dimension", BlockAttention::<f16>::plan(&mask, 0), is_parameter, &["the dimension"])?;
    if has_no_kernel(cx.device) {
        return Ok(0.0);
    }
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: "attention", .. });
    for other in [Algorithm::ThreeSteps, Algorithm::Row { vector: 8, lanes: 8, dimension: 64 }] {
        let plan = BlockAttention::<f16>::plan_with(&mask, 64, usual.algorithm(other));
        refused("an algorithm", plan, is_illegal, &["given as blocks", "WgmmaTile"])?;
    }
    let plan = BlockAttention::<f16>::plan(&mask, 8)?;
    let (len, elsewhere) = (plan.query_len(), Device::simulator());
    let (q, k) = (cx.device.zeros::<f16>(len + 1)?, cx.device.zeros::<f16>(len)?);
    let mut o = cx.device.zeros::<f16>(len)?;
    let run = plan.run(cx.stream, q.slice(1..)?, k.as_slice(), k.as_slice(), o.as_slice_mut());
    refused("Q at an odd element", run, is_refused, &["not aligned to 16 bytes", instead])?;
    let run = plan.run(cx.stream, q.as_slice(), k.as_slice(), k.as_slice(), o.as_slice_mut());
    let is_length = |error: &Error| matches!(error, Error::Length { operation: "attention", .. });
    refused("a long Q", run, is_length, &["Q has"])?;
    let run = plan.run(&elsewhere.stream()?, k.as_slice(), k.as_slice(), k.as_slice(), o.as_slice_mut());
    refused("a stream", run, |error| matches!(error, Error::OtherDevice { .. }), &["the stream"])?;
    Ok(0.0)
}

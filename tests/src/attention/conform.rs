//! The check that nearly all cases share.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::attention::Algorithm;
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Index, Precision, SparseAttention, ValueType, attention};
use lacuna_reference::{AttentionArithmetic, Heads, Precision as Arithmetic};

use super::problem::Problem;
use crate::expect::same_bits;
use crate::spmm::Spot;
use crate::spmm::guarded::Guarded;
use crate::{Context, Number};

/// Checks O, and the logarithms, against the oracle: for each type of values, by every legal algorithm. Gives the largest
/// error over its bound.
///
/// # Errors
/// What is wrong, with the type and the algorithm.
pub fn conform(cx: &Context<'_>, problem: &Problem) -> Result<f64> {
    let f32s = every_algorithm::<f32, u32>(cx, problem).context("f32")?;
    let f16s = every_algorithm::<f16, u16>(cx, &problem.rounded()).context("f16, u16")?;
    let bf16s = every_algorithm::<bf16, u32>(cx, &problem.rounded()).context("bf16")?;
    Ok(f32s.max(f16s).max(bf16s))
}

/// Slices of different alignment: to 16 bytes, and to one element.
const SPOTS: [[usize; 4]; 2] = [[8, 16, 0, 8], [3, 1, 0, 5]];

fn every_algorithm<T: Number, I: Index>(cx: &Context<'_>, problem: &Problem<T>) -> Result<f64> {
    let run = Run::<T, I>::new(cx, problem)?;
    let (mut worst, usual) = run.check(Algorithm::Auto, None).context("the library's choice")?;
    let (_, again) = run.check(Algorithm::Auto, None)?;
    same_bits("two runs", &usual, &again, problem.dim)?;
    for spots in SPOTS {
        let (error, _) = run.check(Algorithm::Auto, Some(spots)).with_context(|| format!("at {spots:?}"))?;
        worst = worst.max(error);
    }
    let size = [problem.mask.rows(), problem.mask.cols()];
    let shape = attention::Problem {
        vector: 8,
        has_positive_scale: problem.scale.is_none_or(|scale| scale > 0.0) || problem.softcap.is_some(),
        sm: cx.device.info().sm,
        // So that all kernels run.
        precision: Precision::Tf32,
        ..attention::Problem::new(size, problem.mask.nnz(), problem.dim, T::TYPE, I::TYPE)
    };
    // The simulator takes time by the rows that a kernel is for. Those four times as long as the problem's run small masks here, and the masks of
    // `rules`.
    let is_small = problem.mask.rows() <= 16;
    let fits = |choice: &attention::Choice| {
        is_small
            || !is_by_tiles(choice.algorithm)
            || choice.entry.tile.dimension as usize <= 3 * problem.dim.max(64)
    };
    for choice in attention::choose(&shape).into_iter().filter(fits) {
        let (error, _) = run.check(choice.algorithm, None).with_context(|| choice.entry.name)?;
        worst = worst.max(error);
    }
    // Softmax refuses a scale of 0, and three steps change no scores.
    if problem.scale != Some(0.0) && problem.is_plain() {
        let (error, _) = run.check(Algorithm::ThreeSteps, None).context("three steps")?;
        worst = worst.max(error);
    }
    Ok(worst)
}

fn is_by_tiles(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::WgmmaTile { .. } | Algorithm::MmaTile { .. })
}

/// The arithmetic of SpMM in products of this type, of rows that are short on average.
pub(super) fn precision<T: Number>() -> Arithmetic {
    if T::TYPE == ValueType::F32 { Arithmetic::Fp32 } else { Arithmetic::Tensor }
}

/// A problem on a device.
struct Run<'a, T: Number, I: Index> {
    cx: &'a Context<'a>,
    problem: &'a Problem<T>,
    mask: CsrMatrix<T, I>,
}

impl<'a, T: Number, I: Index> Run<'a, T, I> {
    fn new(cx: &'a Context<'a>, problem: &'a Problem<T>) -> Result<Self> {
        // The values of the mask must not matter.
        let values = vec![T::CANARY; problem.mask.nnz()];
        let mask = CsrMatrix::with_index(cx.device, &Csr::with_values(problem.mask.clone(), values)?)?;
        Ok(Self { cx, problem, mask })
    }

    /// Runs an algorithm, on whole buffers or on guarded slices: gives the largest error over its bound, and O.
    fn check(&self, algorithm: Algorithm, spots: Option<[usize; 4]>) -> Result<(f64, Vec<T>)> {
        let &Problem { dim, heads, scale, ref q, ref k, ref v, .. } = self.problem;
        let options = attention::Options::default().batch(heads).algorithm(algorithm);
        let options = scale.map_or(options, |scale| options.scale(scale));
        let options = if is_by_tiles(algorithm) { options.precision(Precision::Tf32) } else { options };
        let options = self.problem.softcap.map_or(options, |softcap| options.softcap(softcap));
        let plan = SparseAttention::plan_with(&self.mask, dim, options)?;
        ensure!(plan.query_len() == q.len() && plan.key_len() == k.len(), "lengths");
        let spot = |which: usize| spots.map_or(Spot::Whole, |spots| Spot::Slice(spots[which]));
        let upload = |contents: &[T], which: usize| Guarded::new(self.cx.device, contents, spot(which));
        let (q_on, k_on, v_on) = (upload(q, 0)?, upload(k, 1)?, upload(v, 2)?);
        let mut o = upload(&vec![T::POISON; plan.query_len()], 3)?;
        let poison = vec![f32::POISON; plan.logsumexp_len()];
        let mut logsumexp = Guarded::new(self.cx.device, &poison, Spot::Slice(1))?;
        let slopes = self.problem.slopes.as_ref().map(|slopes| self.cx.device.upload(slopes)).transpose()?;
        let steps = plan.choice().is_none();
        ensure!(steps || algorithm != Algorithm::ThreeSteps, "the plan has another algorithm");
        ensure!((plan.workspace_bytes() > 0) == steps, "bytes of workspace");
        plan.run_with(
            self.cx.stream,
            attention::Operands {
                q: q_on.slice()?,
                k: k_on.slice()?,
                v: v_on.slice()?,
                o: o.slice_mut()?,
                logsumexp: if steps { None } else { Some(logsumexp.slice_mut()?) },
                alibi_slopes: slopes.as_ref().map(|slopes| slopes.as_slice()),
            },
        )?;
        let o = o.read("O", self.cx.stream)?;
        let logsumexp = logsumexp.read("the logarithms", self.cx.stream)?;
        let logsumexp = (!steps).then_some(&logsumexp[..]);
        let arithmetic = self.arithmetic(&plan, spots);
        Ok((compare(self.problem, plan.scale(), &o, logsumexp, arithmetic)?, o))
    }

    /// The arithmetic of what ran, at these spots.
    fn arithmetic(&self, plan: &SparseAttention<T, I>, spots: Option<[usize; 4]>) -> AttentionArithmetic {
        let is_unaligned = spots.is_some_and(|spots| spots.iter().any(|spot| spot % 8 != 0));
        let [.., of_elements] = plan.legal();
        let choice = if is_unaligned { of_elements.first().copied() } else { plan.choice().copied() };
        match choice.map(|choice| choice.algorithm) {
            Some(algorithm) if is_by_tiles(algorithm) => AttentionArithmetic::Tiles,
            Some(_) => AttentionArithmetic::Fused,
            None => AttentionArithmetic::Steps(precision::<T>()),
        }
    }
}

/// Holds O, and the logarithms, to the oracle: gives the largest error over its bound.
pub(super) fn compare<T: Number>(
    problem: &Problem<T>,
    scale: f32,
    o: &[T],
    logsumexp: Option<&[f32]>,
    arithmetic: AttentionArithmetic,
) -> Result<f64> {
    let Problem { mask, dim, heads, q, k, v, .. } = problem;
    let (queries, keys) = (mask.rows() * dim, mask.cols() * dim);
    let mut worst = 0.0_f64;
    for head in 0..*heads {
        let of_keys = head * keys..(head + 1) * keys;
        let of_queries = head * queries..(head + 1) * queries;
        let (q, k, v) = (&q[of_queries.clone()], &k[of_keys.clone()], &v[of_keys]);
        let operands = Heads { q, k, v, dim: *dim, scale, score_mod: problem.score_mod(head) };
        let reference = lacuna_reference::attention(mask, operands)?.arithmetic(arithmetic);
        let at = || format!("head {head}");
        let report = reference.check(&o[of_queries]).with_context(at)?;
        worst = worst.max(report.worst_over_bound);
        if let Some(logsumexp) = logsumexp {
            let logarithms = &logsumexp[head * mask.rows()..][..mask.rows()];
            let report = reference.check_logsumexp(logarithms).context("logarithms").with_context(at)?;
            worst = worst.max(report.worst_over_bound);
        }
    }
    Ok(worst)
}

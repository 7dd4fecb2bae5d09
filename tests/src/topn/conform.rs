//! The check that nearly all cases share.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::{Buffer, TopN, topn};
use lacuna_reference::{TopNForm, TopNReference, topn};

use super::Problem;
use crate::expect::same_bits;
use crate::spmm::Spot;
use crate::spmm::guarded::Guarded;
use crate::{Context, Number};
use lacuna_cases::number::rounded;

/// What is tried in turn: the values of the result, and the temperature.
const FORMS: [(topn::Output, TopNForm, f32); 4] = [
    (topn::Output::Probabilities, TopNForm::Probability, 1.0),
    (topn::Output::LogProbabilities, TopNForm::LogProbability, 1.0),
    (topn::Output::Logits, TopNForm::Logit, 1.0),
    (topn::Output::Probabilities, TopNForm::Probability, 2.5),
];

/// A matrix of this many elements, or larger, is cut in one way for each kernel.
const LARGE: usize = 500;
/// More atomic maxima than this take the simulator long.
const INSERTIONS: usize = 1 << 15;

/// Checks values, indices and the logarithms of sums against the oracle: for each type of logits, by every kernel, whole and in
/// chunks; gives the largest error over its bound.
///
/// # Errors
/// What is wrong, with the type and the algorithm.
pub fn conform(cx: &Context<'_>, problem: &Problem) -> Result<f64> {
    let f32s = Subject::<f32>::new(cx, problem).check().context("f32")?;
    let f16s = Subject::<f16>::new(cx, problem).check().context("f16")?;
    let bf16s = Subject::<bf16>::new(cx, problem).check().context("bf16")?;
    Ok(f32s.max(f16s).max(bf16s))
}

/// A problem in a type.
struct Subject<'c, T> {
    cx: &'c Context<'c>,
    problem: &'c Problem,
    logits: Vec<T>,
}

/// Where logits lie: from row to row as many elements more than a row has, and where they start.
#[derive(Clone, Copy, Debug)]
struct Place {
    gap: usize,
    spot: Spot,
}

impl Place {
    const WHOLE: Self = Self { gap: 0, spot: Spot::Whole };
}

impl<'c, T: Number> Subject<'c, T> {
    fn new(cx: &'c Context<'c>, problem: &'c Problem) -> Self {
        Self { cx, problem, logits: rounded(&problem.logits) }
    }

    fn check(&self) -> Result<f64> {
        let references: Result<Vec<TopNReference>> = FORMS
            .iter()
            .map(|&(_, form, temperature)| {
                Ok(topn(&self.logits, self.problem.columns, self.problem.n, temperature, form)?)
            })
            .collect();
        let references = references?;
        let mut worst = 0.0_f64;
        let mut turns = (0..FORMS.len()).cycle();
        for algorithm in self.algorithms() {
            let turn = turns.next().expect("it goes on");
            let check = || self.run(algorithm, turn, Place::WHOLE, &references[turn]);
            worst = worst.max(check().with_context(|| format!("{algorithm:?}, {:?}", FORMS[turn]))?.0);
        }
        let (_, first) = self.run(topn::Algorithm::Auto, 0, Place::WHOLE, &references[0])?;
        let (_, again) = self.run(topn::Algorithm::Auto, 0, Place::WHOLE, &references[0])?;
        same_bits("two runs", &first, &again, self.problem.n)?;
        for place in [Place { gap: 3, spot: Spot::Slice(1) }, Place { gap: 8, spot: Spot::Slice(5) }] {
            let check = || self.run(topn::Algorithm::Auto, 0, place, &references[0]);
            worst = worst.max(check().with_context(|| format!("{place:?}"))?.0);
        }
        Ok(worst)
    }

    /// All ways; of large problems the best way of each kernel.
    fn algorithms(&self) -> Vec<topn::Algorithm> {
        let Problem { columns, n, .. } = *self.problem;
        let info = self.cx.device.info();
        let mut shape = topn::Problem::new(self.problem.rows(), columns, n);
        shape.value = T::TYPE;
        (shape.multiprocessors, shape.sm) = (info.multiprocessors, info.sm);
        let mut kernels = Vec::new();
        let mut algorithms = vec![topn::Algorithm::Auto];
        for choice in topn::choose(&shape) {
            let is_insertion = matches!(choice.algorithm, topn::Algorithm::Insertion { .. });
            let is_known = kernels.contains(&choice.entry.name);
            if is_insertion && n * self.logits.len() > INSERTIONS || is_known && self.logits.len() >= LARGE {
                continue;
            }
            kernels.push(choice.entry.name);
            algorithms.push(choice.algorithm);
        }
        algorithms
    }

    /// The largest error over its bound, and the values.
    fn run(
        &self,
        algorithm: topn::Algorithm,
        turn: usize,
        place: Place,
        reference: &TopNReference,
    ) -> Result<(f64, Vec<f32>)> {
        let Context { device, stream, .. } = *self.cx;
        let (columns, rows, n) = (self.problem.columns, self.problem.rows(), self.problem.n);
        let (output, _, temperature) = FORMS[turn];
        let stride = columns + place.gap;
        let options = topn::Options::default().output(output).temperature(temperature).algorithm(algorithm);
        let plan = TopN::<T>::plan_with(device, rows, columns, n, options.row_stride(stride))?;

        let mut spread = vec![T::CANARY; plan.input_len()];
        for (to, from) in spread.chunks_mut(stride).zip(self.logits.chunks(columns)) {
            to[..columns].copy_from_slice(from);
        }
        let logits = Guarded::new(device, &spread, place.spot)?;
        let poison = |len: usize| vec![f32::POISON; len];
        let mut values = Guarded::new(device, &poison(rows * n), Spot::Slice(1))?;
        let mut log_sums = Guarded::new(device, &poison(rows), Spot::Slice(3))?;
        let mut indices = Indices::new(self.cx, rows * n)?;
        plan.run_with_log_sum_exp(
            stream,
            logits.slice()?,
            values.slice_mut()?,
            indices.buffer.slice_mut(1..=rows * n)?,
            log_sums.slice_mut()?,
        )?;
        let (values, log_sums) = (values.read("values", stream)?, log_sums.read("log-sum-exps", stream)?);
        let worst = reference.check(&values, &indices.read(self.cx)?)?.worst_over_bound;
        let log_sums = reference.check_log_sum_exp(&log_sums).context("log-sum-exps")?;
        let after = logits.read("logits", stream)?;
        same_bits("logits before and after", &spread, &after, stride)?;
        Ok((worst.max(log_sums.worst_over_bound), values))
    }
}

/// Indices of a result, between two guards.
struct Indices {
    buffer: Buffer<u32>,
}

/// What no index is.
const NO_INDEX: u32 = 0xdead_beef;

impl Indices {
    fn new(cx: &Context<'_>, len: usize) -> Result<Self> {
        Ok(Self { buffer: cx.device.upload(&vec![NO_INDEX; len + 2])? })
    }

    fn read(&self, cx: &Context<'_>) -> Result<Vec<u32>> {
        let mut all = self.buffer.download(cx.stream)?;
        let guards = [all.pop(), Some(all.remove(0))];
        ensure!(guards == [Some(NO_INDEX); 2], "indices: memory beside them was written: {guards:?}");
        Ok(all)
    }
}

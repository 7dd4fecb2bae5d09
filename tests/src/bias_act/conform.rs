//! The check that nearly all cases share.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::bias_act::{Activation, Algorithm, Bias, Operands, Options};
use lacuna::{BiasAct, Error};
use lacuna_cases::number::rounded;
use lacuna_reference::{Activation as ReferenceActivation, BiasActInputs, bias_act};

use super::Dense;
use crate::expect::same_bits;
use crate::{Context, Number};

/// How a matrix is treated: kernel, activation, and how the bias lies.
pub(super) type Way = (Algorithm, Activation, Bias);

/// Checks a matrix against the oracle, by every legal algorithm; gives the largest error over its bound.
///
/// In all types; with bias and residual and without; with rows that have gaps, which must stay as they are, and without; from
/// addresses that are aligned and ones that are not; and in place, which must give the same bits.
///
/// # Errors
/// What is wrong, with the type and the algorithm.
pub fn conform(cx: &Context<'_>, problem: &Dense) -> Result<f64> {
    let worst = of_type::<f32>(cx, problem)?.max(of_type::<f16>(cx, problem)?);
    Ok(worst.max(of_type::<bf16>(cx, problem)?))
}

/// The library's choice and every kernel, activations and kinds of bias in turn.
fn of_type<T: Number>(cx: &Context<'_>, problem: &Dense) -> Result<f64> {
    let [legal, ..] = BiasAct::<T>::plan(cx.device, problem.rows, problem.columns)?.legal();
    let algorithms = [Algorithm::Auto].into_iter().chain(legal.iter().map(|choice| choice.algorithm));
    let clamp = Activation::Clamp { lo: -1.5, hi: 2.25 };
    let activations = [Activation::Gelu, Activation::Relu, Activation::Identity, clamp];
    let channels = if problem.rows.is_multiple_of(3) { problem.rows / 3 } else { problem.rows }.max(1);
    let biases = [Bias::PerColumn, Bias::PerChannel { channels }, Bias::PerRow];
    let ways = algorithms.zip(activations.into_iter().cycle()).zip(biases.into_iter().cycle());
    let mut ways: Vec<Way> =
        ways.map(|((algorithm, activation), bias)| (algorithm, activation, bias)).collect();
    ways.extend(activations.map(|activation| (Algorithm::Auto, activation, Bias::PerColumn)));
    as_type::<T>(cx, problem, &ways)
}

/// A type, in some ways.
pub(super) fn as_type<T: Number>(cx: &Context<'_>, problem: &Dense, ways: &[Way]) -> Result<f64> {
    let mut worst = 0.0_f64;
    for (i, &way) in ways.iter().enumerate() {
        // Gaps that keep vectors aligned, none, and ones that do not.
        let gap = [0, 8, 3][i / 2 % 3];
        let (has_bias, has_residual) = (i % 4 != 3, i % 2 == 0);
        let subject = Subject { cx, problem, way, gap, has_bias, has_residual };
        let at = || format!("{}, {way:?}, gap {gap}, bias {has_bias}, residual {has_residual}", T::TYPE);
        worst = worst.max(subject.check::<T>().with_context(at)?);
    }
    Ok(worst)
}

struct Subject<'c> {
    cx: &'c Context<'c>,
    problem: &'c Dense,
    way: Way,
    gap: usize,
    has_bias: bool,
    has_residual: bool,
}

impl Subject<'_> {
    fn check<T: Number>(&self) -> Result<f64> {
        let Dense { rows, columns, .. } = *self.problem;
        let (algorithm, activation, bias) = self.way;
        let stride = columns + self.gap;
        let options = Options::default().activation(activation).bias(bias).algorithm(algorithm);
        let options = options.input_stride(stride).residual_stride(stride).out_stride(stride);
        let plan = match BiasAct::<T>::plan_with(self.cx.device, rows, columns, options) {
            // The strides do not allow its vectors.
            Err(Error::Illegal { .. }) if self.gap == 3 => return Ok(0.0),
            plan => plan?,
        };
        let bias: Vec<T> = rounded(&self.problem.bias[..plan.bias_len()]);
        let (input, residual): (Vec<T>, Vec<T>) =
            (rounded(&self.problem.input), rounded(&self.problem.residual));
        let reference = bias_act(&BiasActInputs {
            input: &input,
            columns,
            bias: self.has_bias.then_some(&*bias),
            bias_by_row: plan.options().bias != Bias::PerColumn,
            residual: self.has_residual.then_some(&*residual),
            activation: reference_of(activation),
        })?;

        let aligned = self.run(&plan, &input, &bias, &residual, 0)?;
        let worst = reference.check(&aligned)?.worst_over_bound;
        // One element on: only single elements are aligned there.
        match self.run(&plan, &input, &bias, &residual, 1) {
            Ok(moved) => same_bits("aligned, then not", &aligned, &moved, columns)?,
            Err(error) => {
                let is_illegal = matches!(error.downcast_ref(), Some(Error::Illegal { .. }));
                ensure!(is_illegal && algorithm != Algorithm::Auto, "not aligned: {error}");
            }
        }
        Ok(worst)
    }

    /// The result, out of place and in place, of operands that start `offset` elements into their buffers.
    fn run<T: Number>(
        &self,
        plan: &BiasAct<T>,
        input: &[T],
        bias: &[T],
        residual: &[T],
        offset: usize,
    ) -> Result<Vec<T>> {
        let (device, stream) = (self.cx.device, self.cx.stream);
        let spread = |values: &[T]| self.spread(values, offset);
        let (input_host, residual_host) = (spread(input), spread(residual));
        let blank = spread(&vec![T::POISON; input.len()]);
        let bias_host = [&vec![T::CANARY; offset][..], bias].concat();
        let (x, residual) = (device.upload(&input_host)?, device.upload(&residual_host)?);
        let (bias, mut out) = (device.upload(&bias_host)?, device.upload(&blank)?);
        let bias = if self.has_bias { Some(bias.slice(offset..)?) } else { None };
        let residual = if self.has_residual { Some(residual.slice(offset..)?) } else { None };
        let operands = Operands { input: x.slice(offset..)?, bias, residual, out: out.slice_mut(offset..)? };
        plan.run(stream, operands)?;
        let result = self.collect(&out.download(stream)?, offset)?;
        same_bits("x before and after", &input_host, &x.download(stream)?, 0)?;

        let mut both = device.upload(&input_host)?;
        plan.run_in_place(stream, both.slice_mut(offset..)?, bias, residual)?;
        let in_place = self.collect(&both.download(stream)?, offset)?;
        same_bits("out of place, then in place", &result, &in_place, self.problem.columns)?;
        Ok(result)
    }

    /// Rows with gaps, which hold canaries, as what stands before the first row.
    fn spread<T: Number>(&self, values: &[T], offset: usize) -> Vec<T> {
        let mut spread = vec![T::CANARY; offset];
        for row in values.chunks_exact(self.problem.columns.max(1)) {
            spread.extend(row);
            spread.extend(vec![T::CANARY; self.gap]);
        }
        spread
    }

    /// The rows, if the canaries are alive.
    fn collect<T: Number>(&self, spread: &[T], offset: usize) -> Result<Vec<T>> {
        let columns = self.problem.columns;
        let (before, rows) = spread.split_at(offset);
        let mut values = Vec::new();
        let mut gaps = before.to_vec();
        for row in rows.chunks_exact((columns + self.gap).max(1)) {
            values.extend(&row[..columns]);
            gaps.extend(&row[columns..]);
        }
        ensure!(gaps.iter().all(|gap| gap.bits() == T::CANARY.bits()), "a gap was written");
        Ok(values)
    }
}

fn reference_of(activation: Activation) -> ReferenceActivation {
    match activation {
        Activation::Relu => ReferenceActivation::Clamp { lo: 0.0, hi: f32::INFINITY },
        Activation::Clamp { lo, hi } => ReferenceActivation::Clamp { lo, hi },
        Activation::Gelu => ReferenceActivation::Gelu,
        _ => ReferenceActivation::Identity,
    }
}

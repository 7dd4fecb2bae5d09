//! The check that nearly all cases share.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::layer_norm::{Algorithm, Operands, Options};
use lacuna::{Error, LayerNorm};
use lacuna_cases::number::rounded;
use lacuna_reference::{LayerNormInputs, layer_norm};

use super::Tokens;
use crate::expect::{same_bits, same_numbers};
use crate::{Context, Number};

/// Checks tokens against the oracle, by every legal algorithm; gives the largest error over its bound.
///
/// In all types; with weight and bias and without; with rows or images that have gaps, which must stay as they are, and without; from
/// addresses that are aligned and ones that are not; twice and in place, which must give the same bits.
///
/// # Errors
/// What is wrong, with the type and the algorithm.
pub fn conform(cx: &Context<'_>, tokens: &Tokens) -> Result<f64> {
    let worst = as_type::<f32>(cx, tokens)?.max(as_type::<f16>(cx, tokens)?);
    Ok(worst.max(as_type::<bf16>(cx, tokens)?))
}

/// The library's choice and every kernel, with gaps and parameters in turn.
pub(super) fn as_type<T: Number>(cx: &Context<'_>, tokens: &Tokens) -> Result<f64> {
    let [legal, ..] = LayerNorm::<T>::plan(cx.device, tokens.shape)?.legal();
    let algorithms = [Algorithm::Auto].into_iter().chain(legal.iter().map(|choice| choice.algorithm));
    let mut worst = 0.0_f64;
    for (i, algorithm) in algorithms.enumerate() {
        // Gaps that keep vectors aligned, none, and ones that do not.
        let gap = [0, 8, 3][i % 3];
        let (has_weight, has_bias) = (i % 4 != 2, i % 4 != 3);
        let subject = Subject { cx, tokens, algorithm, gap, has_weight, has_bias };
        let at = || format!("{}, {algorithm:?}, gap {gap}, weight {has_weight}, bias {has_bias}", T::TYPE);
        worst = worst.max(subject.check::<T>().with_context(at)?);
    }
    Ok(worst)
}

struct Subject<'c> {
    cx: &'c Context<'c>,
    tokens: &'c Tokens,
    algorithm: Algorithm,
    gap: usize,
    has_weight: bool,
    has_bias: bool,
}

/// x, weight and bias.
struct Host<T> {
    input: Vec<T>,
    weight: Vec<T>,
    bias: Vec<T>,
}

impl Subject<'_> {
    fn check<T: Number>(&self) -> Result<f64> {
        let tokens = self.tokens;
        let [_, width] = tokens.outer();
        let (stride, epsilon) = (width + self.gap, tokens.epsilon);
        let options = Options::default().epsilon(epsilon).algorithm(self.algorithm);
        let options = options.input_stride(stride).out_stride(stride);
        let plan = match LayerNorm::<T>::plan_with(self.cx.device, tokens.shape, options) {
            // The strides do not allow its vectors.
            Err(Error::Illegal { .. }) if self.gap == 3 => return Ok(0.0),
            plan => plan?,
        };
        let host = Host::<T> {
            input: rounded(&tokens.input),
            weight: rounded(&tokens.weight),
            bias: rounded(&tokens.bias),
        };
        let reference = layer_norm(&LayerNormInputs {
            input: &host.input,
            features: tokens.shape.features(),
            pixels: tokens.pixels(),
            weight: self.has_weight.then_some(&*host.weight),
            bias: self.has_bias.then_some(&*host.bias),
            epsilon,
        })?;
        let aligned = self.run(&plan, &host, 0)?;
        let mut worst = reference.check(&aligned)?.worst_over_bound;
        // One element on: only single elements are aligned there, and the order of sums is another.
        match self.run(&plan, &host, 1) {
            Ok(moved) => worst = worst.max(reference.check(&moved)?.worst_over_bound),
            Err(error) => {
                let is_illegal = matches!(error.downcast_ref(), Some(Error::Illegal { .. }));
                ensure!(is_illegal && self.algorithm != Algorithm::Auto, "not aligned: {error}");
            }
        }
        Ok(worst)
    }

    /// The result, out of place and in place, of operands that start `offset` elements into their buffers.
    fn run<T: Number>(&self, plan: &LayerNorm<T>, host: &Host<T>, offset: usize) -> Result<Vec<T>> {
        let (device, stream) = (self.cx.device, self.cx.stream);
        let input = self.spread(&host.input, offset);
        let parameter = |values: &[T]| device.upload(&[&vec![T::CANARY; offset][..], values].concat());
        let (weight, bias) = (parameter(&host.weight)?, parameter(&host.bias)?);
        let weight = if self.has_weight { Some(weight.slice(offset..)?) } else { None };
        let bias = if self.has_bias { Some(bias.slice(offset..)?) } else { None };
        let x = device.upload(&input)?;
        let mut out = device.upload(&self.spread(&vec![T::POISON; host.input.len()], offset))?;
        let operands = Operands { input: x.slice(offset..)?, weight, bias, out: out.slice_mut(offset..)? };
        plan.run(stream, operands)?;
        let result = self.collect(&out.download(stream)?, offset)?;
        same_bits("x before and after", &input, &x.download(stream)?, 0)?;

        let mut both = device.upload(&input)?;
        plan.run_in_place(stream, both.slice_mut(offset..)?, weight, bias)?;
        let in_place = self.collect(&both.download(stream)?, offset)?;
        same_numbers("out of place, then in place", &result, &in_place, self.tokens.outer()[1])?;
        Ok(result)
    }

    /// Rows or images with gaps, which hold canaries, as what stands before the first one.
    fn spread<T: Number>(&self, values: &[T], offset: usize) -> Vec<T> {
        let mut spread = vec![T::CANARY; offset];
        for part in values.chunks_exact(self.tokens.outer()[1].max(1)) {
            spread.extend(part);
            spread.extend(vec![T::CANARY; self.gap]);
        }
        spread
    }

    /// The rows or images, if the canaries are alive.
    fn collect<T: Number>(&self, spread: &[T], offset: usize) -> Result<Vec<T>> {
        let [_, width] = self.tokens.outer();
        let (before, parts) = spread.split_at(offset);
        let mut values = Vec::new();
        let mut gaps = before.to_vec();
        for part in parts.chunks_exact((width + self.gap).max(1)) {
            values.extend(&part[..width]);
            gaps.extend(&part[width..]);
        }
        ensure!(gaps.iter().all(|gap| gap.bits() == T::CANARY.bits()), "a gap was written");
        Ok(values)
    }
}

//! The check that nearly all cases share.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Index, SparseSoftmax, softmax};

use crate::expect::same_bits;
use crate::{Context, Number};
use lacuna_cases::number::rounded;

/// Scales that are tried in turn: that of attention with 64 columns, and a negative one.
const SCALES: [f32; 2] = [0.125, -1.5];

/// Checks softmax and gradient of `x` against the oracle; gives the largest error over its bound.
///
/// In `f32`, `bf16`, and `f16` with 16-bit indices where the columns allow them, by the library's choice and by every
/// algorithm alone; out of place and in place, which must give the same bits.
///
/// # Errors
/// What is wrong, with the type and the algorithm.
pub fn conform(cx: &Context<'_>, x: &Csr<f32>) -> Result<f64> {
    let worst = conform_as::<f32, u32>(cx, x)?.max(conform_as::<bf16, u32>(cx, x)?);
    Ok(worst.max(if x.cols() > u16::MAX.into() {
        conform_as::<f16, u32>(cx, x)?
    } else {
        conform_as::<f16, u16>(cx, x)?
    }))
}

fn conform_as<T: Number, I: Index>(cx: &Context<'_>, x: &Csr<f32>) -> Result<f64> {
    let check = || -> Result<f64> {
        let host = Csr::with_values(x.pattern().clone(), rounded::<T>(x.values()))?;
        let device = CsrMatrix::<T, I>::with_index(cx.device, &host)?;
        let mut worst = 0.0_f64;
        for (algorithm, scale) in algorithms::<T>().into_iter().zip(SCALES.into_iter().cycle()) {
            let subject = Subject { cx, host: &host, device: &device, algorithm };
            let at = || format!("{algorithm:?}, scale {scale}");
            worst = worst.max(subject.check(scale).with_context(at)?);
        }
        Ok(worst)
    };
    check().with_context(|| format!("{} and {}", T::TYPE, I::TYPE))
}

/// A batch of three matrices, of which the second is NaN: each has the bits that it has alone, by every algorithm.
pub(super) fn batch<T: Number>(cx: &Context<'_>, x: &Csr<f32>) -> Result<f64> {
    let host = Csr::with_values(x.pattern().clone(), rounded::<T>(x.values()))?;
    let device = CsrMatrix::<T>::new(cx.device, &host)?;
    for algorithm in algorithms::<T>() {
        let subject = Subject { cx, host: &host, device: &device, algorithm };
        subject.check_batch().with_context(|| format!("{}, {algorithm:?}", T::TYPE))?;
    }
    Ok(0.0)
}

/// The library's choice, and every kind of kernel for rows of all lengths.
fn algorithms<T: Number>() -> [softmax::Algorithm; 4] {
    let part = if size_of::<T>() == 4 { 8 } else { 16 };
    let [part, warp, block] = [part, 32, 256].map(|lanes| softmax::Algorithm::Subwarp { lanes });
    [softmax::Algorithm::Auto, part, warp, block]
}

/// A matrix, and the algorithm that is tried on it.
struct Subject<'c, T: Number, I: Index> {
    cx: &'c Context<'c>,
    host: &'c Csr<T>,
    device: &'c CsrMatrix<T, I>,
    algorithm: softmax::Algorithm,
}

impl<T: Number, I: Index> Subject<'_, T, I> {
    fn plan(&self, scale: f32, batch: usize) -> Result<SparseSoftmax<T, I>> {
        let options = softmax::Options::default().scale(scale).algorithm(self.algorithm).batch(batch);
        Ok(SparseSoftmax::plan_with(self.device, options)?)
    }

    /// A matrix for results: what is not written shows.
    fn poisoned(&self) -> Result<CsrMatrix<T, I>> {
        Ok(self.device.with_values(&vec![T::POISON; self.host.nnz()])?)
    }

    fn read(&self, matrix: &CsrMatrix<T, I>) -> Result<Vec<T>> {
        Ok(matrix.values()?.download(self.cx.stream)?)
    }

    fn check(&self, scale: f32) -> Result<f64> {
        let (stream, plan) = (self.cx.stream, self.plan(scale, 1)?);
        let mut y = self.poisoned()?;
        plan.run(stream, self.device, &mut y)?;
        let out = self.read(&y)?;
        let forward = lacuna_reference::softmax(self.host, scale)?.check(&out)?;
        let mut x = self.device.with_values(self.host.values())?;
        plan.run_in_place(stream, &mut x)?;
        same_bits("out of place, then in place", &out, &self.read(&x)?, 0)?;
        same_bits("x before and after", self.host.values(), &self.read(self.device)?, 0)?;

        let output_gradient: Vec<T> = rounded(&generate::random_values(out.len(), self.cx.seed ^ 7));
        let (mut dy, mut dx) = (self.device.with_values(&output_gradient)?, self.poisoned()?);
        plan.backward(stream, &y, &dy, &mut dx)?;
        let gradient = self.read(&dx)?;
        let y_on_host = Csr::with_values(self.host.pattern().clone(), out)?;
        let reference = lacuna_reference::softmax_gradient(&y_on_host, &output_gradient, scale)?;
        let backward = reference.check(&gradient).context("the gradient")?;
        plan.backward_in_place(stream, &y, &mut dy)?;
        same_bits("the gradient out of place, then in place", &gradient, &self.read(&dy)?, 0)?;
        Ok(forward.worst_over_bound.max(backward.worst_over_bound))
    }

    fn check_batch(&self) -> Result<()> {
        let (stream, values) = (self.cx.stream, self.host.values());
        let reversed: Vec<T> = values.iter().rev().copied().collect();
        let all = [values, &vec![T::POISON; values.len()], &reversed].concat();
        let mut batch = self.device.with_value_batch(3, &all)?;
        self.plan(1.0, 3)?.run_in_place(stream, &mut batch)?;
        for (which, values) in [(0, values), (2, &reversed)] {
            let mut alone = self.device.with_values(values)?;
            self.plan(1.0, 1)?.run_in_place(stream, &mut alone)?;
            let got = batch.batch_values(which)?.download(stream)?;
            same_bits("alone, then in the batch", &self.read(&alone)?, &got, 0)?;
        }
        let nan = batch.batch_values(1)?.download(stream)?;
        ensure!(nan.iter().all(|y| y.wide().is_nan()), "the softmax of NaN has a number");
        Ok(())
    }
}

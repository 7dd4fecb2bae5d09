//! The check that nearly all cases share.
use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::pool::{Algorithm, MapLayout, Mode, Operands, Options};
use lacuna::{Error, Pool};
use lacuna_cases::maps::{apart, channels_first, channels_last};
use lacuna_cases::number::rounded;
use lacuna_cases::pool::{oracle_mode, oracle_shape};
use lacuna_reference::{PoolReference, pool};

use super::Maps;
use crate::expect::{same_bits, same_numbers};
use crate::{Context, Number};

/// All that may be made of windows.
pub(super) const MODES: [Mode; 3] = [Mode::Max, Mode::AverageIncludePadding, Mode::AverageExcludePadding];
/// Elements that stand after the result, and must stay.
const GUARD: usize = 8;

/// Checks a pooling against the oracle, by every legal algorithm; gives the largest error over its bound.
///
/// In all types, modes and layouts; from addresses that are aligned and ones that are not. The same algorithm gives the same bits
/// again, and the same numbers in the other layout and by single elements.
///
/// # Errors
/// What is wrong, with the type, the mode and the algorithm.
pub fn conform(cx: &Context<'_>, maps: &Maps) -> Result<f64> {
    let worst = of_type::<f32>(cx, maps)?.max(of_type::<f16>(cx, maps)?);
    Ok(worst.max(of_type::<bf16>(cx, maps)?))
}

fn of_type<T: Number>(cx: &Context<'_>, maps: &Maps) -> Result<f64> {
    let input = rounded::<T>(&maps.input);
    let mut worst = 0.0_f64;
    for mode in MODES {
        let at = || format!("{}, {mode:?}", T::TYPE);
        let reference = pool(&oracle_shape(maps.shape, maps.shape.batch), oracle_mode(mode), &input)?;
        let subject = Subject { cx, maps, input: &input, mode, reference };
        worst = worst.max(subject.check().with_context(at)?);
    }
    Ok(worst)
}

struct Subject<'c, T> {
    cx: &'c Context<'c>,
    maps: &'c Maps,
    input: &'c [T],
    mode: Mode,
    reference: PoolReference<T>,
}

impl<T: Number> Subject<'_, T> {
    fn check(&self) -> Result<f64> {
        let [_, columns] = self.maps.shape.out_size();
        let mut worst = 0.0_f64;
        // Of kernels for windows, whose order of sums is the same in all layouts.
        let mut known: Vec<(&str, Vec<T>)> = Vec::new();
        for layout in [MapLayout::Nchw, MapLayout::Nhwc] {
            let [legal, ..] = self.plan(layout, Algorithm::Auto)?.legal();
            let algorithms = [Algorithm::Auto].into_iter().chain(legal.iter().map(|choice| choice.algorithm));
            for algorithm in algorithms {
                let at = || format!("{layout:?}, {algorithm:?}");
                let plan = self.plan(layout, algorithm)?;
                let first = self.run(&plan, 0).with_context(at)?;
                worst = worst.max(self.reference.check(&first).with_context(at)?.worst_over_bound);
                same_bits("once, and again", &first, &self.run(&plan, 0)?, columns).with_context(at)?;
                match self.run(&plan, 1) {
                    Ok(moved) => {
                        let report = self.reference.check(&moved).context("not aligned").with_context(at)?;
                        worst = worst.max(report.worst_over_bound);
                    }
                    Err(error) => {
                        let is_illegal = matches!(error.downcast_ref(), Some(Error::Illegal { .. }));
                        ensure!(is_illegal && algorithm != Algorithm::Auto, "not aligned: {error}");
                    }
                }
                if layout == MapLayout::Nchw && algorithm == Algorithm::Auto {
                    for gap in [1, 8] {
                        let got = self.run(&self.apart(gap)?, 0).context("planes apart").with_context(at)?;
                        let report = self.reference.check(&got).context("planes apart").with_context(at)?;
                        worst = worst.max(report.worst_over_bound);
                    }
                }
                let family = match algorithm {
                    Algorithm::Window { .. } => "windows of a size",
                    Algorithm::Any { .. } => "any windows",
                    _ => continue,
                };
                match known.iter().find(|(known, _)| *known == family) {
                    Some((_, result)) => same_numbers(family, result, &first, columns).with_context(at)?,
                    None => known.push((family, first)),
                }
            }
        }
        Ok(worst)
    }

    fn plan(&self, layout: MapLayout, algorithm: Algorithm) -> Result<Pool<T>> {
        let options = Options::default().mode(self.mode).layout(layout).algorithm(algorithm);
        Ok(Pool::plan(self.cx.device, self.maps.shape, options)?)
    }

    /// A plan with gaps between channels, which begin at multiples of `step` elements.
    fn apart(&self, step: usize) -> Result<Pool<T>> {
        let [rows, columns] = self.maps.shape.size;
        let stride = (rows * columns / step + 1) * step;
        let options = Options::default().mode(self.mode).input_channel_stride(stride);
        Ok(Pool::plan(self.cx.device, self.maps.shape, options)?)
    }

    /// The result, in NCHW, of maps that begin `offset` elements into their buffers.
    fn run(&self, plan: &Pool<T>, offset: usize) -> Result<Vec<T>> {
        let (device, stream, shape) = (self.cx.device, self.cx.stream, self.maps.shape);
        let (pixels, out_pixels) = (shape.size.iter().product(), shape.out_size().iter().product());
        let is_last = plan.options().layout == MapLayout::Nhwc;
        let maps =
            if is_last { channels_last(self.input, shape.channels, pixels) } else { self.input.to_vec() };
        let maps = match plan.options().input_channel_stride {
            Some(stride) => apart(&maps, pixels, stride, T::CANARY),
            None => maps,
        };
        let input = device.upload(&[&vec![T::CANARY; offset][..], &maps].concat())?;
        let guard = vec![T::CANARY; GUARD];
        let blank = [&guard[..offset], &vec![T::POISON; shape.output_len()], &guard].concat();
        let mut out = device.upload(&blank)?;
        let end = offset + shape.output_len();
        plan.run(stream, Operands { input: input.slice(offset..)?, out: out.slice_mut(offset..end)? })?;
        let out = out.download(stream)?;
        let guards = out[..offset].iter().chain(&out[end..]);
        ensure!(
            guards.copied().all(|guard| guard.bits() == T::CANARY.bits()),
            "beside the result was written"
        );
        let out = &out[offset..end];
        Ok(if is_last { channels_first(out, shape.channels, out_pixels) } else { out.to_vec() })
    }
}

//! Trigonometric interpolation, MATLAB's `interpft`: the smoothest periodic curve through samples, sampled more densely.

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use std::f64::consts::TAU;
use std::sync::Arc;

/// Interpolates rows of one length to another, by Fourier transforms. Threads share it.
pub(super) struct Resampler {
    forward: Arc<dyn RealToComplex<f64>>,
    inverse: Arc<dyn ComplexToReal<f64>>,
}

/// What a [`Resampler`] works in: some 32 bytes a sample of the result.
pub(super) struct Buffers {
    /// The samples; overwritten.
    pub(super) input: Vec<f64>,
    /// The result.
    pub(super) output: Vec<f64>,
    spectrum: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl Resampler {
    /// From `from` samples, an even number, to `to`, which is greater.
    pub(super) fn new(from: usize, to: usize) -> Self {
        debug_assert!(from.is_multiple_of(2) && from < to);
        let mut planner = RealFftPlanner::new();
        Self { forward: planner.plan_fft_forward(from), inverse: planner.plan_fft_inverse(to) }
    }

    /// Room for one row.
    pub(super) fn buffers(&self) -> Buffers {
        Buffers {
            input: self.forward.make_input_vec(),
            output: self.inverse.make_output_vec(),
            spectrum: self.inverse.make_input_vec(),
            scratch: vec![
                Complex::default();
                self.forward.get_scratch_len().max(self.inverse.get_scratch_len())
            ],
        }
    }

    /// Interpolates `buffers.input` into `buffers.output`.
    pub(super) fn run(&self, buffers: &mut Buffers) {
        let Buffers { input, output, spectrum, scratch } = buffers;
        let (from, frequencies) = (input.len(), input.len() / 2 + 1);
        let (low, high) = spectrum.split_at_mut(frequencies);
        self.forward.process_with_scratch(input, low, scratch).expect("buffers of this resampler");
        // The highest frequency of the samples is no longer its own mirror image: each of the two gets a half.
        low[frequencies - 1] *= 0.5;
        low.iter_mut().for_each(|value| *value /= from as f64);
        high.fill(Complex::default());
        self.inverse.process_with_scratch(spectrum, output, scratch).expect("a spectrum of real samples");
    }
}

/// The weights by which `from` samples, an even number, make the sample `at` of `to`: [`Resampler`] for short rows.
pub(super) fn weights(from: usize, to: usize, at: usize) -> Vec<f64> {
    // Angles are multiples of a full turn over from · to: counted in whole numbers, they lose nothing.
    let turn = from * to;
    let cosine = |frequency: usize, sample: usize| {
        let steps = frequency * (from * at + turn - to * sample) % turn;
        (TAU * steps as f64 / turn as f64).cos()
    };
    let weight = |sample| {
        let inner: f64 = (1..from / 2).map(|frequency| 2.0 * cosine(frequency, sample)).sum();
        (1.0 + inner + cosine(from / 2, sample)) / from as f64
    };
    (0..from).map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resample(samples: &[f64], to: usize) -> Vec<f64> {
        let resampler = Resampler::new(samples.len(), to);
        let mut buffers = resampler.buffers();
        buffers.input.copy_from_slice(samples);
        resampler.run(&mut buffers);
        buffers.output
    }

    #[test]
    fn a_wave_below_the_highest_frequency_is_met_everywhere() {
        let wave = |x: f64| 3.0 + (TAU * 4.0 * x + 0.3).cos() - 0.5 * (TAU * 13.0 * x).sin();
        let samples: Vec<f64> = (0..28).map(|k| wave(f64::from(k) / 28.0)).collect();
        for to in [29, 32, 64, 101] {
            for (at, got) in resample(&samples, to).into_iter().enumerate() {
                assert!((got - wave(at as f64 / to as f64)).abs() < 1e-13, "{to} {at}");
            }
        }
    }

    #[test]
    fn the_highest_frequency_becomes_a_cosine() {
        let samples: Vec<f64> = (0..28).map(|k| if k % 2 == 0 { 1.0 } else { -1.0 }).collect();
        for (at, got) in resample(&samples, 64).into_iter().enumerate() {
            assert!((got - (TAU * 14.0 * at as f64 / 64.0).cos()).abs() < 1e-13, "{at}");
        }
    }

    #[test]
    fn weights_do_the_same() {
        let samples: Vec<f64> = (0..28).map(|k| f64::from((k * k * 7 + 3) % 11)).collect();
        for to in [29, 32, 64, 128, 256] {
            let resampled = resample(&samples, to);
            for (at, expected) in resampled.into_iter().enumerate() {
                let got: f64 = weights(28, to, at).iter().zip(&samples).map(|(w, sample)| w * sample).sum();
                assert!((got - expected).abs() < 1e-12, "{to} {at}: {got} {expected}");
            }
        }
    }
}

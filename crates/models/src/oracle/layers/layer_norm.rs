//! Layer norms.
//!
//! Of n features with errors eᵢ: the mean is off by their mean and by its own sum; a deviation cᵢ by dᵢ, that, eᵢ and a rounding; the
//! variance by the mean of 2|cᵢ|dᵢ + dᵢ², and by its sum; so that the deviation's divisor lies between two others.
use lacuna_reference::Precision;

use crate::network::LayerNorm;
use crate::oracle::Approximate;
use crate::oracle::approximate::sum_error;

/// The unit roundoff of `f32`.
const U: f64 = f32::EPSILON as f64 / 2.0;
/// Roundings of a result: the square root and a reciprocal of up to 2 ulp each, products and a sum.
const ROUNDINGS: usize = 12;

pub(super) fn layer_norm(layer: &LayerNorm, [weight, bias]: [&[f32]; 2], input: &Approximate) -> Approximate {
    let (channels, pixels) = (input.shape.channels, input.shape.pixels());
    let mut out = Approximate {
        shape: input.shape,
        value: vec![0.0; input.value.len()],
        error: vec![0.0; input.value.len()],
    };
    let own = |terms: usize, size: f64| sum_error(terms, size, 0.0, Precision::Fp32);
    for pixel in 0..input.shape.images * pixels {
        let at = |channel: usize| (pixel / pixels * channels + channel) * pixels + pixel % pixels;
        let of = |channel: usize| (input.value[at(channel)], input.error[at(channel)]);
        let count = channels as f64;
        let mean_of = |term: &dyn Fn(usize) -> f64| (0..channels).map(term).sum::<f64>() / count;
        let mean = mean_of(&|channel| of(channel).0);
        let size = mean_of(&|channel| of(channel).0.abs() + of(channel).1);
        // n terms, and two roundings of the division.
        let mean_error = mean_of(&|channel| of(channel).1) + own(channels + 2, size);
        let deviation = |channel: usize| {
            let (x, error) = of(channel);
            let off = error + mean_error;
            (x - mean, off + U * ((x - mean).abs() + off))
        };
        let variance = mean_of(&|channel| deviation(channel).0.powi(2));
        let carried = mean_of(&|channel| {
            let (c, off) = deviation(channel);
            2.0 * c.abs() * off + off * off
        });
        let variance_error = carried + own(channels + 4, variance + carried);
        let epsilon = f64::from(layer.epsilon);
        let deviations = |variance: f64| (variance.max(0.0) + epsilon).sqrt();
        let (least, most) = (deviations(variance - variance_error), deviations(variance + variance_error));
        let exact = deviations(variance);
        for channel in 0..channels {
            let (c, off) = deviation(channel);
            let (weight, bias) = (f64::from(weight[channel]), f64::from(bias[channel]));
            let value = c / exact * weight + bias;
            // Deviations of 0 stay so, whatever they are divided by.
            let quotient = if off > 0.0 { off / least } else { 0.0 };
            let divisor = if c == 0.0 { 0.0 } else { c.abs() * (1.0 / least - 1.0 / most) };
            let carried = weight.abs() * (quotient + divisor);
            out.value[at(channel)] = value;
            out.error[at(channel)] = carried + own(ROUNDINGS, value.abs() + 2.0 * bias.abs() + carried);
        }
    }
    out
}

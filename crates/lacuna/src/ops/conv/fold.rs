//! Batch norm folded into filters.
use super::{OPERATION, Shape};
use crate::{Error, Result};

/// A batch norm after a convolution: gamma · (x − mean) / √(variance + epsilon) + beta, a channel at a time.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm<'a> {
    /// The factor of each channel.
    pub gamma: &'a [f32],
    /// What is added to each channel.
    pub beta: &'a [f32],
    /// The mean of each channel.
    pub mean: &'a [f32],
    /// The variance of each channel.
    pub variance: &'a [f32],
    /// What is added to variances.
    pub epsilon: f32,
}

impl BatchNorm<'_> {
    /// Folds it into the filters before it, N × C × R × S, and gives the bias that belongs to them; `bias` is the convolution's own. Computed in `f64`,
    /// rounded once.
    ///
    /// ```
    /// use lacuna::conv::{BatchNorm, Shape};
    ///
    /// # fn main() -> lacuna::Result<()> {
    /// let norm = BatchNorm { gamma: &[2.0], beta: &[1.0], mean: &[3.0], variance: &[0.25], epsilon: 0.0 };
    /// let mut filters = [0.5, -1.0];
    /// let bias = norm.fold(&Shape::new(2, [8, 8], 1, [1, 1]), &mut filters, None)?;
    /// assert_eq!((filters, bias), ([2.0, -4.0], vec![-11.0]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] where filters, a bias or the norm's numbers are not as many as the shape says; [`Error::Parameter`] for a variance that
    /// is not above −epsilon.
    pub fn fold(&self, shape: &Shape, filters: &mut [f32], bias: Option<&[f32]>) -> Result<Vec<f32>> {
        let count = shape.filters;
        let expect = |what, expected: usize, got: usize| {
            let is_right = expected == got;
            let shape = || format!("{count} filters");
            let error = || Error::Length { operation: OPERATION, what, shape: shape(), expected, got };
            if is_right { Ok(()) } else { Err(error()) }
        };
        expect("the filters", shape.filters_len(), filters.len())?;
        expect("the bias", count, bias.map_or(count, <[f32]>::len))?;
        for (what, numbers) in [
            ("the factors of a batch norm", self.gamma),
            ("the sums of a batch norm", self.beta),
            ("the means of a batch norm", self.mean),
            ("the variances of a batch norm", self.variance),
        ] {
            expect(what, count, numbers.len())?;
        }
        let factor = |(&gamma, &variance): (&f32, &f32)| {
            let spread = f64::from(variance) + f64::from(self.epsilon);
            let expected = || "a number that is above 0 with epsilon";
            Error::expect(spread > 0.0, OPERATION, "a variance", expected, variance)?;
            Ok(f64::from(gamma) / spread.sqrt())
        };
        let factors = self.gamma.iter().zip(self.variance).map(factor).collect::<Result<Vec<f64>>>()?;
        let of_filter = filters.len().checked_div(count).unwrap_or(0);
        let mut folded = Vec::with_capacity(count);
        for (channel, factor) in factors.into_iter().enumerate() {
            for weight in &mut filters[channel * of_filter..][..of_filter] {
                *weight = (f64::from(*weight) * factor) as f32;
            }
            let own = bias.map_or(0.0, |bias| f64::from(bias[channel]));
            folded.push(
                ((own - f64::from(self.mean[channel])) * factor + f64::from(self.beta[channel])) as f32,
            );
        }
        Ok(folded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NORM: BatchNorm<'_> = BatchNorm {
        gamma: &[2.0, -1.0],
        beta: &[0.5, 0.25],
        mean: &[1.0, -3.0],
        variance: &[3.0, 0.0],
        epsilon: 1.0,
    };

    #[test]
    fn a_folded_norm_is_the_norm_of_the_sums() {
        let shape = Shape::new(3, [1, 1], 2, [1, 1]);
        let (x, bias) = ([1.0_f64, 2.0, -4.0], [0.5_f32, 7.0]);
        let before = [0.25_f32, 1.0, 0.5, -2.0, 0.125, 3.0];
        let mut after = before;
        let folded = NORM.fold(&shape, &mut after, Some(&bias)).unwrap();
        for channel in 0..2 {
            let sum = |filters: &[f32], bias: f32| {
                let products = filters[3 * channel..][..3].iter().zip(x).map(|(&w, x)| f64::from(w) * x);
                products.sum::<f64>() + f64::from(bias)
            };
            let normed = (sum(&before, bias[channel]) - f64::from(NORM.mean[channel]))
                / f64::from(NORM.variance[channel] + NORM.epsilon).sqrt();
            let normed = f64::from(NORM.gamma[channel]) * normed + f64::from(NORM.beta[channel]);
            assert!((sum(&after, folded[channel]) - normed).abs() < 1e-5, "{channel}: {normed}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let shape = Shape::new(1, [1, 1], 2, [1, 1]);
        let refused = |norm: BatchNorm<'_>, filters: &[f32], bias: Option<&[f32]>| {
            let mut filters = filters.to_vec();
            norm.fold(&shape, &mut filters, bias).unwrap_err().to_string()
        };
        assert!(refused(NORM, &[1.0; 3], None).contains("the filters"));
        assert!(refused(NORM, &[1.0; 2], Some(&[0.0])).contains("the bias"));
        assert!(refused(BatchNorm { mean: &[0.0], ..NORM }, &[1.0; 2], None).contains("means"));
        let negative = BatchNorm { variance: &[1.0, -1.5], ..NORM };
        assert!(refused(negative, &[1.0; 2], None).contains("a variance"));
        let mut filters = [1.0, 2.0];
        assert!(negative.fold(&shape, &mut filters, None).is_err());
        assert_eq!(filters, [1.0, 2.0]);
    }
}

//! Weights that are drawn, where no file is given.
//!
//! They are for speed and for tests, and know nothing: values have the sizes that values of trained networks have, so that sums neither vanish
//! nor grow, and half of what a ReLU leaves is zero.
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};

use super::{Tensor, Weights, WeightsError};
use crate::network::{Network, Role};

/// The standard deviation of what is nearly a constant: biases and means around 0, factors and variances around 1.
const SPREAD: f32 = 0.1;

impl Weights {
    /// All tensors that a network needs. The same seed gives the same numbers.
    ///
    /// Filters are normal with variance 2 / n for sums of n products: He, Zhang, Ren, Sun, *Delving Deep into Rectifiers* (ICCV 2015),
    /// section 2.2. Batch norms are near the identity, and biases near 0.
    ///
    /// # Errors
    /// [`WeightsError::Values`] for tensors of more elements than memory can have.
    pub fn drawn(network: &Network, seed: u64) -> Result<Self, WeightsError> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut weights = Self::new();
        for parameter in network.parameters() {
            let (centre, spread) = match parameter.role {
                Role::Filters { products } => (0.0, (2.0 / products.max(1) as f32).sqrt()),
                Role::Bias | Role::Beta | Role::Mean => (0.0, SPREAD),
                Role::Gamma | Role::Variance => (1.0, SPREAD),
            };
            let mut draw = || {
                // Within three of them, so that no variance is below 0.
                let normal: f32 = StandardNormal.sample(&mut rng);
                centre + spread * normal.clamp(-3.0, 3.0)
            };
            let values = (0..parameter.elements()).map(|_| draw()).collect();
            weights.insert(parameter.name, Tensor::new(parameter.shape, values)?);
        }
        Ok(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Conv, Shape};

    #[test]
    fn filters_have_the_variance_that_keeps_sums_as_they_are() {
        let mut builder = Network::builder(Shape::maps(1, 32, [8, 8]));
        let conv = Conv::new(64, [3, 3]).norm("norm");
        let out = builder.layer("conv", conv, &[builder.input()]).unwrap();
        let network = builder.finish(out).unwrap();
        let weights = Weights::drawn(&network, 1).unwrap();
        assert_eq!(weights, Weights::drawn(&network, 1).unwrap());
        assert_ne!(weights, Weights::drawn(&network, 2).unwrap());
        let filters = weights.get("conv.weight", &[64, 32, 3, 3]).unwrap().values();
        let square = filters.iter().map(|&weight| f64::from(weight).powi(2)).sum::<f64>();
        let variance = square / filters.len() as f64;
        assert!((variance * 288.0 / 2.0 - 1.0).abs() < 0.05, "{variance}");
        let variances = weights.get("norm.running_var", &[64]).unwrap().values();
        assert!(variances.iter().all(|variance| (0.5..1.5).contains(variance)));
    }
}

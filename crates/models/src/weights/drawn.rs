//! Weights that are drawn, where no file is given.
//!
//! They are for speed and for tests, and know nothing: values have the sizes that values of trained networks have, so that sums neither vanish
//! nor grow, and half of what a ReLU leaves is zero.
use std::collections::BTreeSet;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};

use super::{Tensor, Weights, WeightsError};
use crate::network::{Network, Role};

/// The standard deviation of what is nearly a constant: biases and means around 0, factors and variances around 1.
const SPREAD: f32 = 0.1;
/// What factors of a norm are around before a residual is added. Each block then multiplies variances by 5/4. With 1 it would be 2, and the sums of
/// ResNet-152, which has fifty blocks, would be beyond the numbers of `f16`.
const BEFORE_RESIDUAL: f32 = 0.5;

impl Weights {
    /// All tensors that a network needs. The same seed gives the same numbers.
    ///
    /// Filters are normal with variance 2 / n for sums of n products: He, Zhang, Ren, Sun, *Delving Deep into Rectifiers* (ICCV 2015),
    /// section 2.2. Batch norms are near the identity, or near half of it before a residual is added, and biases near 0.
    ///
    /// # Errors
    /// [`WeightsError::Values`] for tensors of more elements than memory can have.
    pub fn drawn(network: &Network, seed: u64) -> Result<Self, WeightsError> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut weights = Self::new();
        let convolutions = network.layers().iter().filter_map(|layer| network.convolution(layer));
        let norms = convolutions.filter(|conv| conv.residual).filter_map(|conv| conv.norm);
        let before_residual: BTreeSet<String> =
            norms.map(|norm| norm.tensors()).map(|[gamma, ..]| gamma).collect();
        for parameter in network.parameters() {
            let (centre, spread) = match parameter.role {
                Role::Filters { products } => (0.0, (2.0 / products.max(1) as f32).sqrt()),
                Role::Bias | Role::Beta | Role::Mean => (0.0, SPREAD),
                Role::Gamma if before_residual.contains(&parameter.name) => (BEFORE_RESIDUAL, SPREAD),
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

    #[test]
    fn sums_of_many_blocks_stay_small() {
        let mut builder = Network::builder(Shape::maps(1, 16, [4, 4]));
        let mut x = builder.input();
        for block in 0..50 {
            let conv = Conv::new(16, [3, 3]).padding([1, 1]).norm(format!("norm{block}")).residual().relu();
            x = builder.layer(format!("block{block}"), conv, &[x, x]).unwrap();
        }
        let network = builder.finish(x).unwrap();
        let weights = Weights::drawn(&network, 1).unwrap();
        let input = vec![1.0_f32; 256];
        let result = crate::oracle::run(&network, &weights, &Default::default(), &input).unwrap();
        let greatest = result.value.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        assert!((1.0..16_384.0).contains(&greatest), "{greatest}");
    }
}

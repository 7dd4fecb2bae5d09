//! A network's size, and what follows from it.

use super::ChallengeError;

/// Neurons a layer of the official networks.
pub const NEURONS: [usize; 4] = [1024, 4096, 16384, 65536];

/// Layers of the official networks.
pub const LAYERS: [usize; 3] = [120, 480, 1920];

/// Images of the challenge.
pub const IMAGES: usize = 60_000;

/// Edges into each neuron, and out of it.
pub const EDGES: usize = 32;

/// The value of every edge, 1/16.
pub const WEIGHT: f32 = 0.0625;

/// The most that a neuron can be: its activation is min(`MAX`, max(0, x)).
pub const MAX: f32 = 32.0;

/// Inputs that stand for one another: each class of inputs has so many, and an output takes two classes.
pub(super) const CLASS: usize = EDGES / 2;

/// The size of a network. [`Generator`](super::Generator) makes its layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Challenge {
    neurons: usize,
    layers: usize,
}

impl Challenge {
    /// A network of `neurons` neurons in each of `layers` layers.
    ///
    /// `neurons` may be any power of two from 32 to 2²⁶, `layers` any number but 0. Beside the official sizes
    /// ([`NEURONS`], [`LAYERS`]) the same construction gives small networks for tests, and larger ones.
    ///
    /// # Errors
    /// If a number is not as said.
    pub fn new(neurons: usize, layers: usize) -> Result<Self, ChallengeError> {
        // Below 32 an output's two classes would be one; above 2²⁶ a layer has more edges than 32 bits count.
        if !neurons.is_power_of_two() || !(EDGES..=1 << 26).contains(&neurons) {
            return Err(ChallengeError::Neurons { got: neurons });
        }
        if layers == 0 {
            return Err(ChallengeError::NoLayers);
        }
        Ok(Self { neurons, layers })
    }

    /// Neurons of each layer, N.
    pub fn neurons(&self) -> usize {
        self.neurons
    }

    /// Layers, L.
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// Whether the challenge has this network.
    pub fn is_official(&self) -> bool {
        NEURONS.contains(&self.neurons) && LAYERS.contains(&self.layers)
    }

    /// The bias of every neuron: −0.3 for 1,024 neurons, −0.35 for 4,096, −0.4 for 16,384 and −0.45 for 65,536.
    ///
    /// The challenge has no other sizes. One between takes the bias of the next smaller official one; what is smaller
    /// than 1,024 takes −0.3.
    pub fn bias(&self) -> f32 {
        match self.neurons {
            ..4096 => -0.3,
            4096..16384 => -0.35,
            16384..65536 => -0.4,
            _ => -0.45,
        }
    }

    /// Nominal edges of an inference of `images` images, images × 32 × N × L: the challenge's rate is this over seconds.
    ///
    /// It counts all images in all layers, also those whose neurons became zero on the way.
    pub fn edges(&self, images: usize) -> u128 {
        images as u128 * (EDGES * self.neurons) as u128 * self.layers as u128
    }

    /// Classes of inputs, M = N/16.
    pub(super) fn classes(&self) -> usize {
        self.neurons / CLASS
    }

    /// Layers that share an order of the inputs, K = log₂ M.
    pub(super) fn group(&self) -> usize {
        self.classes().ilog2() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn official_networks_are_legal_and_have_their_bias() {
        for (neurons, bias) in NEURONS.into_iter().zip([-0.3, -0.35, -0.4, -0.45]) {
            for layers in LAYERS {
                let challenge = Challenge::new(neurons, layers).unwrap();
                assert!(challenge.is_official());
                assert_eq!(challenge.bias(), bias);
            }
        }
        assert!(!Challenge::new(1024, 119).unwrap().is_official());
        assert_eq!(Challenge::new(32, 1).unwrap().bias(), -0.3);
        assert_eq!(Challenge::new(32768, 1).unwrap().bias(), -0.4);
    }

    #[test]
    fn nominal_edges_are_the_challenges() {
        // As the challenge's table of rates counts them: 60,000 × 4 M edges, and × 4 G.
        assert_eq!(Challenge::new(1024, 120).unwrap().edges(IMAGES), 235_929_600_000);
        assert_eq!(Challenge::new(65536, 1920).unwrap().edges(IMAGES), 241_591_910_400_000);
    }

    #[test]
    fn other_sizes_say_what_is_legal() {
        for neurons in [0, 1, 16, 48, 1000, 1 << 27, usize::MAX] {
            let error = Challenge::new(neurons, 1).unwrap_err();
            assert_eq!(error, ChallengeError::Neurons { got: neurons });
            assert!(error.to_string().contains("power of two from 32 to 67108864"), "{error}");
        }
        assert_eq!(Challenge::new(1024, 0), Err(ChallengeError::NoLayers));
    }
}

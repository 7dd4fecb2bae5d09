//! The layers of a network, each made by itself.

use super::network::CLASS;
use super::twister::Twister;
use super::{Challenge, ChallengeError, EDGES, WEIGHT};
use lacuna_matrix::{Csr, Pattern};
use rayon::prelude::*;

/// Makes the layers of a network, in any order and from any thread.
///
/// With M = N/16 and K = log₂ M, the inputs of layer l fall into M classes of 16. Output j takes the classes j mod M and
/// (j + 2^(l mod K)) mod M, so that K layers mix all inputs. Each K layers the classes are drawn anew: the
/// generator holds them, N numbers of 4 bytes for each K layers.
#[derive(Debug, Clone)]
pub struct Generator {
    challenge: Challenge,
    /// For each K layers, the inputs by class, and ascending in a class: N each.
    orders: Vec<Vec<u32>>,
}

impl Generator {
    /// Draws the classes of all layers.
    pub fn new(challenge: Challenge) -> Self {
        let groups = challenge.layers().div_ceil(challenge.group());
        // One stream for all groups, so it is drawn in order. The first K layers are not drawn.
        let mut twister = Twister::matlab();
        let draws: Vec<Vec<f64>> =
            (1..groups).map(|_| (0..challenge.neurons()).map(|_| twister.real()).collect()).collect();
        let mut orders = vec![by_class(&challenge, (0..challenge.neurons() as u32).collect())];
        orders.par_extend(draws.into_par_iter().map(|draws| by_class(&challenge, sorted_places(&draws))));
        Self { challenge, orders }
    }

    /// The network.
    pub fn challenge(&self) -> Challenge {
        self.challenge
    }

    /// Where the edges of a layer are: N × N, rows are outputs and columns inputs, 32 ascending columns a row.
    ///
    /// # Errors
    /// If the network has not so many layers.
    pub fn pattern(&self, layer: usize) -> Result<Pattern, ChallengeError> {
        let (neurons, layers) = (self.challenge.neurons(), self.challenge.layers());
        if layer >= layers {
            return Err(ChallengeError::Layer { got: layer, layers });
        }
        let group = self.challenge.group();
        let order = &self.orders[layer / group];
        let step = 1 << (layer % group);
        let classes = self.challenge.classes();
        let mut columns = Vec::with_capacity(EDGES * neurons);
        for class in 0..classes {
            let row = columns.len();
            for class in [class, (class + step) % classes] {
                columns.extend_from_slice(&order[class * CLASS..(class + 1) * CLASS]);
            }
            columns[row..].sort_unstable();
        }
        // Outputs of one class have the same inputs.
        let period = columns.len();
        for _ in 1..CLASS {
            columns.extend_from_within(..period);
        }
        let row_offsets = (0..=neurons).map(|row| (row * EDGES) as u32).collect();
        Ok(Pattern::new(neurons, neurons, row_offsets, columns)?)
    }

    /// A layer's weights: N × N, rows are outputs and columns inputs, [`WEIGHT`] at each of 32 ascending columns a row.
    ///
    /// # Errors
    /// If the network has not so many layers.
    pub fn layer(&self, layer: usize) -> Result<Csr<f32>, ChallengeError> {
        let pattern = self.pattern(layer)?;
        let values = vec![WEIGHT; pattern.nnz()];
        Ok(Csr::with_values(pattern, values)?)
    }

    /// All layers, made in parallel. They take 8 bytes an edge: 2 GiB for 65,536 neurons and 120 layers.
    ///
    /// # Errors
    /// None but the errors of [`layer`](Self::layer), which a layer of the network does not give.
    pub fn all_layers(&self) -> Result<Vec<Csr<f32>>, ChallengeError> {
        (0..self.challenge.layers()).into_par_iter().map(|layer| self.layer(layer)).collect()
    }
}

/// The places of the draws by their size; of equal draws the earlier first.
fn sorted_places(draws: &[f64]) -> Vec<u32> {
    let mut places: Vec<u32> = (0..draws.len() as u32).collect();
    places.sort_by(|&a, &b| draws[a as usize].total_cmp(&draws[b as usize]));
    places
}

/// Deals the inputs, in the order given, to the classes in turn; and sorts each class.
fn by_class(challenge: &Challenge, inputs: Vec<u32>) -> Vec<u32> {
    let classes = challenge.classes();
    let mut order: Vec<u32> =
        (0..classes).flat_map(|class| inputs.iter().copied().skip(class).step_by(classes)).collect();
    order.chunks_exact_mut(CLASS).for_each(<[u32]>::sort_unstable);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_neuron_has_32_edges_in_and_out() {
        for neurons in [32, 64, 256, 1024] {
            let challenge = Challenge::new(neurons, 9).unwrap();
            let generator = Generator::new(challenge);
            for layer in 0..9 {
                let pattern = generator.pattern(layer).unwrap();
                assert!(pattern.row_lengths().all(|edges| edges == 32));
                assert!(pattern.transpose().row_lengths().all(|edges| edges == 32));
            }
        }
    }

    #[test]
    fn the_first_layer_is_by_hand() {
        // 16 classes of 16 inputs: output 18 takes the classes 2 and 3.
        let generator = Generator::new(Challenge::new(256, 1).unwrap());
        let expected: Vec<u32> = (0..16).flat_map(|k| [16 * k + 2, 16 * k + 3]).collect();
        assert_eq!(generator.pattern(0).unwrap().row_columns(18), expected);
    }

    /// K layers connect each input with each output; the first K, which are not permuted, on equally many ways.
    #[test]
    fn log2_m_layers_connect_all() {
        let challenge = Challenge::new(128, 6).unwrap();
        let generator = Generator::new(challenge);
        for first in [0, 3] {
            let mut ways = vec![0u64; 128];
            ways[5] = 1;
            for layer in first..first + challenge.group() {
                let pattern = generator.pattern(layer).unwrap();
                ways = (0..128)
                    .map(|row| pattern.row_columns(row).iter().map(|&column| ways[column as usize]).sum())
                    .collect();
            }
            assert!(ways.iter().all(|&count| count > 0), "{ways:?}");
            assert!(first > 0 || ways.iter().all(|&count| count == ways[0]), "{ways:?}");
        }
    }

    #[test]
    fn a_layer_past_the_last_is_refused() {
        let generator = Generator::new(Challenge::new(64, 3).unwrap());
        assert_eq!(generator.layer(3), Err(ChallengeError::Layer { got: 3, layers: 3 }));
        assert_eq!(generator.all_layers().unwrap().len(), 3);
    }

    #[test]
    fn all_layers_are_the_layers() {
        let generator = Generator::new(Challenge::new(64, 7).unwrap());
        for (l, layer) in generator.all_layers().unwrap().iter().enumerate() {
            assert_eq!(*layer, generator.layer(l).unwrap());
        }
    }
}

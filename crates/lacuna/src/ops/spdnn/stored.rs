//! The layers of a network in a safetensors container.
use lacuna_matrix::io::safetensors::Container;
use lacuna_matrix::io::{Place, ReadError};

use super::{Activation, Bias, Layer};
use crate::{Error, Result};

/// The layers of a network in a safetensors container, which are read one by one, from any thread.
///
/// Layer `l` of the network `net` is the sparse matrix `net.l.weight`, outputs × inputs, as
/// [`safetensors`](lacuna_matrix::io::safetensors) says, and the bias `net.l.bias`: a number for each output, or one for all, in
/// `F32`, `F16`, `BF16` or `F64`. Without it the bias is 0. Layers count from 0. A matrix without a shape has as many inputs as the layer
/// before has outputs.
///
/// ```
/// use lacuna::matrix::Csr;
/// use lacuna::matrix::io::safetensors::{Container, Tensors};
/// use lacuna::spdnn::{Activation, Options, PackedNetwork, StoredLayers};
/// use lacuna::{Device, Error};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let first = Csr::new(2, 3, vec![0, 1, 2], vec![2, 0], vec![0.5, 1.0])?;
/// let last = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![1.0, -1.0])?;
/// let tensors = Tensors::default().csr("net.0.weight", &first).csr("net.1.weight", &last);
/// let mut bytes = Vec::new();
/// tensors.vector("net.0.bias", &[0.1, 0.2]).write(&mut bytes)?;
///
/// let container = Container::new(&bytes)?;        // or Container::open(path)
/// let layers = StoredLayers::new(&container, "net", Activation::Relu, Activation::Identity)?;
/// let device = Device::simulator();
/// let packed = PackedNetwork::from_fn::<Error>(&device, layers.count(), 60_000, Options::default(), |l| layers.layer(l))?;
/// assert_eq!(layers.count(), 2);
/// # let _ = packed;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct StoredLayers<'c> {
    container: &'c Container<'c>,
    /// What the names of all layers begin with, the dot too.
    prefix: String,
    count: usize,
    inputs: Option<usize>,
    hidden: Activation,
    last: Activation,
}

impl<'c> StoredLayers<'c> {
    /// Finds the layers whose names begin with `prefix` and a dot, or with their numbers where it is empty. The last layer
    /// has the activation `last`, all others `hidden`.
    ///
    /// # Errors
    /// [`Error::Read`] where there is no layer 0, or layers are missing between others.
    pub fn new(
        container: &'c Container<'c>,
        prefix: &str,
        hidden: Activation,
        last: Activation,
    ) -> Result<Self> {
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}.") };
        let number = |name: &String| -> Option<usize> {
            name.strip_prefix(&prefix)?.strip_suffix(".weight.crow_indices")?.parse().ok()
        };
        let greatest = container.names().iter().filter_map(number).max();
        let layers = Self { container, prefix, count: 0, inputs: None, hidden, last };
        let exists = |layer: &usize| container.contains(&format!("{}.crow_indices", layers.weight(*layer)));
        let count = (0..).take_while(exists).count();
        if count == 0 || greatest.is_some_and(|greatest| greatest >= count) {
            let expected = format!("a tensor `{}.crow_indices`", layers.weight(count));
            let got =
                greatest.map_or("none".to_owned(), |greatest| format!("layers up to {greatest} without it"));
            return Err(ReadError::Syntax { place: Place::Byte(0), expected, got }.into());
        }
        Ok(Self { count, ..layers })
    }

    /// The same layers, of which the first has so many inputs: for one without a shape, and checked against one with.
    #[must_use]
    pub fn inputs(self, inputs: usize) -> Self {
        Self { inputs: Some(inputs), ..self }
    }

    /// How many layers there are; at least 1.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Reads a layer.
    ///
    /// # Errors
    /// [`Error::Parameter`] where there is no such layer; [`Error::Read`] where a tensor is missing or not what it should be, or the
    /// layer has not as many inputs as the one before has outputs; as [`Layer::new`].
    pub fn layer(&self, layer: usize) -> Result<Layer> {
        let expected = || format!("below {}, as many as there are", self.count);
        Error::expect(layer < self.count, super::OPERATION, "the layer", expected, layer)?;
        let inputs = match layer.checked_sub(1) {
            Some(before) => Some(self.container.csr_rows(&self.weight(before))?),
            None => self.inputs,
        };
        let weights = self.container.csr(&self.weight(layer), inputs)?;
        let name = format!("{}{layer}.bias", self.prefix);
        let bias = if self.container.contains(&name) {
            match &self.container.vector(&name)?[..] {
                &[bias] => Bias::Scalar(bias),
                biases => Bias::PerOutput(biases.to_vec()),
            }
        } else {
            Bias::Scalar(0.0)
        };
        Layer::new(weights, bias, if layer + 1 == self.count { self.last } else { self.hidden })
    }

    /// Reads all layers. For large networks, [`PackedNetwork::from_fn`](super::PackedNetwork::from_fn) takes them one by one.
    ///
    /// # Errors
    /// As [`layer`](Self::layer).
    pub fn read(&self) -> Result<Vec<Layer>> {
        (0..self.count).map(|layer| self.layer(layer)).collect()
    }

    fn weight(&self, layer: usize) -> String {
        format!("{}{layer}.weight", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::Csr;
    use lacuna_matrix::io::safetensors::Tensors;

    use super::*;

    fn matrix(rows: usize, cols: usize) -> Csr<f32> {
        let columns = (0..rows).map(|row| (row % cols) as u32).collect();
        Csr::new(rows, cols, (0..=rows as u32).collect(), columns, vec![0.5; rows]).unwrap()
    }

    fn bytes(tensors: &Tensors<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        tensors.write(&mut bytes).unwrap();
        bytes
    }

    fn stored<'c>(container: &'c Container<'c>, prefix: &str) -> Result<StoredLayers<'c>> {
        StoredLayers::new(container, prefix, Activation::Relu, Activation::Identity)
    }

    fn says<T>(result: Result<T>, says: &str) {
        let error = result.err().expect("an error");
        assert!(error.is_usage() && error.to_string().contains(says), "{error}");
    }

    #[test]
    fn layers_have_their_biases_and_activations() {
        let [first, second, third] = [matrix(4, 3), matrix(2, 4), matrix(5, 2)];
        let tensors = Tensors::default().csr("a.b.0.weight", &first).csr("a.b.1.weight", &second);
        let tensors = tensors.csr("a.b.2.weight", &third).csr("other.0.weight", &third);
        let bytes = bytes(&tensors.vector("a.b.0.bias", &[-0.5]).vector("a.b.1.bias", &[1.0, 2.0]));
        let container = Container::new(&bytes).unwrap();
        let layers = stored(&container, "a.b").unwrap().inputs(3);
        assert_eq!(layers.count(), 3);
        let read = layers.read().unwrap();
        assert_eq!(read.iter().map(Layer::weights).collect::<Vec<_>>(), [&first, &second, &third]);
        let biases = [Bias::Scalar(-0.5), Bias::PerOutput(vec![1.0, 2.0]), Bias::Scalar(0.0)];
        assert_eq!(read.iter().map(|layer| layer.bias().clone()).collect::<Vec<_>>(), biases);
        let activations = [Activation::Relu, Activation::Relu, Activation::Identity];
        assert_eq!(read.iter().map(Layer::activation).collect::<Vec<_>>(), activations);
        says(layers.layer(3), "the layer is 3, but it must be below 3");
        says(layers.clone().inputs(4).layer(0), "4 rows and 4 columns");
    }

    #[test]
    fn networks_that_do_not_fit_together_are_refused() {
        let [first, second, apart] = [matrix(4, 3), matrix(2, 4), matrix(2, 5)];
        let of = |tensors: Tensors<'_>| bytes(&tensors);
        let file = of(Tensors::default().csr("0.weight", &first).csr("1.weight", &apart));
        let container = Container::new(&file).unwrap();
        says(stored(&container, "").unwrap().read(), "`1.weight.shape` of 2 rows and 4 columns, got [2, 5]");
        says(stored(&container, "net"), "a tensor `net.0.weight.crow_indices`");

        let file = of(Tensors::default().csr("n.0.weight", &first).csr("n.2.weight", &second));
        let container = Container::new(&file).unwrap();
        says(stored(&container, "n"), "a tensor `n.1.weight.crow_indices`, got layers up to 2");

        let file = of(Tensors::default().csr("n.0.weight", &first).vector("n.0.bias", &[1.0; 3]));
        let container = Container::new(&file).unwrap();
        says(stored(&container, "n").unwrap().read(), "the bias has 3 elements");
    }
}

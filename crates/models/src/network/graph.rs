//! A network that was built.
use super::{Activation, Builder, Convolution, Operation, Parameter, Shape};

/// A value between layers, of one network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub(super) usize);

impl ValueId {
    /// What is given to the network; the first such value, where there are several.
    pub const INPUT: Self = Self(0);

    /// Its number: the first input has 0, and other inputs and results of layers follow in the order in which they were added.
    pub fn index(self) -> usize {
        self.0
    }
}

/// A layer of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name, which tensors' names begin with if nothing else is said.
    pub name: String,
    /// What it does.
    pub operation: Operation,
    /// What it reads.
    pub inputs: Vec<ValueId>,
    /// What it writes.
    pub output: ValueId,
}

/// Layers in the order in which they run, each after those whose results it reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub(super) layers: Vec<Layer>,
    pub(super) inputs: Vec<ValueId>,
    /// The shape of each value.
    pub(super) shapes: Vec<Shape>,
    pub(super) output: ValueId,
}

impl Network {
    /// A builder of a network with this input. [`Builder::add_input`] adds others.
    pub fn builder(input: Shape) -> Builder {
        Builder::new(input)
    }

    /// The layers, in the order in which they run.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The shape of each value, by its number.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// The shape of a value of this network.
    ///
    /// # Panics
    /// For a value of a larger network.
    pub fn shape(&self, value: ValueId) -> Shape {
        self.shapes[value.0]
    }

    /// The value that is given to it; the first, where there are several.
    pub fn input(&self) -> ValueId {
        ValueId::INPUT
    }

    /// All values that are given to it, in the order in which one buffer has them, one after another.
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs
    }

    /// Elements of all values that are given to it; the greatest `usize` where they are more.
    pub fn input_len(&self) -> usize {
        self.inputs.iter().fold(0, |len: usize, &input| len.saturating_add(self.shape(input).elements()))
    }

    /// The value that it makes.
    pub fn output(&self) -> ValueId {
        self.output
    }

    /// The shape of what is given to it; of the first value, where there are several.
    pub fn input_shape(&self) -> Shape {
        self.shapes[0]
    }

    /// The shape of what it makes.
    pub fn output_shape(&self) -> Shape {
        self.shape(self.output)
    }

    /// The shapes of what a layer reads.
    pub fn input_shapes(&self, layer: &Layer) -> Vec<Shape> {
        layer.inputs.iter().map(|&value| self.shape(value)).collect()
    }

    /// A layer as the convolution that it is, if it has weights.
    pub fn convolution(&self, layer: &Layer) -> Option<Convolution> {
        let input = self.shape(*layer.inputs.first()?);
        layer.operation.convolution(&layer.name, input)
    }

    /// The tensors of weights of a layer.
    pub fn parameters_of(&self, layer: &Layer) -> Vec<Parameter> {
        let input = layer.inputs.first().map(|&input| self.shape(input));
        input.map_or_else(Vec::new, |input| layer.operation.parameters(&layer.name, input))
    }

    /// Multiply-adds of a layer, those with zeros and padding counted; 0 where it has no sums of products.
    pub fn products(&self, layer: &Layer) -> u64 {
        layer.operation.products(&layer.name, &self.input_shapes(layer))
    }

    /// All tensors of weights, in the order of the layers.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> {
        self.layers.iter().flat_map(|layer| self.parameters_of(layer))
    }

    /// Numbers that training changes: weights, biases, and factors and sums of batch norms.
    pub fn parameter_count(&self) -> usize {
        let trained = self.parameters().filter(|parameter| parameter.role.is_trained());
        trained.fold(0, |count: usize, parameter| count.saturating_add(parameter.elements()))
    }

    /// Multiply-adds of convolutions, linear layers and attention for the whole batch; those of norms, which are folded or are a pass of
    /// their own, and of poolings are not counted, as papers count.
    pub fn multiply_adds(&self) -> u64 {
        let of_products = self.layers.iter().filter(|layer| !matches!(layer.operation, Operation::Scale(_)));
        of_products.fold(0, |count: u64, layer| count.saturating_add(self.products(layer)))
    }

    /// Whether what this value holds comes from a ReLU or the like, so that many of its elements are likely to be zero.
    pub fn has_zeros(&self, value: ValueId) -> bool {
        // Of each value up to this one: layers come after those that they read.
        let mut have_zeros = vec![false; self.shapes.len()];
        for layer in self.layers.iter().take(value.0) {
            have_zeros[layer.output.0] = match layer.operation.activation() {
                Some(Activation::Relu) => true,
                Some(Activation::Clamp { lo, .. }) => lo == 0.0,
                Some(_) => false,
                None => layer.inputs.iter().all(|input| have_zeros[input.0]),
            };
        }
        have_zeros.get(value.0).copied().unwrap_or(false)
    }
}

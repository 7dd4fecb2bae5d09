//! Building a network, with every shape checked at once.
use std::collections::BTreeSet;

use super::{Layer, Network, NetworkError, Operation, Parameter, Problem, Shape, ValueId};

/// The most elements of a value, or a tensor.
const MOST: usize = isize::MAX as usize / size_of::<f32>();

/// A network to which layers are added.
#[derive(Clone, Debug)]
pub struct Builder {
    layers: Vec<Layer>,
    inputs: Vec<ValueId>,
    shapes: Vec<Shape>,
    layer_names: BTreeSet<String>,
    tensor_names: BTreeSet<String>,
}

impl Builder {
    pub(super) fn new(input: Shape) -> Self {
        let (layer_names, tensor_names) = Default::default();
        let inputs = vec![ValueId::INPUT];
        Self { layers: Vec::new(), inputs, shapes: vec![input], layer_names, tensor_names }
    }

    /// The value that is given to the network; the first, where there are several.
    pub fn input(&self) -> ValueId {
        ValueId::INPUT
    }

    /// One more value of this shape that is given to the network, as the target of a translation beside its source. All inputs lie in one
    /// buffer, one after another in the order in which they were added.
    pub fn add_input(&mut self, shape: Shape) -> ValueId {
        let input = ValueId(self.shapes.len());
        self.shapes.push(shape);
        self.inputs.push(input);
        input
    }

    /// The shape of a value; none of a value of a larger network.
    pub fn shape(&self, value: ValueId) -> Option<Shape> {
        self.shapes.get(value.0).copied()
    }

    /// Adds a layer, and gives its result.
    ///
    /// # Errors
    /// [`NetworkError::Layer`] where it does not fit its inputs; [`NetworkError::Name`] where a layer or a tensor has the name of another.
    pub fn layer(
        &mut self,
        name: impl Into<String>,
        operation: impl Into<Operation>,
        inputs: &[ValueId],
    ) -> Result<ValueId, NetworkError> {
        let (name, operation) = (name.into(), operation.into());
        let of_layer = |problem| NetworkError::Layer { layer: name.clone(), problem };
        let shapes: Option<Vec<Shape>> = inputs.iter().map(|&value| self.shape(value)).collect();
        let shapes = shapes.ok_or(Problem::Foreign).map_err(of_layer)?;
        let shape = operation.output(&shapes).map_err(of_layer)?;
        let is_countable = shape.elements() <= MOST;
        Problem::expect_size(is_countable, "the result", "a value that memory can hold", shape)
            .map_err(of_layer)?;
        let parameters = operation.parameters(&name, shapes[0]);
        let mut tensors = BTreeSet::new();
        for parameter in &parameters {
            let Parameter { name: tensor, shape, .. } = parameter;
            let is_countable = parameter.elements() <= MOST;
            let expected = "a tensor that memory can hold";
            Problem::expect_size(is_countable, "the weights", expected, format!("{shape:?}"))
                .map_err(of_layer)?;
            if self.tensor_names.contains(tensor) || !tensors.insert(tensor.clone()) {
                return Err(NetworkError::Name { layer: name, name: tensor.clone() });
            }
        }
        if !self.layer_names.insert(name.clone()) {
            return Err(NetworkError::Name { layer: name.clone(), name });
        }
        self.tensor_names.append(&mut tensors);
        let output = ValueId(self.shapes.len());
        self.shapes.push(shape);
        self.layers.push(Layer { name, operation, inputs: inputs.to_vec(), output });
        Ok(output)
    }

    /// The network, whose result is this value.
    ///
    /// # Errors
    /// [`NetworkError::Output`] where no layer made it.
    pub fn finish(self, output: ValueId) -> Result<Network, NetworkError> {
        let is_made = !self.inputs.contains(&output) && output.0 < self.shapes.len();
        let Self { layers, inputs, shapes, .. } = self;
        if is_made { Ok(Network { layers, inputs, shapes, output }) } else { Err(NetworkError::Output) }
    }
}

//! From operators to layers, one after another.
use std::collections::BTreeMap;

use super::super::drafts::Drafts;
use super::operator::Place;
use super::{ImportError, OperatorProblem};
use crate::files::tflite::{Activation, Model, OperatorKind};
use crate::import::MOST;
use crate::network::{self, Concat, Conv, FlattenNhwc, NetworkError, Operation, Pad, Problem, Shape};
use crate::weights::{Tensor, Weights};

/// The most integers of a shape, a size or margins.
const MOST_INTEGERS: usize = 16;

/// A value that layers compute, or the input.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// Its number.
    pub(super) id: usize,
    /// The dimensions of an image in the file. Three are maps, rows × columns × channels; others are features of a matrix.
    pub(super) dims: Vec<usize>,
    /// A margin that it has yet to get.
    pub(super) margin: Option<Pad>,
}

/// The file while it is read.
#[derive(Debug)]
pub(super) struct Importer<'m> {
    model: &'m Model,
    pub(super) drafts: Drafts,
    pub(super) weights: Weights,
    /// Names of layers whose weights are sparse in the file.
    pub(super) sparse: Vec<String>,
    /// Those that were computed, by the numbers of their tensors.
    values: BTreeMap<usize, Value>,
    /// Tensors with values in the file, by the tensors that are made of them without computing.
    constants: BTreeMap<usize, usize>,
    /// How often operators that the outputs need, and outputs, name a tensor.
    readers: BTreeMap<usize, usize>,
    /// Images of the file; the network may have others.
    pub(super) images: usize,
    /// Elements of weights that may still be made.
    budget: usize,
}

impl<'m> Importer<'m> {
    /// Nothing but the input: its tensor, and its shape.
    pub(super) fn new(model: &'m Model, input: usize, shape: Shape, budget: usize) -> Self {
        let in_file = &model.tensors()[input].shape;
        let (images, dims) = (in_file[0], in_file[1..].to_vec());
        let mut readers = BTreeMap::new();
        model.outputs().iter().for_each(|&output| *readers.entry(output).or_insert(0) += 1);
        // Operators are in an order in which they can run.
        for operator in model.operators().iter().rev() {
            if operator.outputs.iter().any(|output| readers.contains_key(output)) {
                operator.inputs.iter().flatten().for_each(|&input| *readers.entry(input).or_insert(0) += 1);
            }
        }
        let mut drafts = Drafts::new(shape);
        drafts.expect_readers(0, readers.get(&input).copied().unwrap_or(0));
        let values = BTreeMap::from([(input, Value { id: 0, dims, margin: None })]);
        let (weights, sparse, constants) = Default::default();
        Self { model, drafts, weights, sparse, values, constants, readers, images, budget }
    }

    /// Reads an operator, if the outputs need it.
    pub(super) fn operator(&mut self, at: Place<'m>) -> Result<(), ImportError> {
        let outputs = &at.operator.outputs;
        if !outputs.iter().any(|output| self.readers.contains_key(output)) {
            return Ok(());
        }
        let is_there = |output| self.values.contains_key(output) || self.is_constant(*output);
        let &[output] = &outputs[..] else {
            return Err(at.error(OperatorProblem::Results { got: outputs.clone() }));
        };
        if is_there(&output) {
            return Err(at.error(OperatorProblem::Results { got: outputs.clone() }));
        }
        for value in at.operator.inputs.iter().flatten().filter_map(|input| self.values.get(input)) {
            self.drafts.is_read(value.id);
        }
        let value = match &at.operator.kind {
            OperatorKind::Densify | OperatorKind::Dequantize => {
                let source = self.constant(at, 0)?;
                self.constants.insert(output, source);
                return Ok(());
            }
            OperatorKind::Add { activation } => self.add(at, *activation),
            OperatorKind::Concatenation { axis, activation } => self.concat(at, *axis, *activation),
            OperatorKind::Conv2d { window, dilations } => self.conv(at, window, *dilations, None),
            OperatorKind::DepthToSpace { block } => self.depth_to_space(at, *block),
            OperatorKind::DepthwiseConv2d { window, dilations, multiplier } => {
                self.conv(at, window, *dilations, Some(*multiplier))
            }
            OperatorKind::MaxPool2d { window, size } => self.max_pool(at, window, *size),
            OperatorKind::Pad => self.pad(at),
            OperatorKind::Prelu => self.prelu(at),
            OperatorKind::Relu => self.relu(at),
            OperatorKind::Reshape { shape } => self.reshape(at, shape.as_deref()),
            OperatorKind::ResizeBilinear { align_corners, half_pixel_centers } => {
                self.resize(at, *align_corners, *half_pixel_centers)
            }
            OperatorKind::Other { .. } => Err(at.error(OperatorProblem::Unknown)),
        }?;
        self.drafts.expect_readers(value.id, self.readers.get(&output).copied().unwrap_or(0));
        self.values.insert(output, value);
        Ok(())
    }

    /// An output of the file as rows of features, in the file's order, and an image's dimensions.
    pub(super) fn row(&mut self, tensor: usize) -> Result<(usize, Vec<usize>), ImportError> {
        let name = &self.model.tensors()[tensor].name;
        let no_output = || ImportError::Output { got: Some(name.clone()) };
        let Value { mut id, dims, margin } = self.values.get(&tensor).cloned().ok_or_else(no_output)?;
        if let Some(margin) = margin {
            id = self.end(&format!("{name}/pad"), margin, vec![id])?;
        }
        if dims.len() == 3 && self.drafts.shape(id).pixels() > 1 {
            id = self.end(&format!("{name}/rows"), FlattenNhwc, vec![id])?;
        }
        Ok((id, dims))
    }

    /// Rows of features side by side.
    pub(super) fn side_by_side(&mut self, rows: Vec<usize>) -> Result<usize, ImportError> {
        match rows[..] {
            [] => Err(ImportError::Output { got: None }),
            [row] => Ok(row),
            _ => self.end("outputs", Concat, rows),
        }
    }

    /// Adds a layer that is no operator's.
    fn end(
        &mut self,
        wanted: &str,
        operation: impl Into<Operation>,
        inputs: Vec<usize>,
    ) -> Result<usize, ImportError> {
        let layer = self.drafts.unique(wanted);
        let pushed = self.drafts.push(layer.clone(), operation, inputs);
        pushed.map_err(|problem| NetworkError::Layer { layer, problem }.into())
    }

    /// An input that layers compute, its margin left open.
    pub(super) fn open(&self, at: Place<'_>, input: usize) -> Result<Value, ImportError> {
        let tensor = at.input(input).ok_or_else(|| at.operand(input, "a tensor", "none"))?;
        let value = self.values.get(&tensor).cloned();
        value.ok_or_else(|| {
            let got = if self.is_constant(tensor) { "a constant" } else { "one that nothing has made" };
            at.operand(input, "a tensor that depends on the input", got)
        })
    }

    /// An input that layers compute.
    pub(super) fn value(&mut self, at: Place<'_>, input: usize) -> Result<Value, ImportError> {
        let value = self.open(at, input)?;
        self.closed(at, value)
    }

    /// A value with its margin.
    pub(super) fn closed(&mut self, at: Place<'_>, value: Value) -> Result<Value, ImportError> {
        let Some(margin) = value.margin else { return Ok(value) };
        let id = self.layer(at, "pad", margin, vec![value.id])?;
        Ok(Value { margin: None, ..self.maps_of(id) })
    }

    /// A layer's result, as maps.
    pub(super) fn maps_of(&self, id: usize) -> Value {
        let Shape { channels, size: [rows, columns], .. } = self.drafts.shape(id);
        Value { id, dims: vec![rows, columns, channels], margin: None }
    }

    /// Refuses what are no maps.
    pub(super) fn expect_maps(&self, at: Place<'_>, value: &Value) -> Result<Shape, ImportError> {
        if value.dims.len() == 3 {
            return Ok(self.drafts.shape(value.id));
        }
        let got = format!("{:?} of an image", value.dims);
        Err(at.operand(0, "images × rows × columns × channels", got))
    }

    fn is_constant(&self, tensor: usize) -> bool {
        self.constants.contains_key(&tensor) || self.model.tensors()[tensor].is_constant()
    }

    /// The tensor with values in the file that an input is, or is made of.
    pub(super) fn constant(&self, at: Place<'_>, input: usize) -> Result<usize, ImportError> {
        let tensor = at.input(input).ok_or_else(|| at.operand(input, "a tensor", "none"))?;
        match self.constants.get(&tensor) {
            Some(&source) => Ok(source),
            None if self.model.tensors()[tensor].is_constant() => Ok(tensor),
            None => Err(at.operand(input, "a tensor with values in the file", "one that is computed")),
        }
    }

    /// The shape of such a tensor.
    pub(super) fn shape_of(&self, tensor: usize) -> &'m [usize] {
        &self.model.tensors()[tensor].shape
    }

    /// Its numbers.
    pub(super) fn numbers(&self, at: Place<'_>, tensor: usize) -> Result<Vec<f32>, ImportError> {
        self.afford(at, self.shape_of(tensor).iter().product())?;
        let tensor = self.model.numbers(tensor).map_err(|source| ImportError::File { source })?;
        Ok(tensor.values().to_vec())
    }

    /// The few integers of an input: a shape, a size, or margins.
    pub(super) fn integers(&self, at: Place<'_>, input: usize) -> Result<Vec<i32>, ImportError> {
        let tensor = self.constant(at, input)?;
        let shape = self.shape_of(tensor);
        if shape.iter().product::<usize>() > MOST_INTEGERS {
            return Err(at.operand(input, "a few integers", format!("values of shape {shape:?}")));
        }
        self.model.integers(tensor).map_err(|source| ImportError::File { source })
    }

    /// Whether a tensor is sparse in the file.
    pub(super) fn is_sparse(&self, tensor: usize) -> bool {
        self.model.tensors()[tensor].is_sparse()
    }

    /// A name of a part of an operator, or of all of it, that nothing else has.
    pub(super) fn name(&mut self, at: Place<'_>, part: &str) -> String {
        let result = at.operator.outputs.first().map_or("", |&output| &self.model.tensors()[output].name);
        let whole = if result.is_empty() { format!("operator{}", at.index) } else { result.to_owned() };
        let wanted = if part.is_empty() { whole } else { format!("{whole}/{part}") };
        self.drafts.unique(&wanted)
    }

    /// Adds a layer of an operator: a part of it, or all if the part has no name.
    pub(super) fn layer(
        &mut self,
        at: Place<'_>,
        part: &str,
        operation: impl Into<Operation>,
        inputs: Vec<usize>,
    ) -> Result<usize, ImportError> {
        let name = self.name(at, part);
        self.named(at, name, operation, inputs)
    }

    /// Adds a layer of this name.
    pub(super) fn named(
        &mut self,
        at: Place<'_>,
        name: String,
        operation: impl Into<Operation>,
        inputs: Vec<usize>,
    ) -> Result<usize, ImportError> {
        let id = self.drafts.push(name, operation, inputs).map_err(|problem: Problem| at.error(problem))?;
        let shape = self.drafts.shape(id);
        // So that no extent overflows later.
        if shape.elements() > MOST {
            return Err(at.wrong("the result", "a value that memory can hold", shape));
        }
        Ok(id)
    }

    /// A layer with the activation that an operator has, as part of it or after it.
    pub(super) fn activated(
        &mut self,
        at: Place<'_>,
        id: usize,
        activation: Activation,
    ) -> Result<usize, ImportError> {
        let limits = match activation {
            Activation::None => return Ok(id),
            Activation::Relu => [0.0, f32::INFINITY],
            Activation::ReluN1To1 => [-1.0, 1.0],
            Activation::Relu6 => [0.0, 6.0],
            Activation::Tanh => {
                return Err(at.wrong("the activation", "none, or limits", activation));
            }
        };
        if self.drafts.limit(id, limits) {
            return Ok(id);
        }
        let [lo, hi] = limits;
        let activation = match activation {
            Activation::Relu => network::Activation::Relu,
            _ => network::Activation::Clamp { lo, hi },
        };
        let channels = self.drafts.shape(id).channels;
        self.afford(at, channels)?;
        let conv = Conv::depthwise([1, 1]).activation(activation);
        self.factors(at, "", conv, vec![id], vec![1.0; channels])
    }

    /// Adds a depthwise convolution of one tap: a factor for each channel.
    pub(super) fn factors(
        &mut self,
        at: Place<'_>,
        part: &str,
        conv: Conv,
        inputs: Vec<usize>,
        factors: Vec<f32>,
    ) -> Result<usize, ImportError> {
        let name = self.name(at, part);
        let id = self.named(at, name.clone(), conv, inputs)?;
        self.weigh(at, format!("{name}.weight"), vec![factors.len(), 1, 1, 1], factors)?;
        Ok(id)
    }

    /// An error where so many weights may not be made any more.
    pub(super) fn afford(&self, at: Place<'_>, values: usize) -> Result<(), ImportError> {
        if values <= self.budget { Ok(()) } else { Err(at.error(OperatorProblem::TooMuch)) }
    }

    /// Adds a tensor of weights.
    pub(super) fn weigh(
        &mut self,
        at: Place<'_>,
        name: String,
        shape: Vec<usize>,
        values: Vec<f32>,
    ) -> Result<(), ImportError> {
        self.afford(at, values.len())?;
        self.budget -= values.len();
        let got = format!("{} values of shape {shape:?}", values.len());
        let tensor = Tensor::new(shape, values)
            .map_err(|_| at.operand(1, "as many values as the layer has weights", got))?;
        self.weights.insert(name, tensor);
        Ok(())
    }
}

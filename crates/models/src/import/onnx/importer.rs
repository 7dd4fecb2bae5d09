//! From nodes to layers, one node after another.
use std::collections::BTreeMap;

use super::super::drafts::Drafts;
use super::constant::Constant;
use super::graph::Graph;
use super::node::Node;
use super::{NodeProblem, OnnxError};
use crate::network::{NetworkError, Operation, Pad, Problem, Shape};
use crate::weights::{Tensor, Weights};

/// The types of nodes that are imported.
pub(super) const IMPORTED: &[&str] = &[
    "Add",
    "AveragePool",
    "BatchNormalization",
    "Clip",
    "Concat",
    "Constant",
    "Conv",
    "Dropout",
    "Flatten",
    "Gemm",
    "GlobalAveragePool",
    "Identity",
    "MatMul",
    "MaxPool",
    "Pad",
    "ReduceMean",
    "Relu",
    "Reshape",
    "Softmax",
    "Squeeze",
    "Transpose",
];

/// In which order a node sees the dimensions of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// Images, channels, rows, columns.
    Nchw,
    /// Images, rows, columns, channels.
    Nhwc,
    /// Rows, features.
    Matrix,
}

/// A value that layers compute, or the input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    /// Its number.
    pub(super) id: usize,
    pub(super) view: View,
    /// A margin that it has yet to get.
    pub(super) margin: Option<Pad>,
}

/// The file while it is read.
#[derive(Debug)]
pub(super) struct Importer<'g> {
    pub(super) graph: Graph<'g>,
    pub(super) drafts: Drafts,
    pub(super) weights: Weights,
    values: BTreeMap<&'g str, Value>,
    /// The value whose softmax is left to the host, and the name of that softmax.
    pub(super) softmax: Option<&'g str>,
    /// Images of the file; none where it leaves them open.
    pub(super) images: Option<usize>,
    /// Elements of weights that may still be made.
    budget: usize,
}

impl<'g> Importer<'g> {
    /// Nothing but the input, which has so many images in the file.
    pub(super) fn new(
        graph: Graph<'g>,
        input: Shape,
        view: View,
        images: Option<usize>,
        budget: usize,
    ) -> Self {
        let name = graph.input.name.as_str();
        let mut drafts = Drafts::new(input);
        drafts.expect_readers(0, graph.readers(name));
        let values = BTreeMap::from([(name, Value { id: 0, view, margin: None })]);
        Self { graph, drafts, weights: Weights::new(), values, softmax: None, images, budget }
    }

    /// Reads a node.
    pub(super) fn node(&mut self, node: Node<'g>) -> Result<(), OnnxError> {
        if !matches!(node.0.domain.as_str(), "" | "ai.onnx") || !IMPORTED.contains(&node.op()) {
            return Err(node.error(NodeProblem::Unknown));
        }
        let results = &node.0.output;
        let first = results.first().map_or("", String::as_str);
        let has_others = results.iter().skip(1).any(|name| self.graph.readers(name) > 0);
        let is_there = self.values.contains_key(first) || self.softmax == Some(first);
        if first.is_empty() || has_others || is_there || self.graph.is_initializer(first) {
            return Err(node.error(NodeProblem::Results { got: results.clone() }));
        }
        for input in &node.0.input {
            if let Some(value) = self.values.get(input.as_str()) {
                self.drafts.is_read(value.id);
            }
        }
        let is_constant = |name: &String| self.graph.constant(name).is_some();
        if matches!(node.op(), "Constant" | "Identity") && node.0.input.iter().all(is_constant) {
            return self.graph.add_constant(node);
        }
        let value = match node.op() {
            "Add" => self.add(node),
            "BatchNormalization" => self.norm(node),
            "Clip" | "Relu" => self.limited(node),
            "Concat" => self.concat(node),
            "Conv" => self.conv(node),
            "AveragePool" | "MaxPool" => self.pool(node),
            "Gemm" | "MatMul" => self.linear(node),
            "GlobalAveragePool" | "ReduceMean" => self.mean(node),
            "Flatten" | "Reshape" | "Squeeze" => self.reshape(node),
            "Transpose" => self.transpose(node),
            "Pad" => self.pad(node),
            "Softmax" => return self.leave_softmax(node, first),
            // Identity, and Dropout, which does nothing but while training.
            _ => self.same(node),
        }?;
        self.drafts.expect_readers(value.id, self.graph.readers(first));
        self.values.insert(first, value);
        Ok(())
    }

    /// The value that is the network's result, with its margin.
    pub(super) fn result(&mut self, name: &str) -> Result<Option<Value>, OnnxError> {
        let name = match self.softmax {
            Some(softmax) if softmax == name => self.graph.maker(name).and_then(|node| node.input(0)),
            _ => Some(name),
        };
        let Some(&value) = name.and_then(|name| self.values.get(name)) else { return Ok(None) };
        let Some(margin) = value.margin else { return Ok(Some(value)) };
        let name = self.drafts.unique(name.unwrap_or("output"));
        let of_layer = |problem| NetworkError::Layer { layer: name.clone(), problem };
        let id = self.drafts.push(name.clone(), margin, vec![value.id]).map_err(of_layer)?;
        Ok(Some(Value { id, margin: None, ..value }))
    }

    /// An input that layers compute, its margin left open.
    pub(super) fn open(&self, node: Node<'g>, input: usize) -> Result<Value, OnnxError> {
        let Some(name) = node.input(input) else {
            return Err(node.operand(input, "a value", "none"));
        };
        if self.softmax == Some(name) {
            let expected = "softmax as the last node: it is left to the host";
            return Err(node.operand(input, expected, format!("its result, {name}")));
        }
        if self.graph.constant(name).is_some() {
            return Err(node.operand(
                input,
                "a value that depends on the input",
                format!("the constant {name}"),
            ));
        }
        let value = self.values.get(name).copied();
        value.ok_or_else(|| node.error(NodeProblem::Undefined { value: name.to_owned() }))
    }

    /// An input that layers compute.
    pub(super) fn value(&mut self, node: Node<'g>, input: usize) -> Result<Value, OnnxError> {
        let value = self.open(node, input)?;
        let Some(margin) = value.margin else { return Ok(value) };
        let id = self.layer(node, "pad", margin, vec![value.id])?;
        Ok(Value { id, margin: None, ..value })
    }

    /// An input as maps with channels first, as convolutions and poolings see them.
    pub(super) fn maps(&mut self, node: Node<'g>, value: Value) -> Result<Value, OnnxError> {
        match value.view {
            View::Nchw => Ok(value),
            _ => {
                let got = format!("{} as {:?}", self.drafts.shape(value.id), value.view);
                Err(node.operand(0, "images × channels × rows × columns", got))
            }
        }
    }

    /// An input that is in the file.
    pub(super) fn constant(&self, node: Node<'g>, input: usize) -> Result<Option<Constant<'g>>, OnnxError> {
        let Some(name) = node.input(input) else { return Ok(None) };
        match self.graph.constant(name) {
            Some(constant) => Ok(Some(constant)),
            None => {
                let got = format!("{name}, which is computed");
                Err(node.operand(input, "values in the file: fold constants when exporting", got))
            }
        }
    }

    /// Numbers that must be in the file, with their shape.
    pub(super) fn numbers(&self, node: Node<'g>, input: usize) -> Result<(Vec<usize>, Vec<f32>), OnnxError> {
        let Some(constant) = self.constant(node, input)? else {
            return Err(node.operand(input, "values in the file", "none"));
        };
        let elements = constant.numbers()?;
        Ok((constant.shape()?, elements))
    }

    /// Adds a layer of a node: a part of it, or all if the part has no name.
    pub(super) fn layer(
        &mut self,
        node: Node<'g>,
        part: &str,
        operation: impl Into<Operation>,
        inputs: Vec<usize>,
    ) -> Result<usize, OnnxError> {
        let name = self.name(node, part);
        self.named(node, name, operation, inputs)
    }

    /// A name of a part of a node that nothing else has.
    pub(super) fn name(&mut self, node: Node<'g>, part: &str) -> String {
        let wanted = if part.is_empty() { node.name().to_owned() } else { format!("{}/{part}", node.name()) };
        self.drafts.unique(&wanted)
    }

    /// Adds a layer of this name.
    pub(super) fn named(
        &mut self,
        node: Node<'g>,
        name: String,
        operation: impl Into<Operation>,
        inputs: Vec<usize>,
    ) -> Result<usize, OnnxError> {
        self.drafts.push(name, operation, inputs).map_err(|problem: Problem| node.error(problem))
    }

    /// An error where so many weights may not be made any more.
    pub(super) fn afford(&self, node: Node<'g>, values: usize) -> Result<(), OnnxError> {
        if values <= self.budget { Ok(()) } else { Err(node.error(NodeProblem::TooMuch)) }
    }

    /// Adds a tensor of weights.
    pub(super) fn weigh(
        &mut self,
        node: Node<'g>,
        name: String,
        shape: Vec<usize>,
        values: Vec<f32>,
    ) -> Result<(), OnnxError> {
        self.afford(node, values.len())?;
        self.budget -= values.len();
        let got = format!("{} values of shape {shape:?}", values.len());
        let tensor = Tensor::new(shape, values)
            .map_err(|_| node.operand(1, "as many values as the layer has weights", got))?;
        self.weights.insert(name, tensor);
        Ok(())
    }
}

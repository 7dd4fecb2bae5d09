//! Layers while nodes are read: what follows a layer may still become part of it.
use std::collections::BTreeMap;

use crate::network::{
    Activation, Add, Conv, Linear, Network, NetworkError, Operation, Problem, Scale, Shape, ValueId,
};

/// A layer that may still change.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) operation: Operation,
    pub(super) inputs: Vec<usize>,
}

/// Layers by the numbers of their results; the input has 0.
#[derive(Debug)]
pub(super) struct Drafts {
    layers: Vec<Option<Draft>>,
    shapes: Vec<Shape>,
    /// For each value, how many nodes have still to read it.
    readers: Vec<usize>,
    /// For each value, whether a layer reads it.
    is_used: Vec<bool>,
    /// Names in use, each with the number by which it was last made another.
    names: BTreeMap<String, usize>,
}

impl Drafts {
    pub(super) fn new(input: Shape) -> Self {
        let (layers, shapes) = (vec![None], vec![input]);
        Self { layers, shapes, readers: vec![0], is_used: vec![false], names: BTreeMap::new() }
    }

    pub(super) fn shape(&self, value: usize) -> Shape {
        self.shapes[value]
    }

    /// A name that no layer and no norm has yet.
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = self.names.get(wanted).copied().unwrap_or(1);
        while self.names.contains_key(&name) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        self.names.insert(wanted.to_owned(), number);
        self.names.insert(name.clone(), 1);
        name
    }

    /// A layer after all others, and its result.
    pub(super) fn push(
        &mut self,
        name: String,
        operation: impl Into<Operation>,
        inputs: Vec<usize>,
    ) -> Result<usize, Problem> {
        self.put(Draft { name, operation: operation.into(), inputs })
    }

    fn put(&mut self, draft: Draft) -> Result<usize, Problem> {
        let shapes: Vec<Shape> = draft.inputs.iter().map(|&input| self.shapes[input]).collect();
        let shape = draft.operation.output(&shapes)?;
        draft.inputs.iter().for_each(|&input| self.is_used[input] = true);
        self.layers.push(Some(draft));
        self.shapes.push(shape);
        self.readers.push(0);
        self.is_used.push(false);
        Ok(self.layers.len() - 1)
    }

    /// So many more nodes will read a value.
    pub(super) fn expect_readers(&mut self, value: usize, count: usize) {
        self.readers[value] += count;
    }

    /// A node has read a value.
    pub(super) fn is_read(&mut self, value: usize) {
        self.readers[value] = self.readers[value].saturating_sub(1);
    }

    /// The layer that makes a value, if nothing else reads it, so that it may change.
    pub(super) fn own(&mut self, value: usize) -> Option<&mut Draft> {
        if self.readers[value] > 0 || self.is_used[value] { None } else { self.layers[value].as_mut() }
    }

    /// Makes limits of results part of the layer that computes them; no if there is none.
    pub(super) fn limit(&mut self, value: usize, limits: [f32; 2]) -> bool {
        let Some(activation) = self.own(value).and_then(Draft::activation) else { return false };
        *activation = both(*activation, limits);
        true
    }

    /// Makes a sum part of the convolution that computes one of its terms; the new value, or none where it cannot be.
    pub(super) fn add(&mut self, x: usize, y: usize) -> Option<usize> {
        let (x, y) = if x < y { (y, x) } else { (x, y) };
        for (conv, other) in [(x, y), (y, x)] {
            let is_same = self.shapes[x] == self.shapes[y] && x != y;
            let plain = |draft: &&mut Draft| match &draft.operation {
                Operation::Conv(conv) => !conv.residual && conv.activation == Activation::Identity,
                _ => false,
            };
            if !is_same || self.own(conv).filter(plain).is_none() {
                continue;
            }
            // It runs later, when the other term is there: nothing reads its result yet.
            let Some(mut draft) = self.layers[conv].take() else { continue };
            if let Operation::Conv(conv) = &mut draft.operation {
                conv.residual = true;
            }
            draft.inputs.push(other);
            return self.put(draft).ok();
        }
        None
    }

    /// The network whose result is this value, without layers that it does not need.
    pub(super) fn finish(self, output: usize) -> Result<Network, NetworkError> {
        let mut needed = vec![false; self.layers.len()];
        needed[output] = true;
        for (value, draft) in self.layers.iter().enumerate().rev() {
            if let Some(draft) = draft.as_ref().filter(|_| needed[value]) {
                draft.inputs.iter().for_each(|&input| needed[input] = true);
            }
        }
        let mut builder = Network::builder(self.shapes[0]);
        // Those that are not there are read by none.
        let mut values: Vec<ValueId> = vec![builder.input(); self.layers.len()];
        for (value, draft) in self.layers.into_iter().enumerate() {
            if let Some(Draft { name, operation, inputs }) = draft.filter(|_| needed[value]) {
                let inputs: Vec<ValueId> = inputs.into_iter().map(|input| values[input]).collect();
                values[value] = builder.layer(name, operation, &inputs)?;
            }
        }
        builder.finish(values[output])
    }

    /// Whether a value holds no negative number, because its layer or those before it leave none.
    pub(super) fn is_positive(&self, value: usize) -> bool {
        let mut value = value;
        loop {
            let Some(draft) = &self.layers[value] else { return false };
            return match &draft.operation {
                Operation::Pool(_) | Operation::Flatten(_) => {
                    value = draft.inputs[0];
                    continue;
                }
                operation => least(operation) >= 0.0,
            };
        }
    }
}

impl Draft {
    /// What is made of its sums.
    fn activation(&mut self) -> Option<&mut Activation> {
        match &mut self.operation {
            Operation::Conv(Conv { activation, .. })
            | Operation::Linear(Linear { activation, .. })
            | Operation::Scale(Scale { activation, .. })
            | Operation::Add(Add { activation }) => Some(activation),
            _ => None,
        }
    }
}

fn least(operation: &Operation) -> f32 {
    match operation {
        Operation::Conv(Conv { activation, .. })
        | Operation::Linear(Linear { activation, .. })
        | Operation::Scale(Scale { activation, .. })
        | Operation::Add(Add { activation }) => limits(*activation)[0],
        _ => f32::NEG_INFINITY,
    }
}

fn limits(activation: Activation) -> [f32; 2] {
    match activation {
        Activation::Relu => [0.0, f32::INFINITY],
        Activation::Clamp { lo, hi } => [lo, hi],
        _ => [f32::NEG_INFINITY, f32::INFINITY],
    }
}

/// One after another; the limits are in order.
fn both(first: Activation, [lo, hi]: [f32; 2]) -> Activation {
    match limits(first).map(|limit| limit.max(lo).min(hi)) {
        [f32::NEG_INFINITY, f32::INFINITY] => Activation::Identity,
        [0.0, f32::INFINITY] => Activation::Relu,
        [lo, hi] => Activation::Clamp { lo, hi },
    }
}

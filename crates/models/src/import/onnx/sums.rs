//! Nodes that work on each element, or each channel: sums, norms and limits. Where they can they become part of the layer before.
use super::OnnxError;
use super::importer::{Importer, Value, View};
use super::node::Node;
use crate::network::{Activation, Add, Conv, Norm, Operation, Scale, Shape};

impl<'g> Importer<'g> {
    pub(super) fn add(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        let is_constant = |input| node.input(input).is_some_and(|name| self.graph.constant(name).is_some());
        match [is_constant(0), is_constant(1)] {
            [false, false] => {}
            [false, true] => return self.add_bias(node, 0, 1),
            [true, _] => return self.add_bias(node, 1, 0),
        }
        let (x, y) = (self.value(node, 0)?, self.value(node, 1)?);
        let shapes = [x, y].map(|value| self.drafts.shape(value.id));
        if x.view != y.view {
            let got = format!("{} as {:?}, and {} as {:?}", shapes[0], x.view, shapes[1], y.view);
            return Err(node.operand(1, "two values of one order of dimensions", got));
        }
        let id = match self.drafts.add(x.id, y.id) {
            Some(id) => id,
            None => self.layer(node, "", Add::new(), vec![x.id, y.id])?,
        };
        Ok(Value { id, ..x })
    }

    /// A sum of a value and numbers for its channels.
    fn add_bias(&mut self, node: Node<'g>, input: usize, bias: usize) -> Result<Value, OnnxError> {
        let value = self.value(node, input)?;
        let (shape, numbers) = self.numbers(node, bias)?;
        let of = self.drafts.shape(value.id);
        self.afford(node, of.channels)?;
        let Some(numbers) = per_channel(&shape, &numbers, value.view, of) else {
            let got = format!("values of shape {shape:?} for {of}");
            return Err(node.operand(bias, "one value for each channel", got));
        };
        // To what is added already, before the norm and after it.
        let target = self.drafts.own(value.id).and_then(|draft| match &mut draft.operation {
            Operation::Conv(conv) if conv.activation == Activation::Identity => {
                let norm = conv.norm.as_ref().map(|norm| norm.tensors()[1].clone());
                Some((norm.unwrap_or_else(|| format!("{}.bias", draft.name)), &mut conv.bias))
            }
            Operation::Linear(linear) if linear.activation == Activation::Identity => {
                Some((format!("{}.bias", draft.name), &mut linear.bias))
            }
            _ => None,
        });
        let Some((name, has_bias)) = target else {
            let name = self.name(node, "");
            self.weigh(node, format!("{name}.bias"), vec![of.channels], numbers)?;
            return self.ones(node, name, Conv::depthwise([1, 1]).bias(), value);
        };
        match self.weights.remove(&name) {
            Some(mut tensor) => {
                tensor.values_mut().iter_mut().zip(&numbers).for_each(|(sum, number)| *sum += number);
                self.weights.insert(name, tensor);
            }
            None => {
                *has_bias = true;
                self.weigh(node, name, vec![of.channels], numbers)?;
            }
        }
        Ok(value)
    }

    pub(super) fn norm(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        node.expect_int("training_mode", 0, "0: export the network for inference")?;
        let value = self.value(node, 0)?;
        let of = self.drafts.shape(value.id);
        if value.view == View::Nhwc && of.pixels() > 1 {
            return Err(node.operand(0, "channels as dimension 1", format!("{of} with channels last")));
        }
        let epsilon = node.float("epsilon", 1e-5);
        let prefix = self.name(node, "");
        let norm = Norm { prefix: prefix.clone(), epsilon };
        for (input, tensor) in norm.tensors().into_iter().enumerate() {
            let (shape, numbers) = self.numbers(node, input + 1)?;
            if shape != [of.channels] {
                let got = format!("values of shape {shape:?} for {} channels", of.channels);
                return Err(node.operand(input + 1, "one value for each channel", got));
            }
            self.weigh(node, tensor, shape, numbers)?;
        }
        if let Some(draft) = self.drafts.own(value.id)
            && let Operation::Conv(conv) = &mut draft.operation
            && conv.norm.is_none()
            && !conv.residual
            && conv.activation == Activation::Identity
        {
            conv.norm = Some(norm);
            return Ok(value);
        }
        let id = self.named(node, prefix, Scale::norm().epsilon(epsilon), vec![value.id])?;
        Ok(Value { id, ..value })
    }

    pub(super) fn limited(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        let limits = if node.op() == "Relu" {
            [0.0, f32::INFINITY]
        } else {
            [self.limit(node, 1, "min", f32::NEG_INFINITY)?, self.limit(node, 2, "max", f32::INFINITY)?]
        };
        let [lo, hi] = limits;
        if lo > hi || lo.is_nan() || hi.is_nan() {
            return Err(node.operand(1, "limits in order, neither of them NaN", format!("{lo}, {hi}")));
        }
        let value = self.value(node, 0)?;
        if self.drafts.limit(value.id, limits) {
            return Ok(value);
        }
        let activation = if node.op() == "Relu" { Activation::Relu } else { Activation::Clamp { lo, hi } };
        let name = self.name(node, "");
        self.ones(node, name, Conv::depthwise([1, 1]).activation(activation), value)
    }

    /// A limit of a clip: an input in newer files, an attribute in older ones.
    fn limit(&self, node: Node<'g>, input: usize, attribute: &str, otherwise: f32) -> Result<f32, OnnxError> {
        if node.input(input).is_none() {
            return Ok(node.float(attribute, otherwise));
        }
        match self.numbers(node, input)?.1[..] {
            [limit] => Ok(limit),
            ref limits => Err(node.operand(input, "one value", format!("{} of them", limits.len()))),
        }
    }

    /// A layer for what follows no layer that it could be part of: a depthwise convolution whose weights are 1.
    fn ones(&mut self, node: Node<'g>, name: String, conv: Conv, value: Value) -> Result<Value, OnnxError> {
        let channels = self.drafts.shape(value.id).channels;
        self.afford(node, channels)?;
        let id = self.named(node, name.clone(), conv, vec![value.id])?;
        self.weigh(node, format!("{name}.weight"), vec![channels, 1, 1, 1], vec![1.0; channels])?;
        Ok(Value { id, ..value })
    }
}

/// Numbers for channels, as dimensions of a value are broadcast; none where they are not that.
pub(super) fn per_channel(shape: &[usize], numbers: &[f32], view: View, of: Shape) -> Option<Vec<f32>> {
    // The dimensions after the channels are 1, and those before them.
    let after = if view == View::Nchw { 2 } else { 0 };
    let rank = if view == View::Matrix { 2 } else { 4 };
    if let &[number] = numbers {
        return (shape.len() <= rank).then(|| vec![number; of.channels]);
    }
    let channels = shape.len().checked_sub(after + 1)?;
    let are_ones = shape.iter().enumerate().all(|(d, &extent)| d == channels || extent == 1);
    let fits = shape.len() <= rank && are_ones && shape[channels] == of.channels;
    fits.then(|| numbers.to_vec())
}

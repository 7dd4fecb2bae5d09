//! Nodes that move nothing, or put channels side by side.
use super::importer::{Importer, Value, View};
use super::node::Node;
use super::{NodeProblem, OnnxError};
use crate::network::{Concat, Flatten, Shape};

impl<'g> Importer<'g> {
    /// A node that gives its input another name.
    pub(super) fn same(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        if let Some(training) = self.constant(node, 2)?
            && training.integers()? != [0]
        {
            return Err(node.operand(2, "no training: export the network for inference", "training"));
        }
        self.open(node, 0)
    }

    /// Softmax as the last node: its input becomes the result.
    pub(super) fn leave_softmax(&mut self, node: Node<'g>, result: &'g str) -> Result<(), OnnxError> {
        let value = self.open(node, 0)?;
        let rank = if value.view == View::Matrix { 2 } else { 4 };
        let axis = node.int("axis", -1);
        let channels = if value.view == View::Nchw { 1 } else { rank - 1 };
        let is_of_channels = axis == channels || axis.saturating_add(rank) == channels;
        // Before version 13 of ONNX it was over all dimensions from the axis on.
        let of = self.drafts.shape(value.id);
        if !is_of_channels || (value.view != View::Matrix && of.pixels() > 1) {
            return Err(node.wrong("axis", "classes of a row", axis));
        }
        if result != self.graph.output {
            return Err(node.operand(0, "softmax as the last node: it is left to the host", result));
        }
        self.softmax = Some(result);
        Ok(())
    }

    pub(super) fn concat(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        let count = node.0.input.len();
        let values = (0..count).map(|input| self.value(node, input)).collect::<Result<Vec<_>, _>>()?;
        let Some(&first) = values.first() else { return Err(node.operand(0, "a value", "none")) };
        if let Some(other) = values.iter().position(|value| value.view != first.view) {
            let got = format!("{:?}", values[other].view);
            return Err(node.operand(other, "values of one order of dimensions", got));
        }
        let (rank, channels) = match first.view {
            View::Nchw => (4, 1),
            View::Nhwc => (4, 3),
            View::Matrix => (2, 1),
        };
        let axis = node.int("axis", 1);
        if axis != channels && axis.saturating_add(rank) != channels {
            return Err(node.wrong("axis", "that of channels", axis));
        }
        let id = self.layer(node, "", Concat, values.iter().map(|value| value.id).collect())?;
        Ok(Value { id, ..first })
    }

    pub(super) fn transpose(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        // A margin has names of dimensions, and none here.
        let value = self.open(node, 0)?;
        let perm = node.ints("perm").unwrap_or(&[]);
        let view = match (value.view, perm) {
            (view, [0, 1, 2, 3]) if view != View::Matrix => view,
            (View::Matrix, [0, 1]) => View::Matrix,
            (View::Nchw, [0, 2, 3, 1]) => View::Nhwc,
            (View::Nhwc, [0, 3, 1, 2]) => View::Nchw,
            _ => {
                let expected = "[0, 2, 3, 1] or [0, 3, 1, 2], from channels first to channels last or back";
                return Err(node.wrong("perm", expected, perm));
            }
        };
        Ok(Value { view, ..value })
    }

    /// Maps as rows, or dimensions of one element that come and go.
    pub(super) fn reshape(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        let value = self.value(node, 0)?;
        let of = self.drafts.shape(value.id);
        let to = match node.op() {
            "Flatten" => match node.int("axis", 1) {
                1 => Some(vec![of.image_len()]),
                axis if axis == if value.view == View::Matrix { -1 } else { -3 } => {
                    Some(vec![of.image_len()])
                }
                _ => None,
            },
            "Squeeze" => self.squeezed(node, value)?,
            _ => self.reshaped(node, value)?,
        };
        let got = || format!("{:?} of {of}", node.op());
        let expected = "one that keeps images apart, and gives rows of features or maps of one pixel";
        let to = to.ok_or_else(|| node.operand(1, expected, got()))?;
        if to == dimensions(of, value.view) {
            return Ok(value);
        }
        let view = match to[..] {
            [_] => View::Matrix,
            [_, 1, 1] => View::Nchw,
            [1, 1, _] => View::Nhwc,
            _ => return Err(node.operand(1, expected, got())),
        };
        if of.pixels() == 1 {
            return Ok(Value { view, ..value });
        }
        // Here features lie as with channels first.
        if value.view == View::Nhwc && of.channels > 1 {
            return Err(node.error(NodeProblem::Order { got: of }));
        }
        let id = self.layer(node, "", Flatten, vec![value.id])?;
        Ok(Value { id, view, margin: None })
    }

    /// The dimensions of an image without rows and columns of one element.
    fn squeezed(&self, node: Node<'g>, value: Value) -> Result<Option<Vec<usize>>, OnnxError> {
        let mut axes = match node.ints("axes") {
            Some(axes) => axes.to_vec(),
            None => self.constant(node, 1)?.map_or_else(|| Ok(Vec::new()), |axes| axes.integers())?,
        };
        axes.iter_mut().filter(|axis| **axis < 0).for_each(|axis| *axis = axis.saturating_add(4));
        axes.sort_unstable();
        let of = self.drafts.shape(value.id);
        let are_spatial = match value.view {
            View::Nchw => axes == [2, 3],
            View::Nhwc => axes == [1, 2],
            View::Matrix => false,
        };
        Ok((are_spatial && of.pixels() == 1).then(|| vec![of.channels]))
    }

    /// The dimensions of an image that a reshape asks for; none where images would not stay apart.
    fn reshaped(&self, node: Node<'g>, value: Value) -> Result<Option<Vec<usize>>, OnnxError> {
        let Some(wanted) = self.constant(node, 1)? else {
            return Err(node.operand(1, "a shape in the file", "none"));
        };
        let wanted = wanted.integers()?;
        let of = self.drafts.shape(value.id);
        let from = dimensions(of, value.view);
        let Some((&images, rest)) = wanted.split_first() else { return Ok(None) };
        // 0 is the extent that was there.
        let extent = |(at, &extent): (usize, &i64)| match extent {
            0 => from.get(at).map(|&extent| extent as i64),
            extent => Some(extent),
        };
        let Some(mut rest) = rest.iter().enumerate().map(extent).collect::<Option<Vec<i64>>>() else {
            return Ok(None);
        };
        let known =
            |images: i64| usize::try_from(images).is_ok_and(|n| n == of.images || Some(n) == self.images);
        let Ok(len) = i64::try_from(of.image_len()) else { return Ok(None) };
        let product = rest.iter().filter(|&&extent| extent != -1);
        let product = product.fold(1_i64, |product, &extent| product.saturating_mul(extent));
        match rest.iter().filter(|&&extent| extent == -1).count() {
            0 if images == -1 || images == 0 || known(images) => {}
            1 if (images == 0 || known(images)) && product > 0 && len % product == 0 => {
                rest.iter_mut().filter(|extent| **extent == -1).for_each(|extent| *extent = len / product);
            }
            _ => return Ok(None),
        }
        let rest: Option<Vec<usize>> = rest.iter().map(|&extent| usize::try_from(extent).ok()).collect();
        let len_of =
            |rest: &[usize]| rest.iter().fold(1, |product: usize, &extent| product.saturating_mul(extent));
        Ok(rest.filter(|rest| len_of(rest) == of.image_len()))
    }
}

/// The dimensions of an image as a node sees them.
fn dimensions(of: Shape, view: View) -> Vec<usize> {
    let [rows, columns] = of.size;
    match view {
        View::Nchw => vec![of.channels, rows, columns],
        View::Nhwc => vec![rows, columns, of.channels],
        View::Matrix => vec![of.channels],
    }
}

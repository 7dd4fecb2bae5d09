//! Nodes that work on windows of maps: convolutions, poolings, and margins.
use lacuna::pool::Mode;

use super::OnnxError;
use super::importer::{Importer, Value, View};
use super::node::{Node, sizes};
use crate::network::{Conv, Pad, Pool, Shape, Window};

/// Windows of a node, and the margin around maps.
#[derive(Clone, Copy, Debug)]
struct Windows {
    size: [usize; 2],
    strides: [usize; 2],
    margin: Pad,
}

impl<'g> Importer<'g> {
    pub(super) fn conv(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        let input = self.open(node, 0)?;
        // A margin of zeros becomes part of the convolution's.
        let (value, before) = match input.margin {
            Some(margin) if margin.value == 0.0 => (Value { margin: None, ..input }, margin),
            _ => (self.value(node, 0)?, Pad::zeros([0, 0], [0, 0])),
        };
        let value = self.maps(node, value)?;
        let of = self.drafts.shape(value.id);
        let (shape, numbers) = self.numbers(node, 1)?;
        let &[filters, channels, rows, columns] = &shape[..] else {
            let expected = "filters × channels × rows × columns: convolutions of two dimensions";
            return Err(node.operand(1, expected, format!("values of shape {shape:?}")));
        };
        let group = node.int("group", 1);
        let is_depthwise = group != 1 && usize::try_from(group) == Ok(of.channels) && channels == 1;
        if group != 1 && !(is_depthwise && filters == of.channels) {
            return Err(node.wrong("group", "1, or as many as channels with a filter each", group));
        }
        if !is_depthwise && channels != of.channels {
            let got = format!("values of shape {shape:?} for {of}");
            return Err(node.operand(1, "filters with the channels of the input", got));
        }
        let padded = Pad::zeros(before.before, before.after);
        let windows = self.windows(node, of, Some([rows, columns]), padded)?;
        let margin = windows.margin;
        // What is equal on both sides is the convolution's own.
        let own = [0, 1].map(|d| margin.before[d].min(margin.after[d]));
        let rest = |side: [usize; 2]| [0, 1].map(|d| side[d] - own[d]);
        let rest = Pad::zeros(rest(margin.before), rest(margin.after));
        let id = if rest == Pad::zeros([0, 0], [0, 0]) {
            value.id
        } else {
            self.layer(node, "pad", rest, vec![value.id])?
        };
        let conv =
            if is_depthwise { Conv::depthwise(windows.size) } else { Conv::new(filters, windows.size) };
        let mut conv = conv.strides(windows.strides).padding(own);
        let name = self.name(node, "");
        if node.input(2).is_some() {
            let (shape, bias) = self.numbers(node, 2)?;
            if shape != [filters] {
                let got = format!("values of shape {shape:?} for {filters} filters");
                return Err(node.operand(2, "one value for each filter", got));
            }
            conv = conv.bias();
            self.weigh(node, format!("{name}.bias"), shape, bias)?;
        }
        let id = self.named(node, name.clone(), conv, vec![id])?;
        self.weigh(node, format!("{name}.weight"), shape, numbers)?;
        Ok(Value { id, ..value })
    }

    pub(super) fn pool(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        let value = self.value(node, 0)?;
        let value = self.maps(node, value)?;
        let of = self.drafts.shape(value.id);
        let is_max = node.op() == "MaxPool";
        let counts_padding = node.int("count_include_pad", 0) != 0;
        let windows = self.windows(node, of, None, Pad::zeros([0, 0], [0, 0]))?;
        let Windows { size, strides, margin: Pad { before, mut after, .. } } = windows;
        if node.int("ceil_mode", 0) != 0 {
            let more = rounded_up(of.size, windows);
            if more != [0, 0] && !is_max {
                return Err(node.wrong("ceil_mode", "0, or windows that fit as they are", 1));
            }
            after = [0, 1].map(|d| after[d] + more[d]);
        }
        let mode = match (is_max, counts_padding) {
            (true, _) => Mode::Max,
            (false, true) => Mode::AverageIncludePadding,
            (false, false) => Mode::AverageExcludePadding,
        };
        let is_own = before == after && (0..2).all(|d| before[d] <= size[d] / 2);
        let (id, padding) = if is_own {
            (value.id, before)
        } else {
            // What is no maximum of any window: 0, where there is nothing below, and else the least number.
            let margin = match mode {
                Mode::Max if self.drafts.is_positive(value.id) => 0.0,
                Mode::Max => f32::MIN,
                Mode::AverageIncludePadding => 0.0,
                _ => {
                    let expected = "margins that are equal on both sides, or count_include_pad";
                    return Err(node.wrong("pads", expected, (before, after)));
                }
            };
            if mode == Mode::Max && (0..2).any(|d| before[d] >= size[d] || after[d] >= size[d]) {
                return Err(node.wrong("pads", "margins narrower than windows", (before, after)));
            }
            let margin = Pad::zeros(before, after).value(margin);
            (self.layer(node, "pad", margin, vec![value.id])?, [0, 0])
        };
        let pool = Pool { mode, window: Window::Sliding { size, strides, padding } };
        let id = self.layer(node, "", pool, vec![id])?;
        Ok(Value { id, ..value })
    }

    /// The mean of whole maps.
    pub(super) fn mean(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        let value = self.value(node, 0)?;
        let mut view = value.view;
        if node.op() == "ReduceMean" {
            let mut axes = match node.ints("axes") {
                Some(axes) => axes.to_vec(),
                None => self.constant(node, 1)?.map_or_else(|| Ok(Vec::new()), |axes| axes.integers())?,
            };
            axes.iter_mut().filter(|axis| **axis < 0).for_each(|axis| *axis = axis.saturating_add(4));
            axes.sort_unstable();
            let expected = match view {
                View::Nchw => [2, 3],
                View::Nhwc => [1, 2],
                View::Matrix => return Err(node.operand(0, "maps", "a matrix")),
            };
            if axes != expected {
                return Err(node.wrong("axes", "rows and columns of maps, and no others", axes));
            }
            if node.int("keepdims", 1) == 0 {
                view = View::Matrix;
            }
        } else {
            self.maps(node, value)?;
        }
        let id = self.layer(node, "", Pool::global_average(), vec![value.id])?;
        Ok(Value { id, view, ..value })
    }

    /// A margin, which is left open: a convolution may take it over.
    pub(super) fn pad(&mut self, node: Node<'g>) -> Result<Value, OnnxError> {
        let mode = node.string("mode", "constant");
        if mode != "constant" {
            return Err(node.wrong("mode", "constant", mode));
        }
        let value = self.value(node, 0)?;
        let pads = match node.ints("pads") {
            Some(pads) => pads.to_vec(),
            None => self.constant(node, 1)?.map_or_else(|| Ok(Vec::new()), |pads| pads.integers())?,
        };
        if node.input(3).is_some() {
            return Err(node.operand(3, "no axes: pads of all dimensions", "some"));
        }
        let filler = match node.input(2) {
            None => node.float("value", 0.0),
            Some(_) => self.numbers(node, 2)?.1.first().copied().unwrap_or(0.0),
        };
        let expected = "rows and columns of maps, at least 0 on each side";
        let pads: [usize; 8] = sizes(&pads).ok_or_else(|| node.wrong("pads", expected, &pads))?;
        let [rows, columns] = match value.view {
            View::Nchw => [2, 3],
            View::Nhwc => [1, 2],
            View::Matrix => return Err(node.operand(0, "maps", "a matrix")),
        };
        let are_others = |d: &usize| ![rows, columns, rows + 4, columns + 4].contains(d);
        if (0..8).filter(are_others).any(|d| pads[d] > 0) {
            return Err(node.wrong("pads", expected, pads));
        }
        let margin = Pad::zeros([pads[rows], pads[columns]], [pads[rows + 4], pads[columns + 4]]);
        Ok(Value { margin: Some(margin.value(filler)), ..value })
    }

    /// The windows of a node on maps with a margin already.
    fn windows(
        &self,
        node: Node<'g>,
        of: Shape,
        taps: Option<[usize; 2]>,
        already: Pad,
    ) -> Result<Windows, OnnxError> {
        let size = node.pair("kernel_shape", taps.unwrap_or([0, 0]))?;
        if taps.is_some_and(|taps| taps != size) || size.contains(&0) {
            return Err(node.wrong("kernel_shape", "the size of filters, at least 1", size));
        }
        let dilations = node.pair("dilations", [1, 1])?;
        if dilations != [1, 1] {
            return Err(node.wrong("dilations", "[1, 1]", dilations));
        }
        let strides = node.pair("strides", [1, 1])?;
        if strides.contains(&0) {
            return Err(node.wrong("strides", "at least 1", strides));
        }
        let padded = Shape { size: [0, 1].map(|d| of.size[d] + already.before[d] + already.after[d]), ..of };
        let same = Pad::same(padded.size, size, strides);
        let auto = node.string("auto_pad", "NOTSET");
        let own = match auto.as_str() {
            "SAME_UPPER" => same,
            "SAME_LOWER" => Pad::zeros(same.after, same.before),
            "VALID" => Pad::zeros([0, 0], [0, 0]),
            "NOTSET" | "" => {
                let pads = node.ints("pads").unwrap_or(&[0; 4]);
                let expected = "four extents of at least 0: above, left, below, right";
                let [above, left, below, right] =
                    sizes(pads).ok_or_else(|| node.wrong("pads", expected, pads))?;
                Pad::zeros([above, left], [below, right])
            }
            _ => return Err(node.wrong("auto_pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER", auto)),
        };
        let sum = |a: [usize; 2], b: [usize; 2]| [0, 1].map(|d| a[d] + b[d]);
        let margin = Pad::zeros(sum(own.before, already.before), sum(own.after, already.after));
        Ok(Windows { size, strides, margin })
    }
}

/// Rows and columns below and on the right that a last window would need, which begins within the map or the margin before it.
fn rounded_up(size: [usize; 2], windows: Windows) -> [usize; 2] {
    let Windows { size: window, strides, margin } = windows;
    [0, 1].map(|d| {
        let begin = size[d] + margin.before[d];
        let padded = begin + margin.after[d];
        let Some(rest) = padded.checked_sub(window[d]) else { return 0 };
        let last = rest.div_ceil(strides[d]) * strides[d];
        if last < begin { last - rest } else { 0 }
    })
}

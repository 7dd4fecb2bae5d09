//! Operators that work on windows of maps: convolutions, poolings, and margins.
use super::ImportError;
use super::importer::{Importer, Value};
use super::operator::Place;
use crate::files::tflite::{Padding, Window};
use crate::network::{Conv, Pad, PadChannels, Pool, Shape};

impl<'m> Importer<'m> {
    /// A convolution; `multiplier` is that of a depthwise one.
    pub(super) fn conv(
        &mut self,
        at: Place<'m>,
        window: &Window,
        dilations: [usize; 2],
        multiplier: Option<usize>,
    ) -> Result<Value, ImportError> {
        if dilations != [1, 1] {
            return Err(at.wrong("dilations", "[1, 1]", dilations));
        }
        // A margin of zeros becomes part of the convolution's.
        let value = self.open(at, 0)?;
        let of = self.expect_maps(at, &value)?;
        let margin = value.margin.unwrap_or(Pad::zeros([0, 0], [0, 0]));
        let tensor = self.constant(at, 1)?;
        let &[outer, rows, columns, inner] = self.shape_of(tensor) else {
            let got = format!("values of shape {:?}", self.shape_of(tensor));
            return Err(at.operand(1, "filters of four dimensions", got));
        };
        let taps = [rows, columns];
        let fits = match multiplier {
            None => inner == of.channels,
            Some(multiplier) => multiplier == 1 && outer == 1 && inner == of.channels,
        };
        if !fits {
            let got = format!("values of shape {:?} for {of}", self.shape_of(tensor));
            return Err(at.operand(1, "filters of all channels, or one for each channel", got));
        }
        let margin = around(of, margin, window, taps);
        // What is equal on both sides is the convolution's own.
        let own = [0, 1].map(|d| margin.before[d].min(margin.after[d]));
        let rest = |side: [usize; 2]| [0, 1].map(|d| side[d] - own[d]);
        let rest = Pad::zeros(rest(margin.before), rest(margin.after));
        let input = if rest == Pad::zeros([0, 0], [0, 0]) {
            value.id
        } else {
            self.layer(at, "pad", rest, vec![value.id])?
        };
        let (filters, shape, conv) = match multiplier {
            None => (outer, vec![outer, inner, rows, columns], Conv::new(outer, taps)),
            Some(_) => (inner, vec![inner, 1, rows, columns], Conv::depthwise(taps)),
        };
        let mut conv = conv.strides(window.strides).padding(own);
        let name = self.name(at, "");
        let bias = match at.input(2) {
            Some(_) => Some(self.constant(at, 2)?),
            None => None,
        };
        if let Some(bias) = bias {
            if self.shape_of(bias) != [filters] {
                let got = format!("values of shape {:?} for {filters} filters", self.shape_of(bias));
                return Err(at.operand(2, "one value for each filter", got));
            }
            conv = conv.bias();
            let values = self.numbers(at, bias)?;
            self.weigh(at, format!("{name}.bias"), vec![filters], values)?;
        }
        let values = channels_first(&self.numbers(at, tensor)?, rows * columns, inner);
        let id = self.named(at, name.clone(), conv, vec![input])?;
        self.weigh(at, format!("{name}.weight"), shape, values)?;
        if self.is_sparse(tensor) {
            self.sparse.push(name);
        }
        let id = self.activated(at, id, window.activation)?;
        Ok(self.maps_of(id))
    }

    pub(super) fn max_pool(
        &mut self,
        at: Place<'m>,
        window: &Window,
        size: [usize; 2],
    ) -> Result<Value, ImportError> {
        let value = self.value(at, 0)?;
        let of = self.expect_maps(at, &value)?;
        let Pad { before, after, .. } = around(of, Pad::zeros([0, 0], [0, 0]), window, size);
        let pool = Pool::max(size, window.strides);
        let id = if before == after {
            self.layer(at, "", pool.padding(before), vec![value.id])?
        } else {
            // What is no maximum of any window: 0, where there is nothing below, and else the least number.
            let least = if self.drafts.is_positive(value.id) { 0.0 } else { f32::MIN };
            let margin = Pad::zeros(before, after).value(least);
            let padded = self.layer(at, "pad", margin, vec![value.id])?;
            self.layer(at, "", pool, vec![padded])?
        };
        let id = self.activated(at, id, window.activation)?;
        Ok(self.maps_of(id))
    }

    /// Channels of zeros, and a margin, which is left open: a convolution may take it over.
    pub(super) fn pad(&mut self, at: Place<'m>) -> Result<Value, ImportError> {
        let mut value = self.value(at, 0)?;
        self.expect_maps(at, &value)?;
        let pads = self.integers(at, 1)?;
        let sizes: Option<Vec<usize>> = pads.iter().map(|&pad| usize::try_from(pad).ok()).collect();
        let Some(&[0, 0, above, below, left, right, before, after]) = sizes.as_deref() else {
            let expected = "two extents of at least 0 for each dimension, which are 0 for images";
            return Err(at.operand(1, expected, format!("{pads:?}")));
        };
        if before > 0 || after > 0 {
            let id = self.layer(at, "channels", PadChannels::zeros(before, after), vec![value.id])?;
            value = self.maps_of(id);
        }
        let margin = Pad::zeros([above, left], [below, right]);
        if margin == Pad::zeros([0, 0], [0, 0]) {
            return Ok(value);
        }
        let [rows, columns] = [0, 1].map(|d| value.dims[d] + margin.before[d] + margin.after[d]);
        Ok(Value { dims: vec![rows, columns, value.dims[2]], margin: Some(margin), ..value })
    }
}

/// What is around maps that get a margin already.
fn around(of: Shape, already: Pad, window: &Window, size: [usize; 2]) -> Pad {
    if window.padding == Padding::Valid {
        return already;
    }
    let sum = |a: [usize; 2], b: [usize; 2]| [0, 1].map(|d| a[d] + b[d]);
    let own = Pad::same(sum(of.size, sum(already.before, already.after)), size, window.strides);
    Pad::zeros(sum(own.before, already.before), sum(own.after, already.after))
}

/// Filters with channels last, as the file has them, with channels first. Of a depthwise convolution the file has one filter with a channel for each,
/// and these are its filters here.
fn channels_first(values: &[f32], taps: usize, channels: usize) -> Vec<f32> {
    let from = |at: usize| {
        let (filter, rest) = (at / (channels * taps), at % (channels * taps));
        (filter * taps + rest % taps) * channels + rest / taps
    };
    (0..values.len()).map(|at| values[from(at)]).collect()
}

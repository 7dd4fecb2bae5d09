//! Convolutions.
use lacuna::conv;

use super::{Pad, expect_same, only};
use crate::network::{Activation, Convolution, Norm, Problem, Shape};

/// A convolution: act(w·x + bias + residual), with a batch norm folded into w and the bias.
///
/// Its filters are tensor `<layer>.weight`, N × C × R × S (depthwise: C × 1 × R × S), its bias `<layer>.bias`, if it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv {
    /// Channels of the result; none of a depthwise convolution, which has those of its input.
    pub filters: Option<usize>,
    /// Rows and columns of a filter.
    pub taps: [usize; 2],
    /// Rows and columns from one output pixel to the next.
    pub strides: [usize; 2],
    /// Zeros around the map.
    pub padding: Padding,
    /// Whether it has a bias of its own.
    pub bias: bool,
    /// The batch norm after it.
    pub norm: Option<Norm>,
    /// What is made of sums.
    pub activation: Activation,
    /// Whether a second input, as large as the result, is added before the activation.
    pub residual: bool,
}

/// Zeros around a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Rows above and below, and columns on both sides.
    Each([usize; 2]),
    /// As many as TensorFlow's "SAME" has, for a result of ⌈size / stride⌉. Where it has one more after the map than before it,
    /// as for even sizes with strides of two, the layer is refused: a [`Pad::same`](super::Pad::same) before it has them.
    Same,
}

impl Conv {
    /// Strides of 1, no padding, no bias, and no activation.
    pub fn new(filters: usize, taps: [usize; 2]) -> Self {
        Self { filters: Some(filters), ..Self::depthwise(taps) }
    }

    /// A filter for each channel; otherwise as [`new`](Self::new).
    pub fn depthwise(taps: [usize; 2]) -> Self {
        Self {
            filters: None,
            taps,
            strides: [1, 1],
            padding: Padding::Each([0, 0]),
            bias: false,
            norm: None,
            activation: Activation::Identity,
            residual: false,
        }
    }

    /// With these strides.
    #[must_use]
    pub fn strides(self, strides: [usize; 2]) -> Self {
        Self { strides, ..self }
    }

    /// With so many rows of zeros above and below, and columns on both sides.
    #[must_use]
    pub fn padding(self, padding: [usize; 2]) -> Self {
        Self { padding: Padding::Each(padding), ..self }
    }

    /// With [`Padding::Same`].
    #[must_use]
    pub fn same(self) -> Self {
        Self { padding: Padding::Same, ..self }
    }

    /// With a bias.
    #[must_use]
    pub fn bias(self) -> Self {
        Self { bias: true, ..self }
    }

    /// With a batch norm after it, whose tensors' names begin so.
    #[must_use]
    pub fn norm(self, prefix: impl Into<String>) -> Self {
        Self { norm: Some(Norm::new(prefix)), ..self }
    }

    /// With a second input, which is added before the activation.
    #[must_use]
    pub fn residual(self) -> Self {
        Self { residual: true, ..self }
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let (input, residual) = match inputs {
            &[input, residual] if self.residual => (input, Some(residual)),
            _ if self.residual => {
                let expected = "two inputs, the second one a residual";
                return Err(Problem::Inputs { expected, got: inputs.len() });
            }
            _ => (only(inputs)?, None),
        };
        let shape = self.shape(input)?;
        let [rows, columns] = shape.out_size();
        let fits = rows > 0 && columns > 0 && shape.filters > 0;
        let got = || format!("filters {}, taps {:?} on {input}", shape.filters, self.taps);
        Problem::expect_size(fits, "the result", "filters, and taps within the padded map", got())?;
        let out = Shape::maps(input.images, shape.filters, [rows, columns]);
        residual.map_or(Ok(out), |residual| expect_same("the residual", out, residual).map(|()| out))
    }

    pub(super) fn convolution(&self, name: &str, input: Shape) -> Option<Convolution> {
        let shape = self.shape(input).ok()?;
        let of_filter = if self.filters.is_none() { 1 } else { input.channels };
        let [rows, columns] = self.taps;
        Some(Convolution {
            shape,
            filters: Some((format!("{name}.weight"), vec![shape.filters, of_filter, rows, columns])),
            bias: self.bias.then(|| format!("{name}.bias")),
            norm: self.norm.clone(),
            activation: self.activation,
            residual: self.residual,
        })
    }

    fn shape(&self, input: Shape) -> Result<conv::Shape, Problem> {
        for (what, numbers) in [("taps", self.taps), ("strides", self.strides)] {
            let are_there = numbers.iter().all(|&number| number > 0);
            Problem::expect_size(are_there, what, "at least 1", format!("{numbers:?}"))?;
        }
        let padding = match self.padding {
            Padding::Each(padding) => padding,
            Padding::Same => same(input.size, self.taps, self.strides)?,
        };
        let shape = match self.filters {
            Some(filters) => conv::Shape::new(input.channels, input.size, filters, self.taps),
            None => conv::Shape::depthwise(input.channels, input.size, self.taps),
        };
        Ok(shape.strides(self.strides).padding(padding).batch(input.images))
    }
}

/// What TensorFlow's "SAME" has on each side.
fn same(size: [usize; 2], taps: [usize; 2], strides: [usize; 2]) -> Result<[usize; 2], Problem> {
    let Pad { before, after, .. } = Pad::same(size, taps, strides);
    if before == after { Ok(before) } else { Err(Problem::Asymmetric { size, before, after }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_padding_is_tensorflows_where_it_is_equal_on_both_sides() {
        let output = |conv: Conv, size| conv.same().output(&[Shape::maps(1, 2, size)]);
        assert_eq!(output(Conv::new(4, [3, 3]), [8, 7]), Ok(Shape::maps(1, 4, [8, 7])));
        assert_eq!(output(Conv::new(4, [3, 3]).strides([2, 2]), [7, 7]), Ok(Shape::maps(1, 4, [4, 4])));
        // A stride that passes over all that taps could reach needs none.
        assert_eq!(output(Conv::new(4, [1, 1]).strides([2, 2]), [8, 8]), Ok(Shape::maps(1, 4, [4, 4])));
        let error = output(Conv::depthwise([3, 3]).strides([2, 2]), [8, 7]).unwrap_err();
        assert_eq!(error, Problem::Asymmetric { size: [8, 7], before: [0, 1], after: [1, 1] });
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let input = Shape::maps(2, 3, [4, 4]);
        assert!(Conv::new(4, [5, 5]).output(&[input]).is_err());
        assert!(Conv::new(4, [0, 1]).output(&[input]).is_err());
        assert!(Conv::new(0, [1, 1]).output(&[input]).is_err());
        assert!(Conv::new(4, [1, 1]).output(&[input, input]).is_err());
        assert!(Conv::new(4, [1, 1]).residual().output(&[input]).is_err());
        let error = Conv::new(4, [1, 1]).residual().output(&[input, input]).unwrap_err();
        let expected = Shape::maps(2, 4, [4, 4]);
        assert_eq!(error, Problem::Shape { what: "the residual", expected, got: input });
    }
}

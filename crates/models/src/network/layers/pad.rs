//! A margin around maps.
use super::only;
use crate::network::{Problem, Shape};

/// Maps with rows and columns of one value around them, more on one side than on the other if so chosen.
///
/// It is a pass over the map by itself. What is equal on both sides, and zero, costs nothing as [`Conv::padding`](super::Conv::padding).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pad {
    /// Rows above, and columns on the left.
    pub before: [usize; 2],
    /// Rows below, and columns on the right.
    pub after: [usize; 2],
    /// What they hold.
    pub value: f32,
}

impl Pad {
    /// So many rows above and columns on the left, and so many below and on the right, of zeros.
    pub fn zeros(before: [usize; 2], after: [usize; 2]) -> Self {
        Self { before, after, value: 0.0 }
    }

    /// What TensorFlow's "SAME" has around a map of this size, for windows of these sizes and strides.
    pub fn same(size: [usize; 2], window: [usize; 2], strides: [usize; 2]) -> Self {
        let total = [0, 1].map(|d| {
            let steps = size[d].div_ceil(strides[d].max(1)).saturating_sub(1);
            steps.saturating_mul(strides[d]).saturating_add(window[d]).saturating_sub(size[d])
        });
        let before = total.map(|total| total / 2);
        Self::zeros(before, [0, 1].map(|d| total[d] - before[d]))
    }

    /// With this value in the margin.
    #[must_use]
    pub fn value(self, value: f32) -> Self {
        Self { value, ..self }
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let input = only(inputs)?;
        let extent = |d: usize| input.size[d].saturating_add(self.before[d]).saturating_add(self.after[d]);
        Ok(Shape { size: [extent(0), extent(1)], ..input })
    }
}

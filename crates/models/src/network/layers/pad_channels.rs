//! More channels.
use super::only;
use crate::network::{Problem, Shape};

/// Maps with channels of zeros before their own and after them, as TensorFlow pads the last dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PadChannels {
    /// Channels before those of the input.
    pub before: usize,
    /// Channels after them.
    pub after: usize,
}

impl PadChannels {
    /// With so many channels of zeros before and after.
    pub fn zeros(before: usize, after: usize) -> Self {
        Self { before, after }
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let input = only(inputs)?;
        Ok(Shape { channels: input.channels.saturating_add(self.before).saturating_add(self.after), ..input })
    }
}

//! Channels side by side.
use super::expect_same;
use crate::network::{Problem, Shape};

/// The channels of all inputs, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concat;

impl Concat {
    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let (&first, rest) =
            inputs.split_first().ok_or(Problem::Inputs { expected: "at least one input", got: 0 })?;
        let mut channels = first.channels;
        for &input in rest {
            expect_same("an input", Shape { channels: input.channels, ..first }, input)?;
            channels = channels.saturating_add(input.channels);
        }
        Ok(Shape { channels, ..first })
    }
}

//! Values that are the same elsewhere.
use lacuna::{Result, SliceMut, Stream};

use super::{About, Inputs, Planning, Step};
use crate::memory::Place;
use crate::network::Layer;

/// A copy, where the result does not lie where the input does.
#[derive(Debug)]
pub(super) struct Move {
    is_there: bool,
}

impl Move {
    pub(super) fn new(planning: &Planning<'_>, layer: &Layer) -> Self {
        let place = |value| -> Place { planning.memory.place(value) };
        Self { is_there: place(layer.inputs[0]) == place(layer.output) }
    }
}

impl Step for Move {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_>, out: SliceMut<'_, f32>) -> Result<()> {
        if self.is_there { Ok(()) } else { stream.copy(inputs.at(0)?, out) }
    }

    fn about(&self) -> About {
        About::kernel(if self.is_there { "none" } else { "copy" })
    }
}

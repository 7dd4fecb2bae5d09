//! Values that are the same elsewhere, or in another order.
use lacuna::dense_transpose::Options;
use lacuna::{DenseTranspose, Result, SliceMut, Stream, Value};

use super::{About, Inputs, Planning, Step};
use crate::memory::Place;
use crate::network::Layer;

/// A copy, where the result does not lie where the input does.
#[derive(Debug)]
pub(super) struct Move {
    is_there: bool,
}

impl Move {
    pub(super) fn new<T: Value>(planning: &Planning<'_, T>, layer: &Layer) -> Self {
        let place = |value| -> Place { planning.memory.place(value) };
        Self { is_there: place(layer.inputs[0]) == place(layer.output) }
    }
}

impl<T: Value> Step<T> for Move {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, out: SliceMut<'_, T>) -> Result<()> {
        if self.is_there { Ok(()) } else { stream.copy(inputs.at(0)?, out) }
    }

    fn about(&self) -> About {
        About::kernel(if self.is_there { "none" } else { "copy" })
    }
}

/// From channels first to channels last, or back: each image's matrix of `rows` rows and `columns` columns is transposed.
pub(super) fn transpose<T: Value>(
    planning: &Planning<'_, T>,
    [rows, columns]: [usize; 2],
    images: usize,
) -> Result<Box<dyn Step<T>>> {
    let options = Options::default().batch(images);
    Ok(Box::new(DenseTranspose::<T>::plan_with(planning.device, rows, columns, options)?))
}

impl<T: Value> Step<T> for DenseTranspose<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, out: SliceMut<'_, T>) -> Result<()> {
        Self::run(self, stream, inputs.at(0)?, out)
    }

    fn about(&self) -> About {
        About::kernel(self.choice().entry.name)
    }
}

//! Which of two steps for one layer is faster on this device.
use lacuna::matrix::generate;
use lacuna::{Result, SliceMut, Value, time};

use super::values::rounded;
use super::{Inputs, Planning, Step};
use crate::memory::{Home, Place};
use crate::model::inputs::Around;
use crate::network::Layer;

/// Whether the first of two steps for a layer takes less time than the second, both with drawn inputs.
pub(super) fn is_faster<T: Value>(
    planning: &Planning<'_, T>,
    layer: &Layer,
    steps: [&dyn Step<T>; 2],
) -> Result<bool> {
    let place = |&value| Place { home: Home::Input, offset: 0, ..planning.memory.place(value) };
    let places: Vec<Place> = layer.inputs.iter().map(place).collect();
    let most = places.iter().map(|place| place.len).max().unwrap_or(0);
    // All inputs are parts of one.
    let input = planning.device.upload(&rounded::<T>(&generate::random_values(most, 1)))?;
    let mut out = planning.device.uninitialized(planning.memory.place(layer.output).len)?;
    let mut elsewhere = [planning.device.uninitialized(0)?, planning.device.uninitialized(0)?];
    let [output, arena] = elsewhere.each_mut().map(|nothing| Around::whole(nothing.as_slice_mut()));
    let (output, arena) = (output?, arena?);
    let inputs = Inputs { input: input.as_slice(), output: &output, arena: &arena, places: &places };
    let mut out: SliceMut<'_, T> = out.as_slice_mut();
    let mut microseconds =
        |step: &dyn Step<T>| time(planning.stream, |stream| step.run(stream, &inputs, out.reborrow()));
    Ok(microseconds(steps[0])? < microseconds(steps[1])?)
}

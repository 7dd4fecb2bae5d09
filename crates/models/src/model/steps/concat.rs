//! Channels side by side.
use lacuna::bias_act::{Operands, Options};
use lacuna::conv::MapLayout;
use lacuna::{BiasAct, Result, SliceMut, Stream, Value};

use super::super::inputs::Around;
use super::{About, Inputs, Planning, Step};
use crate::memory::Place;
use crate::network::Layer;

/// A copy, with strides, of each input that does not lie in the result already.
#[derive(Debug)]
struct Concat<T: Value>(Vec<Part<T>>);

/// An input to be copied.
#[derive(Debug)]
struct Part<T: Value> {
    /// Its number.
    input: usize,
    /// The first element that it has in the result.
    from: usize,
    /// Its own first element there, where it lies in another part of the result: it is an input twice, or part of another input.
    inside: Option<usize>,
    copy: BiasAct<T>,
}

pub(super) fn plan<T: Value>(planning: &Planning<'_, T>, layer: &Layer) -> Result<Box<dyn Step<T>>> {
    let shape = planning.network.shape(layer.output);
    let out = planning.memory.place(layer.output);
    // What of an image, or of a pixel, lies in one piece.
    let (rows, pixels) = match planning.options.layout {
        MapLayout::Nchw => (shape.images, shape.pixels()),
        _ => (shape.images * shape.pixels(), 1),
    };
    let mut from = 0;
    let mut parts = Vec::new();
    for (input, &value) in layer.inputs.iter().enumerate() {
        let width = planning.network.shape(value).channels * pixels;
        let place = planning.memory.place(value);
        let there = Place { offset: out.offset + from, len: rows * width, ..out };
        if rows > 1 || place != there {
            let is_inside = place.home == out.home && place.len > 0;
            let inside = place.offset.checked_sub(out.offset).filter(|&at| is_inside && at < out.len);
            let options = Options::default().out_stride(shape.channels * pixels);
            let copy = BiasAct::plan_with(planning.device, rows, width, options)?;
            parts.push(Part { input, from, inside, copy });
        }
        from += width;
    }
    Ok(Box::new(Concat(parts)))
}

impl<T: Value> Step<T> for Concat<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, mut out: SliceMut<'_, T>) -> Result<()> {
        for Part { input, from, inside, copy } in &self.0 {
            let end = from + copy.output_len();
            let (around, out) = Around::split(out.reborrow(), *from..end)?;
            let input = match inside {
                Some(at) => around.part(*at..at + copy.input_len())?,
                None => inputs.at(*input)?,
            };
            copy.run(stream, Operands { input, bias: None, residual: None, out })?;
        }
        Ok(())
    }

    fn about(&self) -> About {
        let kernels: Vec<&str> = self.0.iter().map(|part| part.copy.choice().entry.name).collect();
        About::kernel(if kernels.is_empty() { "none".into() } else { kernels.join(" + ") })
    }
}

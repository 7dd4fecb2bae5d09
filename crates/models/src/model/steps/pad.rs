//! Margins.
use std::sync::{Mutex, PoisonError};

use lacuna::bias_act::{Operands, Options};
use lacuna::conv::MapLayout;
use lacuna::{BiasAct, Buffer, Result, Slice, SliceMut, Stream, Value};

use super::{About, Inputs, Planning, Step};
use crate::network::{self, Layer};

/// The result is filled with the margin's value, and the map is copied into it. A copy has gaps of one kind, between rows or between planes, so that
/// a margin on all sides takes two, and memory for what is between them.
#[derive(Debug)]
struct Pad<T: Value> {
    margin: Buffer<T>,
    /// Over rows, where planes have gaps too, and what it writes. The margin there is written once, when the layer is planned. Runs are one at
    /// a time, as those of a model are.
    first: Option<(Wider<T>, Mutex<Buffer<T>>)>,
    last: Wider<T>,
}

/// A copy into a wider piece of memory, with gaps.
#[derive(Debug)]
struct Wider<T: Value> {
    plan: BiasAct<T>,
    /// The first element that is written.
    from: usize,
}

pub(super) fn plan<T: Value>(
    planning: &Planning<'_, T>,
    layer: &Layer,
    pad: &network::Pad,
) -> Result<Box<dyn Step<T>>> {
    let (device, out) = (planning.device, planning.network.shape(layer.output));
    let input = planning.network.shape(layer.inputs[0]);
    // Maps as planes × rows × columns × what of a pixel lies in one piece.
    let (planes, pixel) = match planning.options.layout {
        MapLayout::Nchw => (input.images * input.channels, 1),
        _ => (input.images, input.channels),
    };
    let [rows, columns] = input.size;
    let width = out.size[1] * pixel;
    let wider = |count: usize, len: usize, stride: usize, from: usize| -> Result<Wider<T>> {
        let plan = BiasAct::plan_with(device, count, len, Options::default().out_stride(stride))?;
        Ok(Wider { plan, from })
    };
    let by_rows = || wider(planes * rows, columns * pixel, width, pad.before[1] * pixel);
    let by_planes = || wider(planes, rows * width, out.size[0] * width, pad.before[0] * width);
    // What is beyond the type's numbers becomes infinite: the least `f32` in a margin is no maximum of any window then, either.
    let value = T::from_f32(pad.value);
    let first = (out.size[0] > rows && out.size[1] > columns).then(|| {
        let between = device.upload(&vec![value; planes * rows * width])?;
        Ok::<_, lacuna::Error>((by_rows()?, Mutex::new(between)))
    });
    let last = if out.size[0] == rows { by_rows() } else { by_planes() };
    let margin = device.upload(&vec![value; out.elements()])?;
    Ok(Box::new(Pad { margin, first: first.transpose()?, last: last? }))
}

/// More channels: of an image they are one piece in NCHW, and otherwise of a pixel.
pub(super) fn plan_channels<T: Value>(
    planning: &Planning<'_, T>,
    layer: &Layer,
    pad: &network::PadChannels,
) -> Result<Box<dyn Step<T>>> {
    let (device, out) = (planning.device, planning.network.shape(layer.output));
    let channels = planning.network.shape(layer.inputs[0]).channels;
    let (pieces, piece) = match planning.options.layout {
        MapLayout::Nchw => (out.images, out.pixels()),
        _ => (out.images * out.pixels(), 1),
    };
    let options = Options::default().out_stride(out.channels * piece);
    let plan = BiasAct::plan_with(device, pieces, channels * piece, options)?;
    let margin = device.zeros(out.elements())?;
    Ok(Box::new(Pad { margin, first: None, last: Wider { plan, from: pad.before * piece } }))
}

impl<T: Value> Wider<T> {
    fn run(&self, stream: &Stream, input: Slice<'_, T>, mut out: SliceMut<'_, T>) -> Result<()> {
        let out = out.part(self.from..self.from + self.plan.output_len())?;
        self.plan.run(stream, Operands { input, bias: None, residual: None, out })
    }
}

impl<T: Value> Step<T> for Pad<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, mut out: SliceMut<'_, T>) -> Result<()> {
        stream.copy(self.margin.as_slice(), out.reborrow())?;
        let Some((first, between)) = &self.first else {
            return self.last.run(stream, inputs.at(0)?, out);
        };
        let mut between = between.lock().unwrap_or_else(PoisonError::into_inner);
        first.run(stream, inputs.at(0)?, between.as_slice_mut())?;
        self.last.run(stream, between.as_slice(), out)
    }

    fn about(&self) -> About {
        let copies = self.first.iter().map(|(first, _)| first).chain([&self.last]);
        let kernels = copies.map(|copy| format!(" + {}", copy.plan.choice().entry.name));
        let between = self.first.as_ref().map_or(0, |(first, _)| first.from + first.plan.output_len());
        let workspace_bytes = (self.margin.len() + between) * size_of::<T>();
        About { workspace_bytes, ..About::kernel(format!("copy{}", kernels.collect::<String>())) }
    }
}

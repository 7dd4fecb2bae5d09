//! Neighbouring layers in one launch.
use std::ops::Range;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::spdnn::{FusedArgs, FusedLayer, LAYER_WORDS, MAX_FUSED, Scheme, TILE_ROWS};

use super::network::Layers;
use super::packed::Arrays;
use super::prepared::{Operands, Places, Prepared, resident};
use super::weights::starts;
use crate::op::launch;
use crate::{Buffer, Device, Result, Stream};

/// What the kernel of fused layers reads of each layer.
#[derive(Debug)]
pub(super) struct Table {
    layers: Buffer<u32>,
    /// For each layer the index of its first word in the arrays.
    starts: Vec<usize>,
}

impl Table {
    /// Of a network that has fused layers.
    pub(super) fn new(device: &Device, layers: &Layers, arrays: &[Arrays]) -> Result<Option<Self>> {
        if !layers.layers.iter().any(Prepared::is_fused) {
            return Ok(None);
        }
        let starts = starts(arrays);
        let mut words = Vec::with_capacity(starts.len() * LAYER_WORDS as usize);
        for (at, (layer, &start)) in layers.layers.iter().zip(&starts).enumerate() {
            words.extend(row(layer, start, layers.is_bounded(at)));
        }
        Ok(Some(Self { layers: device.upload(&words)?, starts }))
    }

    /// Launches these layers, whose arrays begin at address `base`.
    pub(super) fn launch(
        &self,
        stream: &Stream,
        layers: &Layers,
        range: Range<usize>,
        base: u64,
        operands: &Operands,
    ) -> Result<()> {
        let &Operands { rows, capacity, input, input_bits, out, .. } = operands;
        if capacity == 0 {
            return Ok(());
        }
        let entry = layers.layers[range.start].entry(input_bits);
        let blocks = capacity.div_ceil(TILE_ROWS as usize / 2).min(resident(entry, stream));
        let table = self.layers.slice(range.start * LAYER_WORDS as usize..)?.pointer();
        macro_rules! args {
            ($element:ty) => {
                FusedArgs::<$element> {
                    rows,
                    input: GlobalPtr::from_address(input),
                    out: GlobalMut::from_address(out),
                    layers: table,
                    arrays: GlobalPtr::from_address(base),
                    first_word: self.starts[range.start] as u32,
                    count: range.len() as u32,
                }
            };
        }
        if input_bits {
            launch(stream, entry, [blocks as u32, 1, 1], &args!(u32))
        } else {
            launch(stream, entry, [blocks as u32, 1, 1], &args!(f32))
        }
    }
}

/// The end of the layers that can be launched together with layer `first`, before `end`: up to the first after which rows are
/// listed.
pub(super) fn end_of_launch(layers: &Layers, first: usize, end: usize) -> usize {
    let of = |layer: usize| layers.layers[layer].choice.entry.tile.scheme;
    if !layers.layers[first].is_fused() {
        return first + 1;
    }
    let end = end.min(layers.layers.len()).min(first + MAX_FUSED as usize);
    (first + 1..end).find(|&layer| layers.lists[layer - 1] || of(layer) != of(first)).unwrap_or(end)
}

/// A layer as the kernel reads it; zeros for one that is not fused.
fn row(layer: &Prepared, start: usize, bounded: bool) -> [u32; LAYER_WORDS as usize] {
    let Places::Steps(steps) = layer.places else { return [0; LAYER_WORDS as usize] };
    // Indices wrap round, and distances from the launch's first word are right.
    let word = |place: u64| (start as u64 + place) as u32;
    let layer = FusedLayer {
        groups: steps.groups,
        steps: steps.steps.checked_div(steps.groups).unwrap_or(0),
        inputs: word(steps.inputs),
        weights: word(steps.weights),
        outputs: word(steps.outputs),
        bias: word(steps.bias),
        lo: layer.limits.lo.to_bits(),
        hi: layer.limits.hi.to_bits(),
        input_width: layer.inputs as u32,
        output_width: layer.outputs as u32,
        bounded: bounded.into(),
    };
    layer.to_words()
}

impl Prepared {
    /// Whether it can be one of several layers of a launch.
    pub(super) fn is_fused(&self) -> bool {
        matches!(self.choice.entry.tile.scheme, Scheme::FusedLayers)
    }
}

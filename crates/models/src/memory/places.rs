//! Which value lies where.
use std::ops::Range;

use lacuna::conv::MapLayout;

use super::{Arena, Lifetime};
use crate::network::{Flatten, FlattenNhwc, Layer, Network, Operation, Shape, ValueId};

/// Bytes of which a part of a wider value begins at a multiple: what kernels load at once, and cuDNN's want.
const VECTOR: usize = 16;

/// Whose memory a value is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// What the user gives.
    Input,
    /// Where the user wants the result.
    Output,
    /// The network's own.
    Arena,
}

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose memory it is in.
    pub home: Home,
    /// Its first element there.
    pub offset: usize,
    /// Its elements, with the gaps between planes.
    pub len: usize,
    /// Elements from one plane of a map to the next, in NCHW, where there are gaps between planes.
    pub plane_stride: Option<usize>,
}

impl Place {
    /// Its elements there.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.len
    }

    /// A value's elements without the gaps.
    pub(crate) fn packed<T: Copy>(&self, shape: &Shape, elements: Vec<T>) -> Vec<T> {
        let Some(stride) = self.plane_stride else { return elements };
        let pixels = shape.pixels();
        elements.chunks(stride).flat_map(|plane| &plane[..pixels]).copied().collect()
    }
}

/// Where the values of a network lie.
///
/// Inputs of a concatenation lie where their channels are in the wider value, and are copied nowhere, if there is one image in NCHW, so that the
/// channels of each are one piece, and if they are not parts of another value already. Maps that are flattened in the order
/// in which they lie stay where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    places: Vec<Place>,
    arena: Arena,
}

/// A piece of memory with a value, and perhaps parts of it that are values too.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Input,
    Output,
    Own(usize),
}

impl Memory {
    /// Plans the memory of a network whose maps lie so, and whose values have so many bytes.
    pub fn plan(network: &Network, layout: MapLayout, value_bytes: usize) -> Self {
        Self::plan_apart(network, layout, value_bytes, &vec![None; network.shapes().len()])
    }

    /// As [`plan`](Self::plan), with so many elements from one plane of each value to the next, where there are gaps between them.
    pub(crate) fn plan_apart(
        network: &Network,
        layout: MapLayout,
        value_bytes: usize,
        plane_strides: &[Option<usize>],
    ) -> Self {
        let shapes = network.shapes();
        let len = |value: usize| {
            let Shape { images, channels, .. } = shapes[value];
            plane_strides[value].map_or_else(|| shapes[value].elements(), |stride| images * channels * stride)
        };
        let mut at: Vec<Option<(Piece, usize)>> = vec![None; shapes.len()];
        let mut input_end = 0;
        for &input in network.inputs() {
            at[input.index()] = Some((Piece::Input, input_end));
            input_end += network.shape(input).elements();
        }
        at[network.output().index()] = Some((Piece::Output, 0));
        let mut pieces: Vec<Lifetime> = Vec::new();
        // From the last layer to the first: a wider value is placed before its parts.
        for layer in network.layers().iter().rev() {
            let out = layer.output.index();
            let (piece, offset) = *at[out].get_or_insert_with(|| {
                pieces.push(Lifetime { len: len(out), first: usize::MAX, last: 0 });
                (Piece::Own(pieces.len() - 1), 0)
            });
            for (input, from) in parts(network, layer, layout) {
                if at[input.index()].is_none() && (from * value_bytes).is_multiple_of(VECTOR) {
                    at[input.index()] = Some((piece, offset + from));
                }
            }
        }
        let mut used = |value: ValueId, step: usize| {
            if let Some((Piece::Own(piece), _)) = at[value.index()] {
                let Lifetime { first, last, .. } = &mut pieces[piece];
                (*first, *last) = ((*first).min(step), (*last).max(step));
            }
        };
        for (step, layer) in network.layers().iter().enumerate() {
            used(layer.output, step);
            layer.inputs.iter().for_each(|&input| used(input, step));
            if plane_strides[layer.output.index()].is_some() {
                // Gaps stay zero, or what sparse weights make of zeros, as long as nothing else lies there.
                used(layer.output, 0);
                used(layer.output, network.layers().len());
            }
        }
        let arena = Arena::plan(&pieces);
        let place = |value: usize| {
            let (piece, offset) = at[value].unwrap_or((Piece::Input, 0));
            let (home, offset) = match piece {
                Piece::Input => (Home::Input, offset),
                Piece::Output => (Home::Output, offset),
                Piece::Own(piece) => (Home::Arena, arena.offsets()[piece] + offset),
            };
            Place { home, offset, len: len(value), plane_stride: plane_strides[value] }
        };
        Self { places: (0..shapes.len()).map(place).collect(), arena }
    }

    /// Where each value lies, by its number.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Where a value of the network lies.
    ///
    /// # Panics
    /// For a value of a larger network.
    pub fn place(&self, value: ValueId) -> Place {
        self.places[value.index()]
    }

    /// Elements of the network's own memory: the peak of what intermediate values need.
    pub fn peak(&self) -> usize {
        self.arena.len()
    }

    /// Elements that values need at once at some layer: no plan with values in these pieces has a lower peak.
    pub fn least(&self) -> usize {
        self.arena.least()
    }

    /// Elements that intermediate values would need, each with memory of its own; parts of wider values are not counted twice.
    pub fn sum(&self) -> usize {
        self.arena.sum()
    }
}

/// Inputs of a layer that may lie in parts of its result, each with the part's first element: what then is done already.
fn parts(network: &Network, layer: &Layer, layout: MapLayout) -> Vec<(ValueId, usize)> {
    let out = network.shape(layer.output);
    let is_one_piece = out.images == 1 && (layout == MapLayout::Nchw || out.pixels() == 1);
    match layer.operation {
        Operation::FlattenNhwc(_) if FlattenNhwc::moves_nothing(network.shape(layer.inputs[0]), layout) => {
            vec![(layer.inputs[0], 0)]
        }
        Operation::Flatten(_) if Flatten::moves_nothing(network.shape(layer.inputs[0]), layout) => {
            vec![(layer.inputs[0], 0)]
        }
        Operation::Concat(_) if is_one_piece => {
            let ends = layer.inputs.iter().scan(0, |end, &input| {
                let from = *end;
                *end += network.shape(input).elements();
                Some((input, from))
            });
            ends.collect()
        }
        _ => Vec::new(),
    }
}

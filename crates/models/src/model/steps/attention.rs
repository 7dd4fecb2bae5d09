//! Attention.
use std::sync::PoisonError;

use lacuna::attention::Options;
use lacuna::conv::MapLayout;
use lacuna::{DenseTranspose, Precision, Result, Slice, SliceMut, SparseAttention, Stream, Value};

use super::shared::Room;
use super::{About, Inputs, Planning, Step};
use crate::memory::ALIGNMENT;
use crate::network::{self, Layer, Network, Operation, Part, Shape};

pub(super) fn plan<T: Value>(
    planning: &Planning<'_, T>,
    layer: &Layer,
    attention: &network::Attention,
) -> Result<Box<dyn Step<T>>> {
    let inputs = planning.network.input_shapes(layer);
    let (mask, mask_bytes) = planning.shared.mask(planning.device, &attention.mask)?;
    let (width, parts) = (network::Attention::width(&inputs), network::Attention::parts(&inputs));
    let dim = width / attention.heads;
    // Rows are tokens; K and V have as many channels beside them each, or share their rows.
    let stride = |part: Part| inputs[part.input].channels;
    let options = Options::default().heads_side_by_side(attention.heads, dim);
    // The oracle of networks holds attention of `f32` to FP32 products. Of 16 bits this chooses nothing.
    let options = options.q_stride(stride(parts[0])).kv_stride(stride(parts[1])).precision(Precision::Fma);
    let plan = SparseAttention::plan_with(&mask, dim, options)?;
    let out = planning.network.shape(layer.output);
    let has_rows = inputs.iter().any(|input| input.pixels() > 1);
    let is_turned = planning.options.layout != MapLayout::Nhwc && has_rows;
    let turned = is_turned.then(|| Turned::plan(planning, &inputs, out)).transpose()?;
    let lens = inputs.iter().map(Shape::image_len).collect();
    Ok(Box::new(Attention {
        plan,
        images: out.images,
        parts,
        lens,
        out: out.image_len(),
        turned,
        mask_bytes,
    }))
}

/// A plan for one image's heads.
#[derive(Debug)]
struct Attention<T: Value> {
    plan: SparseAttention<T>,
    images: usize,
    /// Where Q, K and V are.
    parts: [Part; 3],
    /// Elements of an image of each input, and of the result.
    lens: Vec<usize>,
    out: usize,
    /// Of maps whose channels lie a plane apart.
    turned: Option<Turned<T>>,
    mask_bytes: usize,
}

/// How an image comes to lie with channels last, and its result with channels first.
#[derive(Debug)]
struct Turned<T: Value> {
    /// Of each input, and where it then begins in the room.
    to: Vec<(DenseTranspose<T>, usize)>,
    back: DenseTranspose<T>,
    /// The inputs with channels last, and from `heads` on the result.
    room: Room<T>,
    heads: usize,
    /// Of the room, if this layer was the first to ask for it.
    bytes: usize,
}

/// Where images of these inputs and of the result begin in the room, and its elements.
fn places(inputs: &[Shape], out: Shape) -> (Vec<usize>, usize) {
    let mut end = 0_usize;
    let mut place = |shape: &Shape| {
        let from = end.next_multiple_of(ALIGNMENT);
        end = from + shape.image_len();
        from
    };
    let places = inputs.iter().chain([&out]).map(&mut place).collect();
    (places, end)
}

/// The most elements that an attention layer of the network needs.
fn largest_room(network: &Network) -> usize {
    let is_attention = |layer: &&Layer| matches!(layer.operation, Operation::Attention(_));
    let room = |layer: &Layer| places(&network.input_shapes(layer), network.shape(layer.output)).1;
    network.layers().iter().filter(is_attention).map(room).max().unwrap_or(0)
}

impl<T: Value> Turned<T> {
    fn plan(planning: &Planning<'_, T>, inputs: &[Shape], out: Shape) -> Result<Self> {
        let device = planning.device;
        let (mut places, _) = places(inputs, out);
        let heads = places.pop().unwrap_or(0);
        let to = |(input, from): (&Shape, usize)| {
            Ok((DenseTranspose::plan(device, input.channels, input.pixels())?, from))
        };
        let to = inputs.iter().zip(places).map(to).collect::<Result<_>>()?;
        let back = DenseTranspose::plan(device, out.pixels(), out.channels)?;
        let (room, bytes) = planning.shared.room(device, largest_room(planning.network))?;
        Ok(Self { to, back, room, heads, bytes })
    }
}

impl<T: Value> Attention<T> {
    /// Attention of an image with channels last; `input` gives what it has of an input.
    fn attend<'i>(
        &self,
        stream: &Stream,
        input: impl Fn(usize) -> Result<Slice<'i, T>>,
        out: SliceMut<'_, T>,
    ) -> Result<()> {
        let part = |Part { input: of, channel }: Part, len: usize| input(of)?.part(channel..channel + len);
        let [q, k, v] = self.parts;
        let keys = self.plan.key_len();
        self.plan.run(stream, part(q, self.plan.query_len())?, part(k, keys)?, part(v, keys)?, out)
    }
}

impl<T: Value> Step<T> for Attention<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, mut out: SliceMut<'_, T>) -> Result<()> {
        for image in 0..self.images {
            let of_image = |len: usize| image * len..(image + 1) * len;
            let input = |number: usize| inputs.at(number)?.part(of_image(self.lens[number]));
            let out = out.part(of_image(self.out))?;
            let Some(Turned { to, back, room, heads, .. }) = &self.turned else {
                self.attend(stream, input, out)?;
                continue;
            };
            // Whoever panicked while it held the room left no work half given to a stream.
            let mut room = room.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut last, mut result) = room.as_slice_mut().split_at(*heads)?;
            let mut result = result.part(0..self.out)?;
            for (number, (turn, from)) in to.iter().enumerate() {
                turn.run(stream, input(number)?, last.part(*from..from + self.lens[number])?)?;
            }
            let last = last.as_slice();
            let turned = |number: usize| last.part(to[number].1..to[number].1 + self.lens[number]);
            self.attend(stream, turned, result.reborrow())?;
            back.run(stream, result.as_slice(), out)?;
        }
        Ok(())
    }

    fn about(&self) -> About {
        let kernel = self.plan.choice().map_or("three steps", |choice| choice.entry.name);
        let transposes = self.turned.as_ref().map_or(0, |turned| turned.to.len());
        let before = "transpose + ".repeat(transposes);
        let after = if transposes > 0 { " + transpose" } else { "" };
        let workspace_bytes = self.turned.as_ref().map_or(0, |turned| turned.bytes);
        About {
            weight_bytes: self.mask_bytes,
            workspace_bytes,
            ..About::kernel(format!("{before}{kernel}{after}"))
        }
    }
}

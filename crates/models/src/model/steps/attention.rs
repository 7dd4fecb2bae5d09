//! Attention.
use std::sync::PoisonError;

use lacuna::attention::Options;
use lacuna::conv::MapLayout;
use lacuna::{DenseTranspose, Result, Slice, SliceMut, SparseAttention, Stream, Value};

use super::shared::Room;
use super::{About, Inputs, Planning, Step};
use crate::memory::ALIGNMENT;
use crate::network::{self, Layer, Network, Operation};

pub(super) fn plan<T: Value>(
    planning: &Planning<'_, T>,
    layer: &Layer,
    attention: &network::Attention,
) -> Result<Box<dyn Step<T>>> {
    let input = planning.network.shape(layer.inputs[0]);
    let (mask, mask_bytes) = planning.shared.mask(planning.device, &attention.mask)?;
    let (dim, width, tokens) = (attention.dim(input), input.channels / 3, input.pixels());
    // Rows are tokens, of Q, K and V side by side.
    let options = Options::default().heads_side_by_side(attention.heads, dim);
    let options = options.q_stride(3 * width).kv_stride(3 * width);
    let plan = SparseAttention::plan_with(&mask, dim, options)?;
    let is_turned = planning.options.layout != MapLayout::Nhwc && tokens > 1;
    let turned = is_turned.then(|| Turned::plan(planning, width, tokens)).transpose()?;
    Ok(Box::new(Attention { plan, images: input.images, width, tokens, turned, mask_bytes }))
}

/// A plan for one image's heads.
#[derive(Debug)]
struct Attention<T: Value> {
    plan: SparseAttention<T>,
    images: usize,
    /// Channels of Q, of K, of V, and of the result.
    width: usize,
    tokens: usize,
    /// Of maps whose channels lie a plane apart.
    turned: Option<Turned<T>>,
    mask_bytes: usize,
}

/// How an image comes to lie with channels last, and its result with channels first.
#[derive(Debug)]
struct Turned<T: Value> {
    to: DenseTranspose<T>,
    back: DenseTranspose<T>,
    /// Q, K and V with channels last, and from `heads` on the result.
    room: Room<T>,
    heads: usize,
    /// Of the room, if this layer was the first to ask for it.
    bytes: usize,
}

/// Where the result begins in the room for so many channels of Q and so many tokens, and the elements of the room.
fn room([width, tokens]: [usize; 2]) -> [usize; 2] {
    let heads = (3 * width * tokens).next_multiple_of(ALIGNMENT);
    [heads, heads + width * tokens]
}

/// The most elements that an attention layer of the network needs.
fn largest_room(network: &Network) -> usize {
    let is_attention = |layer: &&Layer| matches!(layer.operation, Operation::Attention(_));
    let inputs = network.layers().iter().filter(is_attention).map(|layer| network.shape(layer.inputs[0]));
    inputs.map(|input| room([input.channels / 3, input.pixels()])[1]).max().unwrap_or(0)
}

impl<T: Value> Turned<T> {
    fn plan(planning: &Planning<'_, T>, width: usize, tokens: usize) -> Result<Self> {
        let device = planning.device;
        let (to, back) =
            (DenseTranspose::plan(device, 3 * width, tokens)?, DenseTranspose::plan(device, tokens, width)?);
        let [heads, _] = room([width, tokens]);
        let (room, bytes) = planning.shared.room(device, largest_room(planning.network))?;
        Ok(Self { to, back, room, heads, bytes })
    }
}

impl<T: Value> Attention<T> {
    /// Attention of an image with channels last.
    fn attend(&self, stream: &Stream, qkv: Slice<'_, T>, out: SliceMut<'_, T>) -> Result<()> {
        let Self { plan, width, .. } = self;
        let part = |first: usize, len: usize| qkv.part(first..first + len);
        let (q, k) = (part(0, plan.query_len())?, part(*width, plan.key_len())?);
        plan.run(stream, q, k, part(2 * width, plan.key_len())?, out)
    }
}

impl<T: Value> Step<T> for Attention<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, mut out: SliceMut<'_, T>) -> Result<()> {
        let (of_input, of_out) = (3 * self.width * self.tokens, self.width * self.tokens);
        let input = inputs.at(0)?;
        for image in 0..self.images {
            let input = input.part(image * of_input..(image + 1) * of_input)?;
            let out = out.part(image * of_out..(image + 1) * of_out)?;
            let Some(turned) = &self.turned else {
                self.attend(stream, input, out)?;
                continue;
            };
            // Whoever panicked while it held the room left no work half given to a stream.
            let mut room = turned.room.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut qkv, mut heads) = room.as_slice_mut().split_at(turned.heads)?;
            let (mut qkv, mut heads) = (qkv.part(0..of_input)?, heads.part(0..of_out)?);
            turned.to.run(stream, input, qkv.reborrow())?;
            self.attend(stream, qkv.as_slice(), heads.reborrow())?;
            turned.back.run(stream, heads.as_slice(), out)?;
        }
        Ok(())
    }

    fn about(&self) -> About {
        let kernel = self.plan.choice().map_or("three steps", |choice| choice.entry.name);
        let kernel =
            if self.turned.is_some() { format!("transpose + {kernel} + transpose") } else { kernel.into() };
        let workspace_bytes = self.turned.as_ref().map_or(0, |turned| turned.bytes);
        About { weight_bytes: self.mask_bytes, workspace_bytes, ..About::kernel(kernel) }
    }
}

//! Attention.
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use lacuna::attention::Options;
use lacuna::conv::MapLayout;
use lacuna::matrix::{Csr, Pattern};
use lacuna::{Buffer, CsrMatrix, DenseTranspose, Device, Result, Slice, SliceMut, SparseAttention, Stream};

use super::{About, Inputs, Planning, Step};
use crate::network::{self, Layer};

/// Masks on the device. Layers that share one have it once.
#[derive(Debug, Default)]
pub(in crate::model) struct Masks(RefCell<Vec<(Arc<Pattern>, Rc<CsrMatrix>)>>);

impl Masks {
    /// The mask on the device, and the bytes that this call put there.
    fn on(&self, device: &Device, mask: &Arc<Pattern>) -> Result<(Rc<CsrMatrix>, usize)> {
        let mut masks = self.0.borrow_mut();
        if let Some((_, matrix)) = masks.iter().find(|(known, _)| Arc::ptr_eq(known, mask)) {
            return Ok((Rc::clone(matrix), 0));
        }
        // Attention does not read values.
        let matrix = Csr::with_values(Pattern::clone(mask), vec![0.0; mask.nnz()])?;
        let matrix = Rc::new(CsrMatrix::new(device, &matrix)?);
        masks.push((Arc::clone(mask), Rc::clone(&matrix)));
        Ok((matrix, (mask.nnz() + mask.rows() + 1) * size_of::<u32>()))
    }
}

pub(super) fn plan(
    planning: &Planning<'_>,
    layer: &Layer,
    attention: &network::Attention,
) -> Result<Box<dyn Step>> {
    let input = planning.network.shape(layer.inputs[0]);
    let (mask, mask_bytes) = planning.masks.on(planning.device, &attention.mask)?;
    let (dim, width, tokens) = (attention.dim(input), input.channels / 3, input.pixels());
    // Rows are tokens, of Q, K and V side by side.
    let options = Options::default().heads_side_by_side(attention.heads, dim);
    let options = options.q_stride(3 * width).kv_stride(3 * width);
    let plan = SparseAttention::plan_with(&mask, dim, options)?;
    let is_turned = planning.options.layout != MapLayout::Nhwc && tokens > 1;
    let turned = is_turned.then(|| Turned::new(planning.device, width, tokens)).transpose()?;
    Ok(Box::new(Attention { plan, images: input.images, width, tokens, turned, mask_bytes }))
}

/// A plan for one image's heads.
#[derive(Debug)]
struct Attention {
    plan: SparseAttention,
    images: usize,
    /// Channels of Q, of K, of V, and of the result.
    width: usize,
    tokens: usize,
    /// Of maps whose channels lie a plane apart.
    turned: Option<Turned>,
    mask_bytes: usize,
}

/// An image with channels last, before and after attention, and how it comes to lie so.
#[derive(Debug)]
struct Turned {
    to: DenseTranspose,
    back: DenseTranspose,
    /// Q, K and V, and the result.
    room: Mutex<[Buffer<f32>; 2]>,
}

impl Turned {
    fn new(device: &Device, width: usize, tokens: usize) -> Result<Self> {
        let room = [device.uninitialized(3 * width * tokens)?, device.uninitialized(width * tokens)?];
        Ok(Self {
            to: DenseTranspose::plan(device, 3 * width, tokens)?,
            back: DenseTranspose::plan(device, tokens, width)?,
            room: Mutex::new(room),
        })
    }

    fn bytes(&self) -> usize {
        (self.to.output_len() + self.back.input_len()) * size_of::<f32>()
    }
}

impl Attention {
    /// Attention of an image with channels last.
    fn attend(&self, stream: &Stream, qkv: Slice<'_, f32>, out: SliceMut<'_, f32>) -> Result<()> {
        let Self { plan, width, .. } = self;
        let part = |first: usize, len: usize| qkv.part(first..first + len);
        let (q, k) = (part(0, plan.query_len())?, part(*width, plan.key_len())?);
        plan.run(stream, q, k, part(2 * width, plan.key_len())?, out)
    }
}

impl Step for Attention {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_>, mut out: SliceMut<'_, f32>) -> Result<()> {
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
            let [qkv, heads] = &mut *room;
            turned.to.run(stream, input, qkv.as_slice_mut())?;
            self.attend(stream, qkv.as_slice(), heads.as_slice_mut())?;
            turned.back.run(stream, heads.as_slice(), out)?;
        }
        Ok(())
    }

    fn about(&self) -> About {
        let kernel = self.plan.choice().map_or("three steps", |choice| choice.entry.name);
        let kernel =
            if self.turned.is_some() { format!("transpose + {kernel} + transpose") } else { kernel.into() };
        let workspace_bytes = self.turned.as_ref().map_or(0, Turned::bytes);
        About { weight_bytes: self.mask_bytes, workspace_bytes, ..About::kernel(kernel) }
    }
}

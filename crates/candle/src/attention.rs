//! Attention by a mask.
use candle_core::{CustomOp3, DType, Layout, Result, Shape, Tensor, bail};
use lacuna::attention::{Operands, Options};
use lacuna::{Slice, SliceMut, SparseAttention, Stream};

use crate::dense::Dense;
use crate::frame::{Contents, Operation, forward};
use crate::{Backend, Element, Pattern};

impl Pattern {
    /// O = softmax(scale·Q·Kᵀ)·V over the nonzeros of this pattern (queries × keys), the mask, in one kernel.
    ///
    /// Q is (queries, d), K and V are (keys, d), or all have heads before that, which share the mask; rows without gaps within. A query
    /// without keys gets 0. Gradients flow to all three, by SDDMM, softmax and SpMM, with the weights computed again.
    ///
    /// # Errors
    /// For tensors of other shapes, types or devices, or with gaps; for a dimension of 0 and a scale that is not finite; what the driver
    /// says.
    pub fn attention(&self, q: &Tensor, k: &Tensor, v: &Tensor, scale: f32) -> Result<Tensor> {
        q.apply_op3(k, v, Attention { mask: self.clone(), scale })
    }
}

struct Attention {
    mask: Pattern,
    scale: f32,
}

impl Operation<3> for Attention {
    const NAME: &'static str = "lacuna-attention";

    fn backend(&self) -> &Backend {
        self.mask.backend()
    }
    fn result(&self, _: DType, [q, k, v]: [&Layout; 3]) -> Result<(Shape, Contents)> {
        let of = |what, layout| Dense::of(Self::NAME, what, layout);
        let [of_q, of_k, of_v] = [of("Q", q)?, of("K", k)?, of("V", v)?];
        of_q.expect(Self::NAME, "Q", [self.mask.rows(), of_q.cols])?;
        of_k.expect(Self::NAME, "K", [self.mask.cols(), of_q.cols])?;
        if of_k != of_v || of_k.batch != of_q.batch {
            let shapes = [q, k, v].map(|layout| (layout.dims(), layout.stride()));
            bail!(
                "{}: Q, K and V have shapes and strides {shapes:?}, but the same heads, and K and V alike, are expected",
                Self::NAME
            )
        }
        Ok((q.shape().clone(), Contents::Any))
    }
    unsafe fn launch<T: Element>(
        &self,
        stream: &Stream,
        [(q, q_layout), (k, k_layout), (v, _)]: [(u64, &Layout); 3],
        o: u64,
    ) -> lacuna::Result<()> {
        let (mask, device) = (self.mask.matrix(), stream.device());
        let of = |what, layout| Dense::of(Self::NAME, what, layout).expect("it was checked");
        let [of_q, of_kv] = [of("Q", q_layout), of("K", k_layout)];
        let (dim, heads) = (of_q.cols, of_q.count());
        let lies = |of: Dense| [of.stride, of.batch_stride];
        let (q_lies, kv_lies) = (lies(of_q), lies(of_kv));
        let numbers =
            [dim, heads, self.scale.to_bits() as usize, q_lies[0], q_lies[1], kv_lies[0], kv_lies[1]];
        let plan = self.mask.plans().get_or_make::<T, _>(Self::NAME, stream, &numbers, || {
            let mut options = Options::default().batch(heads).scale(self.scale);
            // Attention in three steps, which some sizes take, wants to hear of no strides where there are no gaps.
            if (q_lies, kv_lies) != ([dim, of_q.rows * dim], [dim, of_kv.rows * dim]) {
                options = options.q_stride(q_lies[0]).q_batch_stride(q_lies[1]);
                options = options.kv_stride(kv_lies[0]).kv_batch_stride(kv_lies[1]);
            }
            SparseAttention::plan_with(&mask.with_zeros::<T>(0)?, dim, options)
        })?;
        // SAFETY: as promised by the caller.
        unsafe {
            let q = Slice::from_raw(device, q, plan.query_len())?;
            let k = Slice::from_raw(device, k, plan.key_len())?;
            let v = Slice::from_raw(device, v, plan.key_len())?;
            let o = SliceMut::from_raw(device, o, plan.output_len())?;
            plan.run_with(stream, Operands { q, k, v, o, logsumexp: None, alibi_slopes: None })
        }
    }
}

impl CustomOp3 for Attention {
    forward!(q q_layout, k k_layout, v v_layout);

    fn bwd(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        _: &Tensor,
        o: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Self { mask, scale } = self;
        let ([q, k, v], o) = ([q, k, v].map(Tensor::detach), o.contiguous()?);
        let transposed = mask.transposed()?;
        let weights = mask.softmax(&mask.sddmm(&q, &k)?, *scale)?;
        let of_v = transposed.spmm(&mask.transpose(&weights)?, &o)?;
        let of_scores = mask.softmax_backward(&weights, &mask.sddmm(&o, &v)?, *scale)?;
        let of_q = mask.spmm(&of_scores, &k)?;
        let of_k = transposed.spmm(&mask.transpose(&of_scores)?, &q)?;
        Ok((Some(of_q), Some(of_k), Some(of_v)))
    }
}

//! The product of two dense matrices at the nonzeros of a pattern.
use candle_core::{CustomOp2, DType, Layout, Result, Shape, Tensor, bail};
use lacuna::sddmm::Options;
use lacuna::{Sddmm, Slice, Stream};

use crate::dense::Dense;
use crate::frame::{Contents, Operation, forward};
use crate::{Backend, Element, Pattern};

impl Pattern {
    /// A·Bᵀ at the nonzeros of this pattern (M×N): a tensor of values.
    ///
    /// A is (M, K) and B is (N, K), or both have a batch before that, and then the result has it; rows are without gaps within. Sums are in
    /// `f32`. Gradients flow to both.
    ///
    /// # Errors
    /// For tensors of other shapes, types or devices, or with gaps; from a K of 2³⁰ on; what the driver says.
    pub fn sddmm(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        a.apply_op2(b, Sampled { pattern: self.clone() })
    }
}

struct Sampled {
    pattern: Pattern,
}

impl Operation<2> for Sampled {
    const NAME: &'static str = "lacuna-sddmm";

    fn backend(&self) -> &Backend {
        self.pattern.backend()
    }
    fn result(&self, _: DType, [a, b]: [&Layout; 2]) -> Result<(Shape, Contents)> {
        let [a, b] = [Dense::of(Self::NAME, "A", a)?, Dense::of(Self::NAME, "B", b)?];
        a.expect(Self::NAME, "A", [self.pattern.rows(), a.cols])?;
        b.expect(Self::NAME, "B", [self.pattern.cols(), a.cols])?;
        if a.batch != b.batch {
            bail!("{}: A has a batch of {:?}, and B one of {:?}", Self::NAME, a.batch, b.batch)
        }
        Ok((self.pattern.values_shape(a.batch).into(), Contents::Zeros))
    }
    unsafe fn launch<T: Element>(
        &self,
        stream: &Stream,
        [(a, a_layout), (b, b_layout)]: [(u64, &Layout); 2],
        d: u64,
    ) -> lacuna::Result<()> {
        let (matrix, device) = (self.pattern.matrix(), stream.device());
        let of = |what, layout| Dense::of(Self::NAME, what, layout).expect("it was checked");
        let [of_a, of_b] = [of("A", a_layout), of("B", b_layout)];
        let batch = of_a.count();
        let numbers = [of_a.cols, batch, of_a.stride, of_a.batch_stride, of_b.stride, of_b.batch_stride];
        let plan = self.pattern.plans().get_or_make::<T, _>(Self::NAME, stream, &numbers, || {
            let options =
                Options::default().batch(batch).a_stride(of_a.stride).a_batch_stride(of_a.batch_stride);
            let options = options.b_stride(of_b.stride).b_batch_stride(of_b.batch_stride);
            Sddmm::plan_with(&matrix.with_zeros::<T>(0)?, of_a.cols, options)
        })?;
        // SAFETY: as promised by the caller.
        unsafe {
            let a = Slice::from_raw(device, a, plan.a_len())?;
            let b = Slice::from_raw(device, b, plan.b_len())?;
            plan.run(stream, a, b, &mut matrix.with_foreign_values::<T>(batch, d)?)
        }
    }
}

impl CustomOp2 for Sampled {
    forward!(a a_layout, b b_layout);

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        _: &Tensor,
        d: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let d = d.contiguous()?;
        let of_a = || self.pattern.spmm(&d, b);
        let of_b = || self.pattern.transposed()?.spmm(&self.pattern.transpose(&d)?, a);
        Ok((a.track_op().then(of_a).transpose()?, b.track_op().then(of_b).transpose()?))
    }
}

//! Values in the order of Aᵀ.
use candle_core::{CustomOp1, DType, Layout, Result, Shape, Tensor};
use lacuna::Stream;

use crate::frame::{Contents, Operation, forward};
use crate::{Backend, Element, Pattern};

impl Pattern {
    /// The values of Aᵀ, whose pattern is [`transposed`](Self::transposed), from those of A, in one launch. Gradients flow through it.
    ///
    /// # Errors
    /// For tensors of other shapes or devices; what the driver says.
    pub fn transpose(&self, values: &Tensor) -> Result<Tensor> {
        values.apply_op1(Transpose { from: self.clone(), to: self.transposed()? })
    }
}

struct Transpose {
    from: Pattern,
    to: Pattern,
}

impl Operation<1> for Transpose {
    const NAME: &'static str = "lacuna-transpose";

    fn backend(&self) -> &Backend {
        self.from.backend()
    }
    fn result(&self, _: DType, [values]: [&Layout; 1]) -> Result<(Shape, Contents)> {
        let batch = self.from.batch_of(Self::NAME, values)?;
        Ok((self.to.values_shape(batch).into(), Contents::Zeros))
    }
    unsafe fn launch<T: Element>(
        &self,
        stream: &Stream,
        [(values, layout)]: [(u64, &Layout); 1],
        result: u64,
    ) -> lacuna::Result<()> {
        let batch = layout.shape().elem_count() / self.from.values_len();
        // SAFETY: as promised by the caller.
        unsafe {
            let from = self.from.matrix().with_foreign_values::<T>(batch, values)?;
            self.to.matrix().with_foreign_values::<T>(batch, result)?.update_from(stream, &from)
        }
    }
}

impl CustomOp1 for Transpose {
    forward!(values layout);

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        // The transposed of Aᵀ has A's pattern, and so A's order of values.
        self.to.transpose(&gradient.contiguous()?).map(Some)
    }
}

//! Softmax of the values in each row.
use std::sync::Arc;

use candle_core::{CustomOp1, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};
use lacuna::softmax::Options;
use lacuna::{SparseSoftmax, Stream};

use crate::frame::{Contents, Operation, forward};
use crate::{Backend, Element, Pattern};

impl Pattern {
    /// softmax(scale·x) over the values of each row. What is not stored takes no part: it counts as −∞. Gradients flow to x.
    ///
    /// # Errors
    /// For tensors of other shapes or devices; for a scale that is 0 or not finite; what the driver says.
    pub fn softmax(&self, values: &Tensor, scale: f32) -> Result<Tensor> {
        values.apply_op1(Softmax { pattern: self.clone(), scale })
    }

    /// The gradient of x from y = softmax(scale·x) and its gradient, without gradients of its own.
    pub(crate) fn softmax_backward(&self, y: &Tensor, dy: &Tensor, scale: f32) -> Result<Tensor> {
        let forward = Softmax { pattern: self.clone(), scale };
        y.apply_op2_no_bwd(&dy.contiguous()?, &Backward(&forward))
    }
}

struct Softmax {
    pattern: Pattern,
    scale: f32,
}

/// The gradient of x from y = softmax(scale·x) and its gradient.
struct Backward<'f>(&'f Softmax);

impl Softmax {
    fn plan<T: Element>(
        &self,
        stream: &Stream,
        layout: &Layout,
    ) -> lacuna::Result<(Arc<SparseSoftmax<T>>, usize)> {
        let pattern = &self.pattern;
        let batch = layout.shape().elem_count() / pattern.values_len();
        let numbers = [batch, self.scale.to_bits() as usize];
        let plan = pattern.plans().get_or_make::<T, _>(Self::NAME, stream, &numbers, || {
            let options = Options::default().batch(batch).scale(self.scale);
            SparseSoftmax::plan_with(&pattern.matrix().with_zeros::<T>(0)?, options)
        })?;
        Ok((plan, batch))
    }
}

impl Operation<1> for Softmax {
    const NAME: &'static str = "lacuna-softmax";

    fn backend(&self) -> &Backend {
        self.pattern.backend()
    }
    fn result(&self, _: DType, [x]: [&Layout; 1]) -> Result<(Shape, Contents)> {
        let batch = self.pattern.batch_of(Self::NAME, x)?;
        Ok((self.pattern.values_shape(batch).into(), Contents::Zeros))
    }
    unsafe fn launch<T: Element>(
        &self,
        stream: &Stream,
        [(x, layout)]: [(u64, &Layout); 1],
        y: u64,
    ) -> lacuna::Result<()> {
        let (matrix, (plan, batch)) = (self.pattern.matrix(), self.plan::<T>(stream, layout)?);
        // SAFETY: as promised by the caller.
        unsafe {
            let x = matrix.with_foreign_values::<T>(batch, x)?;
            plan.run(stream, &x, &mut matrix.with_foreign_values::<T>(batch, y)?)
        }
    }
}

impl CustomOp1 for Softmax {
    forward!(x layout);

    fn bwd(&self, _: &Tensor, y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        self.pattern.softmax_backward(y, dy, self.scale).map(Some)
    }
}

impl Operation<2> for Backward<'_> {
    const NAME: &'static str = "lacuna-softmax-backward";

    fn backend(&self) -> &Backend {
        self.0.pattern.backend()
    }
    fn result(&self, dtype: DType, [y, dy]: [&Layout; 2]) -> Result<(Shape, Contents)> {
        if y.dims() != dy.dims() {
            bail!("{}: the gradient has shape {:?}, but {:?} is expected", Self::NAME, dy.dims(), y.dims())
        }
        self.0.pattern.batch_of(Self::NAME, dy)?;
        self.0.result(dtype, [y])
    }
    unsafe fn launch<T: Element>(
        &self,
        stream: &Stream,
        [(y, layout), (dy, _)]: [(u64, &Layout); 2],
        dx: u64,
    ) -> lacuna::Result<()> {
        let (matrix, (plan, batch)) = (self.0.pattern.matrix(), self.0.plan::<T>(stream, layout)?);
        // SAFETY: as promised by the caller.
        unsafe {
            let y = matrix.with_foreign_values::<T>(batch, y)?;
            let dy = matrix.with_foreign_values::<T>(batch, dy)?;
            plan.backward(stream, &y, &dy, &mut matrix.with_foreign_values::<T>(batch, dx)?)
        }
    }
}

impl CustomOp2 for Backward<'_> {
    forward!(y y_layout, dy dy_layout);
}

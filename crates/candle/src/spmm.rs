//! C = A·B, and with a bias.
use candle_core::{CustomOp2, CustomOp3, DType, Layout, Result, Shape, Tensor, bail};
use lacuna::spmm::{Operands, Options};
use lacuna::{Slice, SliceMut, Spmm, Stream};

use crate::dense::Dense;
use crate::frame::{Contents, Operation, forward};
use crate::{Backend, Element, Pattern};

impl Pattern {
    /// C = A·B for the matrix A (M×K) of this pattern and these values, with sums in `f32`.
    ///
    /// B is (K, N) or (batch, K, N), its rows without gaps within; C is (M, N) or (batch, M, N). A batch of B has one A, or as many.
    /// Gradients flow to the values and to B, at a cost of an SDDMM and of a product with Aᵀ. The same operands give the same bits in
    /// every run.
    ///
    /// ```
    /// # use candle_core::{Device, Tensor};
    /// # use lacuna::matrix::Csr;
    /// # use lacuna_candle::{Backend, Pattern};
    /// # fn main() -> candle_core::Result<()> {
    /// // [ 1 . 2 ]
    /// // [ . . 3 ]
    /// let a = Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 2], vec![1.0_f32, 2.0, 3.0]).expect("a matrix");
    /// let pattern = Pattern::new(&Backend::simulator(), a.pattern().clone())?;
    /// let b = Tensor::new(&[[1.0_f32, 0.0], [0.0, 1.0], [1.0, 1.0]], &Device::Cpu)?;
    /// let c = pattern.spmm(&pattern.values(a.values())?, &b)?;
    /// assert_eq!(c.to_vec2::<f32>()?, [[3.0, 2.0], [3.0, 3.0]]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// For tensors of other shapes, types or devices, or with gaps; from 2³⁰ columns on; what the driver says.
    pub fn spmm(&self, values: &Tensor, b: &Tensor) -> Result<Tensor> {
        values.apply_op2(b, Product { pattern: self.clone() })
    }

    /// C = A·B + bias: as [`spmm`](Self::spmm), with an element of the bias (M) added to each row, in the same kernel, before C is rounded
    /// once. Gradients flow to the bias, too.
    ///
    /// # Errors
    /// As for `spmm`.
    pub fn spmm_bias(&self, values: &Tensor, b: &Tensor, bias: &Tensor) -> Result<Tensor> {
        values.apply_op3(b, bias, ProductWithBias(Product { pattern: self.clone() }))
    }
}

struct Product {
    pattern: Pattern,
}

/// The same with a third operand, the bias.
struct ProductWithBias(Product);

const SPMM: &str = "lacuna-spmm";

impl Product {
    fn shape(&self, values: &Layout, b: &Layout) -> Result<Shape> {
        let Self { pattern } = self;
        let batch = pattern.batch_of(SPMM, values)?;
        let b = Dense::of(SPMM, "B", b)?;
        b.expect(SPMM, "B", [pattern.cols(), b.cols])?;
        if batch.is_some() && batch != b.batch {
            bail!(
                "{SPMM}: there are {} matrices of values, but B has shape of {:?} matrices",
                batch.unwrap_or(1),
                b.batch
            )
        }
        let dims: Vec<usize> = b.batch.into_iter().chain([pattern.rows(), b.cols]).collect();
        Ok(dims.into())
    }

    /// # Safety
    /// As for [`Operation::launch`].
    unsafe fn run<T: Element>(
        &self,
        stream: &Stream,
        (values, values_layout): (u64, &Layout),
        (b, b_layout): (u64, &Layout),
        bias: Option<u64>,
        c: u64,
    ) -> lacuna::Result<()> {
        let (matrix, device) = (self.pattern.matrix(), stream.device());
        let lies = Dense::of(SPMM, "B", b_layout).expect("it was checked");
        let count = lies.count();
        let numbers = [lies.cols, count, lies.stride, lies.batch_stride];
        let plan = self.pattern.plans().get_or_make::<T, _>(SPMM, stream, &numbers, || {
            let options =
                Options::default().batch(count).b_stride(lies.stride).b_batch_stride(lies.batch_stride);
            Spmm::plan_with(&matrix.with_zeros::<T>(0)?, lies.cols, options)
        })?;
        let matrices = if values_layout.dims().len() == 1 { 1 } else { count };
        // SAFETY: as promised by the caller.
        unsafe {
            let a = &matrix.with_foreign_values::<T>(matrices, values)?;
            let b = Slice::from_raw(device, b, plan.input_len())?;
            let c = SliceMut::from_raw(device, c, plan.output_len())?;
            let bias = bias.map(|bias| Slice::from_raw(device, bias, matrix.rows())).transpose()?;
            plan.run_with(stream, Operands { a, b, c, bias })
        }
    }

    /// Of the values and of B.
    fn gradients(&self, values: &Tensor, b: &Tensor, c: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let of_values = || {
            let each = self.pattern.sddmm(c, b)?;
            // One matrix took part in all products of the batch.
            if each.rank() > values.rank() { each.sum(0) } else { Ok(each) }
        };
        let of_b = || self.pattern.transposed()?.spmm(&self.pattern.transpose(values)?, c);
        let wanted =
            |tensor: &Tensor, make: &dyn Fn() -> Result<Tensor>| tensor.track_op().then(make).transpose();
        Ok((wanted(values, &of_values)?, wanted(b, &of_b)?))
    }
}

impl Operation<2> for Product {
    const NAME: &'static str = SPMM;

    fn backend(&self) -> &Backend {
        self.pattern.backend()
    }
    fn result(&self, _: DType, [values, b]: [&Layout; 2]) -> Result<(Shape, Contents)> {
        Ok((self.shape(values, b)?, Contents::Any))
    }
    unsafe fn launch<T: Element>(
        &self,
        stream: &Stream,
        [values, b]: [(u64, &Layout); 2],
        c: u64,
    ) -> lacuna::Result<()> {
        // SAFETY: as promised by the caller.
        unsafe { self.run::<T>(stream, values, b, None, c) }
    }
}

impl CustomOp2 for Product {
    forward!(values values_layout, b b_layout);

    fn bwd(
        &self,
        values: &Tensor,
        b: &Tensor,
        _: &Tensor,
        c: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        self.gradients(values, b, &c.contiguous()?)
    }
}

impl Operation<3> for ProductWithBias {
    const NAME: &'static str = SPMM;

    fn backend(&self) -> &Backend {
        self.0.pattern.backend()
    }
    fn result(&self, _: DType, [values, b, bias]: [&Layout; 3]) -> Result<(Shape, Contents)> {
        let rows = self.0.pattern.rows();
        if bias.dims() != [rows] || !bias.is_contiguous() {
            bail!(
                "{SPMM}: the bias has shape {:?}, but ({rows}) without gaps is expected, one a row",
                bias.dims()
            )
        }
        Ok((self.0.shape(values, b)?, Contents::Any))
    }
    unsafe fn launch<T: Element>(
        &self,
        stream: &Stream,
        [values, b, (bias, _)]: [(u64, &Layout); 3],
        c: u64,
    ) -> lacuna::Result<()> {
        // SAFETY: as promised by the caller.
        unsafe { self.0.run::<T>(stream, values, b, Some(bias), c) }
    }
}

impl CustomOp3 for ProductWithBias {
    forward!(values values_layout, b b_layout, bias bias_layout);

    fn bwd(
        &self,
        values: &Tensor,
        b: &Tensor,
        bias: &Tensor,
        _: &Tensor,
        c: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let c = c.contiguous()?;
        let (of_values, of_b) = self.0.gradients(values, b, &c)?;
        let of_bias = || match c.rank() {
            2 => c.sum(1),
            _ => c.sum((0, 2)),
        };
        Ok((of_values, of_b, bias.track_op().then(of_bias).transpose()?))
    }
}

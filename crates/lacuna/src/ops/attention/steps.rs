//! Attention in three steps, which keep the weights; and backward.
use crate::{
    CsrMatrix, Error, Index, Result, Sddmm, Slice, SliceMut, SparseSoftmax, Spmm, Stream, Value, sddmm,
    softmax, spmm,
};

use super::{OPERATION, Options};

/// Attention as three operations, SDDMM, softmax and SpMM, and its gradients: for training, which needs the weights P.
///
/// All heads' weights are a batch of sparse matrices with the mask's pattern, of the type of the operands, to which scores and
/// weights are rounded. Memory beside the operands: P forward ([`weights_bytes`](Self::weights_bytes)), and twice as much more
/// backward, where nothing is as large as queries × keys either.
///
/// ```
/// use lacuna::matrix::{Csr, generate};
/// use lacuna::{AttentionSteps, CsrMatrix, Device, attention};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mask = generate::band_random(20, 8, 0.9, 1)?;
/// let ones = vec![1.0; mask.nnz()];
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let mask = CsrMatrix::new(&device, &Csr::with_values(mask, ones)?)?;
///
/// let steps = AttentionSteps::plan(&mask, 4, attention::Options::default())?;
/// let mut p = steps.weights()?;
/// let mut workspace = steps.workspace(&stream)?;
/// let q = device.upload(&generate::random_values(20 * 4, 2))?;
/// let (k, v, d_o) = (&q, &q, &q);
/// let mut o = device.zeros(20 * 4)?;
/// steps.forward(&stream, q.as_slice(), k.as_slice(), v.as_slice(), &mut p, o.as_slice_mut())?;
///
/// let [mut d_q, mut d_k, mut d_v] = [device.zeros(20 * 4)?, device.zeros(20 * 4)?, device.zeros(20 * 4)?];
/// let pass = attention::BackwardOperands {
///     q: q.as_slice(),
///     k: k.as_slice(),
///     v: v.as_slice(),
///     p: &p,
///     d_o: d_o.as_slice(),
///     d_q: d_q.as_slice_mut(),
///     d_k: d_k.as_slice_mut(),
///     d_v: d_v.as_slice_mut(),
/// };
/// steps.backward(&stream, pass, &mut workspace)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AttentionSteps<T: Value = f32, I: Index = u32> {
    /// No matrices of the mask's pattern.
    pattern: CsrMatrix<T, I>,
    batch: usize,
    dim: usize,
    scores: Sddmm<T, I>,
    softmax: SparseSoftmax<T, I>,
    product: Spmm<T, I>,
    /// What is asked of products with weights, transposed too.
    of_product: spmm::Options,
}

/// Room for what [`AttentionSteps::backward`] works out on its way.
#[derive(Debug)]
pub struct Workspace<T: Value = f32, I: Index = u32> {
    /// The gradient of the weights, then that of the scores.
    gradients: CsrMatrix<T, I>,
    /// The weights transposed, then their gradient.
    transposed: CsrMatrix<T, I>,
    /// Products with it.
    product: Spmm<T, I>,
}

/// What [`AttentionSteps::backward`] works on.
#[derive(Debug)]
pub struct BackwardOperands<'o, T: Value = f32, I: Index = u32> {
    /// Q, as it was forward: batch × queries × d.
    pub q: Slice<'o, T>,
    /// K: batch × keys × d.
    pub k: Slice<'o, T>,
    /// V: batch × keys × d.
    pub v: Slice<'o, T>,
    /// The weights that [`AttentionSteps::forward`] wrote.
    pub p: &'o CsrMatrix<T, I>,
    /// The gradient of O: batch × queries × d.
    pub d_o: Slice<'o, T>,
    /// The gradient of Q, to be written.
    pub d_q: SliceMut<'o, T>,
    /// The gradient of K, to be written.
    pub d_k: SliceMut<'o, T>,
    /// The gradient of V, to be written.
    pub d_v: SliceMut<'o, T>,
}

impl<T: Value, I: Index> AttentionSteps<T, I> {
    /// A plan for this mask (queries × keys), whose values are not read, and rows of `dim` elements. The algorithm among the
    /// options is no matter.
    ///
    /// # Errors
    /// [`Error::Parameter`] for strides, shared K and V and a soft cap, and for a scale that is 0, not finite, or of a size that softmax refuses;
    /// those of [`Sddmm::plan_with`], [`SparseSoftmax::plan_with`] and [`Spmm::plan_with`].
    pub fn plan(mask: &CsrMatrix<T, I>, dim: usize, options: Options) -> Result<Self> {
        let (batch, strides) = (options.batch, if options.has_strides() { "strides" } else { "none" });
        let expected = || "none: three steps take operands without gaps, one head after another";
        Error::expect(!options.has_strides(), OPERATION, "the strides", expected, strides)?;
        let (group, expected) = (options.kv_group, || "1: three steps take K and V of each head");
        Error::expect(group == 1, OPERATION, "the heads that share K and V", expected, group)?;
        let (capped, expected) = (options.softcap.unwrap_or(0.0), || "none: three steps do not cap scores");
        Error::expect(options.softcap.is_none(), OPERATION, "the soft cap", expected, capped)?;
        let scale = options.factor(dim)?;
        let precision = options.precision;
        let of_product = spmm::Options::default().batch(batch).precision(precision);
        Ok(Self {
            pattern: mask.with_zeros(0)?,
            batch,
            dim,
            scores: Sddmm::plan_with(mask, dim, sddmm::Options::default().batch(batch).precision(precision))?,
            softmax: SparseSoftmax::plan_with(mask, softmax::Options::default().scale(scale).batch(batch))?,
            product: Spmm::plan_with(mask, dim, of_product)?,
            of_product,
        })
    }

    /// Room for the weights of all heads.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn weights(&self) -> Result<CsrMatrix<T, I>> {
        self.pattern.with_zeros(self.batch)
    }

    /// Bytes of the weights of all heads. A [workspace](Self::workspace) has twice as many, and what the transposed pattern
    /// takes, which all matrices with this mask share.
    pub fn weights_bytes(&self) -> usize {
        self.batch * self.pattern.values_stride() * size_of::<T>()
    }

    /// Room for [`backward`](Self::backward). The first call for a pattern works out its transposed, and waits for that.
    ///
    /// # Errors
    /// Those of [`CsrMatrix::transposed`], and [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn workspace(&self, stream: &Stream) -> Result<Workspace<T, I>> {
        let gradients = self.weights()?;
        let transposed = gradients.transposed(stream)?;
        let product = Spmm::plan_with(&transposed, self.dim, self.of_product)?;
        Ok(Workspace { gradients, transposed, product })
    }

    /// O and the weights: `p` is overwritten by them. Gives the work to the stream, and returns at once.
    ///
    /// # Errors
    /// Those of [`Sddmm::run`], [`SparseSoftmax::run_in_place`] and [`Spmm::run`], for operands that do not fit.
    pub fn forward(
        &self,
        stream: &Stream,
        q: Slice<'_, T>,
        k: Slice<'_, T>,
        v: Slice<'_, T>,
        p: &mut CsrMatrix<T, I>,
        o: SliceMut<'_, T>,
    ) -> Result<()> {
        self.scores.run(stream, q, k, p)?;
        self.softmax.run_in_place(stream, p)?;
        self.product.run(stream, p, v, o)
    }

    /// The gradients of Q, K and V from that of O: dV = Pᵀ·dO, dP = dO·Vᵀ at the mask's elements, dS by softmax's backward,
    /// dQ = dS·K, dK = dSᵀ·Q. Gives the work to the stream, and returns at once.
    ///
    /// # Errors
    /// As [`forward`](Self::forward), and those of [`CsrMatrix::update_from`], also for a workspace of another mask.
    pub fn backward(
        &self,
        stream: &Stream,
        pass: BackwardOperands<'_, T, I>,
        workspace: &mut Workspace<T, I>,
    ) -> Result<()> {
        let BackwardOperands { q, k, v, p, d_o, d_q, d_k, d_v } = pass;
        let Workspace { gradients, transposed, product } = workspace;
        transposed.update_from(stream, p)?;
        product.run(stream, transposed, d_o, d_v)?;
        self.scores.run(stream, d_o, v, gradients)?;
        self.softmax.backward_in_place(stream, p, gradients)?;
        self.product.run(stream, gradients, k, d_q)?;
        transposed.update_from(stream, gradients)?;
        product.run(stream, transposed, q, d_k)
    }
}

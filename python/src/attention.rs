//! Sparse attention: by a pattern, and by masks that are given as rules.
use lacuna::attention::{self, Operands, Options};
use lacuna::{BlockAttention, Index, Slice, SparseAttention, Stream, Value};
use pyo3::prelude::*;

use crate::attention_backward::Backward;
use crate::device::{Device, Dtype, stream, with_type};
use crate::error::raise;
use crate::mask::Mask;
use crate::pattern::{Pattern, PatternOf, output, precision, with_pattern};
use crate::plans::{CallStream, Key, Operation, Plans};
use crate::torch::{Call, direct};

/// Heads, their dimension, and where operands are: address, elements from row to row, and elements from head to head.
pub(crate) struct Heads {
    pub(crate) stream: CallStream,
    pub(crate) dtype: Dtype,
    dim: usize,
    batch: usize,
    /// Neighbouring heads that share K and V.
    group: usize,
    scale: f32,
    softcap: Option<f32>,
    /// Where a slope of each head is, if there are any.
    slopes: Option<u64>,
    precise: bool,
    pub(crate) q: (u64, usize, usize),
    pub(crate) kv: (u64, u64, usize, usize),
    o: (u64, usize, usize),
    /// Where the logarithms are to be written, one a query of each head without gaps, if they are wanted.
    logsumexp: Option<u64>,
}

impl<'py> FromPyObject<'_, 'py> for Heads {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (stream, dtype, dim, (batch, group), (scale, softcap, slopes, precise), q, kv, o, logsumexp) =
            object.extract()?;
        Ok(Self { stream, dtype, dim, batch, group, scale, softcap, slopes, precise, q, kv, o, logsumexp })
    }
}

impl Heads {
    /// Whether heads lie one after another without gaps, which is all that attention in three steps takes.
    pub(crate) fn are_plain(&self, [queries, keys]: [usize; 2]) -> bool {
        let Self { dim, q, kv, o, .. } = *self;
        let of_head = (dim, queries * dim);
        (q.1, q.2) == of_head && (o.1, o.2) == of_head && (kv.2, kv.3) == (dim, keys * dim)
    }

    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    pub(crate) fn options(&self, size: [usize; 2]) -> Options {
        let options = Options::default().batch(self.batch).kv_group(self.group).scale(self.scale);
        let options = options.precision(precision(self.precise));
        let options = self.softcap.map_or(options, |softcap| options.softcap(softcap));
        if self.are_plain(size) {
            return options;
        }
        let options = options.q_stride(self.q.1).q_batch_stride(self.q.2);
        let options = options.kv_stride(self.kv.2).kv_batch_stride(self.kv.3);
        options.o_stride(self.o.1).o_batch_stride(self.o.2)
    }

    /// The key of its plan, of those of a stream, as a plan may have memory for weights.
    pub(crate) fn key(&self, operation: Operation, stream: usize) -> Key {
        let Self { dtype, dim, batch, group, scale, softcap, precise, q, kv, o, .. } = *self;
        // No cap has the bits of a NaN.
        let dim = dim | (softcap.map_or(u32::MAX, f32::to_bits) as usize) << 32;
        let scale = scale.to_bits() as usize | group << 32;
        let batch = batch << 1 | usize::from(precise);
        let numbers = [dim, batch, scale, q.1, q.2, kv.2, kv.3, o.1, o.2];
        Key { operation, dtype, stream, numbers: numbers.map(|number| number as u64) }
    }

    /// The slopes, if there are any.
    ///
    /// # Safety
    /// As for [`operands`](Self::operands).
    pub(crate) unsafe fn slopes_on<'d>(
        &self,
        device: &'d lacuna::Device,
    ) -> lacuna::Result<Option<Slice<'d, f32>>> {
        // SAFETY: as promised by the caller: there is one a head.
        self.slopes.map(|address| unsafe { Slice::from_raw(device, address, self.batch) }).transpose()
    }

    /// The stream and the operands, of these lengths of Q, of K, of O, and of the logarithms.
    ///
    /// # Safety
    /// The addresses are of live tensors of the sizes and strides given, which stay until the stream has come to this.
    unsafe fn operands<'d, T: Value>(
        &self,
        device: &'d lacuna::Device,
        [q_len, k_len, o_len, logsumexp_len]: [usize; 4],
    ) -> lacuna::Result<(Stream, Operands<'d, T>)> {
        // SAFETY: as promised by the caller.
        unsafe {
            let q = Slice::from_raw(device, self.q.0, q_len)?;
            let k = Slice::from_raw(device, self.kv.0, k_len)?;
            let v = Slice::from_raw(device, self.kv.1, k_len)?;
            let o = output(device, self.o.0, o_len)?;
            let of_logarithms = |address| output(device, address, logsumexp_len);
            let logsumexp = self.logsumexp.map(of_logarithms).transpose()?;
            let alibi_slopes = self.slopes_on(device)?;
            Ok((stream(device, self.stream.0)?, Operands { q, k, v, o, logsumexp, alibi_slopes }))
        }
    }
}

/// What becomes of products: a scale, a soft cap, and slopes by distance; and whether those of `f32` are fused multiply-adds alone.
pub(crate) struct Scores<'py> {
    scale: Option<f32>,
    softcap: Option<f32>,
    slopes: Option<Bound<'py, PyAny>>,
    precise: bool,
}

impl<'py> FromPyObject<'_, 'py> for Scores<'py> {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (scale, softcap, slopes, precise) = object.extract()?;
        Ok(Self { scale, softcap, slopes, precise })
    }
}

impl<'py> Scores<'py> {
    /// Operands, and the slopes with them.
    pub(crate) fn with<'a, const N: usize>(
        &'a self,
        operands: [&'a Bound<'py, PyAny>; N],
    ) -> Vec<&'a Bound<'py, PyAny>> {
        operands.into_iter().chain(&self.slopes).collect()
    }
}

#[pymethods]
impl Pattern {
    /// O = softmax(scale·Q·Kᵀ at the nonzeros)·V, for a batch of heads.
    fn attention(&self, py: Python<'_>, heads: Heads) -> PyResult<()> {
        with_pattern!(self, of => of.attention(py, &heads))
    }

    /// The same for tensors, past PyTorch's dispatcher: see [`direct`]. With the logarithms, gives them after O.
    #[pyo3(signature = (q, k, v, scores, with_logsumexp = false))]
    fn attention_direct<'py>(
        &self,
        py: Python<'py>,
        q: &Bound<'py, PyAny>,
        k: &Bound<'py, PyAny>,
        v: &Bound<'py, PyAny>,
        scores: Scores<'py>,
        with_logsumexp: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_pattern!(self, of => of.attention_direct(py, [q, k, v], &scores, with_logsumexp))
    }
}

impl<I: Index> PatternOf<I> {
    fn attention(&self, py: Python<'_>, heads: &Heads) -> PyResult<()> {
        let work = || {
            with_type!(heads.dtype, T => {
                let key = heads.key(Operation::Attention, heads.stream.0);
                let plan = self.plans.get_or_make(key, heads.stream.1, || {
                    let size = [self.matrix.rows(), self.matrix.cols()];
                    SparseAttention::plan_with(&self.matrix.with_zeros::<T>(0)?, heads.dim, heads.options(size))
                })?;
                self.run_attention::<T>(heads, &plan)
            })
        };
        py.detach(work).map_err(|error| raise(&error))
    }

    fn attention_direct<'py>(
        &self,
        py: Python<'py>,
        tensors: [&Bound<'py, PyAny>; 3],
        scores: &Scores<'py>,
        with_logsumexp: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        direct(py, self.index, &scores.with(tensors), |call| {
            let size = [self.matrix.rows(), self.matrix.cols()];
            let Some((mut heads, shape)) = call.heads(tensors, size, scores)? else { return Ok(None) };
            with_type!(heads.dtype, T => {
                let key = heads.key(Operation::Attention, call.stream);
                let Some(plan) = self.plans.get::<SparseAttention<T, I>>(&key) else { return Ok(None) };
                let Some(result) = call.results(&mut heads, &shape, with_logsumexp)? else { return Ok(None) };
                py.detach(|| self.run_attention(&heads, &plan)).map_err(|error| raise(&error))?;
                Ok(Some(result))
            })
        })
    }

    fn run_attention<T: Value>(&self, heads: &Heads, plan: &SparseAttention<T, I>) -> lacuna::Result<()> {
        let lengths = [plan.query_len(), plan.key_len(), plan.output_len(), plan.logsumexp_len()];
        // SAFETY: the Python files and `Call` pass addresses of tensors that they hold, of the shapes that they have checked, on
        // the current stream.
        let (stream, mut operands) = unsafe { heads.operands::<T>(self.matrix.device(), lengths)? };
        if plan.choice().is_none() {
            // Three steps have none. They are for rows that gradients by blocks do not take, so that nobody reads them.
            operands.logsumexp = None;
        }
        plan.run_with(&stream, operands)
    }
}

impl<'py> Call<'py> {
    /// Heads without the places of results, and the shape of O; if Q, K and V are such operands for a mask of this size.
    pub(crate) fn heads(
        &self,
        [q, k, v]: [&Bound<'py, PyAny>; 3],
        [queries, keys]: [usize; 2],
        scores: &Scores<'py>,
    ) -> PyResult<Option<(Heads, Vec<usize>)>> {
        let (Some(q), Some(k), Some(v)) = (self.operand(q)?, self.operand(k)?, self.operand(v)?) else {
            return Ok(None);
        };
        let (shape, dtype) = (q.shape().to_vec(), q.dtype);
        // Samples and types are those of Q; a batch of heads, too, or fewer for K and V.
        let is_alike = k.dtype == dtype
            && v.dtype == dtype
            && k.shape() == v.shape()
            && k.shape().len() == shape.len()
            && (shape.len() != 4 || k.shape()[0] == shape[0]);
        let (true, Some(q), Some(k), Some(v)) = (is_alike, q.merged(), k.merged(), v.merged()) else {
            return Ok(None);
        };
        let (Some(heads), Some(kv_heads), Some(&dim)) = (q.matrices(), k.matrices(), shape.last()) else {
            return Ok(None);
        };
        let (batch, kv_batch) = (heads.unwrap_or(1), kv_heads.unwrap_or(1));
        if batch % kv_batch != 0 {
            return Ok(None);
        }
        let (Some(q), Some(k), Some(v)) =
            (q.rows(heads, queries, dim), k.rows(kv_heads, keys, dim), v.rows(kv_heads, keys, dim))
        else {
            return Ok(None);
        };
        if (k.1, k.2) != (v.1, v.2) {
            return Ok(None);
        }
        let Some(slopes) = self.slopes(scores, &shape)? else { return Ok(None) };
        let Scores { softcap, precise, .. } = *scores;
        let scale = scores.scale.unwrap_or_else(|| (dim as f64).powf(-0.5) as f32);
        let (stream, group) = (CallStream(self.stream, false), batch / kv_batch);
        let (kv, o) = ((k.0, v.0, k.1, k.2), (0, dim, queries * dim));
        let heads = Heads {
            stream,
            dtype,
            dim,
            batch,
            group,
            scale,
            softcap,
            slopes,
            precise,
            q,
            kv,
            o,
            logsumexp: None,
        };
        Ok(Some((heads, shape)))
    }

    /// Where the slopes are, if there are any; none at all where they are not one of each head of a Q of this shape, without gaps.
    fn slopes(&self, scores: &Scores<'py>, shape: &[usize]) -> PyResult<Option<Option<u64>>> {
        let Some(slopes) = &scores.slopes else { return Ok(Some(None)) };
        let Some(slopes) = self.operand(slopes)? else { return Ok(None) };
        let is_right = slopes.dtype == Dtype::F32
            && slopes.is_contiguous()
            && slopes.shape() == if shape.len() == 2 { &[1] } else { &shape[..shape.len() - 2] };
        Ok(is_right.then_some(Some(slopes.address)))
    }

    /// Room for O, and with it for the logarithms, if they are wanted; and the heads told of it.
    fn results(
        &self,
        heads: &mut Heads,
        shape: &[usize],
        with_logsumexp: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((o, address)) = self.empty(shape, heads.dtype)? else { return Ok(None) };
        heads.o.0 = address;
        if !with_logsumexp {
            return Ok(Some(o));
        }
        let Some((logsumexp, address)) = self.empty(&shape[..shape.len() - 1], Dtype::F32)? else {
            return Ok(None);
        };
        heads.logsumexp = Some(address);
        Ok(Some((o, logsumexp).into_pyobject(self.py)?.into_any()))
    }
}

/// A mask as blocks on a device.
#[pyclass(frozen)]
pub(crate) struct MaskBlocks {
    pub(crate) inner: attention::MaskBlocks,
    pub(crate) plans: Plans,
    /// The number of its GPU; none on a simulator.
    pub(crate) index: Option<i32>,
}

#[pymethods]
impl MaskBlocks {
    #[new]
    fn new(py: Python<'_>, device: &Device, mask: &Mask) -> PyResult<Self> {
        let made = py.detach(|| attention::MaskBlocks::new(&device.inner, &mask.inner));
        let inner = made.map_err(|error| raise(&error))?;
        Ok(Self { inner, plans: Plans::default(), index: device.index })
    }

    /// O = softmax(scale·Q·Kᵀ ⊙ mask)·V, for a batch of heads. False where kernels by blocks cannot do it.
    fn attention(&self, py: Python<'_>, heads: Heads) -> PyResult<bool> {
        let work = || {
            with_type!(heads.dtype, T => {
                let key = heads.key(Operation::BlockAttention, heads.stream.0);
                let plan = self.plans.get_or_make(key, heads.stream.1, || {
                    let size = [self.inner.queries(), self.inner.keys()];
                    BlockAttention::<T>::plan_with(&self.inner, heads.dim, heads.options(size))
                })?;
                self.run(&heads, &plan)
            })
        };
        match py.detach(work) {
            Err(lacuna::Error::NeedsPattern { .. }) => Ok(false),
            Err(error) => Err(raise(&error)),
            Ok(()) => Ok(true),
        }
    }

    /// The gradients of Q, K and V, of heads without gaps, and of O and the logarithms that `attention` wrote. False where kernels by blocks
    /// cannot do it. The first call for a mask works out its transposed one, and waits.
    fn attention_backward(&self, py: Python<'_>, heads: Heads, backward: Backward) -> PyResult<bool> {
        self.backward(py, &heads, backward)
    }

    /// The same for tensors, past PyTorch's dispatcher: see [`direct`].
    #[allow(clippy::too_many_arguments, reason = "they are the operands")]
    fn attention_backward_direct<'py>(
        &self,
        py: Python<'py>,
        q: &Bound<'py, PyAny>,
        k: &Bound<'py, PyAny>,
        v: &Bound<'py, PyAny>,
        o: &Bound<'py, PyAny>,
        logsumexp: &Bound<'py, PyAny>,
        d_o: &Bound<'py, PyAny>,
        scores: Scores<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.backward_direct(py, [q, k, v], [o, logsumexp, d_o], &scores)
    }

    /// The same as `attention` for tensors, past PyTorch's dispatcher: see [`direct`]. With the logarithms, gives them after O.
    #[pyo3(signature = (q, k, v, scores, with_logsumexp = false))]
    fn attention_direct<'py>(
        &self,
        py: Python<'py>,
        q: &Bound<'py, PyAny>,
        k: &Bound<'py, PyAny>,
        v: &Bound<'py, PyAny>,
        scores: Scores<'py>,
        with_logsumexp: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        direct(py, self.index, &scores.with([q, k, v]), |call| {
            let size = [self.inner.queries(), self.inner.keys()];
            let Some((mut heads, shape)) = call.heads([q, k, v], size, &scores)? else { return Ok(None) };
            with_type!(heads.dtype, T => {
                let key = heads.key(Operation::BlockAttention, call.stream);
                let Some(plan) = self.plans.get::<BlockAttention<T>>(&key) else { return Ok(None) };
                let Some(result) = call.results(&mut heads, &shape, with_logsumexp)? else { return Ok(None) };
                match py.detach(|| self.run(&heads, &plan)) {
                    Err(lacuna::Error::NeedsPattern { .. }) => Ok(None),
                    Err(error) => Err(raise(&error)),
                    Ok(()) => Ok(Some(result)),
                }
            })
        })
    }
}

impl MaskBlocks {
    fn run<T: Value>(&self, heads: &Heads, plan: &BlockAttention<T>) -> lacuna::Result<()> {
        let lengths = [plan.query_len(), plan.key_len(), plan.output_len(), plan.logsumexp_len()];
        // SAFETY: as for `PatternOf::run_attention`.
        let (stream, operands) = unsafe { heads.operands::<T>(self.inner.device(), lengths)? };
        plan.run_with(&stream, operands)
    }
}

//! Gradients of attention by masks that are given as rules, by blocks.
use std::sync::{Mutex, PoisonError};

use lacuna::attention::{BlockBackwardOperands, BlockWorkspace};
use lacuna::{BlockAttention, Slice, Value};
use pyo3::prelude::*;

use crate::attention::{Heads, MaskBlocks, Scores};
use crate::device::{Dtype, stream, with_type};
use crate::error::raise;
use crate::pattern::output;
use crate::plans::Operation;
use crate::torch::{Operand, direct};

/// Where what the forward pass wrote is, the gradient of O, and the gradients to be written; all without gaps.
pub(crate) struct Backward {
    o: u64,
    logsumexp: u64,
    d_o: u64,
    d_q: u64,
    d_k: u64,
    d_v: u64,
}

impl<'py> FromPyObject<'_, 'py> for Backward {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (o, logsumexp, d_o, d_q, d_k, d_v) = object.extract()?;
        Ok(Self { o, logsumexp, d_o, d_q, d_k, d_v })
    }
}

/// A plan, and the room that its backward passes share.
struct Plan<T: Value> {
    plan: BlockAttention<T>,
    workspace: Mutex<BlockWorkspace<T>>,
}

impl MaskBlocks {
    pub(crate) fn backward(&self, py: Python<'_>, heads: &Heads, backward: Backward) -> PyResult<bool> {
        let work = || {
            with_type!(heads.dtype, T => {
                let key = heads.key(Operation::BlockAttentionBackward, heads.stream.0);
                let plan = self.plans.get_or_make(key, heads.stream.1, || self.plan_backward::<T>(heads))?;
                self.run_backward(heads, backward, &plan)
            })
        };
        match py.detach(work) {
            Err(lacuna::Error::NeedsPattern { .. }) => Ok(false),
            Err(error) => Err(raise(&error)),
            Ok(()) => Ok(true),
        }
    }

    pub(crate) fn backward_direct<'py>(
        &self,
        py: Python<'py>,
        [q, k, v]: [&Bound<'py, PyAny>; 3],
        [o, logsumexp, d_o]: [&Bound<'py, PyAny>; 3],
        scores: &Scores<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        direct(py, self.index, &scores.with([q, k, v, o, logsumexp, d_o]), |call| {
            let size = [self.inner.queries(), self.inner.keys()];
            let Some((heads, shape)) = call.heads([q, k, v], size, scores)? else { return Ok(None) };
            let (Some(o), Some(logsumexp), Some(d_o)) =
                (call.operand(o)?, call.operand(logsumexp)?, call.operand(d_o)?)
            else {
                return Ok(None);
            };
            let is_like_q = |operand: &Operand| {
                operand.dtype == heads.dtype && operand.shape() == shape && operand.is_contiguous()
            };
            let is_of_queries = logsumexp.dtype == Dtype::F32
                && logsumexp.shape() == &shape[..shape.len() - 1]
                && logsumexp.is_contiguous();
            if !heads.are_plain(size) || !is_like_q(&o) || !is_like_q(&d_o) || !is_of_queries {
                return Ok(None);
            }
            with_type!(heads.dtype, T => {
                let key = heads.key(Operation::BlockAttentionBackward, call.stream);
                let Some(plan) = self.plans.get::<Plan<T>>(&key) else { return Ok(None) };
                let Some(of_keys) = call.operand(k)? else { return Ok(None) };
                let room = |shape: &[usize]| call.empty(shape, heads.dtype);
                let (Some(d_q), Some(d_k), Some(d_v)) =
                    (room(&shape)?, room(of_keys.shape())?, room(of_keys.shape())?)
                else {
                    return Ok(None);
                };
                let backward = Backward {
                    o: o.address,
                    logsumexp: logsumexp.address,
                    d_o: d_o.address,
                    d_q: d_q.1,
                    d_k: d_k.1,
                    d_v: d_v.1,
                };
                match py.detach(|| self.run_backward(&heads, backward, &plan)) {
                    Err(lacuna::Error::NeedsPattern { .. }) => Ok(None),
                    Err(error) => Err(raise(&error)),
                    Ok(()) => Ok(Some((d_q.0, d_k.0, d_v.0).into_pyobject(py)?.into_any())),
                }
            })
        })
    }

    fn plan_backward<T: Value>(&self, heads: &Heads) -> lacuna::Result<Plan<T>> {
        let size = [self.inner.queries(), self.inner.keys()];
        let plan = BlockAttention::<T>::plan_with(&self.inner, heads.dim(), heads.options(size))?;
        let workspace = Mutex::new(plan.workspace()?);
        Ok(Plan { plan, workspace })
    }

    fn run_backward<T: Value>(
        &self,
        heads: &Heads,
        Backward { o, logsumexp, d_o, d_q, d_k, d_v }: Backward,
        Plan { plan, workspace }: &Plan<T>,
    ) -> lacuna::Result<()> {
        let (device, [q_len, k_len, o_len]) =
            (self.inner.device(), [plan.query_len(), plan.key_len(), plan.output_len()]);
        // SAFETY: the Python files and `Call` pass addresses of tensors that they hold, of the shapes and strides that they have checked,
        // on the current stream. The gradients are new ones, which nobody else writes.
        let (stream, operands) = unsafe {
            let operands = BlockBackwardOperands {
                q: Slice::from_raw(device, heads.q.0, q_len)?,
                k: Slice::from_raw(device, heads.kv.0, k_len)?,
                v: Slice::from_raw(device, heads.kv.1, k_len)?,
                o: Slice::from_raw(device, o, o_len)?,
                logsumexp: Slice::from_raw(device, logsumexp, plan.logsumexp_len())?,
                alibi_slopes: heads.slopes_on(device)?,
                d_o: Slice::from_raw(device, d_o, o_len)?,
                d_q: output::<T>(device, d_q, q_len)?,
                d_k: output(device, d_k, k_len)?,
                d_v: output(device, d_v, k_len)?,
            };
            (stream(device, heads.stream.0)?, operands)
        };
        // Whoever panicked while it held the room left no work half given to a stream.
        let mut workspace = workspace.lock().unwrap_or_else(PoisonError::into_inner);
        plan.backward(&stream, operands, &mut workspace)
    }
}

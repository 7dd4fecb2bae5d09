//! How long the gradients of Q, K and V take by blocks.
use std::sync::Arc;

use anyhow::Result;
use lacuna::attention::{Algorithm, BlockBackwardOperands, Mask, MaskBlocks, Operands};
use lacuna::{BlockAttention, Index, SparseAttention};
use lacuna_cases::{Number, Problem};

use super::operands::Host;
use crate::session::Session;
use crate::timing::{Timing, time_with};

/// The time, where the plan is by blocks; none on the simulator. The gradient of O is as Q.
pub(super) fn time_of<T: Number, I: Index>(
    session: &Session,
    problem: &Problem,
    plan: &SparseAttention<T, I>,
    host: &Host<T>,
) -> Result<Option<Timing>> {
    let device = &session.device;
    let Some(algorithm @ Algorithm::WgmmaTile { .. }) = plan.choice().map(|choice| choice.algorithm) else {
        return Ok(None);
    };
    if device.is_simulator() {
        return Ok(None);
    }
    let stream = device.stream()?;
    let mask = MaskBlocks::new(device, &Mask::from_pattern(Arc::clone(problem.sparse()?.pattern())))?;
    let plan = BlockAttention::<T>::plan_with(&mask, problem.width, plan.options().algorithm(algorithm))?;
    let [q, k, v] = [&host.q, &host.k, &host.v].map(|operand| device.upload(operand));
    let (q, k, v) = (q?, k?, v?);
    let mut o = device.zeros(plan.output_len())?;
    let mut logsumexp = device.zeros(plan.logsumexp_len())?;
    plan.run_with(
        &stream,
        Operands {
            q: q.as_slice(),
            k: k.as_slice(),
            v: v.as_slice(),
            o: o.as_slice_mut(),
            logsumexp: Some(logsumexp.as_slice_mut()),
            alibi_slopes: None,
        },
    )?;
    match plan.backward_kernels() {
        Ok(kernels) if kernels.iter().all(|kernels| !kernels.is_empty()) => {}
        Ok(_) | Err(lacuna::Error::NeedsPattern { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let mut workspace = plan.workspace()?;
    let (mut d_q, mut d_k, mut d_v) =
        (device.zeros(q.len())?, device.zeros(k.len())?, device.zeros(v.len())?);
    let timing = time_with(session.cold.as_ref(), &stream, session.samples, |stream| {
        let operands = BlockBackwardOperands {
            q: q.as_slice(),
            k: k.as_slice(),
            v: v.as_slice(),
            o: o.as_slice(),
            logsumexp: logsumexp.as_slice(),
            alibi_slopes: None,
            d_o: q.as_slice(),
            d_q: d_q.as_slice_mut(),
            d_k: d_k.as_slice_mut(),
            d_v: d_v.as_slice_mut(),
        };
        Ok(plan.backward(stream, operands, &mut workspace)?)
    })?;
    Ok(Some(timing))
}

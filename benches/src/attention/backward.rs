//! How long the gradients of Q, K and V take: by blocks, and in three steps.
use std::sync::Arc;

use anyhow::Result;
use lacuna::attention::{Algorithm, BackwardOperands, BlockBackwardOperands, Mask, MaskBlocks, Operands};
use lacuna::{AttentionSteps, BlockAttention, CsrMatrix, Index, SparseAttention};
use lacuna_cases::{Number, Problem};

use super::operands::Host;
use crate::session::Session;
use crate::timing::{Timing, time_with};

/// The time, where the plan is by blocks or in three steps; none on the simulator. The gradient of O is as Q.
pub(super) fn time_of<T: Number, I: Index>(
    session: &Session,
    problem: &Problem,
    mask: &CsrMatrix<T, I>,
    plan: &SparseAttention<T, I>,
    host: &Host<T>,
) -> Result<Option<Timing>> {
    if session.device.is_simulator() {
        return Ok(None);
    }
    match plan.choice().map(|choice| choice.algorithm) {
        Some(algorithm @ (Algorithm::WgmmaTile { .. } | Algorithm::MmaTile { .. })) => {
            by_blocks(session, problem, plan, algorithm, host)
        }
        Some(_) => Ok(None),
        None => in_steps(session, problem, mask, plan, host).map(Some),
    }
}

fn in_steps<T: Number, I: Index>(
    session: &Session,
    problem: &Problem,
    mask: &CsrMatrix<T, I>,
    plan: &SparseAttention<T, I>,
    host: &Host<T>,
) -> Result<Timing> {
    let device = &session.device;
    let stream = device.stream()?;
    let plan = AttentionSteps::plan(mask, problem.width, *plan.options())?;
    let [q, k, v] = [&host.q, &host.k, &host.v].map(|operand| device.upload(operand));
    let (q, k, v) = (q?, k?, v?);
    let mut o = device.zeros(q.len())?;
    let (mut p, mut workspace) = (plan.weights()?, plan.workspace(&stream)?);
    plan.forward(&stream, q.as_slice(), k.as_slice(), v.as_slice(), &mut p, o.as_slice_mut())?;
    let (mut d_q, mut d_k, mut d_v) =
        (device.zeros(q.len())?, device.zeros(k.len())?, device.zeros(v.len())?);
    time_with(session.cold.as_ref(), &stream, session.samples, |stream| {
        let operands = BackwardOperands {
            q: q.as_slice(),
            k: k.as_slice(),
            v: v.as_slice(),
            p: &p,
            d_o: q.as_slice(),
            d_q: d_q.as_slice_mut(),
            d_k: d_k.as_slice_mut(),
            d_v: d_v.as_slice_mut(),
        };
        Ok(plan.backward(stream, operands, &mut workspace)?)
    })
}

fn by_blocks<T: Number, I: Index>(
    session: &Session,
    problem: &Problem,
    plan: &SparseAttention<T, I>,
    algorithm: Algorithm,
    host: &Host<T>,
) -> Result<Option<Timing>> {
    let device = &session.device;
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

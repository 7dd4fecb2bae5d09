//! How long the gradients of Q, K and V take: by blocks, and in three steps.
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use lacuna::attention::{
    Algorithm, BackwardOperands, BlockBackwardOperands, Mask, MaskBlocks, Operands, Options,
};
use lacuna::{AttentionSteps, BlockAttention, CsrMatrix, Index, SparseAttention};
use lacuna_cases::{Number, Problem};

use super::operands::Host;
use crate::session::Session;
use crate::timing::{Timing, time_with};

/// Times of a plan's gradients.
pub(super) struct Times {
    /// By the library's choice of kernels.
    pub(super) chosen: Timing,
    /// The names of these, of the gradient of Q, and of those of K and V; none in three steps.
    pub(super) kernels: Option<[String; 2]>,
    /// By each other kernel, with the library's choice for the other gradient.
    pub(super) others: BTreeMap<String, Timing>,
}

/// The times, where the plan is by blocks or in three steps; none on the simulator. The gradient of O is as Q. Other kernels are timed where
/// the plan is the library's choice, and all are asked for.
pub(super) fn times<T: Number, I: Index>(
    session: &Session,
    problem: &Problem,
    (mask, plan): (&CsrMatrix<T, I>, &SparseAttention<T, I>),
    host: &Host<T>,
    is_chosen: bool,
) -> Result<Option<Times>> {
    if session.device.is_simulator() {
        return Ok(None);
    }
    match plan.choice().map(|choice| choice.algorithm) {
        Some(algorithm @ (Algorithm::WgmmaTile { .. } | Algorithm::MmaTile { .. })) => {
            by_blocks(session, problem, plan.options().algorithm(algorithm), host, is_chosen)
        }
        Some(_) => Ok(None),
        None => {
            let chosen = in_steps(session, problem, mask, plan, host)?;
            Ok(Some(Times { chosen, kernels: None, others: BTreeMap::new() }))
        }
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

fn by_blocks<T: Number>(
    session: &Session,
    problem: &Problem,
    options: Options,
    host: &Host<T>,
    is_chosen: bool,
) -> Result<Option<Times>> {
    let device = &session.device;
    let stream = device.stream()?;
    let mask = MaskBlocks::new(device, &Mask::from_pattern(Arc::clone(problem.sparse()?.pattern())))?;
    let plan = BlockAttention::<T>::plan_with(&mask, problem.width, options)?;
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
    let [of_queries, of_keys] = match plan.backward_kernels() {
        Ok(kernels) => kernels,
        Err(lacuna::Error::NeedsPattern { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let (Some(&first), Some(&second)) = (of_queries.first(), of_keys.first()) else { return Ok(None) };
    let (mut d_q, mut d_k, mut d_v) =
        (device.zeros(q.len())?, device.zeros(k.len())?, device.zeros(v.len())?);
    let mut time = |kernels: [&str; 2]| {
        let mut workspace = plan.workspace_with(kernels)?;
        time_with(session.cold.as_ref(), &stream, session.samples, |stream| {
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
        })
    };
    let chosen = time([first, second])?;
    let mut others = BTreeMap::new();
    if session.all_algorithms && is_chosen {
        for kernel in &of_queries[1..] {
            others.insert((*kernel).to_owned(), time([kernel, second])?);
        }
        for kernel in &of_keys[1..] {
            others.insert((*kernel).to_owned(), time([first, kernel])?);
        }
    }
    Ok(Some(Times { chosen, kernels: Some([first.into(), second.into()]), others }))
}

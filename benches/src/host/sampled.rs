//! The calls of SDDMM and of attention, whose sparse matrix is a mask of products.
use std::sync::Arc;

use anyhow::Result;
use lacuna::attention::{Mask, MaskBlocks};
use lacuna::{CsrMatrix, Index, Sddmm, SparseAttention, Stream, attention, sddmm};
use lacuna_cases::Number;

use super::{Record, Steps};
use crate::operation::Task;
use crate::session::Session;

/// The most elements of a list that `from_lists` takes.
const LONGEST_LIST: usize = 4096;

pub(super) fn of_sddmm<T: Number, I: Index>(
    session: &mut Session,
    task: &Task<'_>,
    stream: &Stream,
) -> Result<Vec<Record>> {
    let device = &session.device;
    let problem = task.problem;
    let host = problem.sparse()?.map_values(T::from_f32);
    let mut steps = Steps::new(device, stream, task, (session.types, session.samples));
    let matrix = || Ok(CsrMatrix::<T, I>::with_index(device, &host)?);
    let options = sddmm::Options::default();
    let plan = |c: &CsrMatrix<T, I>, options| Ok(Sddmm::plan_with(c, problem.width, options)?);

    let mut d = matrix()?;
    let planned = steps.call("plan", matrix, |c| plan(c, options))?;
    let kernel = planned.choice().entry.name;
    steps.of_kernel(kernel);
    let [legal, ..] = planned.legal();
    let by_panels =
        |choice: &&sddmm::Choice| matches!(choice.algorithm, sddmm::Algorithm::ColumnPanel { .. });
    if let Some(panels) = legal.iter().find(by_panels) {
        steps.call("plan by panels", matrix, |c| plan(c, options.algorithm(panels.algorithm)))?;
        steps.of_kernel(panels.entry.name);
    }
    let planned = plan(&d, options)?;
    let a = device.zeros::<T>(planned.a_len())?;
    let b = device.zeros::<T>(planned.b_len())?;
    steps.run(kernel, |stream| planned.run(stream, a.as_slice(), b.as_slice(), &mut d))?;
    Ok(steps.records)
}

pub(super) fn of_attention<T: Number, I: Index>(
    session: &mut Session,
    task: &Task<'_>,
    stream: &Stream,
) -> Result<Vec<Record>> {
    let device = &session.device;
    let problem = task.problem;
    let host = problem.sparse()?.map_values(T::from_f32);
    let mut steps = Steps::new(device, stream, task, (session.types, session.samples));
    let matrix = || Ok(CsrMatrix::<T, I>::with_index(device, &host)?);
    let options = attention::Options::default().batch(problem.batch);
    let plan = |mask: &CsrMatrix<T, I>| Ok(SparseAttention::plan_with(mask, problem.width, options)?);

    let rows = || (0..problem.rows()).map(|row| host.pattern().row_columns(row));
    let length = rows().map(<[u32]>::len).max().unwrap_or(0);
    if length <= LONGEST_LIST {
        // As top-N leaves them, but that where a row has fewer columns nothing follows.
        let mut lists = vec![-1_i32; problem.rows() * length];
        for (list, columns) in lists.chunks_exact_mut(length.max(1)).zip(rows()) {
            list.iter_mut().zip(columns.iter().rev()).for_each(|(to, &column)| *to = column as i32);
        }
        let (lists, size) = (device.upload(&lists)?, [problem.rows(), problem.cols()]);
        let import =
            |_: &mut ()| Ok(CsrMatrix::<T, I>::from_lists(stream, size, lists.as_slice(), length, Some(0))?);
        steps.call("from lists", || Ok(()), import)?;
    }
    let planned = steps.call("plan", matrix, |mask| plan(mask))?;
    let kernel = planned.choice().map_or("three_steps", |choice| choice.entry.name);
    steps.of_kernel(kernel);
    let mask = Mask::from_pattern(Arc::clone(host.pattern()));
    steps.call("mask blocks", || Ok(()), |()| Ok(MaskBlocks::new(device, &mask)?))?;
    let [q, k, v] =
        [planned.query_len(), planned.key_len(), planned.key_len()].map(|len| device.zeros::<T>(len));
    let (q, k, v, mut o) = (q?, k?, v?, device.zeros::<T>(planned.output_len())?);
    steps.run(kernel, |stream| {
        planned.run(stream, q.as_slice(), k.as_slice(), v.as_slice(), o.as_slice_mut())
    })?;
    Ok(steps.records)
}

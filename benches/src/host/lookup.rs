//! The calls of the embedding-bag lookup.
use anyhow::Result;
use lacuna::{Bags, NHot, Stream, nhot};
use lacuna_cases::Number;

use super::{Record, Steps};
use crate::operation::Task;
use crate::session::Session;

pub(super) fn measure<T: Number, I: nhot::BagIndex + From<u32>>(
    session: &mut Session,
    task: &Task<'_>,
    stream: &Stream,
) -> Result<Vec<Record>> {
    let device = &session.device;
    let problem = task.problem;
    let pattern = problem.sparse()?.pattern();
    let offsets: Vec<usize> = pattern.row_offsets().iter().map(|&offset| offset as usize).collect();
    let indices: Vec<I> = pattern.col_indices().iter().map(|&row| row.into()).collect();
    let mut steps = Steps::new(device, stream, task, (session.types, session.samples));

    let new = || Ok(Bags::new(device, problem.cols(), &offsets, &indices)?);
    let bags = steps.call("new", || Ok(()), |()| new())?;
    let wide = |numbers: &[u32]| numbers.iter().map(|&number| number.into()).collect::<Vec<i64>>();
    let arrays = [pattern.row_offsets(), pattern.col_indices()].map(wide);
    let [offsets, indices] = [device.upload(&arrays[0])?, device.upload(&arrays[1])?];
    let import = || {
        let (offsets, indices) = (offsets.as_slice(), indices.as_slice());
        Ok(Bags::<I>::from_indices(stream, problem.cols(), offsets, indices)?)
    };
    steps.call("from indices", || Ok(()), |()| import())?;
    let plan = || Ok(NHot::<T, I>::plan(&bags, problem.width)?);
    let planned = steps.call("plan", || Ok(()), |()| plan())?;
    let kernel = planned.choice().entry.name;
    steps.of_kernel(kernel);
    // The rows that bags name are known once they are sorted.
    steps.call("sort for gradients", plan, |plan| Ok(plan.named_rows()?.len()))?;
    let table = device.zeros::<T>(problem.cols() * problem.width)?;
    let mut out = device.zeros::<T>(problem.rows() * problem.width)?;
    steps.run(kernel, |stream| planned.run(stream, &bags, table.as_slice(), out.as_slice_mut()))?;
    Ok(steps.records)
}

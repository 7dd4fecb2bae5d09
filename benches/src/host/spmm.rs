//! The calls of SpMM.
use std::mem;

use anyhow::Result;
use lacuna::matrix::{Csr, Pattern};
use lacuna::{Autotuner, CsrMatrix, Index, Spmm, Stream, spmm};
use lacuna_cases::Number;
use lacuna_vendor::cusparse::{SpmmAlgorithm, SpmmProblem};

use super::{Record, Steps};
use crate::operation::Task;
use crate::peers::{Context, CuSparseLibrary, PeerSession, data_type};
use crate::session::Session;
use crate::timing::Timing;

pub(super) fn measure<T: Number, I: Index>(
    session: &mut Session,
    task: &Task<'_>,
    stream: &Stream,
) -> Result<Vec<Record>> {
    let Session { device, samples, types, peers, .. } = session;
    let (problem, device) = (task.problem, &*device);
    let host = problem.sparse()?.map_values(T::from_f32);
    let mut steps = Steps::new(device, stream, task, (*types, *samples));
    let options = spmm::Options::default().precision(types.precision());
    let matrix = || Ok(CsrMatrix::<T, I>::with_index(device, &host)?);
    let plan = |a: &CsrMatrix<T, I>| Ok(Spmm::plan_with(a, problem.width, options)?);

    steps.check(host.pattern())?;
    let a = steps.call("new", || Ok(()), |()| matrix())?;
    // What is made once for a pattern, and the plan.
    let first = steps.call("plan", matrix, |a| plan(a))?;
    let kernel = first.choice().entry.name;
    steps.of_kernel(kernel);
    let planned = plan(&a)?;
    if let Some(library) = peers.as_mut().and_then(PeerSession::cusparse)
        && let Err(error) = cusparse::<T, I>(library, &mut steps, &host, &planned)
    {
        steps.fail("cusparse", format!("{error:#}"));
    }
    steps.call("plan again", || Ok(()), |()| plan(&a))?;
    steps.of_kernel(kernel);
    let arrays = || Ok((host.row_offsets().to_vec(), host.col_indices().to_vec(), host.values().to_vec()));
    steps.call("check, new, plan", arrays, |(offsets, columns, values)| {
        let pattern = Pattern::new(host.rows(), host.cols(), mem::take(offsets), mem::take(columns))?;
        let a = CsrMatrix::<T, I>::with_index(device, &Csr::with_values(pattern, mem::take(values))?)?;
        Ok((plan(&a)?, a))
    })?;
    steps.call("prepacked", || Ok(()), |()| Ok(CsrMatrix::<T, I>::prepacked(device, &host)?))?;
    if !device.is_simulator() {
        let tuned = |plan: &mut Spmm<T, I>| Ok(Autotuner::in_memory().tune(stream, plan.clone(), &a)?);
        steps.call("tune", || plan(&a), tuned)?;
    }
    let b = device.zeros::<T>(planned.input_len())?;
    let mut c = device.zeros::<T>(planned.output_len())?;
    steps.run(kernel, |stream| planned.run(stream, &a, b.as_slice(), c.as_slice_mut()))?;
    Ok(steps.records)
}

/// What cuSPARSE takes: to describe the matrices and to tell its workspace, to study A, which it is waited for, and to run.
fn cusparse<T: Number, I: Index>(
    library: &mut CuSparseLibrary,
    steps: &mut Steps<'_>,
    host: &Csr<T>,
    plan: &Spmm<T, I>,
) -> Result<()> {
    let (device, stream) = (steps.device, steps.stream);
    let row_offsets = device.upload(host.row_offsets())?;
    let col_indices = device.upload(host.col_indices())?;
    let values = device.upload(host.values())?;
    let b = device.zeros::<T>(plan.input_len())?;
    let c = device.zeros::<T>(plan.output_len())?;
    let problem = steps.task.problem;
    let context = Context {
        device,
        stream,
        op: steps.task.op.name,
        problem,
        bytes: 0,
        samples: steps.samples,
        cold: None,
    };
    let described = SpmmProblem {
        data_type: data_type::<T>(),
        m: host.rows(),
        k: host.cols(),
        n: problem.width,
        nnz: host.nnz(),
        row_offsets: row_offsets.as_slice().address(),
        col_indices: col_indices.as_slice().address(),
        values: values.as_slice().address(),
        b: b.as_slice().address(),
        c: c.as_slice().address(),
        stream: stream.as_raw(),
    };
    let handle = library.handle()?;
    for (algorithm, [describe, preprocess, run]) in [
        (SpmmAlgorithm::Default, ["cusparse_default_describe", "", "cusparse_default_run"]),
        (
            SpmmAlgorithm::Csr2,
            ["cusparse_csr_alg2_describe", "cusparse_csr_alg2_preprocess", "cusparse_csr_alg2_run"],
        ),
    ] {
        // SAFETY: the buffers outlive the product, have the stated lengths, and the matrix was checked when made; the stream
        // is of this device, whose context is current after the uploads above.
        let bind = || unsafe { handle.spmm(&described, algorithm, |bytes| context.workspace(bytes)) };
        // The first loads what the library needs.
        drop(bind()?);
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..steps.samples {
            let mut product = None;
            times[0].push(context.by_host(|| bind().map(|bound| product = Some(bound)))?);
            if let Some(product) = product.filter(|_| !preprocess.is_empty()) {
                times[1].push(context.by_host(|| product.preprocess())?);
            }
        }
        let [describing, studying] = times;
        steps.peer(describe, Timing::of(describing));
        if !studying.is_empty() {
            steps.peer(preprocess, Timing::of(studying));
        }
        let product = bind()?;
        let time = steps.timed_calls(|| Ok(product.run()?))?;
        steps.peer(run, time);
    }
    Ok(())
}

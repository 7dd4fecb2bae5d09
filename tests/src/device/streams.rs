//! Streams, the order between them, and recorded work.
use std::mem;

use anyhow::{Result, ensure};
use lacuna::matrix::generate;
use lacuna::{CsrMatrix, Device, Error, Spmm};

use crate::expect::{refused, same_bits};
use crate::spmm::{Problem, product};
use crate::{Case, Context};

/// Products in the chain, each of the one before.
const STEPS: usize = 6;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("device/streams/ordered", "a chain of products that two streams take turns at", ordered),
        Case::new("device/streams/graph", "recorded work, done twice, gives the same result", graph),
        Case::new("device/streams/other_device", "events and graphs of another device", other_device),
        Case::new("device/streams/drop_order", "a device dropped before what was made on it", drop_order),
    ]
}

/// A of K×K, so that products can be chained; large enough on a GPU for a product to take longer than its launch.
fn problem(cx: &Context<'_>) -> Result<Problem> {
    let (k, n) = if cx.device.is_simulator() { (40, 24) } else { (8192, 512) };
    Problem::generated(generate::uniform(k, k, 1.0 - 4.0 / k as f64, cx.seed), n, cx.seed)
}

fn ordered(cx: &Context<'_>) -> Result<f64> {
    let problem = problem(cx)?;
    let a = CsrMatrix::new(cx.device, &problem.a)?;
    let plan = Spmm::plan(&a, problem.n)?;
    // One stream alone, step by step, against the oracle.
    let (mut x, mut worst) = (problem.b.clone(), 0.0_f64);
    for _ in 0..STEPS {
        let (error, c) = product(cx, &plan, &a, &problem.a, &x, problem.n)?;
        (worst, x) = (worst.max(error), c);
    }

    let streams = [cx.device.stream()?, cx.device.stream()?];
    let (mut from, mut to) = (cx.device.upload(&problem.b)?, cx.device.zeros(plan.output_len())?);
    for step in 0..STEPS {
        let (this, next) = (&streams[step % 2], &streams[(step + 1) % 2]);
        plan.run(this, &a, from.as_slice(), to.as_slice_mut())?;
        next.wait_for(&this.event()?)?;
        mem::swap(&mut from, &mut to);
    }
    let chained = from.download(&streams[STEPS % 2])?;
    same_bits("one stream, then two", &x, &chained, problem.n)?;
    Ok(worst)
}

fn graph(cx: &Context<'_>) -> Result<f64> {
    let is_unsupported = |error: &Error| matches!(error, Error::Unsupported { .. });
    if cx.device.is_simulator() {
        let graph = cx.stream.capture(|_| Ok::<(), Error>(()));
        refused("a graph", graph, is_unsupported, &["simulator", "graphs"])?;
        return Ok(0.0);
    }
    let problem = problem(cx)?;
    let a = CsrMatrix::new(cx.device, &problem.a)?;
    let plan = Spmm::plan(&a, problem.n)?;
    let mut b = cx.device.upload(&problem.b)?;
    let mut c = cx.device.zeros(plan.output_len())?;
    plan.run(cx.stream, &a, b.as_slice(), c.as_slice_mut())?;
    let planned = c.download(cx.stream)?;
    let report = lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?.check(&planned)?;

    c.upload(&vec![0.0; plan.output_len()])?;
    let mut graph = cx.stream.capture(|stream| plan.run(stream, &a, b.as_slice(), c.as_slice_mut()))?;
    ensure!(c.download(cx.stream)?.iter().all(|&value| value == 0.0), "recording did the work");
    // SAFETY: the plan, A, B and C live to the end of this function, and only this stream uses them.
    unsafe { graph.replay(cx.stream)? };
    same_bits("planned, then replayed", &planned, &c.download(cx.stream)?, problem.n)?;
    // The second time B holds other values: the work is done, not its result remembered.
    let doubled: Vec<f32> = problem.b.iter().map(|value| 2.0 * value).collect();
    b.upload(&doubled)?;
    // SAFETY: as above.
    unsafe { graph.replay(cx.stream)? };
    let twice: Vec<f32> = planned.iter().map(|value| 2.0 * value).collect();
    same_bits("replayed with B doubled", &twice, &c.download(cx.stream)?, problem.n)?;
    Ok(report.worst_over_bound)
}

fn other_device(cx: &Context<'_>) -> Result<f64> {
    let is_other = |error: &Error| matches!(error, Error::OtherDevice { .. });
    let other = Device::simulator().stream()?;
    refused("another device's event", cx.stream.wait_for(&other.event()?), is_other, &["the event"])?;
    refused("an event, there", other.wait_for(&cx.stream.event()?), is_other, &["the event"])?;
    if !cx.device.is_simulator() {
        let mut graph = cx.stream.capture(|_| Ok::<(), Error>(()))?;
        // SAFETY: no work was recorded.
        let replayed = unsafe { graph.replay(&other) };
        refused("a graph on another device", replayed, is_other, &["the stream"])?;
    }
    Ok(0.0)
}

fn drop_order(cx: &Context<'_>) -> Result<f64> {
    // A device that nobody else holds.
    let device = if cx.device.is_simulator() { Device::simulator() } else { Device::cuda(0)? };
    let problem = Problem::generated(generate::uniform(31, 45, 0.7, cx.seed), 24, cx.seed)?;
    let stream = device.stream()?;
    let a = CsrMatrix::new(&device, &problem.a)?;
    let plan = Spmm::plan(&a, problem.n)?;
    let b = device.upload(&problem.b)?;
    let mut c = device.zeros(plan.output_len())?;
    drop(device);
    plan.run(&stream, &a, b.as_slice(), c.as_slice_mut())?;
    drop((a, plan));
    let event = stream.event()?;
    let result = c.download(&stream)?;
    drop(stream);
    event.synchronize()?;
    drop((event, b, c));
    let report = lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?.check(&result)?;
    Ok(report.worst_over_bound)
}

//! Calls that SpMM must refuse, by an error that tells what was expected and what was got.
use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::{Csr, generate};
use lacuna::{Buffer, CsrMatrix, Device, Error, Spmm, spmm};

use crate::expect::refused;
use crate::{Case, Context};

const M: usize = 6;
const K: usize = 10;
const N: usize = 8;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spmm/refusals/lengths", "B and C of the wrong length", lengths),
        Case::new("spmm/refusals/other_pattern", "a plan for another matrix", other_pattern),
        Case::new("spmm/refusals/other_device", "operands and streams of another device", other_device),
        Case::new("spmm/refusals/columns", "2^30 columns and more", columns),
        Case::new("spmm/refusals/algorithms", "algorithms that N does not allow", algorithms),
        Case::new("spmm/refusals/alignment", "vectors that an address does not allow", alignment),
        Case::new("spmm/refusals/values", "values of the wrong number", values),
    ]
}

/// A matrix, a plan and operands that go together.
struct Operands {
    a: CsrMatrix,
    plan: Spmm,
    b: Buffer<f32>,
    c: Buffer<f32>,
}

impl Operands {
    fn new(device: &Device) -> Result<Self> {
        let a = CsrMatrix::new(device, &matrix(1)?)?;
        let plan = Spmm::plan(&a, N)?;
        Ok(Self { a, plan, b: device.zeros(K * N)?, c: device.zeros(M * N)? })
    }
}

fn matrix(seed: u64) -> Result<Csr<f32>> {
    let pattern = generate::uniform(M, K, 0.5, seed)?;
    let values = generate::random_values(pattern.nnz(), seed);
    Ok(Csr::with_values(pattern, values)?)
}

fn lengths(cx: &Context<'_>) -> Result<f64> {
    let Operands { a, plan, b, mut c } = Operands::new(cx.device)?;
    let is_length = |error: &Error| matches!(error, Error::Length { operation: "SpMM", .. });
    let one_less = plan.run(cx.stream, &a, b.slice(1..)?, c.as_slice_mut());
    refused("B one short", one_less, is_length, &["B", "79", "80", "10×8"])?;
    let one_less = plan.run(cx.stream, &a, b.as_slice(), c.slice_mut(1..)?);
    refused("C one short", one_less, is_length, &["C", "47", "48", "6×8"])?;
    let more = cx.device.zeros::<f32>(K * N + 1)?;
    let result = plan.run(cx.stream, &a, more.as_slice(), c.as_slice_mut());
    refused("B one long", result, is_length, &["B", "81", "80"])?;
    let result = plan.run(cx.stream, &a, b.slice(..0)?, c.as_slice_mut());
    refused("B empty", result, is_length, &["B", "0 elements", "80"])?;
    Ok(0.0)
}

fn other_pattern(cx: &Context<'_>) -> Result<f64> {
    let Operands { plan, b, mut c, .. } = Operands::new(cx.device)?;
    let is_other = |error: &Error| matches!(error, Error::OtherPattern { .. });
    for seed in [1, 2] {
        let another = CsrMatrix::new(cx.device, &matrix(seed)?)?;
        let result = plan.run(cx.stream, &another, b.as_slice(), c.as_slice_mut());
        refused("a matrix of its own", result, is_other, &["SpMM", "another matrix"])?;
    }
    Ok(0.0)
}

fn other_device(cx: &Context<'_>) -> Result<f64> {
    let Operands { a, plan, b, mut c } = Operands::new(cx.device)?;
    let elsewhere = Device::simulator();
    let is_other = |error: &Error| matches!(error, Error::OtherDevice { operation: "SpMM", .. });
    let expected = cx.device.info().name.as_str();

    let stream = elsewhere.stream()?;
    let result = plan.run(&stream, &a, b.as_slice(), c.as_slice_mut());
    refused("stream", result, is_other, &["the stream is on", "simulator", expected])?;
    let other = elsewhere.zeros(K * N)?;
    let result = plan.run(cx.stream, &a, other.as_slice(), c.as_slice_mut());
    refused("B", result, is_other, &["B is on", "simulator", expected])?;
    let mut other = elsewhere.zeros(M * N)?;
    let result = plan.run(cx.stream, &a, b.as_slice(), other.as_slice_mut());
    refused("C", result, is_other, &["C is on", "simulator", expected])?;
    // A matrix of another device has another device's pattern, too.
    let there = Operands::new(&elsewhere)?;
    let result = plan.run(cx.stream, &there.a, b.as_slice(), c.as_slice_mut());
    let refusal = |error: &Error| matches!(error, Error::OtherPattern { .. } | Error::OtherDevice { .. });
    refused("A", result, refusal, &["SpMM"])?;
    Ok(0.0)
}

fn columns(cx: &Context<'_>) -> Result<f64> {
    let a = CsrMatrix::new(cx.device, &matrix(1)?)?;
    let is_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    let limit = (1usize << 30) - 1;
    for n in [limit + 1, usize::MAX] {
        refused("too many columns", Spmm::plan(&a, n), is_large, &[&n.to_string(), &limit.to_string()])?;
    }
    Spmm::plan(&a, limit).context("the most columns")?;
    Ok(0.0)
}

fn row_split(vector: u32, lanes: u32, split: u32, warps: u32) -> spmm::Options {
    spmm::Options::default().algorithm(spmm::Algorithm::RowSplit { vector, lanes, split, warps })
}

fn algorithms(cx: &Context<'_>) -> Result<f64> {
    let a = CsrMatrix::new(cx.device, &matrix(1)?)?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { .. });
    for (n, vector) in [(7, 4), (7, 2), (6, 4)] {
        let plan = Spmm::plan_with(&a, n, row_split(vector, 32, 1, 8));
        let (asked, n) = (format!("vector: {vector}"), format!("N = {n}"));
        refused("vectors that do not divide N", plan, is_illegal, &[&asked, &n, "RowSplit { vector: 1"])?;
    }
    let plan = Spmm::plan_with(&a, 8, row_split(3, 5, 7, 0));
    refused(
        "numbers of no kernel",
        plan,
        is_illegal,
        &["vector: 3", "RowSplit { vector: 4", "RowSplit { vector: 1"],
    )?;
    Ok(0.0)
}

fn alignment(cx: &Context<'_>) -> Result<f64> {
    let Operands { a, .. } = Operands::new(cx.device)?;
    let b = cx.device.zeros::<f32>(K * N + 4)?;
    let mut c = cx.device.zeros::<f32>(M * N + 4)?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { .. });
    for (vector, offset) in [(4, 1), (4, 2), (4, 3), (2, 1), (2, 3)] {
        let plan = Spmm::plan_with(&a, N, row_split(vector, 32, 1, 8))?;
        let asked = format!("vector: {vector}");
        let says = [asked.as_str(), "aligned", "RowSplit { vector: 1"];
        let (part_b, part_c) = (offset..offset + K * N, offset..offset + M * N);
        let result = plan.run(cx.stream, &a, b.slice(part_b.clone())?, c.slice_mut(..M * N)?);
        refused("B not aligned", result, is_illegal, &says)?;
        let result = plan.run(cx.stream, &a, b.slice(..K * N)?, c.slice_mut(part_c.clone())?);
        refused("C not aligned", result, is_illegal, &says)?;
        let automatic = Spmm::plan(&a, N)?;
        automatic.run(cx.stream, &a, b.slice(part_b)?, c.slice_mut(part_c)?)?;
    }
    ensure!(c.download(cx.stream)?.iter().all(|&value| value == 0.0), "A·0 is not 0");
    Ok(0.0)
}

fn values(cx: &Context<'_>) -> Result<f64> {
    let mut a = CsrMatrix::new(cx.device, &matrix(1)?)?;
    let (nnz, wrong) = (a.nnz(), vec![0.0; a.nnz() + 1]);
    let is_length = |error: &Error| matches!(error, Error::Length { .. });
    let says = [nnz.to_string(), wrong.len().to_string()];
    let says = [says[0].as_str(), says[1].as_str()];
    refused("with_values", a.with_values(&wrong), is_length, &says)?;
    refused("values_mut", a.values_mut()?.upload(&wrong), is_length, &says)?;
    Ok(0.0)
}

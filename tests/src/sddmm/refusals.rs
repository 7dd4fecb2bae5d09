//! Calls that SDDMM must refuse, by an error that tells what was expected and what was got.
use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::{Coo, Csr, FormatError, generate};
use lacuna::{Buffer, CsrMatrix, Device, Error, Precision, Sddmm, sddmm};

use super::tiles::MIN_SM;
use crate::expect::refused;
use crate::{Case, Context};

const M: usize = 6;
const N: usize = 10;
const K: usize = 8;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("sddmm/refusals/lengths", "A and B of the wrong length", lengths),
        Case::new("sddmm/refusals/other_pattern", "C or D of another pattern", other_pattern),
        Case::new("sddmm/refusals/other_device", "operands and streams of another device", other_device),
        Case::new("sddmm/refusals/sizes", "K and strides that are too large or too small", sizes),
        Case::new("sddmm/refusals/algorithms", "algorithms that K does not allow", algorithms),
        Case::new("sddmm/refusals/alignment", "vectors that an address does not allow", alignment),
        Case::new(
            "sddmm/refusals/tiles",
            "tensor cores where K, precision or an address is not for them",
            tiles,
        ),
        Case::new("sddmm/refusals/batches", "C and D of another batch", batches),
        Case::new("sddmm/refusals/coordinates", "coordinates with a place given twice", coordinates),
    ]
}

/// A matrix, a plan and operands that go together.
struct Operands {
    d: CsrMatrix,
    plan: Sddmm,
    a: Buffer<f32>,
    b: Buffer<f32>,
}

impl Operands {
    fn new(device: &Device) -> Result<Self> {
        let d = CsrMatrix::new(device, &matrix(1)?)?;
        let plan = Sddmm::plan(&d, K)?;
        Ok(Self { d, plan, a: device.zeros(M * K)?, b: device.zeros(N * K)? })
    }
}

fn matrix(seed: u64) -> Result<Csr<f32>> {
    let pattern = generate::uniform(M, N, 0.5, seed)?;
    let values = generate::random_values(pattern.nnz(), seed);
    Ok(Csr::with_values(pattern, values)?)
}

fn lengths(cx: &Context<'_>) -> Result<f64> {
    let Operands { mut d, plan, a, b } = Operands::new(cx.device)?;
    let is_length = |error: &Error| matches!(error, Error::Length { operation: "SDDMM", .. });
    let result = plan.run(cx.stream, a.slice(1..)?, b.as_slice(), &mut d);
    refused("A one short", result, is_length, &["A", "47", "48", "6×8"])?;
    let result = plan.run(cx.stream, a.as_slice(), b.slice(1..)?, &mut d);
    refused("B one short", result, is_length, &["B", "79", "80", "10×8"])?;
    let more = cx.device.zeros::<f32>(N * K + 1)?;
    let result = plan.run(cx.stream, a.as_slice(), more.as_slice(), &mut d);
    refused("B one long", result, is_length, &["B", "81", "80"])?;
    let plan = Sddmm::plan_with(&d, K, sddmm::Options::default().b_transposed())?;
    let result = plan.run(cx.stream, a.as_slice(), b.slice(1..)?, &mut d);
    refused("B as K×N one short", result, is_length, &["B", "79", "80", "8×10"])?;
    Ok(0.0)
}

fn other_pattern(cx: &Context<'_>) -> Result<f64> {
    let Operands { mut d, plan, a, b } = Operands::new(cx.device)?;
    let is_other = |error: &Error| matches!(error, Error::OtherPattern { operation: "SDDMM" });
    for seed in [1, 2] {
        let mut another = CsrMatrix::new(cx.device, &matrix(seed)?)?;
        let result = plan.run(cx.stream, a.as_slice(), b.as_slice(), &mut another);
        refused("a D of its own", result, is_other, &["another matrix"])?;
        let result = plan.run_scaled(cx.stream, a.as_slice(), b.as_slice(), &another, &mut d);
        refused("a C of its own", result, is_other, &["another matrix"])?;
    }
    let sibling = d.with_values(&vec![2.0; d.nnz()])?;
    plan.run_scaled(cx.stream, a.as_slice(), b.as_slice(), &sibling, &mut d)?;
    Ok(0.0)
}

fn other_device(cx: &Context<'_>) -> Result<f64> {
    let Operands { mut d, plan, a, b } = Operands::new(cx.device)?;
    let elsewhere = Device::simulator();
    let is_other = |error: &Error| matches!(error, Error::OtherDevice { operation: "SDDMM", .. });
    let stream = elsewhere.stream()?;
    let result = plan.run(&stream, a.as_slice(), b.as_slice(), &mut d);
    refused("stream", result, is_other, &["the stream is on", "simulator"])?;
    let other = elsewhere.zeros(M * K)?;
    let result = plan.run(cx.stream, other.as_slice(), b.as_slice(), &mut d);
    refused("A", result, is_other, &["A is on", "simulator"])?;
    let other = elsewhere.zeros(N * K)?;
    let result = plan.run(cx.stream, a.as_slice(), other.as_slice(), &mut d);
    refused("B", result, is_other, &["B is on", "simulator"])?;
    Ok(0.0)
}

fn sizes(cx: &Context<'_>) -> Result<f64> {
    let c = CsrMatrix::new(cx.device, &matrix(1)?)?;
    let is_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    let limit = (1usize << 30) - 1;
    for k in [limit + 1, usize::MAX] {
        refused("K", Sddmm::plan(&c, k), is_large, &[&k.to_string(), &limit.to_string()])?;
    }
    Sddmm::plan(&c, limit).context("the largest K")?;
    let wide = sddmm::Options::default().a_stride(1 << 30);
    refused("a stride of 4 GiB", Sddmm::plan_with(&c, K, wide), is_large, &["the stride of A"])?;

    let is_parameter = |error: &Error| matches!(error, Error::Parameter { operation: "SDDMM", .. });
    for (options, says) in [
        (sddmm::Options::default().a_stride(K - 1), ["the stride of A", "K = 8"]),
        (sddmm::Options::default().b_stride(K - 1), ["the stride of B", "K = 8"]),
        (sddmm::Options::default().b_transposed().b_stride(N - 1), ["the stride of B", "N = 10"]),
        (sddmm::Options::default().splits(0), ["the number of splits", "at least 1"]),
    ] {
        refused("a narrow stride, or no splits", Sddmm::plan_with(&c, K, options), is_parameter, &says)?;
    }
    Ok(0.0)
}

fn nonzeros(vector: u32, vectors: u32, lanes: u32) -> sddmm::Options {
    sddmm::Options::default().algorithm(sddmm::Algorithm::NonzeroSplit { vector, vectors, lanes, warps: 8 })
}

fn algorithms(cx: &Context<'_>) -> Result<f64> {
    let c = CsrMatrix::new(cx.device, &matrix(1)?)?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: "SDDMM", .. });
    let plan = Sddmm::plan_with(&c, 7, nonzeros(4, 1, 8));
    refused("vectors that do not divide K", plan, is_illegal, &["vector: 4", "K = 7", "vector: 1"])?;
    let plan = Sddmm::plan_with(&c, 8, nonzeros(4, 1, 8).a_stride(9));
    refused("vectors that no stride allows", plan, is_illegal, &["these strides", "vector: 1"])?;
    refused("numbers of no kernel", Sddmm::plan_with(&c, 8, nonzeros(3, 5, 7)), is_illegal, &["vector: 3"])?;
    Ok(0.0)
}

fn alignment(cx: &Context<'_>) -> Result<f64> {
    let Operands { mut d, .. } = Operands::new(cx.device)?;
    let (a, b) = (cx.device.zeros::<f32>(M * K + 4)?, cx.device.zeros::<f32>(N * K + 4)?);
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { .. });
    let says = ["vector: 4", "aligned", "vector: 1"];
    for offset in 1..4 {
        let plan = Sddmm::plan_with(&d, K, nonzeros(4, 1, 8))?;
        let (part_a, part_b) = (a.slice(offset..offset + M * K)?, b.slice(offset..offset + N * K)?);
        let result = plan.run(cx.stream, part_a, b.slice(..N * K)?, &mut d);
        refused("A not aligned", result, is_illegal, &says)?;
        let result = plan.run(cx.stream, a.slice(..M * K)?, part_b, &mut d);
        refused("B not aligned", result, is_illegal, &says)?;
        Sddmm::plan(&d, K)?.run(cx.stream, part_a, part_b, &mut d)?;
    }
    ensure!(d.values()?.download(cx.stream)?.iter().all(|&value| value == 0.0), "0·0 is not 0");
    Ok(0.0)
}

fn tiles(cx: &Context<'_>) -> Result<f64> {
    let mut d = CsrMatrix::new(cx.device, &matrix(1)?)?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: "SDDMM", .. });
    let tiles = sddmm::Options::default().algorithm(sddmm::Algorithm::MmaTile { rows: 64, columns: 128 });
    for (what, k, options) in [
        ("products too short for three", 60, tiles),
        ("rows not of 16 bytes", 66, tiles),
        ("a stride not of 16 bytes", 64, tiles.b_stride(66)),
        ("fused multiply-adds", 64, tiles.precision(Precision::Fma)),
        (
            "a size that there is not",
            64,
            tiles.algorithm(sddmm::Algorithm::MmaTile { rows: 63, columns: 128 }),
        ),
    ] {
        let says = ["MmaTile", &format!("K = {k}"), "NonzeroSplit"];
        refused(what, Sddmm::plan_with(&d, k, options), is_illegal, &says)?;
    }
    if cx.device.info().sm < MIN_SM {
        return Ok(0.0);
    }
    let a = cx.device.zeros::<f32>(M * 64 + 4)?;
    let b = cx.device.zeros::<f32>(N * 64)?;
    let plan = Sddmm::plan_with(&d, 64, tiles)?;
    let result = plan.run(cx.stream, a.slice(1..=M * 64)?, b.as_slice(), &mut d);
    refused("A not aligned", result, is_illegal, &["MmaTile", "aligned", "NonzeroSplit"])?;
    plan.run(cx.stream, a.slice(4..)?, b.as_slice(), &mut d)?;
    ensure!(d.values()?.download(cx.stream)?.iter().all(|&value| value == 0.0), "0·0 is not 0");
    Ok(0.0)
}

fn batches(cx: &Context<'_>) -> Result<f64> {
    let Operands { mut d, plan, a, b } = Operands::new(cx.device)?;
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { operation: "SDDMM", .. });
    let mut two = d.with_value_batch(2, &vec![0.0; 2 * d.nnz()])?;
    let result = plan.run(cx.stream, a.as_slice(), b.as_slice(), &mut two);
    refused("two D for one product", result, is_parameter, &["the batch of D is 2", "1"])?;
    let result = plan.run_scaled(cx.stream, a.as_slice(), b.as_slice(), &two, &mut d);
    refused("two C for one product", result, is_parameter, &["the batch of C is 2", "1"])?;
    Ok(0.0)
}

/// D = (A·Bᵀ) has one place for each nonzero: a pattern in coordinates goes through CSR, which refuses a place given twice,
/// and sorts the others.
fn coordinates(cx: &Context<'_>) -> Result<f64> {
    let coo = Coo::new(2, 3, vec![1, 0, 1], vec![2, 1, 2], vec![0.0; 3])?;
    let twice = coo.to_csr().err().context("a place given twice was accepted")?;
    ensure!(matches!(twice, FormatError::Duplicate { .. }), "refused by the wrong error: {twice}");

    let coo = Coo::new(2, 3, vec![1, 0, 1], vec![2, 1, 0], vec![0.0f32; 3])?;
    let mut d = CsrMatrix::new(cx.device, &coo.to_csr()?)?;
    let a = cx.device.upload(&[2.0, 3.0])?;
    let b = cx.device.upload(&[1.0, 10.0, 100.0])?;
    Sddmm::plan(&d, 1)?.run(cx.stream, a.as_slice(), b.as_slice(), &mut d)?;
    let got = d.values()?.download(cx.stream)?;
    ensure!(got == [20.0, 3.0, 300.0], "sorted coordinates give {got:?}");
    Ok(0.0)
}

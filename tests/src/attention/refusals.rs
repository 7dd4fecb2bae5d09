//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Device, Error, SparseAttention, attention};

use crate::expect::refused;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("attention/refusals/plans", "dimensions, scales and algorithms", plans),
        Case::new("attention/refusals/lengths", "operands of the wrong length", lengths),
        Case::new(
            "attention/refusals/alignment",
            "an algorithm whose vectors an address does not allow",
            alignment,
        ),
        Case::new("attention/refusals/other_device", "operands and streams of another device", other_device),
    ]
}

const QUERIES: usize = 6;
const KEYS: usize = 9;
const DIM: usize = 8;

fn mask(device: &Device) -> Result<CsrMatrix> {
    let mask = generate::uniform(QUERIES, KEYS, 0.5, 1)?;
    let values = vec![0.0; mask.nnz()];
    Ok(CsrMatrix::new(device, &Csr::with_values(mask, values)?)?)
}

const WIDE: attention::Algorithm = attention::Algorithm::Row { vector: 4, lanes: 8, dimension: 64 };

fn plans(cx: &Context<'_>) -> Result<f64> {
    let mask = mask(cx.device)?;
    let usual = attention::Options::default();
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { operation: "attention", .. });
    refused("no dimension", SparseAttention::plan(&mask, 0), is_parameter, &["the dimension", "at least 1"])?;
    for scale in [f32::NAN, f32::INFINITY, f32::MAX] {
        let plan = SparseAttention::plan_with(&mask, DIM, usual.scale(scale));
        refused("a scale", plan, is_parameter, &["the scale", "finite"])?;
    }
    let is_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    refused("a large dimension", SparseAttention::plan(&mask, 1 << 30), is_large, &["the dimension"])?;
    let plan = SparseAttention::plan_with(&mask, DIM, usual.batch(usize::MAX / 8));
    refused("many heads", plan, is_large, &["the number of elements of Q"])?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: "attention", .. });
    for (what, options) in [
        ("the stride of Q", usual.q_stride(DIM - 1)),
        ("the stride of K", usual.kv_stride(DIM - 1)),
        ("the stride of O", usual.o_stride(DIM - 1)),
        ("the batch stride of O", usual.batch(2).o_batch_stride(DIM)),
    ] {
        refused(what, SparseAttention::plan_with(&mask, DIM, options), is_parameter, &[what, "at least"])?;
    }
    let steps = usual.q_stride(DIM).algorithm(attention::Algorithm::ThreeSteps);
    let plan = SparseAttention::plan_with(&mask, DIM, steps);
    refused("strides", plan, is_parameter, &["the strides", "three steps"])?;
    let what = "the heads that share K and V";
    for group in [0, 4] {
        let plan = SparseAttention::plan_with(&mask, DIM, usual.batch(6).kv_group(group));
        refused("a group", plan, is_parameter, &[what, "a divisor of the 6 heads"])?;
    }
    let steps = usual.batch(2).kv_group(2).algorithm(attention::Algorithm::ThreeSteps);
    refused("a group", SparseAttention::plan_with(&mask, DIM, steps), is_parameter, &[what, "three steps"])?;
    for dim in [7, 65] {
        let plan = SparseAttention::plan_with(&mask, dim, usual.algorithm(WIDE));
        refused("an algorithm", plan, is_illegal, &["Row {", &format!("d = {dim}"), "dimension: 256"])?;
    }
    Ok(0.0)
}

fn lengths(cx: &Context<'_>) -> Result<f64> {
    let plan = SparseAttention::plan_with(&mask(cx.device)?, DIM, attention::Options::default().batch(2))?;
    let right = [2 * QUERIES * DIM, 2 * KEYS * DIM, 2 * KEYS * DIM, 2 * QUERIES * DIM, 2 * QUERIES];
    let names = ["Q has", "K has", "V has", "O has", "the logarithms has"];
    for (wrong, name) in names.into_iter().enumerate() {
        for by in [-1, 1] {
            let mut lens = right;
            lens[wrong] = lens[wrong].wrapping_add_signed(by);
            let [q, k, v] = [0, 1, 2].map(|which| cx.device.zeros::<f32>(lens[which]));
            let (q, k, v) = (q?, k?, v?);
            let (mut o, mut logsumexp) = (cx.device.zeros(lens[3])?, cx.device.zeros(lens[4])?);
            let operands = attention::Operands {
                q: q.as_slice(),
                k: k.as_slice(),
                v: v.as_slice(),
                o: o.as_slice_mut(),
                logsumexp: Some(logsumexp.as_slice_mut()),
                alibi_slopes: None,
            };
            let is_length = |error: &Error| matches!(error, Error::Length { operation: "attention", .. });
            let (got, expected) = (lens[wrong].to_string(), right[wrong].to_string());
            refused(
                name,
                plan.run_with(cx.stream, operands),
                is_length,
                &[name, &got, &expected, if wrong < 4 { "a batch of 2" } else { "2 heads" }],
            )?;
        }
    }
    Ok(0.0)
}

fn alignment(cx: &Context<'_>) -> Result<f64> {
    let options = attention::Options::default().algorithm(WIDE);
    let plan = SparseAttention::plan_with(&mask(cx.device)?, DIM, options)?;
    let [q, k, v] = [QUERIES, KEYS, KEYS].map(|tokens| cx.device.zeros::<f32>(tokens * DIM + 1));
    let (q, k, v) = (q?, k?, v?);
    let mut o = cx.device.zeros(QUERIES * DIM)?;
    let end = QUERIES * DIM;
    let k = k.slice(..KEYS * DIM)?;
    let result = plan.run(cx.stream, q.slice(1..=end)?, k, v.slice(..KEYS * DIM)?, o.as_slice_mut());
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: "attention", .. });
    refused("Q at an odd element", result, is_illegal, &["not aligned", "vector: 1"])?;
    Ok(0.0)
}

fn other_device(cx: &Context<'_>) -> Result<f64> {
    let plan = SparseAttention::plan(&mask(cx.device)?, DIM)?;
    let elsewhere = Device::simulator();
    let stream = elsewhere.stream()?;
    let here = cx.device.zeros::<f32>(KEYS * DIM)?;
    let there = elsewhere.zeros::<f32>(KEYS * DIM)?;
    let queries = here.slice(..QUERIES * DIM)?;
    let mut o = cx.device.zeros(QUERIES * DIM)?;
    let is_device = |error: &Error| matches!(error, Error::OtherDevice { operation: "attention", .. });
    let (own, strange) = (here.as_slice(), there.as_slice());
    let result = plan.run(&stream, queries, own, own, o.as_slice_mut());
    refused("a stream", result, is_device, &["the stream"])?;
    let result = plan.run(cx.stream, queries, strange, own, o.as_slice_mut());
    refused("K", result, is_device, &["K is on"])?;
    let result = plan.run(cx.stream, queries, own, strange, o.as_slice_mut());
    refused("V", result, is_device, &["V is on"])?;
    let mut o = elsewhere.zeros(QUERIES * DIM)?;
    let result = plan.run(cx.stream, queries, own, own, o.as_slice_mut());
    refused("O", result, is_device, &["O is on"])?;
    Ok(0.0)
}

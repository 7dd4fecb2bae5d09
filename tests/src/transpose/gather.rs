//! Values of other widths, at other addresses, brought into the order of Aᵀ.
use std::fmt::Debug;

use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Element};

use super::shapes::with_values;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("transpose/gather/words", "values of 2 and 4 bytes, at any address", words),
        Case::new("transpose/gather/nan", "the bits of NaN and infinity are kept", nan),
    ]
}

/// Elements on each side of what is written.
const GUARD: usize = 16;

/// Every number of nonzeros modulo four, every alignment of input and output.
fn words(cx: &Context<'_>) -> Result<f64> {
    for nnz in [1, 3, 517, 1024, 1030] {
        let host = with_values(generate::uniform_nnz(37, 53, nnz, cx.seed)?, cx.seed)?;
        for (from, to) in [(0, 0), (1, 0), (0, 1), (2, 2), (3, 4), (4, 3), (5, 8)] {
            let at = || format!("{nnz} nonzeros, from element {from} to element {to}");
            gathered(cx, &host, from, to, |i| i as u16 ^ 0x8000).with_context(at)?;
            gathered(cx, &host, from, to, |i| i ^ 0x8000_0000).with_context(at)?;
        }
    }
    Ok(0.0)
}

fn gathered<T: Element + Debug>(
    cx: &Context<'_>,
    host: &Csr<f32>,
    from: usize,
    to: usize,
    number: impl Fn(u32) -> T,
) -> Result<()> {
    let nnz = host.nnz();
    let numbered = Csr::with_values(host.pattern().clone(), (0..nnz as u32).map(&number).collect())?;
    let a = CsrMatrix::new(cx.device, host)?;
    let mut contents = vec![number(u32::MAX); from];
    contents.extend(numbered.values());
    let values = cx.device.upload(&contents)?;
    let guard = number(u32::MAX - 1);
    let mut out = cx.device.upload(&vec![guard; GUARD + to + nnz + GUARD])?;
    let own = GUARD + to..GUARD + to + nnz;
    let transposed = a.transposed_pattern(cx.stream)?;
    transposed.gather(cx.stream, values.slice(from..)?, out.slice_mut(own.clone())?)?;
    let out = out.download(cx.stream)?;
    ensure!(out[own.clone()] == *numbered.transpose().values(), "not in the order of Aᵀ");
    let beside = out[..own.start].iter().chain(&out[own.end..]);
    ensure!(beside.into_iter().all(|&element| element == guard), "written beside the output");
    Ok(())
}

fn nan(cx: &Context<'_>) -> Result<f64> {
    let mut host = with_values(generate::uniform(20, 30, 0.7, cx.seed)?, cx.seed)?;
    let bits = [0x7fc1_2345, 0xff80_0000, 0x8000_0000, 0x0000_0001];
    for (value, bits) in host.values_mut().iter_mut().zip(bits.into_iter().cycle()) {
        *value = f32::from_bits(bits);
    }
    let a = CsrMatrix::new(cx.device, &host)?;
    let got = a.transposed(cx.stream)?.values()?.download(cx.stream)?;
    crate::expect::same_bits("on the host, then on the device", host.transpose().values(), &got, 0)?;
    Ok(0.0)
}

//! One matrix on one device: checked, then timed or modelled.
use std::time::Instant;

use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Device, Stream};

use super::record::Record;
use crate::machine::MachineRecord;
use crate::model;
use crate::timing::{Timing, time};

/// Bytes of an element in gathering: its index, and its value read and written.
const GATHER_BYTES: u64 = 12;

/// Measures a matrix.
///
/// # Errors
/// What the library says. A wrong result is no error: the record tells it.
pub fn measure(device: &Device, case: &str, host: &Csr<f32>, seed: u64, samples: u32) -> Result<Record> {
    let stream = device.stream()?;
    let a = CsrMatrix::new(device, host)?;
    let (_, building) = device.record(|| a.transposed_pattern(&stream).map(|_| ()))?;
    let mut t = a.transposed(&stream)?;
    let (_, gathering) = device.record(|| t.update_from(&stream, &a))?;
    let right = is_right(&stream, host, &a, &t)?;

    let (mut build_us, mut host_us, mut gather_us) = (None, None, None);
    if !device.is_simulator() {
        build_us = Some(by_host(samples, || {
            let a = CsrMatrix::new(device, host)?;
            let start = Instant::now();
            a.transposed_pattern(&stream)?;
            Ok(start.elapsed().as_secs_f64() * 1e6)
        })?);
        host_us = Some(by_host(samples, || {
            let start = Instant::now();
            CsrMatrix::new(device, &host.transpose())?;
            Ok(start.elapsed().as_secs_f64() * 1e6)
        })?);
        gather_us = Some(time(&stream, samples, |stream| Ok(t.update_from(stream, &a)?))?);
    }
    Ok(Record {
        op: "transpose",
        case: case.into(),
        m: host.rows(),
        k: host.cols(),
        nnz: host.nnz(),
        seed,
        build_us,
        host_us,
        gather_us,
        build_model_us: model::times(&building),
        gather_model_us: model::times(&gathering),
        gather_counts: model::counts(&gathering),
        gather_bytes: GATHER_BYTES * host.nnz() as u64,
        right,
        machine: MachineRecord::of(device),
    })
}

/// Whether order and values of `t` are those of the host's transpose.
fn is_right(stream: &Stream, host: &Csr<f32>, a: &CsrMatrix, t: &CsrMatrix) -> Result<bool> {
    let numbered = Csr::with_values(host.pattern().clone(), (0..host.nnz() as u32).collect::<Vec<_>>())?;
    let order = a.transposed_pattern(stream)?.permutation().download(stream)?;
    let values = t.values()?.download(stream)?;
    let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
    Ok(numbered.transpose().values() == order && host.transpose().values().iter().zip(&values).all(same))
}

/// Times in microseconds that `once` takes by the host's clock, after one that warms up.
fn by_host(samples: u32, mut once: impl FnMut() -> Result<f64>) -> Result<Timing> {
    once()?;
    Ok(Timing::of((0..samples).map(|_| once()).collect::<Result<_>>()?))
}

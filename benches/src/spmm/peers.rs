//! The vendor's libraries on the same problem, in the same run.
use std::collections::BTreeMap;

use anyhow::{Context, Result};
use lacuna::{Buffer, Device, Stream};
use lacuna_peers::cublas::{self, CuBlas, Gemm, GemmProblem, Math};
use lacuna_peers::cusparse::{self, CuSparse, SpmmAlgorithm, SpmmProblem};
use lacuna_peers::{DataType, Peers, Workspace};

use super::Problem;
use super::measure::Operands;
use crate::record::PeerRecord;
use crate::timing::{Timing, time};

/// Dense matrices above this many bytes are not made.
const MOST_DENSE_BYTES: usize = 8 << 30;

/// Measures the libraries that are there. None on the simulator, nor for problems without work. A library that fails is
/// left out, with a word on stderr: our own measurement does not depend on it.
pub(super) fn measure(
    peers: &Peers,
    device: &Device,
    problem: &Problem,
    operands: &Operands,
    samples: u32,
) -> BTreeMap<String, PeerRecord> {
    let mut records = BTreeMap::new();
    if device.is_simulator() || problem.a.nnz() == 0 || problem.n == 0 {
        return records;
    }
    let complain = |library: &str, error: anyhow::Error| eprintln!("{}: {library}: {error:#}", problem.name);
    if let Ok(library) = &peers.cusparse {
        match measure_cusparse(library, device, problem, operands, samples) {
            Ok(measured) => {
                let right = measured.iter().filter(|record| record.error_over_bound.is_some());
                let fastest = right.min_by(|a, b| a.time.median.total_cmp(&b.time.median));
                records.extend(fastest.map(|record| ("cusparse".to_string(), record.clone())));
                let default =
                    measured.iter().find(|record| record.algorithm == SpmmAlgorithm::Default.name());
                records.extend(default.map(|record| ("cusparse_default".to_string(), record.clone())));
            }
            Err(error) => complain("cuSPARSE", error),
        }
    }
    let dense_bytes = problem.a.rows() * problem.a.cols() * size_of::<f32>();
    if let Ok(library) = &peers.cublas
        && dense_bytes <= MOST_DENSE_BYTES
    {
        match measure_cublas(library, device, problem, operands, samples) {
            Ok(record) => {
                records.insert("cublas_f32".into(), record);
            }
            Err(error) => complain("cuBLAS", error),
        }
    }
    records
}

/// A workspace of the device.
fn workspace(device: &Device, bytes: usize) -> lacuna::Result<Workspace> {
    let buffer: Buffer<u32> = device.uninitialized(bytes.div_ceil(size_of::<u32>()))?;
    Ok(Workspace::new(buffer.as_slice().address(), buffer))
}

/// Each of cuSPARSE's algorithms that takes the problem. All but the default are prepared for the pattern first, which
/// is not timed; the default is what users get who do nothing.
fn measure_cusparse(
    library: &CuSparse,
    device: &Device,
    problem: &Problem,
    operands: &Operands,
    samples: u32,
) -> Result<Vec<PeerRecord>> {
    let handle: cusparse::Handle = library.handle()?;
    let row_offsets = device.upload(problem.a.row_offsets())?;
    let col_indices = device.upload(problem.a.col_indices())?;
    let values = device.upload(problem.a.values())?;
    let mut c = device.upload(&problem.unwritten_c()?)?;
    let stream = &operands.stream;
    let described = SpmmProblem {
        data_type: DataType::F32,
        m: problem.a.rows(),
        k: problem.a.cols(),
        n: problem.n,
        nnz: problem.a.nnz(),
        row_offsets: row_offsets.as_slice().address(),
        col_indices: col_indices.as_slice().address(),
        values: values.as_slice().address(),
        b: operands.b.as_slice().address(),
        c: c.as_slice().address(),
        stream: stream.as_raw(),
    };
    let version = library.version()?.to_string();
    let mut records = Vec::new();
    for algorithm in SpmmAlgorithm::ALL {
        // SAFETY: the buffers outlive the product, have the stated lengths, and the matrix was checked when made; the
        // stream is of this device, whose context is current after the uploads above.
        let product = unsafe { handle.spmm(&described, algorithm, |bytes| workspace(device, bytes)) };
        let product = match product {
            Ok(product) => product,
            Err(error) if error.is_unsupported() => continue,
            Err(error) => return Err(error.into()),
        };
        let mut timed = || -> Result<Timing> {
            if algorithm != SpmmAlgorithm::Default {
                product.preprocess()?;
            }
            c.upload(&problem.unwritten_c()?)?;
            product.run()?;
            stream.synchronize()?;
            time(stream, samples, |_: &Stream| Ok(product.run()?))
        };
        let time = timed().context(algorithm.name())?;
        let result = operands.reference.check(&c.download(stream)?);
        records.push(PeerRecord {
            time,
            algorithm: algorithm.name().into(),
            version: version.clone(),
            error_over_bound: result.ok().map(|report| report.worst_over_bound),
        });
    }
    Ok(records)
}

/// The dense product, in full fp32.
fn measure_cublas(
    library: &CuBlas,
    device: &Device,
    problem: &Problem,
    operands: &Operands,
    samples: u32,
) -> Result<PeerRecord> {
    let handle: cublas::Handle = library.handle()?;
    let stream = &operands.stream;
    let a = device.upload(&problem.a.to_dense()?)?;
    let c = device.upload(&problem.unwritten_c()?)?;
    let described = GemmProblem {
        data_type: DataType::F32,
        m: problem.a.rows(),
        k: problem.a.cols(),
        n: problem.n,
        a: a.as_slice().address(),
        b: operands.b.as_slice().address(),
        c: c.as_slice().address(),
        stream: stream.as_raw(),
    };
    // SAFETY: as for cuSPARSE.
    let gemm: Gemm = unsafe { handle.gemm(&described, Math::Fp32, |bytes| workspace(device, bytes))? };
    gemm.run()?;
    stream.synchronize()?;
    let time = time(stream, samples, |_: &Stream| Ok(gemm.run()?))?;
    let result = operands.reference.check(&c.download(stream)?);
    Ok(PeerRecord {
        time,
        algorithm: Math::Fp32.name().into(),
        version: library.version()?.to_string(),
        error_over_bound: result.ok().map(|report| report.worst_over_bound),
    })
}

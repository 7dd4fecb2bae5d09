//! The vendor's libraries on the same problem, in the same run.
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use anyhow::{Context, Result};
use lacuna::{Buffer, Device, Stream};
use lacuna_peers::cublas::{self, Gemm, GemmProblem, Math};
use lacuna_peers::cusparse::{self, SpmmAlgorithm, SpmmProblem};
use lacuna_peers::{DataType, Peers, Workspace};

use super::Problem;
use super::measure::{Measured, Operands};
use crate::record::PeerRecord;
use crate::timing::{Timing, time};

/// Dense matrices above this many bytes are not made.
const MOST_DENSE_BYTES: usize = 8 << 30;

/// The dense products of a type, by their names in records.
fn dense_products(data_type: DataType) -> &'static [(&'static str, Math)] {
    match data_type {
        DataType::F32 => &[("cublas_f32", Math::Fp32), ("cublas_tf32", Math::Tf32)],
        DataType::F16 => &[("cublas_f16", Math::Fp32)],
        DataType::Bf16 => &[("cublas_bf16", Math::Fp32)],
    }
}

/// The libraries over many problems: their handles, and the dense products' times, which do not depend on where A's
/// zeros are and are measured once a shape.
pub(crate) struct PeerSession {
    cusparse: Option<cusparse::Handle>,
    cublas: Option<cublas::Handle>,
    libraries: Peers,
    /// By M, K and N.
    dense: HashMap<[usize; 3], BTreeMap<String, PeerRecord>>,
}

impl std::fmt::Debug for PeerSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerSession").field("libraries", &self.libraries).finish_non_exhaustive()
    }
}

impl PeerSession {
    pub(crate) fn new(libraries: Peers) -> Self {
        Self { cusparse: None, cublas: None, libraries, dense: HashMap::new() }
    }

    /// Measures the libraries that are there. None on the simulator, nor for problems without work. A library that fails
    /// is left out, with a word on stderr: our own measurement does not depend on it.
    pub(super) fn measure<T: Measured>(
        &mut self,
        device: &Device,
        problem: &Problem,
        operands: &Operands<T>,
        samples: u32,
    ) -> BTreeMap<String, PeerRecord> {
        let mut records = BTreeMap::new();
        if device.is_simulator() || problem.a.nnz() == 0 || problem.n == 0 {
            return records;
        }
        let complain =
            |library: &str, error: anyhow::Error| eprintln!("{}: {library}: {error:#}", problem.name);
        match self.measure_cusparse(device, problem, operands, samples) {
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
        let shape = [problem.a.rows(), problem.a.cols(), problem.n];
        if let Some(known) = self.dense.get(&shape) {
            records.extend(known.clone());
        } else if shape[0] * shape[1] * size_of::<T>() <= MOST_DENSE_BYTES {
            match self.measure_dense(device, problem, operands, samples) {
                Ok(measured) => {
                    let mut known = measured.clone();
                    for record in known.values_mut() {
                        record.measured_in = Some(problem.name.clone());
                    }
                    self.dense.insert(shape, known);
                    records.extend(measured);
                }
                Err(error) => complain("cuBLAS", error),
            }
        }
        records
    }

    /// Each of cuSPARSE's algorithms that takes the problem. All but the default are prepared for the pattern first, which
    /// is not timed; the default is what users get who do nothing.
    fn measure_cusparse<T: Measured>(
        &mut self,
        device: &Device,
        problem: &Problem,
        operands: &Operands<T>,
        samples: u32,
    ) -> Result<Vec<PeerRecord>> {
        let Ok(library) = &self.libraries.cusparse else { return Ok(Vec::new()) };
        let row_offsets = device.upload(problem.a.row_offsets())?;
        let col_indices = device.upload(problem.a.col_indices())?;
        let values = device.upload(operands.a.values())?;
        let mut c = device.upload(&problem.unwritten_c::<T>()?)?;
        let stream = &operands.stream;
        let described = SpmmProblem {
            data_type: T::DATA_TYPE,
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
        // Made here, after the uploads: they made the device's context current.
        let handle = match &mut self.cusparse {
            Some(handle) => handle,
            none => none.insert(library.handle()?),
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
            let mut timed = || -> Result<(Option<f64>, Timing)> {
                let preprocess_us = if algorithm == SpmmAlgorithm::Default {
                    None
                } else {
                    stream.synchronize()?;
                    let start = Instant::now();
                    product.preprocess()?;
                    stream.synchronize()?;
                    Some(start.elapsed().as_secs_f64() * 1e6)
                };
                c.upload(&problem.unwritten_c::<T>()?)?;
                product.run()?;
                stream.synchronize()?;
                Ok((preprocess_us, time(stream, samples, |_: &Stream| Ok(product.run()?))?))
            };
            let (preprocess_us, time) = timed().context(algorithm.name())?;
            let result = operands.reference.check(&c.download(stream)?);
            records.push(PeerRecord {
                time,
                algorithm: algorithm.name().into(),
                version: version.clone(),
                error_over_bound: result.ok().map(|report| report.worst_over_bound),
                preprocess_us,
                measured_in: None,
            });
        }
        Ok(records)
    }

    /// The dense product, in full fp32 and in TF32.
    fn measure_dense<T: Measured>(
        &mut self,
        device: &Device,
        problem: &Problem,
        operands: &Operands<T>,
        samples: u32,
    ) -> Result<BTreeMap<String, PeerRecord>> {
        let Ok(library) = &self.libraries.cublas else { return Ok(BTreeMap::new()) };
        let stream = &operands.stream;
        let a = device.upload(&operands.a.to_dense()?)?;
        let mut c = device.upload(&problem.unwritten_c::<T>()?)?;
        let described = GemmProblem {
            data_type: T::DATA_TYPE,
            m: problem.a.rows(),
            k: problem.a.cols(),
            n: problem.n,
            a: a.as_slice().address(),
            b: operands.b.as_slice().address(),
            c: c.as_slice().address(),
            stream: stream.as_raw(),
        };
        // Made here, after the uploads: they made the device's context current.
        let handle = match &mut self.cublas {
            Some(handle) => handle,
            none => none.insert(library.handle()?),
        };
        let version = library.version()?.to_string();
        let mut records = BTreeMap::new();
        for &(name, math) in dense_products(T::DATA_TYPE) {
            c.upload(&problem.unwritten_c::<T>()?)?;
            // SAFETY: as for cuSPARSE.
            let gemm: Gemm = unsafe { handle.gemm(&described, math, |bytes| workspace(device, bytes))? };
            gemm.run()?;
            stream.synchronize()?;
            let time = time(stream, samples, |_: &Stream| Ok(gemm.run()?))?;
            let result = operands.reference.check(&c.download(stream)?);
            let record = PeerRecord {
                time,
                algorithm: math.name().into(),
                version: version.clone(),
                error_over_bound: result.ok().map(|report| report.worst_over_bound),
                preprocess_us: None,
                measured_in: None,
            };
            records.insert(name.to_string(), record);
        }
        Ok(records)
    }
}

/// A workspace of the device.
fn workspace(device: &Device, bytes: usize) -> lacuna::Result<Workspace> {
    let buffer: Buffer<u32> = device.uninitialized(bytes.div_ceil(size_of::<u32>()))?;
    Ok(Workspace::new(buffer.as_slice().address(), buffer))
}

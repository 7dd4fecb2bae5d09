//! The vendor's libraries on the same problem, in the same run.
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use anyhow::Result;
use lacuna::{Buffer, Device, Stream};
use lacuna_peers::cublas::{self, Gemm, GemmProblem, Math};
use lacuna_peers::cusparse::{self, SpmmAlgorithm, SpmmProblem};
use lacuna_peers::{DataType, Peers, Workspace};

use super::measure::{Measured, Operands};
use super::{Problem, arithmetic};
use crate::record::PeerRecord;
use crate::timing::time;

/// cuSPARSE's name in records.
const CUSPARSE: &str = "cusparse";
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

/// What a problem's peers came to.
#[derive(Default)]
pub(super) struct Peered {
    /// Their measurements, by their names in records.
    pub(super) records: BTreeMap<String, PeerRecord>,
    /// Why others have none, by the name of the library, the algorithm or the product.
    pub(super) failures: BTreeMap<String, String>,
}

impl Peered {
    /// Takes in what a library came to.
    fn add(&mut self, library: &str, came_to: Result<Self>) {
        match came_to {
            Ok(Self { records, failures }) => {
                self.records.extend(records);
                self.failures.extend(failures);
            }
            Err(error) => self.fail(library, &error),
        }
    }

    fn fail(&mut self, what: &str, error: &anyhow::Error) {
        self.failures.insert(what.into(), format!("{error:#}"));
    }

    /// Measures the product in several ways, each with its name. One that fails takes none of the others with it; one that
    /// cannot do the problem gives nothing.
    fn each<W>(
        &mut self,
        ways: impl IntoIterator<Item = (String, W)>,
        mut measure: impl FnMut(W) -> Result<Option<PeerRecord>>,
    ) {
        for (name, way) in ways {
            match measure(way) {
                Ok(record) => self.records.extend(record.map(|record| (name, record))),
                Err(error) => self.fail(&name, &error),
            }
        }
    }
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

    /// Measures the libraries that are there. None on the simulator, nor for problems without work. What fails is kept apart,
    /// with a word on stderr: neither our own measurement nor another peer's depends on it.
    pub(super) fn measure<T: Measured>(
        &mut self,
        device: &Device,
        problem: &Problem,
        operands: &Operands<T>,
        samples: u32,
    ) -> Peered {
        let mut peered = Peered::default();
        if device.is_simulator() || problem.a.nnz() == 0 || problem.n == 0 {
            return peered;
        }
        let cusparse = self.measure_cusparse(device, problem, operands, samples);
        peered.add(CUSPARSE, cusparse.map(best_and_default));
        let shape = [problem.a.rows(), problem.a.cols(), problem.n];
        if let Some(known) = self.dense.get(&shape) {
            peered.records.extend(known.clone());
        } else if shape[0] * shape[1] * size_of::<T>() <= MOST_DENSE_BYTES {
            let dense = self.measure_dense(device, problem, operands, samples);
            if let Ok(Peered { records, failures }) = &dense
                && failures.is_empty()
            {
                let mut known = records.clone();
                for record in known.values_mut() {
                    record.measured_in = Some(problem.name.clone());
                }
                self.dense.insert(shape, known);
            }
            peered.add("cublas", dense);
        }
        for (what, why) in &peered.failures {
            eprintln!("{}: {what}: {why}", problem.name);
        }
        peered
    }

    /// Each of cuSPARSE's algorithms that takes the problem, by its name. All but the default are prepared for the pattern
    /// first, which is not timed; the default is what users get who do nothing.
    fn measure_cusparse<T: Measured>(
        &mut self,
        device: &Device,
        problem: &Problem,
        operands: &Operands<T>,
        samples: u32,
    ) -> Result<Peered> {
        let mut peered = Peered::default();
        let Ok(library) = &self.libraries.cusparse else { return Ok(peered) };
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
        let ways =
            SpmmAlgorithm::ALL.map(|algorithm| (format!("{CUSPARSE} {}", algorithm.name()), algorithm));
        peered.each(ways, |algorithm| {
            // SAFETY: the buffers outlive the product, have the stated lengths, and the matrix was checked when made; the
            // stream is of this device, whose context is current after the uploads above.
            let product = unsafe { handle.spmm(&described, algorithm, |bytes| workspace(device, bytes)) };
            let product = match product {
                Ok(product) => product,
                Err(error) if error.is_unsupported() => return Ok(None),
                Err(error) => return Err(error.into()),
            };
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
            let time = time(stream, samples, |_: &Stream| Ok(product.run()?))?;
            let judged_by = arithmetic::of_cusparse(T::DATA_TYPE);
            Ok(Some(PeerRecord {
                time,
                algorithm: algorithm.name().into(),
                version: version.clone(),
                error_over_bound: operands.error_over_bound(judged_by, &c.download(stream)?)?,
                preprocess_us,
                measured_in: None,
            }))
        });
        Ok(peered)
    }

    /// The dense product, in full fp32 and in TF32.
    fn measure_dense<T: Measured>(
        &mut self,
        device: &Device,
        problem: &Problem,
        operands: &Operands<T>,
        samples: u32,
    ) -> Result<Peered> {
        let mut peered = Peered::default();
        let Ok(library) = &self.libraries.cublas else { return Ok(peered) };
        let stream = &operands.stream;
        let a = device.upload(&operands.a.to_dense()?)?;
        let mut c = device.upload(&problem.unwritten_c::<T>()?)?;
        let described = GemmProblem {
            data_type: T::DATA_TYPE,
            m: problem.a.rows(),
            k: problem.a.cols(),
            n: problem.n,
            batch: 1,
            transposed_b: false,
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
        let ways = dense_products(T::DATA_TYPE).iter().map(|&(name, math)| (name.to_string(), math));
        peered.each(ways, |math| {
            c.upload(&problem.unwritten_c::<T>()?)?;
            // SAFETY: as for cuSPARSE.
            let gemm: Gemm = unsafe { handle.gemm(&described, math, |bytes| workspace(device, bytes))? };
            gemm.run()?;
            stream.synchronize()?;
            let time = time(stream, samples, |_: &Stream| Ok(gemm.run()?))?;
            let judged_by = arithmetic::of_cublas(T::DATA_TYPE, math);
            Ok(Some(PeerRecord {
                time,
                algorithm: math.name().into(),
                version: version.clone(),
                error_over_bound: operands.error_over_bound(judged_by, &c.download(stream)?)?,
                preprocess_us: None,
                measured_in: None,
            }))
        });
        Ok(peered)
    }
}

/// Of cuSPARSE's algorithms what records have: the fastest with a right result, and the default.
fn best_and_default(Peered { records: measured, failures }: Peered) -> Peered {
    let right = measured.values().filter(|record| record.error_over_bound.is_some());
    let fastest = right.min_by(|a, b| a.time.median.total_cmp(&b.time.median));
    let default = measured.values().find(|record| record.algorithm == SpmmAlgorithm::Default.name());
    let named = [(CUSPARSE.to_string(), fastest), (format!("{CUSPARSE}_default"), default)];
    let records = named.into_iter().filter_map(|(name, record)| Some((name, record?.clone()))).collect();
    Peered { records, failures }
}

/// A workspace of the device.
fn workspace(device: &Device, bytes: usize) -> lacuna::Result<Workspace> {
    let buffer: Buffer<u32> = device.uninitialized(bytes.div_ceil(size_of::<u32>()))?;
    Ok(Workspace::new(buffer.as_slice().address(), buffer))
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::timing::Timing;

    fn record(algorithm: SpmmAlgorithm, us: f64, right: bool) -> PeerRecord {
        PeerRecord {
            time: Timing { median: us, min: us, max: us },
            algorithm: algorithm.name().into(),
            version: String::new(),
            error_over_bound: right.then_some(0.5),
            preprocess_us: None,
            measured_in: None,
        }
    }

    /// What comes of four algorithms, by their place in the list.
    fn measured(measure: impl Fn(SpmmAlgorithm) -> Result<Option<PeerRecord>>) -> Peered {
        let mut peered = Peered::default();
        peered.each(SpmmAlgorithm::ALL.map(|algorithm| (algorithm.name().to_string(), algorithm)), measure);
        best_and_default(peered)
    }

    #[test]
    fn an_algorithm_that_fails_leaves_the_others_and_is_told() {
        let peered = measured(|algorithm| match algorithm {
            SpmmAlgorithm::Default => Ok(Some(record(algorithm, 9.0, true))),
            SpmmAlgorithm::Csr1 => Err(anyhow!("no room").context("the workspace")),
            SpmmAlgorithm::Csr2 => Ok(None),
            SpmmAlgorithm::Csr3 => Ok(Some(record(algorithm, 5.0, true))),
        });
        let algorithms: Vec<(&str, &str)> =
            peered.records.iter().map(|(name, record)| (&**name, &*record.algorithm)).collect();
        assert_eq!(algorithms, [("cusparse", "csr_alg3"), ("cusparse_default", "default")]);
        let failures: Vec<(&str, &str)> =
            peered.failures.iter().map(|(name, why)| (&**name, &**why)).collect();
        assert_eq!(failures, [("csr_alg1", "the workspace: no room")]);
    }

    #[test]
    fn the_default_may_fail_and_a_wrong_result_is_not_the_fastest() {
        let peered = measured(|algorithm| match algorithm {
            SpmmAlgorithm::Default => Err(anyhow!("lost")),
            SpmmAlgorithm::Csr1 => Ok(Some(record(algorithm, 1.0, false))),
            _ => Ok(Some(record(algorithm, 7.0, true))),
        });
        assert_eq!(peered.records.keys().collect::<Vec<_>>(), ["cusparse"]);
        assert_eq!(peered.records["cusparse"].algorithm, "csr_alg2");
        assert!(peered.failures.contains_key("default"));
    }

    #[test]
    fn a_library_that_fails_takes_no_other_with_it() {
        let mut peered = measured(|algorithm| Ok(Some(record(algorithm, 3.0, true))));
        peered.add("cublas", Err(anyhow!("no handle")));
        assert_eq!((peered.records.len(), peered.failures["cublas"].as_str()), (2, "no handle"));
    }
}

//! The vendors' libraries on the same problem, and plain copies, in the same run, whatever the operation.
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use anyhow::Result;
use lacuna::{Buffer, Device, Stream, Value, ValueType};
use lacuna_cases::Problem;
use lacuna_peers::Peers;
use lacuna_vendor::cublas::{self, CuBlas, Math};
use lacuna_vendor::cusparse::{self, CuSparse};
use lacuna_vendor::{DataType, Handle, Loaded, VendorApi, Workspace};

use crate::cold::Flush;
use crate::record::PeerRecord;
use crate::timing::{Timing, time_with};

/// cuSPARSE's name in records.
pub(crate) const CUSPARSE: &str = "cusparse";
/// The same with the second operand of SDDMM as K×N, which is how others have measured it.
pub(crate) const CUSPARSE_KN: &str = "cusparse_kn";
/// cuSPARSE's default algorithm, as its name in records ends.
pub(crate) const DEFAULT: &str = "default";
/// Dense matrices above this many bytes are not made.
pub(crate) const MOST_DENSE_BYTES: usize = 8 << 30;

/// cuSPARSE and dense products: name in records, and title.
pub(crate) const PRODUCTS: [(&str, &str); 8] = [
    ("cusparse_default", "cuSPARSE default"),
    ("cusparse", "cuSPARSE best"),
    ("cusparse_kn_default", "cuSPARSE default, B as K×N"),
    ("cusparse_kn", "cuSPARSE best, B as K×N"),
    ("cublas_f32", "dense cuBLAS f32"),
    ("cublas_tf32", "dense cuBLAS TF32"),
    ("cublas_f16", "dense cuBLAS f16"),
    ("cublas_bf16", "dense cuBLAS bf16"),
];

/// What the vendors' libraries call a type.
pub(crate) fn data_type<T: Value>() -> DataType {
    match T::TYPE {
        ValueType::F32 => DataType::F32,
        ValueType::F16 => DataType::F16,
        ValueType::Bf16 => DataType::Bf16,
    }
}

/// The dense products of a type, by their names in records.
pub(crate) fn dense_products(data_type: DataType) -> &'static [(&'static str, Math)] {
    match data_type {
        DataType::F32 => &[("cublas_f32", Math::Fp32), ("cublas_tf32", Math::Tf32)],
        DataType::F16 => &[("cublas_f16", Math::Fp32)],
        DataType::Bf16 => &[("cublas_bf16", Math::Fp32)],
    }
}

/// A vendor's library over many problems.
pub(crate) struct Library<L, H> {
    loaded: L,
    handle: Option<H>,
}

impl<A: VendorApi> Library<Loaded<A>, Handle<A>> {
    fn new(loaded: Loaded<A>) -> Self {
        Self { loaded, handle: None }
    }

    /// Its handle, made in the context that is current: ask for it after an upload, which made the device's context so.
    pub(crate) fn handle(&mut self) -> Result<Handle<A>> {
        let handle = match &self.handle {
            Some(handle) => handle,
            None => self.handle.insert(self.loaded.handle()?),
        };
        Ok(handle.clone())
    }

    /// Its version.
    pub(crate) fn version(&self) -> Result<String> {
        Ok(self.loaded.version()?.to_string())
    }
}

/// cuSPARSE over many problems.
pub(crate) type CuSparseLibrary = Library<CuSparse, cusparse::Handle>;
/// cuBLAS over many problems.
pub(crate) type CuBlasLibrary = Library<CuBlas, cublas::Handle>;

/// The libraries over many problems, and the dense products' times, which do not depend on where zeros are and are measured
/// once a shape.
pub(crate) struct PeerSession {
    cusparse: Option<CuSparseLibrary>,
    cublas: Option<CuBlasLibrary>,
    /// By operation, rows, columns, width and batch.
    dense: HashMap<(&'static str, [usize; 4]), BTreeMap<String, PeerRecord>>,
    /// The time of a large plain copy, once it was measured.
    pub(crate) large_copy: Option<Timing>,
}

impl PeerSession {
    /// cuSPARSE, where it is there.
    pub(crate) fn cusparse(&mut self) -> Option<&mut CuSparseLibrary> {
        self.cusparse.as_mut()
    }
}

/// What a problem's peers are measured with.
pub(crate) struct Context<'a> {
    pub(crate) device: &'a Device,
    pub(crate) stream: &'a Stream,
    /// The operation's name.
    pub(crate) op: &'static str,
    pub(crate) problem: &'a Problem,
    /// Bytes of the operation's work model.
    pub(crate) bytes: u64,
    pub(crate) samples: u32,
    /// What makes caches cold before each repetition, if that is wanted.
    pub(crate) cold: Option<&'a Flush>,
}

impl Context<'_> {
    /// A workspace of the device.
    pub(crate) fn workspace(&self, bytes: usize) -> lacuna::Result<Workspace> {
        let buffer: Buffer<u32> = self.device.uninitialized(bytes.div_ceil(size_of::<u32>()))?;
        Ok(Workspace::new(buffer.as_slice().address(), buffer))
    }

    /// Microseconds that `prepare` takes by the host's clock, until the stream has done what it was given.
    pub(crate) fn by_host(&self, prepare: impl FnOnce() -> Result<(), lacuna_vendor::Error>) -> Result<f64> {
        self.stream.synchronize()?;
        let start = Instant::now();
        prepare()?;
        self.stream.synchronize()?;
        Ok(start.elapsed().as_secs_f64() * 1e6)
    }

    /// Runs a way once, has its result checked, and times it: the record of a peer that prepared nothing.
    pub(crate) fn measure(
        &self,
        algorithm: &str,
        version: &str,
        run: impl Fn() -> Result<(), lacuna_vendor::Error>,
        error_over_bound: impl FnOnce(&Stream) -> Result<Option<f64>>,
    ) -> Result<PeerRecord> {
        run()?;
        self.stream.synchronize()?;
        let time = time_with(self.cold, self.stream, self.samples, |_| Ok(run()?))?;
        Ok(PeerRecord {
            time,
            algorithm: algorithm.into(),
            version: version.into(),
            error_over_bound: error_over_bound(self.stream)?,
            preprocess_us: None,
            energy_mj: None,
            measured_in: None,
        })
    }
}

/// What a problem's peers came to.
#[derive(Default)]
pub(crate) struct Peered {
    /// Their measurements, by their names in records.
    pub(crate) records: BTreeMap<String, PeerRecord>,
    /// Why others have none, by the name of the library, the algorithm or the product.
    pub(crate) failures: BTreeMap<String, String>,
}

impl Peered {
    /// Measures the product in several ways, each with its name. One that fails takes none of the others with it; one that
    /// cannot do the problem gives nothing.
    pub(crate) fn of_each<W>(
        ways: impl IntoIterator<Item = (String, W)>,
        mut measure: impl FnMut(W) -> Result<Option<PeerRecord>>,
    ) -> Self {
        let mut peered = Self::default();
        for (name, way) in ways {
            match measure(way) {
                Ok(record) => peered.records.extend(record.map(|record| (name, record))),
                Err(error) => peered.fail(&name, &error),
            }
        }
        peered
    }

    /// Takes in what a library, or one way to use it, came to.
    pub(crate) fn add(&mut self, library: &str, came_to: Result<Self>) {
        match came_to {
            Ok(Self { records, failures }) => {
                self.records.extend(records);
                self.failures.extend(failures);
            }
            Err(error) => self.fail(library, &error),
        }
    }

    /// Says on stderr what failed.
    pub(crate) fn tell(&self, problem: &Problem) {
        for (what, why) in &self.failures {
            eprintln!("{}: {what}: {why}", problem.name);
        }
    }

    fn fail(&mut self, what: &str, error: &anyhow::Error) {
        self.failures.insert(what.into(), format!("{error:#}"));
    }

    /// Of cuSPARSE's algorithms what records have under `name`: the fastest with a right result, and the default.
    pub(crate) fn best_and_default(self, name: &str) -> Self {
        let Self { records: measured, failures } = self;
        let right = measured.values().filter(|record| record.error_over_bound.is_some());
        let fastest = right.min_by(|a, b| a.time.median.total_cmp(&b.time.median));
        let default = measured.values().find(|record| record.algorithm == DEFAULT);
        let named = [(name.to_string(), fastest), (format!("{name}_{DEFAULT}"), default)];
        let records = named.into_iter().filter_map(|(name, record)| Some((name, record?.clone()))).collect();
        Self { records, failures }
    }
}

impl std::fmt::Debug for PeerSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let loaded = (self.cusparse.as_ref().map(|l| &l.loaded), self.cublas.as_ref().map(|l| &l.loaded));
        f.debug_struct("PeerSession").field("libraries", &loaded).finish_non_exhaustive()
    }
}

impl PeerSession {
    pub(crate) fn new(libraries: Peers) -> Self {
        Self::of(libraries.cusparse.ok(), libraries.cublas.ok())
    }

    /// With cuBLAS alone.
    pub(crate) fn with_cublas(cublas: Option<CuBlas>) -> Self {
        Self::of(None, cublas)
    }

    fn of(cusparse: Option<CuSparse>, cublas: Option<CuBlas>) -> Self {
        Self {
            cusparse: cusparse.map(Library::new),
            cublas: cublas.map(Library::new),
            dense: HashMap::new(),
            large_copy: None,
        }
    }

    /// Measures the libraries that are there. None on the simulator, nor for problems without work. What fails is kept apart,
    /// with a word on stderr: neither our own measurement nor another peer's depends on it. Values are of `T`.
    pub(crate) fn measure<T>(
        &mut self,
        context: &Context<'_>,
        cusparse: impl FnOnce(&mut CuSparseLibrary) -> Result<Peered>,
        cublas: impl FnOnce(&mut CuBlasLibrary) -> Result<Peered>,
    ) -> Peered {
        let problem = context.problem;
        let mut peered = Peered::default();
        if context.device.is_simulator() || problem.matrix.elements() * problem.width * problem.batch == 0 {
            return peered;
        }
        if let Some(library) = &mut self.cusparse {
            peered.add(CUSPARSE, cusparse(library));
        }
        // What the dense matrices take that stand for the sparse ones.
        let dense_bytes = problem.batch * problem.rows() * problem.cols() * size_of::<T>();
        let shape = (context.op, [problem.rows(), problem.cols(), problem.width, problem.batch]);
        if let Some(known) = self.dense.get(&shape) {
            peered.records.extend(known.clone());
        } else if let Some(library) = &mut self.cublas
            && dense_bytes <= MOST_DENSE_BYTES
        {
            let dense = cublas(library);
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
        peered.tell(problem);
        peered
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use lacuna_vendor::cusparse::SpmmAlgorithm;

    use super::*;
    use crate::timing::Timing;

    fn record(algorithm: SpmmAlgorithm, us: f64, right: bool) -> PeerRecord {
        PeerRecord {
            time: Timing { median: us, min: us, max: us },
            algorithm: algorithm.name().into(),
            version: String::new(),
            error_over_bound: right.then_some(0.5),
            preprocess_us: None,
            energy_mj: None,
            measured_in: None,
        }
    }

    /// What comes of four algorithms, by their place in the list.
    fn measured(measure: impl FnMut(SpmmAlgorithm) -> Result<Option<PeerRecord>>) -> Peered {
        let ways = SpmmAlgorithm::ALL.map(|algorithm| (algorithm.name().to_string(), algorithm));
        Peered::of_each(ways, measure).best_and_default(CUSPARSE)
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
    fn both_layouts_of_a_library_stand_side_by_side() {
        let way = |us| {
            Peered::of_each([(DEFAULT.into(), ())], |()| Ok(Some(record(SpmmAlgorithm::Default, us, true))))
        };
        let mut peered = way(3.0).best_and_default(CUSPARSE);
        peered.add(CUSPARSE_KN, Ok(way(9.0).best_and_default(CUSPARSE_KN)));
        let times: Vec<(&str, f64)> =
            peered.records.iter().map(|(name, record)| (&**name, record.time.median)).collect();
        let expected = [
            ("cusparse", 3.0),
            ("cusparse_default", 3.0),
            ("cusparse_kn", 9.0),
            ("cusparse_kn_default", 9.0),
        ];
        assert_eq!(times, expected);
        peered.add(CUSPARSE_KN, Err(anyhow!("no room for B")));
        assert_eq!((peered.records.len(), peered.failures[CUSPARSE_KN].as_str()), (4, "no room for B"));
    }

    #[test]
    fn a_library_that_fails_takes_no_other_with_it() {
        let mut peered = measured(|algorithm| Ok(Some(record(algorithm, 3.0, true))));
        peered.add("cublas", Err(anyhow!("no handle")));
        assert_eq!((peered.records.len(), peered.failures["cublas"].as_str()), (2, "no handle"));
    }
}

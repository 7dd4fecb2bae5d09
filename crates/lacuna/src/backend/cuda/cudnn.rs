//! Convolutions by cuDNN, which is opened when the first one is planned.
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lacuna_kernels::ValueType;
use lacuna_vendor::cudnn::{Algorithm, Arrays, ConvSizes, CuDnn, DescribedConv, Found, Math};
use lacuna_vendor::{DataType, Search, Vendor};

use super::Shared;
use crate::backend::{BackendConv, BackendStream};
use crate::conv::{self, MapLayout, Problem, Shape};
use crate::op::illegal;
use crate::{Error, Precision, Result};

/// The algorithms that sum up products as they are, in some order: what they may err by is known. Winograd's and Fourier's transforms round
/// other numbers.
const ALGORITHMS: [Algorithm; 3] = [Algorithm::ImplicitGemm, Algorithm::ImplicitPrecompGemm, Algorithm::Gemm];

/// A convolution by cuDNN.
pub(super) struct CudnnConv {
    /// Nothing only while it is dropped.
    session: Option<Mutex<Session>>,
    found: Found,
    shared: Arc<Shared>,
}

/// Descriptors and a handle, which are this plan's alone.
struct Session(DescribedConv);

// SAFETY: handles and descriptors of cuDNN belong to a context, not to a thread: they may be used by one thread after another. The clones
// of a handle are counted without a lock, and there is no clone outside of this value.
unsafe impl Send for Session {}

impl CudnnConv {
    /// Chooses an algorithm by cuDNN's heuristic: nothing runs on the device.
    pub(super) fn new(shared: &Arc<Shared>, problem: &Problem) -> Result<Self> {
        let library = library()?;
        shared.enter()?;
        let failed = |error| failed(problem, error);
        let handle = library.handle().map_err(failed)?;
        let conv = handle.describe(&sizes(problem), math(problem)).map_err(failed)?;
        let found = conv.choose(&ALGORITHMS).map_err(failed)?.ok_or_else(|| {
            let names = ALGORITHMS.map(Algorithm::name).join(", ");
            let Problem { value, precision, layout, .. } = problem;
            let of = format!("{value} values, {layout:?} and Precision::{precision:?}");
            refused(problem, format!("cuDNN can do this with {of} by none of its algorithms {names}"))
        })?;
        Ok(Self { session: Some(Mutex::new(Session(conv))), found, shared: Arc::clone(shared) })
    }
}

impl BackendConv for CudnnConv {
    fn algorithm(&self) -> &'static str {
        self.found.algorithm.name()
    }

    fn workspace_bytes(&self) -> usize {
        self.found.workspace_bytes
    }

    fn run(
        &self,
        stream: &dyn BackendStream,
        input: u64,
        filters: u64,
        out: u64,
        workspace: u64,
    ) -> Result<()> {
        self.shared.enter()?;
        let Some(session) = &self.session else { return Ok(()) };
        let Session(conv) = &*session.lock().unwrap_or_else(PoisonError::into_inner);
        let arrays = Arrays { input, weights: filters, out, workspace };
        // SAFETY: the plan checked the lengths, and has a workspace of its own; the buffers are borrowed by the call, and their `Drop` waits
        // for the device. The stream is of this device, whose context is current.
        unsafe { conv.run(&self.found, stream.raw(), &arrays) }.map_err(of_call)
    }
}

impl Drop for CudnnConv {
    /// Waits for work of this plan. Where that fails the context is gone, or something is recorded: handle and descriptors stay.
    fn drop(&mut self) {
        let session = self.session.take();
        let _return = super::Return::to_current();
        if self.shared.wait_for_all().is_err() {
            mem::forget(session);
        }
    }
}

impl fmt::Debug for CudnnConv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudnnConv").field("found", &self.found).finish_non_exhaustive()
    }
}

/// The library, which stays open. Where it is missing it is looked for again the next time.
fn library() -> Result<CuDnn> {
    static LIBRARY: OnceLock<CuDnn> = OnceLock::new();
    if let Some(library) = LIBRARY.get() {
        return Ok(library.clone());
    }
    let library = CuDnn::load(&Search::from_env());
    let library = library.map_err(|missing| Error::NoLibrary { why: missing.to_string() })?;
    Ok(LIBRARY.get_or_init(|| library).clone())
}

fn sizes(problem: &Problem) -> ConvSizes {
    let Shape { batch, channels, size, filters, taps, strides, padding, groups } = problem.shape;
    let data_type = match problem.value {
        ValueType::F32 => DataType::F32,
        ValueType::F16 => DataType::F16,
        ValueType::Bf16 => DataType::Bf16,
    };
    let channels_last = problem.layout == MapLayout::Nhwc;
    ConvSizes { data_type, batch, channels, size, filters, taps, strides, padding, groups, channels_last }
}

/// TF32 has to be asked for. Products of 16-bit values are exact on tensor cores.
fn math(problem: &Problem) -> Math {
    match (problem.value, problem.precision) {
        (_, Precision::Fma) | (ValueType::F32, Precision::Single) => Math::Fma,
        _ => Math::TensorCores,
    }
}

fn refused(problem: &Problem, why: String) -> Error {
    illegal(problem, conv::Algorithm::CuDnn, why)
}

/// What stands against a plan.
fn failed(problem: &Problem, error: lacuna_vendor::Error) -> Error {
    match error {
        lacuna_vendor::Error::Call { .. } if !error.is_unsupported() => of_call(error),
        other => refused(problem, format!("cuDNN does not take it: {other}")),
    }
}

fn of_call(error: lacuna_vendor::Error) -> Error {
    Error::Library { library: Vendor::CuDnn.to_string(), why: error.to_string() }
}

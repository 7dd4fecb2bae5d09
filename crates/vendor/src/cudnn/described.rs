//! A convolution of given sizes and of any arrays: what the library must be told of it, its algorithms, and its run.

use std::ffi::{c_int, c_void};
use std::fmt;

use super::Handle;
use super::algorithm::{Algorithm, Found, Math, MathType};
use super::api::Performance;
use super::descriptor::Descriptor;
use super::shape::{ConvSizes, Shape};
use crate::check::pointer;
use crate::data_type::DataType;
use crate::error::Error;
use crate::scalar::{ONE, ZERO, scalar};

/// The largest workspace of a convolution. Algorithms that need more are left out.
pub const WORKSPACE_BYTES: usize = 256 << 20;

/// The results to ask for: more than there can be, which is each algorithm with each of four math types.
const RESULTS: usize = 4 * Algorithm::ALL.len();

/// A convolution's descriptors, bound to its arithmetic. Stays on its thread.
pub struct DescribedConv {
    // Dropped before the handle.
    pub(super) input: Descriptor,
    pub(super) weights: Descriptor,
    pub(super) convolution: Descriptor,
    pub(super) out: Descriptor,
    data_type: DataType,
    math: Math,
    pub(super) handle: Handle,
}

/// The arrays of a run: device addresses.
#[derive(Clone, Copy, Debug)]
pub struct Arrays {
    /// The values of the input.
    pub input: u64,
    /// The values of the weights.
    pub weights: u64,
    /// The values of the output, overwritten.
    pub out: u64,
    /// The workspace, aligned to 256 bytes; anything where the algorithm needs none.
    pub workspace: u64,
}

impl Handle {
    /// Tells the library of a convolution in the arithmetic `math`.
    ///
    /// # Errors
    /// A size that is 0 or past 2³¹ − 1 (padding may be 0), an array of more values than that, taps that do not fit
    /// into the padded input, groups that do not divide the channels and the filters, or a refusal of the library.
    pub fn describe(&self, sizes: &ConvSizes, math: Math) -> Result<DescribedConv, Error> {
        self.describe_shape(&Shape::new(sizes)?, sizes.data_type, math)
    }

    /// The same of checked sizes.
    pub(super) fn describe_shape(
        &self,
        shape: &Shape,
        data_type: DataType,
        math: Math,
    ) -> Result<DescribedConv, Error> {
        let (api, format) = (self.api(), shape.format);
        Ok(DescribedConv {
            input: Descriptor::tensor(api, format, data_type, shape.input)?,
            weights: Descriptor::filter(api, format, data_type, shape.weights)?,
            convolution: Descriptor::convolution(api, shape)?,
            out: Descriptor::tensor(api, format, data_type, shape.out)?,
            data_type,
            math,
            handle: self.clone(),
        })
    }
}

impl DescribedConv {
    /// The arithmetic that it is bound to.
    pub fn math(&self) -> Math {
        self.math
    }

    /// The first of `algorithms` in the order in which the library's heuristic ranks them, of those that can do this
    /// problem in this arithmetic, give the same bits in each run and need a workspace of [`WORKSPACE_BYTES`] at most.
    /// Nothing runs on the GPU.
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status.
    pub fn choose(&self, algorithms: &[Algorithm]) -> Result<Option<Found>, Error> {
        self.allow(self.asks())?;
        let ranked = self.ask(|asked, returned, results| {
            // SAFETY: handle and descriptors are alive, `results` has room for what is asked, and `returned` is a place
            // for the count.
            unsafe {
                self.handle.api().rank_forward(
                    self.handle.raw(),
                    self.input.raw(),
                    self.weights.raw(),
                    self.convolution.raw(),
                    self.out.raw(),
                    asked,
                    returned,
                    results,
                )
            }
        })?;
        for ranked in ranked.iter().filter(|ranked| ranked.determinism == DETERMINISTIC) {
            let Some(found) = Found::ranked(ranked, self.math) else { continue };
            if !algorithms.contains(&found.algorithm) {
                continue;
            }
            self.allow(found.math_type)?;
            match self.workspace_bytes(found.algorithm) {
                Ok(workspace_bytes) if workspace_bytes <= WORKSPACE_BYTES => {
                    return Ok(Some(Found { workspace_bytes, ..found }));
                }
                Err(error) if !error.is_unsupported() => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Puts the convolution in a stream (null is the default one) and returns at once. May be captured in a CUDA graph.
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status. A fault in the kernel shows at the next wait for the stream.
    ///
    /// # Safety
    /// Until the work is done the arrays are device memory of the handle's context, with the lengths that
    /// [`ConvSizes`] states, and the workspace is as large as `found` says, with no other user. The stream belongs to
    /// that context, which is current now and when this value is dropped.
    pub unsafe fn run(&self, found: &Found, stream: *mut c_void, arrays: &Arrays) -> Result<(), Error> {
        self.use_stream(stream)?;
        self.allow(found.math_type)?;
        let has_workspace = found.workspace_bytes > 0;
        // SAFETY: handle and descriptors are alive, the scalars are on the host, and the caller answers for the device
        // memory.
        unsafe {
            self.handle.api().forward(
                self.handle.raw(),
                scalar(&ONE),
                self.input.raw(),
                pointer(arrays.input),
                self.weights.raw(),
                pointer(arrays.weights),
                self.convolution.raw(),
                found.algorithm.raw(),
                if has_workspace { pointer(arrays.workspace) } else { std::ptr::null_mut() },
                found.workspace_bytes,
                scalar(&ZERO),
                self.out.raw(),
                pointer(arrays.out),
            )
        }
    }

    /// What to ask of the library.
    pub(super) fn asks(&self) -> MathType {
        self.math.asks(self.data_type)
    }

    /// What `call` says of algorithms: it is given how many results there is room for, and places for their number and
    /// for them.
    pub(super) fn ask(
        &self,
        call: impl FnOnce(c_int, *mut c_int, *mut Performance) -> Result<(), Error>,
    ) -> Result<Vec<Performance>, Error> {
        let mut results = vec![Performance::default(); RESULTS];
        let mut returned = 0;
        call(RESULTS as c_int, &mut returned, results.as_mut_ptr())?;
        results.truncate(usize::try_from(returned).unwrap_or(0));
        Ok(results)
    }

    /// Sets what products may be: runs share the descriptor.
    pub(super) fn allow(&self, math_type: MathType) -> Result<(), Error> {
        // SAFETY: the descriptor is alive, and the type is one of the library's.
        unsafe { self.handle.api().set_math_type(self.convolution.raw(), math_type.raw()) }
    }

    /// Sets the stream: the handle may be shared, so that another problem may have left it on another one.
    pub(super) fn use_stream(&self, stream: *mut c_void) -> Result<(), Error> {
        // SAFETY: the handle is alive, and the caller of what runs answers for the stream.
        unsafe { self.handle.api().set_stream(self.handle.raw(), stream) }
    }

    /// The workspace of an algorithm, with the math type that is set.
    fn workspace_bytes(&self, algorithm: Algorithm) -> Result<usize, Error> {
        let mut bytes = 0;
        // SAFETY: handle and descriptors are alive, and `bytes` is a place for the result.
        unsafe {
            self.handle.api().forward_workspace(
                self.handle.raw(),
                self.input.raw(),
                self.weights.raw(),
                self.convolution.raw(),
                self.out.raw(),
                algorithm.raw(),
                &mut bytes,
            )
        }?;
        Ok(bytes)
    }
}

/// `CUDNN_DETERMINISTIC`.
const DETERMINISTIC: c_int = 1;

impl fmt::Debug for DescribedConv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DescribedConv")
            .field("data_type", &self.data_type)
            .field("math", &self.math)
            .finish_non_exhaustive()
    }
}

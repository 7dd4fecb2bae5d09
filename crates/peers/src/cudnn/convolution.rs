//! Convolution forward: out = convolution(input, weights), with a bias and ReLU where wanted.

use std::error::Error as StdError;
use std::ffi::{c_int, c_void};
use std::fmt;

use super::Handle;
use super::algorithm::{Algorithm, Found, Math, MathType};
use super::api::Performance;
use super::descriptor::Descriptor;
use super::shape::{Arrays, ConvProblem, Shape};
use crate::data_type::DataType;
use crate::error::Error;
use crate::scalar::{ONE, ZERO, scalar};
use crate::workspace::Workspace;

/// The workspace of a convolution. Algorithms that need more are left out.
pub const WORKSPACE_BYTES: usize = 256 << 20;

/// The results to ask for: more than there can be, which is each algorithm with each of four math types.
const RESULTS: usize = 4 * Algorithm::ALL.len();

/// A problem bound to its arithmetic and a workspace. Stays on its thread.
pub struct Convolution {
    // Dropped in this order: the descriptors before the memory, the handle last.
    input: Descriptor,
    weights: Descriptor,
    convolution: Descriptor,
    out: Descriptor,
    fused: Option<Fused>,
    workspace: Option<Workspace>,
    arrays: Arrays,
    data_type: DataType,
    math: Math,
    stream: *mut c_void,
    handle: Handle,
}

/// What follows the convolution in the same call.
struct Fused {
    bias: Descriptor,
    activation: Descriptor,
    relu: bool,
    /// The bias where the problem has none.
    zeros: Option<Workspace>,
}

impl Handle {
    /// Binds `problem` to `math`; `allocate` gives a workspace of [`WORKSPACE_BYTES`] and, for ReLU without a bias,
    /// an array for a bias of zeros.
    ///
    /// # Errors
    /// A size that is 0 or past 2³¹ − 1 (padding may be 0), an array of more values than that, taps that do not fit
    /// into the padded input, groups that do not divide the channels and the filters, an impossible address, an
    /// output over an input, a failed allocation, or a refusal of the library; where [`Error::is_unsupported`] says
    /// so, it has no such operation.
    ///
    /// # Safety
    /// As long as the returned value lives, and until the work that it put in the stream is done:
    /// - the arrays are device memory of this handle's context, with the lengths that [`ConvProblem`] states;
    /// - what was allocated is device memory of the bytes asked for, with no other user;
    /// - the stream belongs to this handle's context, and that context is current at every call
    ///   and at the drop.
    pub unsafe fn convolution<E: Into<Box<dyn StdError + Send + Sync>>>(
        &self,
        problem: &ConvProblem,
        math: Math,
        allocate: impl Fn(usize) -> Result<Workspace, E>,
    ) -> Result<Convolution, Error> {
        let shape = Shape::new(problem)?;
        let arrays = Arrays::new(problem, &shape)?;
        let &ConvProblem { data_type, relu, stream, .. } = problem;

        let (api, format) = (self.api(), shape.format);
        let fused = if relu || arrays.bias.is_some() {
            let bias = Descriptor::tensor(api, format, data_type, shape.bias())?;
            Some(Fused { bias, activation: Descriptor::activation(api, relu)?, relu, zeros: None })
        } else {
            None
        };
        let mut convolution = Convolution {
            input: Descriptor::tensor(api, format, data_type, shape.input)?,
            weights: Descriptor::filter(api, format, data_type, shape.weights)?,
            convolution: Descriptor::convolution(api, &shape)?,
            out: Descriptor::tensor(api, format, data_type, shape.out)?,
            fused,
            workspace: Workspace::obtain(WORKSPACE_BYTES, &allocate)?,
            arrays,
            data_type,
            math,
            stream,
            handle: self.clone(),
        };
        if convolution.arrays.bias.is_none() {
            convolution.make_zeros(problem.filters * data_type.bytes(), allocate)?;
        }
        Ok(convolution)
    }
}

impl Convolution {
    /// The arithmetic that it is bound to.
    pub fn math(&self) -> Math {
        self.math
    }

    /// Has the library run and time each algorithm, and lists those that can do this problem in this arithmetic,
    /// fastest first; an algorithm may be there with several math types. Waits for the GPU and overwrites the output,
    /// so it cannot be captured in a CUDA graph.
    ///
    /// The library times the convolution without bias and ReLU. With a bias and no ReLU it has one algorithm,
    /// [`Algorithm::ImplicitPrecompGemm`].
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status.
    pub fn algorithms(&self) -> Result<Vec<Found>, Error> {
        const ASKED: c_int = RESULTS as c_int;
        self.prepare(self.math.asks(self.data_type))?;
        let mut results = [Performance::default(); RESULTS];
        let mut returned = 0;
        // SAFETY: handle and descriptors are alive, `results` has room for what is asked, `returned` is a place for
        // the count, and `Handle::convolution`'s caller answers for the device memory.
        unsafe {
            self.handle.api().find_forward(
                self.handle.raw(),
                self.input.raw(),
                self.arrays.input.pointer(),
                self.weights.raw(),
                self.arrays.weights.pointer(),
                self.convolution.raw(),
                self.out.raw(),
                self.arrays.out.pointer(),
                ASKED,
                &mut returned,
                results.as_mut_ptr(),
                Workspace::pointer(&self.workspace),
                WORKSPACE_BYTES,
            )
        }?;
        let returned = usize::try_from(returned).unwrap_or(0);
        let found = results.iter().take(returned).filter_map(|result| Found::read(result, self.math));
        let mut found: Vec<Found> = found.filter(|found| self.has(found.algorithm)).collect();
        found.sort_by(|a, b| a.time_ms.total_cmp(&b.time_ms));
        Ok(found)
    }

    /// Puts the convolution, with bias and ReLU where the problem has them, in the stream and returns at once. May be
    /// captured in a CUDA graph.
    ///
    /// # Errors
    /// [`Error::Call`] with the library's status; where [`Error::is_unsupported`] says so, try the next algorithm. A
    /// fault in the kernel shows at the next wait for the stream.
    pub fn run(&self, algorithm: &Found) -> Result<(), Error> {
        self.prepare(algorithm.math_type)?;
        let (api, handle) = (self.handle.api(), self.handle.raw());
        let (input, weights, out) = (self.input.raw(), self.weights.raw(), self.out.raw());
        let (input_values, weight_values) = (self.arrays.input.pointer(), self.arrays.weights.pointer());
        let (convolution, out_values) = (self.convolution.raw(), self.arrays.out.pointer());
        let (algorithm, workspace) = (algorithm.algorithm.raw(), Workspace::pointer(&self.workspace));
        let (one, zero) = (scalar(&ONE), scalar(&ZERO));
        match &self.fused {
            // SAFETY: handle and descriptors are alive, the scalars are on the host, and `Handle::convolution`'s
            // caller answers for the device memory.
            None => unsafe {
                api.forward(
                    handle,
                    one,
                    input,
                    input_values,
                    weights,
                    weight_values,
                    convolution,
                    algorithm,
                    workspace,
                    WORKSPACE_BYTES,
                    zero,
                    out,
                    out_values,
                )
            },
            // The output stands in for the array that the library could add, which counts 0 times.
            // SAFETY: as above; the bias is the problem's, or an array of zeros of that length.
            Some(fused) => unsafe {
                api.forward_fused(
                    handle,
                    one,
                    input,
                    input_values,
                    weights,
                    weight_values,
                    convolution,
                    algorithm,
                    workspace,
                    WORKSPACE_BYTES,
                    zero,
                    out,
                    out_values,
                    fused.bias.raw(),
                    self.bias(fused),
                    fused.activation.raw(),
                    out,
                    out_values,
                )
            },
        }
    }

    /// Whether `algorithm` can do what follows the convolution.
    fn has(&self, algorithm: Algorithm) -> bool {
        match self.fused {
            Some(Fused { relu: false, .. }) => algorithm == Algorithm::ImplicitPrecompGemm,
            _ => true,
        }
    }

    /// The bias that the library reads.
    fn bias(&self, fused: &Fused) -> *mut c_void {
        self.arrays.bias.as_ref().map_or_else(|| Workspace::pointer(&fused.zeros), |bias| bias.pointer())
    }

    /// Makes the bias of zeros that the library wants where ReLU follows and the problem has no bias.
    fn make_zeros<E: Into<Box<dyn StdError + Send + Sync>>>(
        &mut self,
        bytes: usize,
        allocate: impl FnOnce(usize) -> Result<Workspace, E>,
    ) -> Result<(), Error> {
        let Some(fused) = &mut self.fused else { return Ok(()) };
        fused.zeros = Workspace::obtain(bytes, allocate)?;
        let zeros = Workspace::pointer(&fused.zeros);
        let bias = fused.bias.raw();
        self.use_stream()?;
        // SAFETY: handle and descriptor are alive, the array has the length that the descriptor states, and the bytes
        // of a zero of fp32 are those of a zero of 16 bits, too.
        unsafe { self.handle.api().fill(self.handle.raw(), bias, zeros, scalar(&ZERO)) }
    }

    /// Makes the settings of a call anew: handle and descriptor are shared by calls.
    fn prepare(&self, math_type: MathType) -> Result<(), Error> {
        self.use_stream()?;
        // SAFETY: the descriptor is alive, and the type is one of the library's.
        unsafe { self.handle.api().set_math_type(self.convolution.raw(), math_type.raw()) }
    }

    /// The handle is shared, so that another problem may have left it on another stream.
    fn use_stream(&self) -> Result<(), Error> {
        // SAFETY: the handle is alive, and `Handle::convolution`'s caller answers for the stream.
        unsafe { self.handle.api().set_stream(self.handle.raw(), self.stream) }
    }
}

impl fmt::Debug for Convolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Convolution")
            .field("data_type", &self.data_type)
            .field("math", &self.math)
            .field("fused", &self.fused.is_some())
            .finish_non_exhaustive()
    }
}

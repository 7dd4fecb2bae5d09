//! Convolution forward: out = convolution(input, weights), with a bias and ReLU where wanted.

use std::error::Error as StdError;
use std::ffi::c_void;
use std::fmt;

use super::Handle;
use super::algorithm::{Algorithm, Found, Math};
use super::described::{Arrays, DescribedConv, WORKSPACE_BYTES};
use super::descriptor::Descriptor;
use super::shape::{CheckedArrays, ConvProblem, Shape};
use crate::error::Error;
use crate::scalar::{ONE, ZERO, scalar};
use crate::workspace::Workspace;

/// A problem bound to its arrays, its arithmetic and a workspace. Stays on its thread.
pub struct Convolution {
    // Dropped in this order: the descriptors before the memory.
    fused: Option<Fused>,
    conv: DescribedConv,
    workspace: Option<Workspace>,
    arrays: CheckedArrays,
    stream: *mut c_void,
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
        let &ConvProblem { sizes, relu, stream, .. } = problem;
        let data_type = sizes.data_type;
        let shape = Shape::new(&sizes)?;
        let arrays = CheckedArrays::new(problem, &shape)?;

        let (api, format) = (self.api(), shape.format);
        let fused = if relu || arrays.bias.is_some() {
            let bias = Descriptor::tensor(api, format, data_type, shape.bias())?;
            Some(Fused { bias, activation: Descriptor::activation(api, relu)?, relu, zeros: None })
        } else {
            None
        };
        let mut convolution = Convolution {
            fused,
            conv: self.describe_shape(&shape, data_type, math)?,
            workspace: Workspace::obtain(WORKSPACE_BYTES, &allocate)?,
            arrays,
            stream,
        };
        if convolution.arrays.bias.is_none() {
            convolution.make_zeros(sizes.filters * data_type.bytes(), allocate)?;
        }
        Ok(convolution)
    }
}

impl Convolution {
    /// The arithmetic that it is bound to.
    pub fn math(&self) -> Math {
        self.conv.math()
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
        let conv = &self.conv;
        conv.use_stream(self.stream)?;
        conv.allow(conv.asks())?;
        let results = conv.ask(|asked, returned, results| {
            // SAFETY: handle and descriptors are alive, `results` has room for what is asked, `returned` is a place for
            // the count, and `Handle::convolution`'s caller answers for the device memory.
            unsafe {
                conv.handle.api().find_forward(
                    conv.handle.raw(),
                    conv.input.raw(),
                    self.arrays.input.pointer(),
                    conv.weights.raw(),
                    self.arrays.weights.pointer(),
                    conv.convolution.raw(),
                    conv.out.raw(),
                    self.arrays.out.pointer(),
                    asked,
                    returned,
                    results,
                    Workspace::pointer(&self.workspace),
                    WORKSPACE_BYTES,
                )
            }
        })?;
        let found = results.iter().filter_map(|result| Found::read(result, self.math()));
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
        let conv = &self.conv;
        let Some(fused) = &self.fused else {
            let [input, weights, out] =
                [&self.arrays.input, &self.arrays.weights, &self.arrays.out].map(|array| array.address());
            let workspace = Workspace::address(&self.workspace);
            let arrays = Arrays { input, weights, out, workspace };
            // SAFETY: `Handle::convolution`'s caller answers for the device memory and the stream; the workspace is as
            // large as any algorithm that is found needs.
            return unsafe { conv.run(algorithm, self.stream, &arrays) };
        };
        conv.use_stream(self.stream)?;
        conv.allow(algorithm.math_type)?;
        let (out, out_values) = (conv.out.raw(), self.arrays.out.pointer());
        // The output stands in for the array that the library could add, which counts 0 times.
        // SAFETY: handle and descriptors are alive, the scalars are on the host, and `Handle::convolution`'s caller answers
        // for the device memory; the bias is the problem's, or an array of zeros of that length.
        unsafe {
            conv.handle.api().forward_fused(
                conv.handle.raw(),
                scalar(&ONE),
                conv.input.raw(),
                self.arrays.input.pointer(),
                conv.weights.raw(),
                self.arrays.weights.pointer(),
                conv.convolution.raw(),
                algorithm.algorithm.raw(),
                Workspace::pointer(&self.workspace),
                WORKSPACE_BYTES,
                scalar(&ZERO),
                out,
                out_values,
                fused.bias.raw(),
                self.bias(fused),
                fused.activation.raw(),
                out,
                out_values,
            )
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
        let conv = &self.conv;
        conv.use_stream(self.stream)?;
        // SAFETY: handle and descriptor are alive, the array has the length that the descriptor states, and the bytes
        // of a zero of fp32 are those of a zero of 16 bits, too.
        unsafe { conv.handle.api().fill(conv.handle.raw(), bias, zeros, scalar(&ZERO)) }
    }
}

impl fmt::Debug for Convolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Convolution")
            .field("conv", &self.conv)
            .field("fused", &self.fused.is_some())
            .finish_non_exhaustive()
    }
}

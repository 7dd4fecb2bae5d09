//! What can go wrong, and what to do about it.
use lacuna_kernels::Entry;
use lacuna_sim::LaunchError;

/// A result of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call was refused, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A buffer has not the length that the shapes ask for.
    #[error("{operation}: {what} has {got} elements, but {expected} are expected ({shape})")]
    Length {
        /// The operation that was asked for.
        operation: &'static str,
        /// Which operand.
        what: &'static str,
        /// Its shape, in words.
        shape: String,
        /// Elements that the shape asks for.
        expected: usize,
        /// Elements that there are.
        got: usize,
    },
    /// A plan was run on a matrix of another pattern than it was made for.
    #[error(
        "{operation}: the plan was made for another matrix; plan again for this one, or replace the values of that one"
    )]
    OtherPattern {
        /// The operation that was asked for.
        operation: &'static str,
    },
    /// The values of a [prepacked](crate::CsrMatrix::prepacked) matrix were to be replaced.
    #[error(
        "{operation}: the values of a prepacked matrix cannot be changed; make another matrix, or one that is not prepacked \
         (CsrMatrix::new)"
    )]
    Prepacked {
        /// The operation that was asked for.
        operation: &'static str,
    },
    /// A plan that was made for a prepacked matrix was run on one that is not.
    #[error(
        "{operation}: the plan was made for a prepacked matrix; plan again for this one, or prepack it (CsrMatrix::prepacked)"
    )]
    NotPrepacked {
        /// The operation that was asked for.
        operation: &'static str,
    },
    /// A matrix is not the transposed of another's pattern.
    #[error(
        "{operation}: the matrix was not made by `transposed` of this pattern; make it by that, of any matrix that shares \
         the pattern"
    )]
    OtherTranspose {
        /// The operation that was asked for.
        operation: &'static str,
    },
    /// Operands live on different devices.
    #[error("{operation}: {what} is on {got}, but {expected} is used; make it on the same device")]
    OtherDevice {
        /// The operation that was asked for.
        operation: &'static str,
        /// Which operand, or the stream.
        what: &'static str,
        /// The device of the others.
        expected: String,
        /// The operand's device.
        got: String,
    },
    /// A size is past what the kernels can count.
    #[error("{what} is {got}, but at most {limit} can be handled; split the problem")]
    TooLarge {
        /// Which size.
        what: &'static str,
        /// The most that can be handled.
        limit: u64,
        /// What was asked for.
        got: u64,
    },
    /// An option has a value that means nothing.
    #[error("{operation}: {what} is {got}, but it must be {expected}")]
    Parameter {
        /// The operation that was asked for.
        operation: &'static str,
        /// Which option.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What was asked for.
        got: String,
    },
    /// The algorithm asked for cannot do this problem.
    #[error(
        "{operation}: `{algorithm}` cannot be used: {why}; leave the choice to the library, or take one of {legal}"
    )]
    Illegal {
        /// The operation that was asked for.
        operation: &'static str,
        /// The algorithm's name.
        algorithm: String,
        /// What stands against it.
        why: String,
        /// Those that could.
        legal: String,
    },
    /// The mask is given as blocks alone, and the kernels that take blocks cannot do this problem.
    #[error(
        "{operation}: a mask given as blocks cannot be used: {why}; plan from its CSR pattern (attention::Mask::to_pattern, \
         SparseAttention::plan)"
    )]
    NeedsPattern {
        /// The operation that was asked for.
        operation: &'static str,
        /// What stands against it.
        why: String,
    },
    /// A range lies outside its buffer.
    #[error("elements {start}..{end} of a buffer of {len}: choose a range inside it")]
    Range {
        /// First element of the range.
        start: usize,
        /// Element after the last.
        end: usize,
        /// Elements of the buffer.
        len: usize,
    },
    /// A host matrix is not well formed. This and the next three are errors of [`matrix`](crate::matrix), so that callers
    /// use `?` on both crates.
    #[error(transparent)]
    Format(#[from] lacuna_matrix::FormatError),
    /// A random matrix cannot be made to these wishes.
    #[error(transparent)]
    Generate(#[from] lacuna_matrix::generate::GenerateError),
    /// A matrix file could not be read.
    #[error(transparent)]
    Read(#[from] lacuna_matrix::io::ReadError),
    /// A matrix file could not be written.
    #[error(transparent)]
    Write(#[from] lacuna_matrix::io::WriteError),
    /// This build has no CUDA support.
    #[error(
        "this program was built without CUDA; build it with lacuna's feature `cuda`, or use Device::simulator()"
    )]
    NoCuda,
    /// There is no usable NVIDIA driver.
    #[error(
        "no NVIDIA driver can be used ({why}); install one (nvidia-smi shows it), or use Device::simulator()"
    )]
    NoDriver {
        /// What the driver said.
        why: String,
    },
    /// There is an NVIDIA driver, and it does not work.
    #[error("the NVIDIA driver does not work: {why}")]
    BrokenDriver {
        /// What the driver said, and what to do.
        why: String,
    },
    /// There is no such GPU.
    #[error(
        "there is no GPU {index}: the driver shows {count} (nvidia-smi lists them; CUDA_VISIBLE_DEVICES may hide some)"
    )]
    NoDevice {
        /// The index asked for.
        index: usize,
        /// GPUs that there are.
        count: usize,
    },
    /// The GPU is older than every target the kernels are built for.
    #[error(
        "{name} has compute capability {major}.{minor}, but the kernels need at least {needed}; use a newer GPU"
    )]
    OldGpu {
        /// The GPU's name.
        name: String,
        /// Compute capability, major.
        major: u32,
        /// Compute capability, minor.
        minor: u32,
        /// The oldest target, as in `7.0`.
        needed: String,
    },
    /// The driver does not take the kernels' PTX.
    #[error(
        "the driver (CUDA {driver}) does not load kernel `{entry}`, PTX {ptx} for {target}: {why}; \
         update the driver, or build the kernels for an older target"
    )]
    Ptx {
        /// The entry point.
        entry: String,
        /// The target it was built for, as in `sm_80`.
        target: &'static str,
        /// The PTX version it is written in.
        ptx: String,
        /// The newest CUDA that the driver offers.
        driver: String,
        /// What the driver said.
        why: String,
    },
    /// A kernel whose operation this program was built without.
    #[error(
        "kernel `{entry}` is not part of this program; build it with lacuna's feature `{feature}`, or with its default features"
    )]
    LeftOut {
        /// The entry point.
        entry: String,
        /// The feature that has it, which is named after the operation.
        feature: &'static str,
    },
    /// Device memory is used up.
    #[error(
        "{device} has no room for {asked} bytes ({free} of {total} are free); free buffers, or split the problem"
    )]
    OutOfMemory {
        /// The device.
        device: String,
        /// Bytes asked for.
        asked: u64,
        /// Bytes free.
        free: u64,
        /// Bytes in all.
        total: u64,
    },
    /// A kernel could not be launched, or failed while it ran.
    #[error("kernel `{entry}` with grid {grid:?} and {threads} threads a block: {why}")]
    Launch {
        /// The entry point.
        entry: String,
        /// Blocks along x, y and z.
        grid: [u32; 3],
        /// Threads of a block.
        threads: u32,
        /// What the driver said, and what to do.
        why: String,
    },
    /// Another call to the driver failed.
    #[error("{call} failed: {why}")]
    Cuda {
        /// The driver's function.
        call: &'static str,
        /// What the driver said, and what to do.
        why: String,
    },
    /// A vendor's library that was asked for is not there.
    #[error("{why}; or leave the choice of the algorithm to Lacuna")]
    NoLibrary {
        /// What was looked for, where, and how to get it.
        why: String,
    },
    /// A call to a vendor's library failed.
    #[error("{library} failed: {why}")]
    Library {
        /// The library.
        library: String,
        /// What it said, and what to do.
        why: String,
    },
    /// The simulator found a fault in a kernel.
    #[error(transparent)]
    Simulator(#[from] LaunchError),
    /// The simulator's memory refused an access.
    #[error("the simulator's memory: {0}")]
    SimulatorMemory(#[from] lacuna_sim::MemoryError),
    /// The device cannot do this.
    #[error("{device} cannot do {what}; {instead}")]
    Unsupported {
        /// The device.
        device: String,
        /// What was asked for.
        what: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
}

/// Whose fault an error is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The call's: other arguments would do.
    Usage,
    /// The machine lacks something.
    Missing,
    /// Something failed that should not.
    Failure,
}

impl Error {
    /// An option of `operation` that is not what it must be.
    pub(crate) fn parameter(
        operation: &'static str,
        what: &'static str,
        expected: impl Into<String>,
        got: impl ToString,
    ) -> Self {
        Self::Parameter { operation, what, expected: expected.into(), got: got.to_string() }
    }

    /// An error unless an option of `operation` is what it must be.
    pub(crate) fn expect<E: Into<String>>(
        is_right: bool,
        operation: &'static str,
        what: &'static str,
        expected: impl FnOnce() -> E,
        got: impl ToString,
    ) -> Result<()> {
        if is_right { Ok(()) } else { Err(Self::parameter(operation, what, expected(), got)) }
    }

    /// An error unless a size is one that the kernels can count.
    pub(crate) fn expect_at_most(what: &'static str, limit: usize, got: usize) -> Result<()> {
        if got <= limit { Ok(()) } else { Err(Self::too_large(what, limit, got)) }
    }

    /// A size that is past what the kernels, or any buffer, can count.
    pub(crate) fn too_large(what: &'static str, limit: usize, got: usize) -> Self {
        Self::TooLarge { what, limit: limit as u64, got: got as u64 }
    }

    /// So many bytes that the host has no room for.
    pub(crate) fn no_room_on_host(bytes: usize) -> Self {
        Self::OutOfMemory { device: "the host".into(), asked: bytes as u64, free: 0, total: 0 }
    }

    /// A launch that failed, or that there cannot be.
    pub(crate) fn launch<T>(entry: &Entry<T>, grid: [u32; 3], why: impl Into<String>) -> Self {
        Self::Launch { entry: entry.name.into(), grid, threads: entry.threads, why: why.into() }
    }

    /// An error unless an operand has as many elements as its shape asks for.
    pub(crate) fn expect_len(
        operation: &'static str,
        what: &'static str,
        shape: impl FnOnce() -> String,
        expected: usize,
        got: usize,
    ) -> Result<()> {
        if got == expected {
            return Ok(());
        }
        Err(Self::Length { operation, what, shape: shape(), expected, got })
    }

    /// Whether the machine lacks something (a driver, a GPU, memory), rather than the call being wrong.
    pub fn is_missing(&self) -> bool {
        self.cause() == Cause::Missing
    }

    /// Whether the call asked for what cannot be: other shapes, sizes, algorithms, matrices or files would do.
    pub fn is_usage(&self) -> bool {
        self.cause() == Cause::Usage
    }

    /// Without a wildcard, so that a new error must say whose fault it is.
    fn cause(&self) -> Cause {
        match self {
            Self::Length { .. }
            | Self::OtherPattern { .. }
            | Self::Prepacked { .. }
            | Self::NotPrepacked { .. }
            | Self::OtherTranspose { .. }
            | Self::OtherDevice { .. }
            | Self::TooLarge { .. }
            | Self::Parameter { .. }
            | Self::Illegal { .. }
            | Self::NeedsPattern { .. }
            | Self::Range { .. }
            | Self::Format(_)
            | Self::Generate(_)
            | Self::Read(_)
            | Self::Unsupported { .. } => Cause::Usage,
            Self::NoCuda
            | Self::NoDriver { .. }
            | Self::BrokenDriver { .. }
            | Self::NoDevice { .. }
            | Self::OldGpu { .. }
            | Self::Ptx { .. }
            | Self::LeftOut { .. }
            | Self::NoLibrary { .. }
            | Self::OutOfMemory { .. } => Cause::Missing,
            Self::Write(_)
            | Self::Launch { .. }
            | Self::Cuda { .. }
            | Self::Library { .. }
            | Self::Simulator(_)
            | Self::SimulatorMemory(_) => Cause::Failure,
        }
    }
}

#[cfg(test)]
mod tests;

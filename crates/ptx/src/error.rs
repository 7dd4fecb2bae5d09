//! What can go wrong in a build, and what to do about it.
use std::io;
use std::path::PathBuf;

use crate::Target;

/// Why a build failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No compiler for device code on this machine.
    #[error(
        "no device compiler: kernels need rustc {minimum} or newer with its library sources.\n\
         looked at:\n{searched}\n\
         to get one, run `cargo xtask setup` in Lacuna's repository, or `rustup toolchain install {minimum}.0 \
         --component rust-src`, or (Debian) `apt-get install rustc-web cargo-web rust-web-src`; \
         or name a rustc in LACUNA_DEVICE_RUSTC"
    )]
    NoCompiler {
        /// The lowest version that will do.
        minimum: &'static str,
        /// Each place that was looked at and what was found there, a line each.
        searched: String,
    },
    /// No compiler for device code, and no archive that would take its place.
    #[error(
        "{compiler}\n\
         or take PTX that was built elsewhere: `cargo xtask dist --ptx`, in the same revision of Lacuna, writes an archive; \
         name it in LACUNA_PTX, or put it at one of\n{places}"
    )]
    NoPtx {
        /// What was looked for first.
        compiler: Box<BuildError>,
        /// Where archives were looked for, a line each.
        places: String,
    },
    /// `LACUNA_PTX` names no file.
    #[error(
        "LACUNA_PTX names `{path}`, and there is no such file: give the absolute path of the archive that `cargo xtask dist --ptx` \
         writes, or unset it to build with a device compiler"
    )]
    NoArchive {
        /// The path as given.
        path: PathBuf,
    },
    /// A file that is no archive of PTX, or one of another format.
    #[error(
        "`{path}` is no archive of PTX that can be read here: it should begin with `{expected}`, and begins with `{found}`; \
         take the file that `cargo xtask dist --ptx` writes in this revision of Lacuna"
    )]
    NotAnArchive {
        /// The file.
        path: PathBuf,
        /// How it should begin.
        expected: String,
        /// How it begins.
        found: String,
    },
    /// An archive whose bytes are not those that were written.
    #[error(
        "the archive of PTX `{path}` is damaged: {reason}; copy it again, or write it with `cargo xtask dist --ptx`"
    )]
    DamagedArchive {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An archive that was made of something else.
    #[error(
        "the archive of PTX `{path}` was made of other kernels: the digest of {what} is {expected} here, and {found} there; \
         take the archive of this revision of Lacuna (`cargo xtask dist --ptx`, on a machine with a device compiler)"
    )]
    OtherArchive {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// Its digest here.
        expected: String,
        /// Its digest in the archive.
        found: String,
    },
    /// PTX that was expected of a build or an archive.
    #[error(
        "{target}: there is no PTX of entry `{entry}`: build it, or take an archive, for all targets (`cargo xtask dist --ptx`)"
    )]
    NotInArchive {
        /// The entry.
        entry: String,
        /// The target.
        target: Target,
    },
    /// An archive, and a folder of entries that go before those of a build.
    #[error(
        "entries of `{folder}` (LACUNA_PTX_DIR) take the place of compiled ones, not of those in the archive `{archive}`: unset \
         LACUNA_PTX_DIR, or unset LACUNA_PTX and build with a device compiler"
    )]
    ArchiveAndFolder {
        /// The archive.
        archive: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// `LACUNA_DEVICE_RUSTC` names something that cannot build device code.
    #[error(
        "LACUNA_DEVICE_RUSTC names `{path}`, which cannot build device code: {reason}; name another, or unset it"
    )]
    UnusableCompiler {
        /// The path as given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// `LACUNA_PTXAS` names something that does not run as `ptxas`.
    #[error("LACUNA_PTXAS names `{path}`, which does not run as ptxas: {reason}; name another, or unset it")]
    UnusablePtxas {
        /// The path as given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No environment variable says where the cache lies.
    #[error(
        "no cache directory: neither LACUNA_CACHE_DIR, XDG_CACHE_HOME nor HOME is set; set LACUNA_CACHE_DIR"
    )]
    NoCacheDir,
    /// The cache cannot be written.
    #[error("cannot write the cache at `{path}`: {source}; set LACUNA_CACHE_DIR to a writable directory")]
    Cache {
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another file operation, or a program that did not start.
    #[error("cannot {action} `{path}`: {source}")]
    Io {
        /// What was tried: `read`, `write`, `run`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The directory given holds no crate that cargo can read.
    #[error("no crate at `{path}`: {reason}; give `Builder::new` the folder of a crate's Cargo.toml")]
    NotACrate {
        /// The folder.
        path: PathBuf,
        /// cargo's answer.
        reason: String,
    },
    /// `Builder::targets` was given an empty list.
    #[error("no target to build for: give `Builder::targets` at least one")]
    NoTarget,
    /// The compiler refused the crate.
    #[error("{target}: the device compiler {compiler} refused the crate:\n{output}")]
    Compile {
        /// The target built for.
        target: Target,
        /// The compiler's version.
        compiler: String,
        /// What it printed.
        output: String,
    },
    /// A file of PTX that holds another entry than its name says.
    #[error(
        "`{path}` should hold the entry `{expected}` alone and holds {found}: \
         write the folder with `cargo xtask build --out`"
    )]
    WrongEntry {
        /// The file.
        path: PathBuf,
        /// The entry that its name says.
        expected: String,
        /// The entries that it has.
        found: String,
    },
    /// `Builder::prefer` was given a folder that has nothing for its targets.
    #[error(
        "`{folder}` has no entries: expected files `<target>/<entry>.ptx`, as `cargo xtask build --out` writes them"
    )]
    NothingToPrefer {
        /// The folder as given.
        folder: PathBuf,
    },
    /// The compiler's PTX is not what this crate understands.
    #[error("{target}: cannot take the PTX apart at line {line}: {reason}")]
    Malformed {
        /// The target built for.
        target: Target,
        /// Line of the module, from 1.
        line: usize,
        /// What was expected there.
        reason: &'static str,
    },
    /// The module has no kernel.
    #[error("{target}: the crate has no `extern \"ptx-kernel\"` function marked `#[unsafe(no_mangle)]`")]
    NoEntry {
        /// The target built for.
        target: Target,
    },
    /// A call that link-time optimisation could not resolve: the driver would refuse the module.
    #[error(
        "{target}: `{function}` is called but defined nowhere (`.extern .func`): \
         a panic path, formatting or a host function got into device code"
    )]
    ExternFunction {
        /// The target built for.
        target: Target,
        /// The missing function, mangled.
        function: String,
    },
    /// An entry keeps variables in local memory, which is as slow as global memory.
    #[error(
        "{target}: entry `{entry}` keeps variables in local memory (`__local_depot`): \
         index arrays with constants only, in loops that unroll"
    )]
    LocalMemory {
        /// The target built for.
        target: Target,
        /// The entry, or a function it calls.
        entry: String,
    },
    /// The compiler copied or lost barriers.
    #[error(
        "{target}: entry `{entry}` should have {expected} barrier instructions and has {found}: \
         an optimisation copied or removed one, and threads would wait at different places"
    )]
    Barriers {
        /// The target built for.
        target: Target,
        /// The entry.
        entry: String,
        /// How many were declared.
        expected: u32,
        /// How many there are, block and warp barriers together.
        found: u32,
    },
    /// Launch bounds that no GPU can keep.
    #[error("entry `{entry}`: launch bounds of {max_threads} threads: a block has 1 to 1024")]
    Bounds {
        /// The entry.
        entry: String,
        /// The threads asked for.
        max_threads: u32,
    },
    /// An entry without the one parameter that begins with a tensor map.
    #[error(
        "entry `{entry}`: it should have one parameter, an array of bytes that begins with a tensor map, and has none"
    )]
    NoParameter {
        /// The entry.
        entry: String,
    },
    /// ptxas refused a module.
    #[error("{target}: ptxas {version} refused the module:\n{output}")]
    PtxasRefused {
        /// The target built for.
        target: Target,
        /// Version of ptxas.
        version: String,
        /// What it printed.
        output: String,
    },
    /// ptxas accepted a module, and its report leaves out what an entry takes.
    #[error(
        "{target}: ptxas {version} does not report the registers of entry `{entry}`: \
         name another ptxas in LACUNA_PTXAS; it printed:\n{output}"
    )]
    PtxasReport {
        /// The target built for.
        target: Target,
        /// Version of ptxas.
        version: String,
        /// The entry.
        entry: String,
        /// What it printed.
        output: String,
    },
    /// An entry needs more registers than its launch bounds leave it.
    #[error(
        "{target}: entry `{entry}` spills registers ({stores} bytes stored, {loads} loaded): \
         lower its minimum of blocks or its threads, or give each thread less to hold"
    )]
    Spill {
        /// The target built for.
        target: Target,
        /// The entry.
        entry: String,
        /// Bytes of spill stores.
        stores: u32,
        /// Bytes of spill loads.
        loads: u32,
    },
}

impl BuildError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn cache(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Cache { path, source }
    }
}

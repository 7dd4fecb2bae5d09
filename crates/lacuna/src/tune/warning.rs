//! What an autotuner could not do, and went on without.
use std::path::PathBuf;

/// Why choices were not found in, or not kept in, an autotuner's file. None of these is an error: a plan is made all the
/// same. The library prints nothing by itself, so they are kept as data, for the program to show where its words belong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TuneWarning {
    /// Neither `XDG_CACHE_HOME` nor `HOME` names a folder.
    #[error(
        "choices stay in memory: set XDG_CACHE_HOME or HOME to an absolute path, or open a file by its path"
    )]
    NoFolder,
    /// The file cannot be read.
    #[error("{} cannot be read, and is not used: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What stands against it.
        why: String,
    },
    /// The file is damaged. The next choice that is kept replaces it.
    #[error("{} is damaged, and will be replaced: {why}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file is some other one, no autotuner's. It is left as it is.
    #[error("{} is no file of choices: it is left alone, and choices stay in memory; open another", path.display())]
    OtherFile {
        /// The file.
        path: PathBuf,
    },
    /// Another version of the library wrote the file in a format of its own. It is left as it is.
    #[error("{} has format {got}, not {expected}: it is left alone, and choices stay in memory", path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The format that this version reads and writes.
        expected: u64,
        /// The file's format.
        got: u64,
    },
    /// A choice could not be written. It holds as long as the autotuner.
    #[error("{} cannot be written, and choices stay in memory: {why}", path.display())]
    NotStored {
        /// The file.
        path: PathBuf,
        /// What stands against it.
        why: String,
    },
    /// The device has no room for the operands that measuring needs: the cost model chose.
    #[error("nothing was measured: {why}")]
    NoRoom {
        /// What the device said.
        why: String,
    },
}

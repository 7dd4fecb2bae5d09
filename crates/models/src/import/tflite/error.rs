//! What can be wrong with a TFLite file that is to be a network.
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::files::FileError;
use crate::network::{NetworkError, Problem};

/// Why a network cannot be had from a TFLite file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read, is no TFLite file, or has values that cannot be read.
    #[error(transparent)]
    File {
        /// What is wrong.
        source: FileError,
    },
    /// The network has not one input.
    #[error("expected a network of one input, got {got:?}; networks with several inputs are not imported")]
    Inputs {
        /// Their names.
        got: Vec<String>,
    },
    /// The input is not what a network can have.
    #[error("input {name}: expected {expected}, got {got}")]
    Input {
        /// Its name.
        name: String,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
    /// Nothing computes an output, or there is none.
    #[error(
        "expected outputs that operators make of the input, got {got:?}; the file is damaged: get it again"
    )]
    Output {
        /// The name of that which is not; none where there are no outputs.
        got: Option<String>,
    },
    /// An operator cannot be imported.
    #[error("operator {index} ({kind}): {problem}")]
    Operator {
        /// Its number.
        index: usize,
        /// What it is, by TensorFlow's name.
        kind: String,
        /// What is wrong.
        problem: Box<OperatorProblem>,
    },
    /// The layers are no network.
    #[error(transparent)]
    Network(Box<NetworkError>),
    /// What is wrong with the file of this path.
    #[error("{}: {source}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<ImportError>,
    },
}

/// Why an operator cannot be imported.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum OperatorProblem {
    /// No layer does this.
    #[error("there is no layer for it; cut the network before it, and leave the rest to the host")]
    Unknown,
    /// An option has a value that no layer has.
    #[error("{option}: expected {expected}, got {got}; convert the network otherwise")]
    Option {
        /// The option.
        option: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
    /// An input is not what it must be.
    #[error("input {input}: expected {expected}, got {got}; convert the network otherwise")]
    Operand {
        /// Its number, from 0 on.
        input: usize,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
    /// It makes not one tensor, or one that is there already.
    #[error("expected one result, made by nothing else; got {got:?}; the file is damaged: get it again")]
    Results {
        /// The tensors' numbers.
        got: Vec<usize>,
    },
    /// Weights are used so often that they make far more than the file.
    #[error("the file names its weights far more often than a network does: it is damaged, get it again")]
    TooMuch,
    /// The layer does not fit its inputs.
    #[error(transparent)]
    Layer(#[from] Problem),
}

impl From<NetworkError> for ImportError {
    fn from(error: NetworkError) -> Self {
        Self::Network(Box::new(error))
    }
}

impl ImportError {
    /// The same with the file's name, where it does not tell already.
    pub(super) fn in_file(self, path: &Path) -> Self {
        match self {
            Self::File { .. } => self,
            _ => Self::InFile { path: path.to_owned(), source: Box::new(self) },
        }
    }
}

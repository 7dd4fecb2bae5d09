//! What can be wrong with an ONNX file.
use std::path::PathBuf;

use thiserror::Error;

use crate::network::{NetworkError, Problem, Shape};

/// Why a network cannot be had from an ONNX file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// The file cannot be read.
    #[error("{source}")]
    Read {
        /// What the system says.
        source: std::io::Error,
    },
    /// The bytes are no message of ONNX's.
    #[error("expected an ONNX file: {why}; it is another file, damaged or cut short: get it again")]
    Damaged {
        /// What is wrong.
        why: String,
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
        /// What it may be, and what to do.
        expected: &'static str,
        /// What it is.
        got: String,
    },
    /// It is not clear what to import, or it is not there.
    #[error(
        "expected the name of one of the results, got {wanted:?}; there are {got:?}: choose one by `Options::output`"
    )]
    Output {
        /// What was chosen.
        wanted: Option<String>,
        /// The results of the file.
        got: Vec<String>,
    },
    /// What is wrong with a tensor of the file.
    #[error("tensor {name}: expected {expected}, got {got}")]
    Tensor {
        /// Its name.
        name: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
    /// A node cannot be imported.
    #[error("node {node} of type {op}: {problem}")]
    Node {
        /// Its name, or that of its result where it has none.
        node: String,
        /// Its type.
        op: String,
        /// What is wrong.
        problem: Box<NodeProblem>,
    },
    /// The layers are no network.
    #[error(transparent)]
    Network(Box<NetworkError>),
    /// What is wrong with the file of this path.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<OnnxError>,
    },
}

/// Why a node cannot be imported.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum NodeProblem {
    /// No layer does this.
    #[error(
        "there is no layer for it; simplify the network (onnx-simplifier folds what does not depend on the input), or cut the file \
         before it and leave the rest to the host"
    )]
    Unknown,
    /// An attribute has a value that no layer has.
    #[error("attribute {attribute}: expected {expected}, got {got}; export the network otherwise")]
    Attribute {
        /// The attribute.
        attribute: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
    /// An input is not what it must be.
    #[error("input {input}: expected {expected}, got {got}; export the network otherwise")]
    Operand {
        /// Its number, from 0 on.
        input: usize,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
    /// An input was not made before.
    #[error("value {value}: expected one that a node before makes; the file is damaged: get it again")]
    Undefined {
        /// Its name.
        value: String,
    },
    /// A result beside the first is read, or one is there twice.
    #[error("expected one result, of a name of its own; got {got:?}")]
    Results {
        /// Their names.
        got: Vec<String>,
    },
    /// The elements of maps would come in another order.
    #[error(
        "it would flatten or move maps {got} with channels last, whose elements lie otherwise here; pool to one pixel before, \
         or export the network with channels first"
    )]
    Order {
        /// The maps.
        got: Shape,
    },
    /// Its weights are used so often that they make far more than the file.
    #[error("the file names its weights far more often than a network does: it is damaged, get it again")]
    TooMuch,
    /// The layer does not fit its inputs.
    #[error(transparent)]
    Layer(#[from] Problem),
}

impl From<NetworkError> for OnnxError {
    fn from(error: NetworkError) -> Self {
        Self::Network(Box::new(error))
    }
}

impl OnnxError {
    /// The same with the file's name.
    pub(super) fn in_file(self, path: &std::path::Path) -> Self {
        Self::File { path: path.to_owned(), source: Box::new(self) }
    }
}

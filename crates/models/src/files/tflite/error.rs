//! What can be wrong with a TFLite file.
use thiserror::Error;

use super::Element;

/// The bytes are no network of TensorFlow Lite that is read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TfliteError {
    /// The file is another.
    #[error("expected a TFLite file, with `TFL3` at byte 4; got another file")]
    OtherFile,
    /// The file is damaged, or cut short.
    #[error("byte {at}: expected {expected}; the file is damaged or cut short: get it again")]
    Damaged {
        /// The byte.
        at: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// Parts of the file are named so often that they make far more than the file.
    #[error(
        "byte {at}: the file names its parts far more often than a network does: it is damaged, get it again"
    )]
    TooMuch {
        /// The byte where it was noticed.
        at: usize,
    },
    /// The network has not one graph.
    #[error("expected a network of one subgraph, got {got}; networks with control flow are not read")]
    Graphs {
        /// Its subgraphs.
        got: usize,
    },
    /// A tensor's number is not one.
    #[error("{who} names tensor {got}; there are {count}")]
    NoTensor {
        /// What names it.
        who: String,
        /// The number.
        got: i32,
        /// Tensors of the graph.
        count: usize,
    },
    /// What is wrong with a tensor.
    #[error("tensor {index} ({name}): {problem}")]
    Tensor {
        /// Its number.
        index: usize,
        /// Its name.
        name: String,
        /// What is wrong.
        problem: TensorProblem,
    },
    /// What is wrong with an operator.
    #[error("operator {index} (code {code}): expected {expected}, got {got}")]
    Operator {
        /// Its number.
        index: usize,
        /// Its code, as the schema has it.
        code: i32,
        /// What was expected.
        expected: &'static str,
        /// What was got.
        got: String,
    },
}

/// What is wrong with a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TensorProblem {
    /// The shape is none.
    #[error("expected extents of at least 0, whose product can be counted; got {got:?}")]
    Shape {
        /// The shape.
        got: Vec<i32>,
    },
    /// The buffer is not there.
    #[error("it has buffer {got}; there are {count}")]
    NoBuffer {
        /// The buffer's number.
        got: u32,
        /// Buffers of the file.
        count: usize,
    },
    /// It has no values of its own.
    #[error("it has no values in the file: the network computes it, or it is an input")]
    NotConstant,
    /// It has values of another type.
    #[error("expected values of type {expected}, got {got:?}; convert the network without quantization")]
    Type {
        /// What is read.
        expected: &'static str,
        /// Its type.
        got: Element,
    },
    /// There are fewer or more bytes than the shape, or the pattern, says.
    #[error("expected {expected} values, got {got} bytes of {size} each")]
    Values {
        /// Values that the shape or the pattern has.
        expected: usize,
        /// Bytes there are.
        got: usize,
        /// Bytes of a value.
        size: usize,
    },
    /// The pattern of a sparse tensor is none of its shape.
    #[error("the pattern of its nonzeros: expected {expected}, got {got}")]
    Pattern {
        /// What was expected.
        expected: String,
        /// What was got.
        got: String,
    },
    /// Almost all of the tensor is zero, so that a small file could ask for all memory.
    #[error("{nnz} values in {elements} elements: too few to be made dense")]
    MostlyEmpty {
        /// Values in the file.
        nnz: usize,
        /// Elements of the tensor.
        elements: usize,
    },
}

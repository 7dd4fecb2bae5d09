//! Inputs that the oracle refuses, and results that fail its check.

use thiserror::Error;

/// The oracle cannot compute a reference of these inputs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// The dense operand has the wrong number of elements.
    #[error("B: expected {rows} × {cols} elements, row-major, got {got}")]
    DenseLength {
        /// Rows that B must have: the columns of A.
        rows: usize,
        /// Columns of B.
        cols: usize,
        /// Elements given.
        got: usize,
    },
    /// A row to compute is not a row of A.
    #[error("expected rows below {rows}, got row {row}")]
    RowOutOfRange {
        /// The row asked for.
        row: usize,
        /// Rows of A.
        rows: usize,
    },
    /// The result does not fit into this machine's memory.
    #[error(
        "C: expected a result that fits into memory, got {rows} × {cols} elements of 16 bytes; compute a part of it"
    )]
    ResultTooLarge {
        /// Rows of C to compute.
        rows: usize,
        /// Columns of C.
        cols: usize,
    },
    /// A sum has too many terms for its error to be bounded.
    #[error(
        "row {row} has {terms} nonzeros: expected at most {max}, beyond which an f32 sum has no useful bound"
    )]
    TooManyTerms {
        /// The row.
        row: usize,
        /// Its nonzeros.
        terms: usize,
        /// The most that can be checked.
        max: u32,
    },
}

/// A result differs from the reference by more than rounding explains.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The result has the wrong number of elements.
    #[error("result: expected {rows} × {cols} elements, row-major, got {got}")]
    Length {
        /// Rows of the result.
        rows: usize,
        /// Columns of the result.
        cols: usize,
        /// Elements given.
        got: usize,
    },
    /// Elements are wrong; the worst of them is told.
    #[error(
        "{failures} of {checked} elements are wrong; the worst is row {row}, column {column}, a sum of {terms} \
         products: expected {expected:e} ± {bound:e}, got {got:e}, off by {ratio:.3} times the bound"
    )]
    Elements {
        /// Elements that are wrong.
        failures: usize,
        /// Elements that were checked.
        checked: usize,
        /// Row of the worst element.
        row: usize,
        /// Column of the worst element.
        column: usize,
        /// Products in its sum.
        terms: u32,
        /// What it is.
        got: f32,
        /// What it should be.
        expected: f64,
        /// How far it may be off.
        bound: f64,
        /// How far it is off, over the bound; infinite where NaN, an infinity or its lack is the fault.
        ratio: f64,
    },
}

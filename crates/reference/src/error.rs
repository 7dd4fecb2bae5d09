//! Inputs that the oracle refuses, and results that fail its check.

use thiserror::Error;

/// The oracle cannot compute a reference of these inputs.
#[derive(Debug, Clone, PartialEq, Error)]
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
    /// A dense operand has the wrong number of elements.
    #[error("{what}: expected {rows} × {cols} elements, row-major, got {got}")]
    FactorLength {
        /// Which operand.
        what: &'static str,
        /// Rows that it must have.
        rows: usize,
        /// Columns that it must have.
        cols: usize,
        /// Elements given.
        got: usize,
    },
    /// The sums of a sampled product have too many terms for their error to be bounded.
    #[error("K is {terms}: expected at most {max}, beyond which such a sum has no useful bound")]
    TooLong {
        /// Products of each sum.
        terms: usize,
        /// The most that can be checked.
        max: u32,
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
        "row {row} has {terms} nonzeros: expected at most {max}, beyond which such a sum has no useful bound"
    )]
    TooManyTerms {
        /// The row.
        row: usize,
        /// Its nonzeros.
        terms: usize,
        /// The most that can be checked.
        max: u32,
    },
    /// What C held before, or the bias, has the wrong number of elements.
    #[error("{what}: expected {expected} elements, got {got}")]
    EpilogueLength {
        /// Which of them, and how it is counted.
        what: &'static str,
        /// Elements that it must have.
        expected: u128,
        /// Elements given.
        got: usize,
    },
    /// Values have another number than the nonzeros of their pattern.
    #[error("{what}: expected {expected} values, one a nonzero, got {got}")]
    Values {
        /// Which values.
        what: &'static str,
        /// Nonzeros of the pattern.
        expected: usize,
        /// Values given.
        got: usize,
    },
    /// The ends of the clamp are not a range.
    #[error("clamp: expected lo at most hi, neither of them NaN, got lo = {lo}, hi = {hi}")]
    Clamp {
        /// The smallest result, as given.
        lo: f32,
        /// The largest result, as given.
        hi: f32,
    },
    /// A network without layers has no scores.
    #[error("layers: expected at least 1, got 0")]
    NoLayers,
    /// A layer does not take what the layer before gives.
    #[error("layer {layer}, counted from 0: expected weights of {expected} columns, one an input, got {got}")]
    LayerInputs {
        /// The layer.
        layer: usize,
        /// Outputs of the layer before.
        expected: usize,
        /// Columns of its weights.
        got: usize,
    },
    /// A layer's bias has the wrong number of elements.
    #[error(
        "layer {layer}, counted from 0: expected a bias of 1 element or {outputs}, one an output, got {got}"
    )]
    LayerBias {
        /// The layer.
        layer: usize,
        /// Its outputs.
        outputs: usize,
        /// Elements given.
        got: usize,
    },
    /// Right results differ in whether a row is all zero.
    #[error(
        "row {row}: expected scores that are zero or not, got some that rounding may make either; give other features"
    )]
    Undecided {
        /// The row.
        row: usize,
    },
}

/// A result differs from the reference by more than rounding explains.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// There is no reference to compare with.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
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
    /// There is not a value for each nonzero.
    #[error("{what}: expected {expected} values, one a nonzero, got {got}")]
    Values {
        /// Which values.
        what: &'static str,
        /// Nonzeros.
        expected: usize,
        /// Values given.
        got: usize,
    },
    /// Indices are others, or in another order; the first is told.
    #[error(
        "{failures} of {checked} indices are wrong; the first is place {place} of row {row}: expected {expected}, got {got}"
    )]
    Order {
        /// Indices that are wrong.
        failures: usize,
        /// Indices that were checked.
        checked: usize,
        /// The row.
        row: usize,
        /// The place in the row's result.
        place: usize,
        /// The index that belongs there.
        expected: u32,
        /// The index that is there.
        got: u32,
    },
    /// Elements are wrong; the worst of them is told.
    #[error(
        "{failures} of {checked} elements are wrong; the worst is row {row}, column {column}, a sum of {terms} \
         products: expected {expected:e} ± {bound:e}, as {dtype}, got {got:e}, off by {ratio:.3} times the bound"
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
        /// The type of the result.
        dtype: &'static str,
        /// What it is.
        got: f32,
        /// What it should be.
        expected: f64,
        /// How far it may be off before it is rounded to `dtype`.
        bound: f64,
        /// How far it is off, but for that rounding, over the bound; infinite where NaN, an infinity, its lack or the
        /// sign of a zero is the fault.
        ratio: f64,
    },
}

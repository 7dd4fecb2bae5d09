//! Measuring C = A·B with A sparse.
pub mod fit;
mod measure;
mod operands;
mod peers;
pub mod samples;
pub mod timed;

use lacuna_cases::Values;

use self::measure::measure;

pub use measure::{Prepare, measure_variants};
pub(crate) use operands::Operands;
pub(crate) use peers::measure as measure_peers;

use crate::measure::{by_types, by_value};
use crate::operation::{Columns, Operation, Rate, Takes, Width};
use crate::peers::{MOST_DENSE_BYTES, PRODUCTS};

/// SpMM, as it is measured.
pub(crate) static OPERATION: Operation = Operation {
    name: "spmm",
    title: "SpMM",
    about: "C = A·B with A sparse, M × K; B has N columns",
    values: Some(Values::Drawn),
    columns: Columns::K,
    width: Width::of_operands("N", "--n"),
    takes: Takes { precision: true, ..Takes::INDICES },
    rate: Rate::Flops,
    is_by_sparsity: true,
    peers: &PRODUCTS,
    // A product and a sum for each nonzero and column.
    flops: |size| 2.0 * size.elements * size.width,
    // A (values, columns, rows), B and C.
    bytes: |size, value, index| {
        (value + index) * size.elements + 16.0 * size.rows + value * (size.cols + size.rows) * size.width
    },
    // A twice, the second time dense where that is made, B, C twice.
    footprint: |size| {
        8.0 * size.elements
            + (4.0 * size.rows * size.cols).min(MOST_DENSE_BYTES as f64)
            + 4.0 * (size.cols + 2.0 * size.rows) * size.width
    },
    simulated: |size| size.width * size.elements,
    measure: |session, task| by_types!(session, measure(session, task)),
};

//! Measuring D = A·Bᵀ where a sparse matrix has nonzeros.
mod measure;
mod operands;
mod peers;

use lacuna_cases::Values;

use self::measure::measure;
use crate::measure::{by_types, by_value};
use crate::operation::{Columns, Operation, Rate, Takes, Width};
use crate::peers::PRODUCTS;

/// SDDMM, as it is measured.
pub(crate) static OPERATION: Operation = Operation {
    name: "sddmm",
    title: "SDDMM",
    about: "D = A·Bᵀ where a sparse matrix, M × N, has nonzeros; A and B have K columns",
    values: Some(Values::Drawn),
    columns: Columns::N,
    width: Width::of_operands("K", "--k"),
    takes: Takes::INDICES,
    rate: Rate::Flops,
    is_by_sparsity: true,
    peers: &PRODUCTS,
    // A product and a sum for each nonzero and column.
    flops: |size| 2.0 * size.elements * size.width,
    // A, B, D (values), and the pattern.
    bytes: |size, value, index| {
        index * size.elements
            + 4.0 * size.rows
            + value * (size.elements + (size.rows + size.cols) * size.width)
    },
    // A, B, D twice.
    footprint: |size| {
        16.0 * size.elements + 4.0 * (size.rows * size.cols + (size.rows + size.cols) * size.width)
    },
    simulated: |size| size.width * size.elements,
    measure: |session, task| by_types!(session, measure(session, task)),
};

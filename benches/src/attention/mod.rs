//! Measuring attention under a sparse mask.
mod measure;
mod operands;
mod peers;

use lacuna_cases::Values;

use self::measure::measure;
use crate::measure::{by_types, by_value};
use crate::operation::{Columns, Operation, Rate, Takes, Width};

/// Attention, as it is measured.
pub(crate) static OPERATION: Operation = Operation {
    name: "attention",
    title: "Sparse attention",
    about: "O = softmax(Q·Kᵀ/√K under a sparse mask, M × N)·V; Q, K and V have K columns a head",
    values: Some(Values::Drawn),
    columns: Columns::N,
    width: Width::of_operands("d", "--d"),
    takes: Takes { heads: true, ..Takes::INDICES },
    rate: Rate::Flops,
    is_by_sparsity: true,
    // The dense way, less the part that no library does alone.
    peers: &[
        ("cublas_f32_products", "cuBLAS f32, both products, without its softmax"),
        ("cublas_tf32_products", "cuBLAS TF32, both products, without its softmax"),
        ("cublas_f16_products", "cuBLAS f16, both products, without its softmax"),
        ("cublas_bf16_products", "cuBLAS bf16, both products, without its softmax"),
    ],
    // A product and a sum for each nonzero and column, twice.
    flops: |size| 4.0 * size.elements * size.width * size.batch,
    // Q, K, V and O, and the mask.
    bytes: |size, value, index| {
        index * size.elements
            + 4.0 * size.rows
            + size.batch * value * 2.0 * (size.rows + size.cols) * size.width
    },
    // The mask, Q, K, V, O twice, and scores: sparse ones, twice, and dense ones.
    footprint: |size| {
        8.0 * size.elements * (1.0 + size.batch)
            + 4.0 * size.batch * (size.rows * size.cols + (3.0 * size.rows + 2.0 * size.cols) * size.width)
    },
    simulated: |size| 2.0 * size.width * size.elements * size.batch,
    measure: |session, task| by_types!(session, measure(session, task)),
};

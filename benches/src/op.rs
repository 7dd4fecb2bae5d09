//! The operations that can be measured, and what their sizes are called.
use clap::ValueEnum;

use crate::copies::{COPY, COPY_OF_LOGITS};

/// An operation with a sparse matrix of rows × columns, and dense ones that are `width` wide. Top-N has a dense one of rows ×
/// columns, and takes `width` of each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub enum Op {
    /// C = A·B with A sparse, M × K; B has N columns.
    Spmm,
    /// D = A·Bᵀ where a sparse matrix, M × N, has nonzeros; A and B have K columns.
    Sddmm,
    /// Softmax over the stored values of each row of a sparse matrix, M × N.
    SparseSoftmax,
    /// O = softmax(Q·Kᵀ/√K under a sparse mask, M × N)·V; Q, K and V have K columns a head.
    Attention,
    /// Y = X·W where X has a few ones a row, M × K; the table W has N columns.
    #[value(name = "nhot")]
    NHot,
    /// The largest probabilities of each row of dense logits, M × N, and where they stand.
    #[value(name = "topn")]
    TopN,
}

/// cuSPARSE and dense products: name in records, and title.
const PRODUCTS: [(&str, &str); 8] = [
    ("cusparse_default", "cuSPARSE default"),
    ("cusparse", "cuSPARSE best"),
    ("cusparse_kn_default", "cuSPARSE default, B as K×N"),
    ("cusparse_kn", "cuSPARSE best, B as K×N"),
    ("cublas_f32", "dense cuBLAS f32"),
    ("cublas_tf32", "dense cuBLAS TF32"),
    ("cublas_f16", "dense cuBLAS f16"),
    ("cublas_bf16", "dense cuBLAS bf16"),
];

/// A plain copy of as many bytes as the work model has: its name in records, and its title.
const PLAIN_COPY: (&str, &str) = (COPY, "plain copy of its bytes");

/// What sums of a table's rows are set against: a product with a matrix of ones, and a copy.
const LOOKUPS: [(&str, &str); 7] =
    [PLAIN_COPY, PRODUCTS[0], PRODUCTS[1], PRODUCTS[4], PRODUCTS[5], PRODUCTS[6], PRODUCTS[7]];

/// Top-N has no peer in a vendor's library.
const COPIES: [(&str, &str); 2] = [PLAIN_COPY, (COPY_OF_LOGITS, "copy of the logits")];

/// The dense way of attention, less the part that no library does alone.
const BOTH_PRODUCTS: [(&str, &str); 4] = [
    ("cublas_f32_products", "cuBLAS f32, both products, without its softmax"),
    ("cublas_tf32_products", "cuBLAS TF32, both products, without its softmax"),
    ("cublas_f16_products", "cuBLAS f16, both products, without its softmax"),
    ("cublas_bf16_products", "cuBLAS bf16, both products, without its softmax"),
];

impl Op {
    /// The operation of a record; none for a name that is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|op| op.name() == name)
    }

    /// Its name in records and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spmm => "spmm",
            Self::Sddmm => "sddmm",
            Self::SparseSoftmax => "sparse-softmax",
            Self::Attention => "attention",
            Self::NHot => "nhot",
            Self::TopN => "topn",
        }
    }

    /// Its name in titles.
    pub fn title(self) -> &'static str {
        match self {
            Self::Spmm => "SpMM",
            Self::Sddmm => "SDDMM",
            Self::SparseSoftmax => "Sparse softmax",
            Self::Attention => "Sparse attention",
            Self::NHot => "Few-hot lookup",
            Self::TopN => "Softmax and top-N",
        }
    }

    /// What the width of the dense operands is called, and of top-N, how many are taken; none where there is neither.
    pub fn width(self) -> Option<&'static str> {
        match self {
            Self::Spmm | Self::NHot => Some("N"),
            Self::TopN => Some("top"),
            Self::Sddmm => Some("K"),
            Self::SparseSoftmax => None,
            Self::Attention => Some("d"),
        }
    }

    /// What it is set against.
    pub fn peers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Spmm | Self::Sddmm => &PRODUCTS,
            Self::SparseSoftmax => &[],
            Self::Attention => &BOTH_PRODUCTS,
            Self::NHot => &LOOKUPS,
            Self::TopN => &COPIES,
        }
    }

    /// Whether it is a matter of bytes rather than of products.
    pub fn is_by_bytes(self) -> bool {
        matches!(self, Self::SparseSoftmax | Self::NHot | Self::TopN)
    }

    /// Whether its matrix is sparse.
    pub fn is_sparse(self) -> bool {
        self != Self::TopN
    }

    /// Whether how sparse its matrix is says something of it: of bags it is how large the table is.
    pub fn is_by_sparsity(self) -> bool {
        !matches!(self, Self::NHot | Self::TopN)
    }

    /// M, K and N of a sparse matrix of rows × columns with dense ones of this width.
    pub fn sizes(self, rows: usize, cols: usize, width: usize) -> [usize; 3] {
        match self {
            Self::Spmm | Self::NHot => [rows, cols, width],
            Self::Sddmm | Self::SparseSoftmax | Self::Attention | Self::TopN => [rows, width, cols],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for &op in Op::value_variants() {
            assert_eq!(op.to_possible_value().unwrap().get_name(), op.name());
            assert_eq!(Op::named(op.name()), Some(op));
        }
        assert_eq!(Op::named("gemm"), None);
    }
}

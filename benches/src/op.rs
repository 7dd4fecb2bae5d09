//! The operations that can be measured, and what their sizes are called.
use clap::ValueEnum;

/// An operation with a sparse matrix of rows × columns, and dense ones that are `width` wide.
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
        }
    }

    /// Its name in titles.
    pub fn title(self) -> &'static str {
        match self {
            Self::Spmm => "SpMM",
            Self::Sddmm => "SDDMM",
            Self::SparseSoftmax => "Sparse softmax",
            Self::Attention => "Sparse attention",
        }
    }

    /// What the width of the dense operands is called; none where there are none.
    pub fn width(self) -> Option<&'static str> {
        match self {
            Self::Spmm => Some("N"),
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
        }
    }

    /// M, K and N of a sparse matrix of rows × columns with dense ones of this width.
    pub fn sizes(self, rows: usize, cols: usize, width: usize) -> [usize; 3] {
        match self {
            Self::Spmm => [rows, cols, width],
            Self::Sddmm | Self::SparseSoftmax | Self::Attention => [rows, width, cols],
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

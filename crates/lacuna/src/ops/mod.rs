//! The operations: a folder each, with its options, its problem with the cost of its kernels, and its plan.
pub mod attention;
pub mod nhot;
pub mod sddmm;
pub mod softmax;
pub mod spmm;
pub mod topn;
pub mod transpose;

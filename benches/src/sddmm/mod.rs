//! Measuring D = A·Bᵀ where a sparse matrix has nonzeros.
mod measure;
mod peers;

pub(crate) use measure::Measurement;

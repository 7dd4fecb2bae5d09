//! Measuring attention under a sparse mask.
mod measure;
mod peers;

pub(crate) use measure::Measurement;

//! Measuring Aᵀ: working out its pattern, and gathering its values.
mod measure;
mod record;

pub use measure::measure;
pub use record::Record;

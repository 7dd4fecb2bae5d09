//! Tensor cores: what products compute, where their operands lie, and when they are done.
pub(crate) mod accumulators;
pub(crate) mod agreement;
pub(crate) mod arithmetic;
pub(crate) mod operands;
pub(crate) mod product;
pub(crate) mod warpgroup;

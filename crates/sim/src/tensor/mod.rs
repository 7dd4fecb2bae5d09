//! Tensor cores: what products compute, where their operands lie, and when they are done.
pub(crate) mod arithmetic;
pub(crate) mod product;
pub(crate) mod warpgroup;

//! Networks: where their values lie.
mod memory;

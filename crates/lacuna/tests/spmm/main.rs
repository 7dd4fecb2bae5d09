//! SpMM on the simulator: every type, and what options mean. Values are small integers, so that results are exact in
//! every type.
mod batches;
mod refusals;
mod support;
mod types;

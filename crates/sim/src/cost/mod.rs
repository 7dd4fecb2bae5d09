//! What a launch costs: counters by source line, and the time that a model makes of them.
pub(crate) mod counters;
pub(crate) mod estimate;
pub(crate) mod machine;
pub(crate) mod recorder;
pub(crate) mod request;
pub(crate) mod sectors;
pub(crate) mod transactions;

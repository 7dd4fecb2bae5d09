//! What threads do together, and seeing when they never will.
pub(crate) mod barrier;
pub(crate) mod call;
pub(crate) mod cluster;
pub(crate) mod deadlock;
pub(crate) mod exchange;
pub(crate) mod named;
pub(crate) mod warp;

//! What threads do together, and seeing when they never will.
pub(crate) mod cluster;
pub(crate) mod named;
pub(crate) mod sync;

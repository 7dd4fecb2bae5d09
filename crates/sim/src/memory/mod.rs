//! Device and shared memory: where buffers lie, what they hold, and whether an access may happen.
pub(crate) mod allocation;
pub(crate) mod bits;
pub(crate) mod bulk;
pub(crate) mod cells;
pub(crate) mod cluster_store;
pub(crate) mod copies;
pub(crate) mod global;
pub(crate) mod hash;
pub(crate) mod shared;
pub(crate) mod storage;
pub(crate) mod view;
pub(crate) mod zeros;

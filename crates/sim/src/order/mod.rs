//! Who comes before whom, and which accesses nothing orders.
pub(crate) mod clock;
pub(crate) mod early;
pub(crate) mod group;
pub(crate) mod handover;
pub(crate) mod marks;
pub(crate) mod own;
pub(crate) mod proxy;
pub(crate) mod race;

//! Every class of finding: found where it is, silent where it is not.
mod barriers;
mod bulk;
mod clusters;
mod copies;
mod cores;
mod early;
mod handover;
mod memory;
mod named;
mod products;
mod races;
mod tensor;
mod traps;
mod warpgroups;
mod warps;

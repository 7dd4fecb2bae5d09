//! Networks: where their values lie, and what they compute on the simulator.
mod common;
mod layers;
mod memory;

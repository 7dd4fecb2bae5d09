//! The simulator's own tests. `litmus`: for every class of finding a kernel with the fault and its twin without.
mod counters;
mod dispatch;
mod limits;
mod litmus;
mod ring;
mod rows;
mod semantics;
mod support;
mod tensor;
mod warpgroup;

//! The SIMT simulator: runs kernels written against [`lacuna_gpu::Gpu`] on the host, with every step checked.
//!
//! Each GPU thread is a coroutine; the threads of a block take turns on one host thread, and blocks run in parallel.
//! Warp operations and barriers do what they do on a GPU.
//!
//! Results, counters and findings are the same on every run, as far as the blocks of a launch are independent. What may
//! differ between runs, since blocks run in parallel:
//!
//! - sums of `f32` by atomics of several blocks, in their last bits, and the old values that atomics give;
//! - the data that blocks race for, and all that follows from it; the race itself is always found;
//! - [`FindingKind::Uninitialised`] where another block writes the place in the same launch (a finding in itself, but for
//!   atomics that meet atomics);
//! - which lines [`FindingKind::ReadonlyWritten`] names, in a kernel with more than 32 lines of read-only loads;
//! - everything about other blocks after [`FindingKind::StepLimit`], which skips those that have not started.
//!
//! ```text
//!   Simulator ──launch──► Launch ──a block──► Worker ◄──every step── SimThread (a coroutine)
//!      Memory             View, Marks          Context: Schedule, who waits for what
//!                         Sites                         Clocks, who comes before whom
//!                                                       Recorder, what it costs
//!                                                       Findings
//!                                              GlobalMemory, SharedMemory, Copies, NamedBarriers, Warpgroups:
//!                                              a checker for each kind of step, with the state that it needs
//! ```
//!
//! A folder for each thing that it knows about: `execution` (blocks, threads, turns), `memory` (bounds, what was written),
//! `order` (races), `synchronisation` (barriers, operations of warps), `tensor` (products), `cost` (counters and the model),
//! `report` (findings, source lines).
//!
//! A launch gives a [`Report`]: costs by source line, or, as an error, what is wrong with the kernel
//! ([`FindingKind`]). [`Report::estimate`] turns the costs into a modelled time on a [`Machine`]; it is a model and
//! not a measurement.

mod cost;
mod execution;
mod memory;
mod order;
mod report;
mod synchronisation;
mod tensor;

pub use cost::counters::{Counts, LineCounters};
pub use cost::estimate::{Estimate, Limiter, Occupancy};
pub use cost::machine::Machine;
pub use execution::error::LaunchError;
pub use execution::simulator::{Limits, MAX_SHARED_BYTES, Simulator};
pub use execution::table::{SimKernel, find, kernels};
pub use memory::allocation::MemoryError;
pub use report::Report;
pub use report::finding::{Finding, FindingKind, Place, Source};
pub use report::operation::Operation;

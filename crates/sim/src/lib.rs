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
//!      Memory             View, Marks          SharedMemory, GlobalPath: bounds, written?, races
//!                         Sites                Clocks: who comes before whom
//!                                              WarpRequests → Counters: sectors, wavefronts
//!                                              Schedule: who waits for what
//! ```
//!
//! A launch gives a [`Report`]: costs by source line, or, as an error, what is wrong with the kernel
//! ([`FindingKind`]). [`Report::estimate`] turns the costs into a modelled time on a [`Machine`]; it is a model and
//! not a measurement.

mod bits;
mod block;
mod clock;
mod cluster;
mod copies;
mod counters;
mod error;
mod estimate;
mod finding;
mod global;
mod group;
mod handover;
mod hash;
mod launch;
mod machine;
mod marks;
mod memory;
mod named;
mod operation;
mod product;
mod proxy;
mod race;
mod report;
mod request;
mod schedule;
mod shared;
mod shared_path;
mod simulator;
mod site;
mod storage;
mod sync;
mod table;
mod tensor;
mod thread;
mod transactions;
mod trap;
mod warpgroup;
mod worker;
mod zeros;

pub use counters::{Counts, LineCounters};
pub use error::LaunchError;
pub use estimate::{Estimate, Limiter, Occupancy};
pub use finding::{Finding, FindingKind, Place, Source};
pub use machine::Machine;
pub use memory::MemoryError;
pub use operation::Operation;
pub use report::Report;
pub use simulator::{Limits, MAX_SHARED_BYTES, Simulator};
pub use table::{SimKernel, find, kernels};

//! Running a launch: its blocks, their threads, and who takes turns with whom.
pub(crate) mod block;
pub(crate) mod context;
pub(crate) mod error;
pub(crate) mod launch;
pub(crate) mod pool;
pub(crate) mod schedule;
pub(crate) mod simulator;
pub(crate) mod steps;
pub(crate) mod table;
pub(crate) mod thread;
pub(crate) mod trap;
pub(crate) mod worker;

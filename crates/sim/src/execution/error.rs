//! Why a launch failed.
use std::io;

use crate::report::Report;

/// Why a launch failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The grid is empty or larger than a GPU accepts.
    #[error(
        "{kernel}: grid {grid:?} cannot be launched: x must be 1 to 2147483647, y and z 1 to 65535, and all blocks \
         together fewer than 4294967295; skip the launch where there is no work"
    )]
    Grid {
        /// The kernel.
        kernel: String,
        /// Blocks along x, y and z.
        grid: [u32; 3],
    },
    /// The kernel's block is empty or larger than a GPU accepts.
    #[error("{kernel}: {threads} threads a block; 1 to {limit} are possible")]
    Threads {
        /// The kernel.
        kernel: String,
        /// Its threads a block.
        threads: u32,
        /// The most there can be.
        limit: u32,
    },
    /// The kernel wants more shared memory than any GPU has.
    #[error("{kernel}: {bytes} bytes of shared memory a block; at most {limit} are possible")]
    SharedMemory {
        /// The kernel.
        kernel: String,
        /// Bytes of shared memory of a block.
        bytes: u32,
        /// The most there can be.
        limit: u32,
    },
    /// The grid cannot be cut into clusters of the kernel's size.
    #[error(
        "{kernel}: clusters of {cluster} blocks along x, in a grid of {grid:?}; a cluster has 1 to {limit} blocks, and x is a \
         multiple of that"
    )]
    Cluster {
        /// The kernel.
        kernel: String,
        /// Blocks of a cluster.
        cluster: u32,
        /// Blocks along x, y and z.
        grid: [u32; 3],
        /// The most blocks that a cluster can have.
        limit: u32,
    },
    /// The arguments are not of the kernel's own type.
    #[error("{kernel}: arguments of type {expected} expected; pass that struct itself")]
    Arguments {
        /// The kernel.
        kernel: &'static str,
        /// Name of the type that it takes.
        expected: &'static str,
    },
    /// The host could not give a simulated thread its stack.
    #[error(
        "{kernel}: no stack for another simulated thread: {source}; use fewer host threads \
         or raise the system's limit on memory maps"
    )]
    NoStack {
        /// The kernel.
        kernel: String,
        /// What the system said.
        source: io::Error,
    },
    /// The host has no memory to remember which blocks touched what. What the kernel wrote is in memory.
    #[error(
        "{kernel}: the host has no memory for its checks; they take several times the memory that the \
         kernel accesses; use smaller buffers or a larger host"
    )]
    HostMemory {
        /// The kernel.
        kernel: String,
    },
    /// The kernel did something wrong.
    #[error("{0}")]
    Findings(Box<Report>),
}

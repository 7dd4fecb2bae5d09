//! The softmax over the rows of a sparse matrix (CSR): yᵢ = exp(s·xᵢ − m) / Σⱼ exp(s·xⱼ − m), over a row's stored values,
//! with m the greatest s·xⱼ; and its gradient.
//!
//! ```text
//!    16 bytes │       │       │       │       │       │       │       A group of LANES lanes owns a row, which starts and
//!   ──────────┼───────┼───────┼───────┼───────┼───────┼───────┼──     ends anywhere. Of the whole chunks of 16 bytes in it
//!        ░░░░░│███████│███████│███████│███████│███████│▒▒▒▒           lane i has the chunks i, i + LANES, …, CHUNKS of them
//!        head  lane 0  lane 1  lane 2  lane 3  lane 0  tail           in registers; of head and tail, fewer than V
//!                                                                     elements each, a lane has one. So memory is read and
//!   1. load all    2. greatest    3. exp2, sum    4. times 1/sum      written once, and only what is the row's own: the
//!                  └─── by shuffles, and through shared memory ──┘    result may take the place of the input.
//! ```
//! A row that does not fit into the registers is read three times: for the greatest, for the sum, and to write.
//! A group is a part of a warp, a warp, or a block, and a launch takes a part of the row table, longest rows first.
//!
//! Source: Gale, Zaharia, Young, Elsen, *Sparse GPU Kernels for Deep Learning* (SC 2020), section VII-C, names such a kernel.
mod backward;
mod forward;
mod fragment;
mod list;

pub use backward::{Backward, BackwardArgs};
pub use forward::{Forward, ForwardArgs};

use lacuna_gpu::WARP;

use crate::{DeviceValue, ValueType};

/// Reductions of a row.
const REDUCTIONS: u32 = 2;

/// What the host must know of a kernel's shape. A grid is blocks of rows along x, matrices of the batch along y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Type of the values.
    pub value: ValueType,
    /// What is computed.
    pub pass: Pass,
    /// Lanes that work on one row: a part of a warp, a warp, or a block.
    pub lanes: u32,
    /// Rows of a block.
    pub block_rows: u32,
    /// Elements of a row that fit into the registers of its lanes, wherever the row starts. Longer rows are read again.
    pub capacity: u32,
}

/// What a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The softmax.
    Forward,
    /// Its gradient.
    Backward,
}

/// The tile of a kernel with these constants, if they fit together.
const fn tile<T: DeviceValue>(pass: Pass, v: usize, lanes: u32, warps: u32, chunks: usize) -> Tile {
    assert!(v * size_of::<T>() == 16, "a chunk is 16 bytes");
    assert!(lanes.is_power_of_two() && lanes >= 2 * v as u32, "a lane for each element of head and tail");
    assert!(lanes <= WARP || lanes == warps * WARP, "a row's lanes lie in one warp, or are the block");
    assert!(warps >= 1 && warps * WARP <= 1024, "a block has at most 1024 threads");
    Tile {
        value: T::TYPE,
        pass,
        lanes,
        block_rows: warps * WARP / lanes,
        capacity: lanes * (v * chunks) as u32,
    }
}

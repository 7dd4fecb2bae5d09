//! What differs between tiles of `f32` and of 16-bit values: where B lies in a stage, and what consumers do with it.
use lacuna_gpu::Gpu;

use super::TileArgs;
use super::pipeline::{Pipeline, Stages};
use super::reduction::Accumulators;
use super::value::TileValue;
use crate::Operand;

/// How a kernel's stages are laid out, A's rows and then B's, and who uses them.
pub trait Stage: 'static {
    /// How many there are, and who fills them.
    type Stages: Stages;
    /// Columns of A in a chunk.
    const CHUNK: u32;
    /// Chunks of a step along K: one for each consumer warp that shares a part of C.
    const SLICES: u32 = <Self::Stages as Stages>::CHUNKS;
    /// Threads that use a stage.
    const STAGE_THREADS: u32;
    /// Elements from one row of B to the next.
    const B_ROW: u32;
    /// Bytes of A.
    const A_BYTES: u32;
    /// Bytes of a stage.
    const BYTES: u32;

    /// The stages that `cols` columns of A go through.
    #[inline(always)]
    fn pipeline(cols: u32) -> Pipeline<Self::Stages> {
        Pipeline::new(cols.div_ceil(Self::CHUNK).div_ceil(Self::SLICES), Self::STAGE_THREADS)
    }
}

/// Where a consumer warp stands in its block.
#[derive(Clone, Copy)]
pub struct Consumer {
    /// Along the rows.
    pub m: u32,
    /// Along the columns.
    pub n: u32,
    /// Along K.
    pub k: u32,
}

impl Consumer {
    #[inline(always)]
    pub(super) fn of<const WM: u32, const WN: u32>(warp: u32) -> Self {
        Self { m: warp % WM, n: warp / WM % WN, k: warp / (WM * WN) }
    }
}

/// Operands of [`MmaTiles`](super::MmaTiles), and how warps multiply them.
pub trait TileOperand: Operand<Value: TileValue> {
    /// Elements that follow a row of B in a stage, so that rows begin in different banks.
    const B_PADDING: u32;
    /// Whether a producer lane has registers to load two vectors ahead.
    const LOADS_TWO_AHEAD: bool;

    /// Where column `column`, the first of 16 bytes, lies in row `k` of B.
    fn b_column(k: u32, column: u32) -> u32;

    /// Multiplies all stages, one after the other, of `cols` columns of A.
    ///
    /// # Safety
    /// All consumer warps are here.
    unsafe fn consume<G: Gpu, S: Stage, const RT: usize, const NT: usize>(
        gpu: G,
        cols: u32,
        at: Consumer,
        accumulators: &mut Accumulators<RT, NT>,
    );

    /// Writes a warp's part of C.
    ///
    /// # Safety
    /// The part is this warp's alone; what lies in C of it is live.
    unsafe fn store<G: Gpu, const RT: usize, const NT: usize>(
        gpu: G,
        args: &TileArgs<Self::Value>,
        batch: u32,
        at: [u32; 2],
        accumulators: &Accumulators<RT, NT>,
    );
}

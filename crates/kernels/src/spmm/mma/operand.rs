//! What differs between tiles of `f32` and of 16-bit values: where B lies in a stage, and what consumers do with it.
use lacuna_gpu::Gpu;

use super::TileArgs;
use super::pipeline::Pipeline;
use super::reduction::Accumulators;
use super::shape::Consumer;
use super::value::TileValue;
use crate::Operand;

/// How a kernel's stages are laid out: A's rows, then B's.
pub trait Stage: 'static {
    /// Chunks of a step along K: one for each consumer warp that shares a part of C.
    const SLICES: u32;
    /// Elements from one row of B to the next.
    const B_ROW: u32;
    /// Bytes of A.
    const A_BYTES: u32;
    /// Bytes of a stage.
    const BYTES: u32;
}

/// Operands of [`MmaTiles`](super::MmaTiles), and how warps multiply them.
pub trait TileOperand: Operand<Value: TileValue> {
    /// Elements that follow a row of B in a stage, so that rows begin in different banks.
    const B_PADDING: u32;
    /// Whether a producer lane has registers to load two pieces ahead.
    const LOADS_TWO_AHEAD: bool;

    /// Where column `column`, the first of 16 bytes, lies in row `k` of B.
    fn b_column(k: u32, column: u32) -> u32;

    /// Multiplies all stages, one after the other.
    ///
    /// # Safety
    /// All consumer warps are here.
    unsafe fn consume<G: Gpu, S: Stage, const RT: usize, const NT: usize, const STAGES: u32>(
        gpu: G,
        pipeline: Pipeline<STAGES>,
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

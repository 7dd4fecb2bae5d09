//! The ways in which rows of B come into stages.
use lacuna_gpu::Gpu;

use super::WarpgroupOperand;
use crate::spmm::mma::{Pipeline, Stages, TileArgs};

/// What a producer thread has to do with the copies of its group's steps of B. Whole warps do it.
pub trait CopiesOfB<O: WarpgroupOperand<L>, S: Stages, const L: usize>: Sized + 'static {
    /// The kernel's arguments.
    type Args: Copy + Send + Sync + 'static;
    /// Bytes of shared memory that it needs beside the stages.
    const BARRIER_BYTES: u32 = 0;
    /// Columns and rows of the boxes of the tensor map with which the arguments begin, if they do.
    const BOX: Option<[u32; 2]> = None;

    /// See [`Kernel::with_map_at`](crate::Kernel::with_map_at).
    #[inline(always)]
    fn with_map_at(args: Self::Args, _address: u64) -> Self::Args {
        args
    }

    /// What all ways have.
    fn tile(args: &Self::Args) -> TileArgs<O::Value>;

    /// For a warp of a group, of that product of the batch and the columns from that on. What it needs beside the stages begins at
    /// `barriers`.
    ///
    /// # Safety
    /// Nobody else uses that.
    unsafe fn new<G: Gpu>(
        gpu: G,
        args: &Self::Args,
        barriers: u32,
        group_and_warp: [u32; 2],
        batch_and_column: [u32; 2],
    ) -> Self;

    /// Starts copying the thread's part of step `step` to `place`, for the pipeline's stage.
    ///
    /// # Safety
    /// B is live, and the stage empty; rows of B begin at multiples of `O::VECTOR` elements.
    unsafe fn fill<G: Gpu>(&self, gpu: G, place: u32, step: u32, pipeline: &Pipeline<S>);

    /// Waits for copies for which the pipeline does not.
    ///
    /// # Safety
    /// The pipeline's stage is the one last filled.
    #[inline(always)]
    unsafe fn wait<G: Gpu>(&self, _gpu: G, _pipeline: &Pipeline<S>) {}
}

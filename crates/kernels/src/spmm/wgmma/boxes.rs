//! B's rows in a stage, by bulk tensor copies: the first warp of a group starts a copy for each panel, and the GPU does the rest.
use core::marker::PhantomData;
use core::mem::offset_of;

use lacuna_gpu::{Gpu, SharedPtr, TensorMap};

use super::{CopiesOfB, WarpgroupOperand};
use crate::spmm::mma::{Pipeline, Stages, TileArgs, TileValue};

/// The arguments of kernels that copy B in boxes: see [`Tile::box_dim`](crate::spmm::Tile::box_dim).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BoxArgs<T> {
    /// B, with a matrix for each product of the batch; with one where all products have one B.
    pub map: TensorMap,
    /// All else.
    pub tile: TileArgs<T>,
}

/// Bytes of a barrier.
const BARRIER: u32 = size_of::<u64>() as u32;

/// What a producer warp needs to have its group's steps of B copied: boxes of as many columns as a panel has, and as many rows as a
/// step.
#[derive(Debug)]
pub struct Boxes<O, S, const L: usize> {
    map: TensorMap,
    column: u32,
    matrix: u32,
    /// Where the barriers of all stages are, in bytes.
    barriers: u32,
    /// Whether the warp is the one of its group that copies.
    copies: bool,
    of: PhantomData<(O, S)>,
}

impl<O: WarpgroupOperand<L>, S: Stages, const L: usize> Boxes<O, S, L> {
    /// Rows of a step.
    const K: u32 = S::CHUNKS * O::Value::COLUMNS;
    /// Columns of a panel.
    const PANEL: u32 = O::PANEL_ROW / size_of::<O::Value>() as u32;
    const PANEL_BYTES: u32 = {
        assert!(
            size_of::<O::Value>() == 2 && Self::K <= 256,
            "a box of 16-bit elements has at most 256 rows"
        );
        assert!(offset_of!(BoxArgs<O::Value>, map) == 0, "the parameter's address is the map's");
        Self::K * O::PANEL_ROW
    };
    const PANELS: u32 = O::COLUMNS / Self::PANEL;

    /// The barrier of a stage.
    #[inline(always)]
    fn barrier(&self, stage: u32) -> SharedPtr<u64> {
        SharedPtr::from_offset(self.barriers + stage * BARRIER)
    }
}

impl<O: WarpgroupOperand<L>, S: Stages, const L: usize> CopiesOfB<O, S, L> for Boxes<O, S, L> {
    type Args = BoxArgs<O::Value>;
    const BARRIER_BYTES: u32 = S::STAGES * BARRIER;
    const BOX: Option<[u32; 2]> = Some([Self::PANEL, Self::K]);

    #[inline(always)]
    fn with_map_at(args: BoxArgs<O::Value>, address: u64) -> BoxArgs<O::Value> {
        BoxArgs { map: TensorMap::at(address), ..args }
    }

    #[inline(always)]
    fn tile(args: &BoxArgs<O::Value>) -> TileArgs<O::Value> {
        args.tile
    }

    #[inline(always)]
    unsafe fn new<G: Gpu>(
        gpu: G,
        args: &BoxArgs<O::Value>,
        barriers: u32,
        [group, warp]: [u32; 2],
        [batch, column]: [u32; 2],
    ) -> Self {
        let matrix = if args.tile.b_batch == 0 { 0 } else { batch };
        let boxes = Self { map: args.map, column, matrix, barriers, copies: warp == 0, of: PhantomData };
        if boxes.copies {
            gpu.bulk_prefetch(&boxes.map);
            for stage in (group..S::STAGES).step_by(S::GROUPS as usize) {
                // SAFETY: the place is the barrier's alone, as promised by the caller.
                unsafe { gpu.bulk_barrier_init(boxes.barrier(stage)) };
            }
        }
        boxes
    }

    #[inline(always)]
    unsafe fn fill<G: Gpu>(&self, gpu: G, place: u32, step: u32, pipeline: &Pipeline<S>) {
        if self.copies {
            let barrier = self.barrier(pipeline.stage);
            // SAFETY: the barrier is this warp's; the map is B's; the stage is empty, as promised by the caller.
            unsafe {
                gpu.bulk_expect(barrier, Self::PANELS * Self::PANEL_BYTES);
                for panel in 0..Self::PANELS {
                    let to = SharedPtr::from_offset(place + panel * Self::PANEL_BYTES);
                    let at = [self.column + panel * Self::PANEL, step * Self::K, self.matrix];
                    gpu.bulk_copy(to, &self.map, at, barrier);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn wait<G: Gpu>(&self, gpu: G, pipeline: &Pipeline<S>) {
        if self.copies {
            // SAFETY: this warp has started the copies.
            unsafe { gpu.bulk_wait(self.barrier(pipeline.stage), pipeline.turn()) };
        }
    }
}

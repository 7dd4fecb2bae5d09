//! The copies of a stage: its weights, and its inputs of two tiles of rows.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::super::{LayerInput, TILE_ROWS};
use super::{INPUT_WORDS, ROW_LANES, STAGE, Stage, TILES, VECTOR, Work, weight_words};
use crate::DeviceValue;

impl<G: Gpu, X: LayerInput, W: DeviceValue> Work<'_, G, X, W> {
    /// Starts the copies of a stage.
    ///
    /// # Safety
    /// The stage is one of the warp's; nobody reads `to` any more.
    #[inline(always)]
    pub(super) unsafe fn copy(&self, stage: &Stage, to: SharedPtr<f32>) {
        let (gpu, lane) = (self.gpu, self.lane);
        let count = if stage.left < STAGE { stage.left } else { STAGE };
        // SAFETY: the group has so many inputs, with weights; tiles that have rows have all their rows.
        unsafe {
            let weights = GlobalPtr::<f32>::from_address(self.args.weights.address());
            let weights = weights.add(stage.first as usize * weight_words::<W>() as usize);
            let to_weights = to.add(INPUT_WORDS);
            for part in 0..STAGE * weight_words::<W>() / VECTOR / WARP {
                let at = (part * WARP + lane) * VECTOR;
                if at < count * weight_words::<W>() {
                    gpu.copy_async::<f32, 4>(to_weights.add(at), weights.add(at as usize));
                }
            }
            if X::BITS {
                self.copy_bits(stage, count, to);
            } else if self.args.rows.source.address() == 0 {
                self.copy_tiles(stage, count, to);
            } else {
                self.copy_rows(stage, count, to);
            }
        }
    }

    /// The first row of a tile. A tile past the last stands for the last, so that all that products read is there.
    #[inline(always)]
    fn first_row(&self, stage: &Stage, tile: u32) -> u32 {
        let row = (stage.span * TILES + tile) * TILE_ROWS;
        if row < self.rows { row } else { (self.rows - 1) / TILE_ROWS * TILE_ROWS }
    }

    /// Words of bits: a lane has one of an input and tile. Rows are as they are in the input.
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    #[inline(always)]
    unsafe fn copy_bits(&self, stage: &Stage, count: u32, to: SharedPtr<f32>) {
        let (gpu, lane) = (self.gpu, self.lane);
        let (place, tile) = (lane / TILES, lane % TILES);
        let input = gpu.warp_shuffle_idx(FULL_WARP, stage.input, place, WARP);
        if place < count {
            let first = X::of_row(self.args.input, self.first_row(stage, tile), self.args.input_width);
            let from = GlobalPtr::<f32>::from_address(first.add_rows(input, X::INPUT_BYTES).address());
            // SAFETY: as promised by the caller; an element is a word.
            unsafe { gpu.copy_async::<f32, 1>(to.add(lane), from) };
        }
    }

    /// Whole lines of tiles, 16 bytes a lane.
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    #[inline(always)]
    unsafe fn copy_tiles(&self, stage: &Stage, count: u32, to: SharedPtr<f32>) {
        let (gpu, lane) = (self.gpu, self.lane);
        let tile = lane / ROW_LANES % TILES;
        let first = X::of_row(self.args.input, self.first_row(stage, tile), self.args.input_width).address();
        let first = GlobalPtr::<f32>::from_address(first).add((lane % ROW_LANES * VECTOR) as usize);
        // Lanes have the lines of so many inputs at once.
        const AT_ONCE: u32 = WARP / ROW_LANES / TILES;
        for part in 0..STAGE / AT_ONCE {
            let place = part * AT_ONCE + lane / ROW_LANES / TILES;
            let input = gpu.warp_shuffle_idx(FULL_WARP, stage.input, place, WARP);
            if place < count {
                let at = (place * TILES + tile) * TILE_ROWS + lane % ROW_LANES * VECTOR;
                // SAFETY: as promised by the caller.
                unsafe { gpu.copy_async::<f32, 4>(to.add(at), first.add_rows(input, X::INPUT_BYTES)) };
            }
        }
    }

    /// Listed rows, number by number: a lane has a row of each tile.
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    #[inline(always)]
    unsafe fn copy_rows(&self, stage: &Stage, count: u32, to: SharedPtr<f32>) {
        let (gpu, lane) = (self.gpu, self.lane);
        for tile in 0..TILES {
            let first_row = (stage.span * TILES + tile) * TILE_ROWS;
            let row = if first_row + lane < self.rows { first_row + lane } else { self.rows - 1 };
            // SAFETY: the row is one of those that there are; else as promised by the caller.
            unsafe {
                let source = self.args.rows.source(gpu, row);
                let first = X::of_row(self.args.input, source, self.args.input_width).address();
                let first = GlobalPtr::<f32>::from_address(first);
                for place in 0..STAGE {
                    let input = gpu.warp_shuffle_idx(FULL_WARP, stage.input, place, WARP);
                    if place < count {
                        let at = (place * TILES + tile) * TILE_ROWS + lane;
                        gpu.copy_async::<f32, 1>(to.add(at), first.add_rows(input, X::INPUT_BYTES));
                    }
                }
            }
        }
    }
}

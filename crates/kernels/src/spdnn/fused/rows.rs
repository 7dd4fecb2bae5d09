//! A block's rows between global and shared memory.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::layer::ROWS;
use super::{Block, fused_place};
use crate::common::strided;
use crate::spdnn::{LayerInput, TILE_ROWS};

/// Inputs whose features are loaded together.
const AT_ONCE: u32 = 4;
/// Inputs that a warp has at once.
const OF_WARP: u32 = WARP / ROWS;

impl<G: Gpu, X: LayerInput, const WARPS: u32> Block<'_, G, X, WARPS> {
    /// Brings the block's rows of the first layer's inputs to the first buffer. Rows past the last are the last again.
    ///
    /// # Safety
    /// The rows are there; nobody reads the buffer.
    #[inline(always)]
    pub(super) unsafe fn load(&self, part: u32, rows: u32, width: u32) {
        let gpu = self.gpu;
        let (own, second) = (self.lane % ROWS, self.lane / ROWS);
        let row = part * ROWS + own;
        let row = if row < rows { row } else { rows - 1 };
        // SAFETY: as promised by the caller; each input has its place.
        unsafe {
            let source = if X::BITS { row } else { self.args.rows.source(gpu, row) };
            let first = X::of_row(self.args.input, source, width);
            let place = |input: u32| SharedPtr::<f32>::from_offset(fused_place(input) ^ (own * 4));
            if !X::BITS {
                let first = GlobalPtr::<f32>::from_address(first.address());
                strided(self.warp * OF_WARP + second, width, WARPS * OF_WARP, |input| {
                    gpu.copy_async::<f32, 1>(place(input), first.add_rows(input, X::INPUT_BYTES));
                });
                gpu.copy_async_commit();
                gpu.copy_async_wait::<0>();
                return;
            }
            strided((self.warp * OF_WARP + second) * AT_ONCE, width, WARPS * OF_WARP * AT_ONCE, |input| {
                let load = |input: u32| {
                    // Of inputs past the last, the last.
                    X::load(gpu, first, if input < width { input } else { width - 1 })
                };
                let words = [load(input), load(input + 1), load(input + 2), load(input + 3)];
                for (more, word) in words.into_iter().enumerate() {
                    let input = input + more as u32;
                    if input < width {
                        gpu.shared_store(place(input), [X::number(word, row)]);
                    }
                }
            });
        }
    }

    /// Writes the result, and marks the rows that are alive.
    ///
    /// # Safety
    /// Nobody writes the buffer at `from`.
    #[inline(always)]
    pub(super) unsafe fn write(&self, part: u32, rows: u32, width: u32, from: u32) {
        let gpu = self.gpu;
        let (own, second) = (self.lane % ROWS, self.lane / ROWS);
        let row = part * ROWS + own;
        let tile: GlobalMut<f32> = self.args.out.add_rows(width, TILE_ROWS * 4 * (row / TILE_ROWS));
        let tile = tile.add((row % TILE_ROWS) as usize);
        let mut alive = false;
        // SAFETY: tiles that have rows have all their rows, and a place for each output.
        unsafe {
            strided(self.warp * OF_WARP + second, width, WARPS * OF_WARP, |output| {
                let place = SharedPtr::<f32>::from_offset(from + (fused_place(output) ^ (own * 4)));
                let [number] = gpu.shared_load(place);
                alive |= number != 0.0;
                gpu.store(tile.add_rows(output, TILE_ROWS * 4), [number]);
            });
            if self.args.rows.alive.address() != 0 {
                let word = gpu.warp_ballot(FULL_WARP, alive && row < rows);
                let word = (word | word >> ROWS) & ((1 << ROWS) - 1);
                if self.lane == 0 {
                    self.args.rows.mark(gpu, row / TILE_ROWS, word << (part * ROWS % TILE_ROWS));
                }
            }
        }
    }
}

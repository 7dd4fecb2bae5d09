//! What tile kernels take.
use lacuna_gpu::{GlobalPtr, Gpu};

use super::{Operands, Subtiles};

/// What the entry points of [`MmaTiles`](super::MmaTiles) and [`WgmmaTiles`](super::WgmmaTiles) take. The grid's x is tiles, for
/// the latter any number of blocks that share them; its z is splits and batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TileArgs<T> {
    /// The first row and column of each tile of D that C has something of.
    pub tiles: GlobalPtr<u32>,
    /// C's nonzeros.
    pub subtiles: Subtiles,
    /// What is multiplied, and where results go. Rows of A and B are 16-byte aligned, and whole vectors of 16 bytes. Items are the
    /// rows of A and C.
    pub operands: Operands<T>,
    /// Rows of B, columns of C.
    pub cols: u32,
    /// Tiles that C has something of.
    pub tile_count: u32,
}

impl<T> TileArgs<T> {
    /// The first row and column of a tile.
    ///
    /// # Safety
    /// The list has the tile.
    #[inline(always)]
    pub(super) unsafe fn tile<G: Gpu>(&self, gpu: G, index: u32) -> [u32; 2] {
        // SAFETY: as promised by the caller.
        unsafe { gpu.load_readonly(self.tiles.add(2 * index as usize)) }
    }
}

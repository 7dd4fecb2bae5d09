//! B's rows in a stage, as the tensor cores read them.
use lacuna_gpu::{GlobalPtr, Gpu, WARP};

use super::{GroupValue, TILE_ROW};
use crate::spmm::tiles::TileArgs;

/// Items of B that a thread brings in a step, at most.
const MOST: usize = 16;

/// What a producer thread has loaded for a step.
#[derive(Clone, Copy)]
pub(super) struct Loaded<T: GroupValue>([T::Item; MOST]);

impl<T: GroupValue> Default for Loaded<T> {
    #[inline(always)]
    fn default() -> Self {
        Self([T::Item::default(); MOST])
    }
}

/// What a producer thread needs to bring its part of B: the items `thread`, `thread` + number of threads, and so on of a
/// step, tile by tile.
pub(super) struct Columns<T, const L: usize, const WK: u32, const TILES: u32, const WARPS: u32> {
    /// B, at the columns of the block, and at the first row of the step.
    b: GlobalPtr<T>,
    /// Rows that are left from there on.
    rows: u32,
    /// Columns that are left.
    columns: u32,
    stride_bytes: u32,
    thread: u32,
}

impl<T: GroupValue, const L: usize, const WK: u32, const TILES: u32, const WARPS: u32>
    Columns<T, L, WK, TILES, WARPS>
{
    /// Columns of A in a tile.
    const TILE: u32 = TILE_ROW / size_of::<T>() as u32;
    /// Rows of B in a step.
    const STEP: u32 = WK * TILES * Self::TILE;
    /// Items of a tile.
    const TILE_ITEMS: u32 = Self::TILE * 2 * L as u32 / T::ITEM;
    /// Items of a thread; the last threads may have one less.
    const ITEMS: u32 = {
        let items = (WK * TILES * Self::TILE_ITEMS).div_ceil(WARPS * WARP);
        assert!(items as usize <= MOST);
        items
    };

    #[inline(always)]
    pub(super) fn new(args: &TileArgs<T>, team: u32, thread: u32, column: u32) -> Self {
        let row = team * Self::STEP;
        Self {
            b: args.b.add_rows(row, args.b_stride_bytes).add(column as usize),
            rows: args.cols.saturating_sub(row),
            columns: args.n.saturating_sub(column),
            stride_bytes: args.b_stride_bytes,
            thread,
        }
    }

    /// Tile of an item of the thread's in a step, and its number there; there is no such item after the last tile.
    #[inline(always)]
    fn number(&self, item: u32) -> [u32; 2] {
        let number = self.thread + item * WARPS * WARP;
        [number / Self::TILE_ITEMS, number % Self::TILE_ITEMS]
    }

    /// Begins with an item.
    ///
    /// # Safety
    /// B is live.
    #[inline(always)]
    unsafe fn load<G: Gpu>(&self, gpu: G, item: u32) -> T::Item {
        let [tile, number] = self.number(item);
        let [row, column] = T::item::<L>(number);
        let row = tile * Self::TILE + row;
        let rows = if column < self.columns { self.rows.saturating_sub(row) } else { 0 };
        let from = self.b.add_rows(row, self.stride_bytes).add(column as usize);
        // SAFETY: rows and columns inside are live.
        unsafe { T::load(gpu, from, self.stride_bytes, rows) }
    }

    /// Begins with the thread's items of the step, if they are loaded ahead.
    ///
    /// # Safety
    /// B is live.
    #[inline(always)]
    pub(super) unsafe fn next<G: Gpu>(&self, gpu: G) -> Loaded<T> {
        let mut loaded = Loaded::default();
        if T::IS_LOADED {
            for item in 0..Self::ITEMS {
                // SAFETY: as promised by the caller.
                loaded.0[item as usize] = unsafe { self.load(gpu, item) };
            }
        }
        loaded
    }

    /// Puts the thread's items of a step into the stage at `stage`, or starts to copy them.
    ///
    /// # Safety
    /// The stage is empty, and B live.
    #[inline(always)]
    pub(super) unsafe fn fill<G: Gpu>(&self, gpu: G, stage: u32, loaded: &Loaded<T>) {
        for item in 0..Self::ITEMS {
            let [tile, number] = self.number(item);
            if tile < WK * TILES {
                let tile = stage + tile * T::PLANES * 2 * L as u32 * TILE_ROW;
                // SAFETY: as promised by the caller; the item is this thread's.
                unsafe {
                    let loaded = if T::IS_LOADED { loaded.0[item as usize] } else { self.load(gpu, item) };
                    T::put::<G, L>(gpu, tile, number, &loaded);
                }
            }
        }
    }

    /// Goes on to the team's next step, `teams` after this one.
    #[inline(always)]
    pub(super) fn advance(&mut self, teams: u32) {
        self.b = self.b.add_rows(teams * Self::STEP, self.stride_bytes);
        self.rows = self.rows.saturating_sub(teams * Self::STEP);
    }
}

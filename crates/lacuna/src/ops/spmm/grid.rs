//! The grid of a launch: a pure function, which the cost model asks, too.
use lacuna_kernels::Bounds;
use lacuna_kernels::spmm::{Scheme, Tile};

use crate::op::MAX_GRID_YZ;

/// Rows that a persistent thread block has at least, where there are as many: one for each scheduler of a multiprocessor. With
/// fewer, more blocks would be no faster.
const LEAST_ROWS: u64 = 4;

/// Bytes of B that a persistent thread block prefetches into L1 before it begins.
const PREFETCH_BYTES: u64 = 128 * 1024;

/// It does so where B's rows take no more than a cache line in its tile of columns. For wider ones it was measured to lose.
const PREFETCH_ROW_BYTES: u64 = 128;

/// And where it has at least one nonzero for so many rows of B.
const PREFETCH_USES: u64 = 4;

/// What a launch computes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Rows of C.
    pub rows: u64,
    /// Columns of C.
    pub columns: u64,
    /// Products of the batch.
    pub products: u64,
}

impl Extent {
    /// Tiles of columns that this has, those of one product.
    pub(super) fn column_tiles(&self, tile: &Tile) -> u64 {
        self.columns.div_ceil(u64::from(tile.block_columns))
    }

    /// Blocks of a persistent kernel that share a tile of columns: as many as make the GPU full, with `resident`
    /// blocks at once. At least one: of more tiles than that, some blocks wait until others have ended.
    pub(super) fn sharing_blocks(&self, tile: &Tile, resident: u64) -> u64 {
        let tiles = self.column_tiles(tile).saturating_mul(self.products).max(1);
        (resident / tiles).min(self.rows.div_ceil(LEAST_ROWS)).clamp(1, MAX_GRID_YZ as u64)
    }

    /// The grid, for a GPU that holds `resident` blocks of the kernel at once.
    pub(super) fn grid(&self, tile: &Tile, resident: u64) -> [u32; 3] {
        let column_tiles = self.column_tiles(tile);
        let [x, y] = if is_persistent(tile) {
            // Blocks of neighbouring tiles are neighbours. With the tiles along y, all of a multiprocessor's blocks would
            // seldom have the same one.
            [column_tiles, self.sharing_blocks(tile, resident)]
        } else {
            [self.rows.div_ceil(u64::from(tile.block_rows)) * u64::from(sharing_a_tile(tile)), column_tiles]
        };
        [x as u32, y as u32, self.products as u32]
    }
}

/// Blocks that share a tile, neighbours along the grid's x.
fn sharing_a_tile(tile: &Tile) -> u32 {
    match tile.scheme {
        Scheme::WgmmaTile { blocks, .. } | Scheme::PrepackedTile { blocks, .. } => blocks,
        _ => 1,
    }
}

/// Rows that persistent thread blocks can count: they look two rounds ahead of the last, in 32 bits.
pub(super) const MAX_PERSISTENT_ROWS: usize = 1 << 31;

/// Nonzeros of a subwarp's share, where `blocks` blocks of a kernel share a tile of columns. By itself a subwarp would take longer
/// for a longer row than for all it has to do: such rows all subwarps of a warp share.
pub(super) fn subwarp_share(tile: &Tile, blocks: u64, nnz: u64) -> u64 {
    let Scheme::RowSplit { split, .. } = tile.scheme else { return u64::MAX };
    nnz.div_ceil((blocks * u64::from(tile.block_rows) * u64::from(split)).max(1))
}

/// Rows at the head of B, of `cols`, that a thread block of a persistent kernel prefetches into L1 before it begins, where `blocks`
/// share a tile of columns; none by other kernels.
pub(super) fn prefetched_rows(tile: &Tile, blocks: u64, cols: u64, nnz: u64) -> u64 {
    let row_bytes = u64::from(tile.block_columns * tile.value.bytes());
    let is_narrow = is_persistent(tile) && row_bytes <= PREFETCH_ROW_BYTES;
    if !is_narrow || nnz.saturating_mul(PREFETCH_USES) < cols.saturating_mul(blocks) {
        return 0;
    }
    cols.min(PREFETCH_BYTES / row_bytes)
}

/// Whether a kernel is persistent: its blocks take row after row.
pub(super) fn is_persistent(tile: &Tile) -> bool {
    matches!(tile.scheme, Scheme::RowSplit { persistent: true, .. })
}

/// Blocks that `multiprocessors` hold at once for certain: as many as their kernel was compiled for.
pub(super) fn resident_blocks(bounds: Bounds, multiprocessors: u32) -> u64 {
    u64::from(bounds.min_blocks.max(1)) * u64::from(multiprocessors)
}

/// Whether its subwarps, moreover, share long rows only.
pub(super) fn is_hybrid(tile: &Tile) -> bool {
    matches!(tile.scheme, Scheme::RowSplit { hybrid: true, .. })
}

#[cfg(test)]
mod tests {
    use lacuna_kernels::{Entry, entries};

    use super::*;

    fn entry(name: &str) -> &'static Entry<Tile> {
        entries::spmm().iter().find(|entry| entry.name == name).unwrap()
    }

    /// The grid on 132 multiprocessors.
    fn grid(name: &str, rows: u64, columns: u64, products: u64) -> [u32; 3] {
        let entry = entry(name);
        Extent { rows, columns, products }.grid(&entry.tile, resident_blocks(entry.bounds, 132))
    }

    #[test]
    fn usual_blocks_have_a_tile_of_rows_and_columns_each() {
        assert_eq!(grid("spmm_f32_rowsplit_v4_l32_s1_w8", 8192, 128, 1), [1024, 1, 1]);
        assert_eq!(grid("spmm_f32_rowsplit_v4_l8_s4_w8", 9, 33, 3), [2, 2, 3]);
    }

    #[test]
    fn blocks_of_a_cluster_are_neighbours() {
        assert_eq!(grid("spmm_f16_wgmma_64x32_p4", 130, 33, 1), [3, 2, 1]);
        assert_eq!(grid("spmm_f16_wgmma_64x32_p4_c2", 130, 33, 1), [6, 2, 1]);
    }

    #[test]
    fn persistent_blocks_fill_the_gpu_once() {
        let wide = "spmm_f32_rowsplit_v4_l32_s1_w32_persistent";
        assert_eq!(grid(wide, 8192, 128, 1), [1, 132, 1]);
        assert_eq!(grid(wide, 8192, 129, 1), [2, 66, 1]);
        assert_eq!(grid(wide, 8192, 128, 5), [1, 26, 5]);
    }

    #[test]
    fn a_subwarps_share_is_what_all_subwarps_have_between_them() {
        let tile = &entry("spmm_f32_rowsplit_v4_l8_s4_w32_hybrid").tile;
        // 10 blocks of 32 warps of four subwarps.
        assert_eq!(subwarp_share(tile, 10, 52_428), 41);
        assert_eq!((subwarp_share(tile, 1, 0), subwarp_share(tile, 1, 1)), (0, 1));
    }

    #[test]
    fn few_rows_have_few_blocks_and_many_tiles_one_each() {
        let wide = "spmm_f32_rowsplit_v4_l32_s1_w32_persistent";
        for (rows, blocks) in [(0, 1), (1, 1), (4, 1), (5, 2), (527, 132), (8192, 132)] {
            assert_eq!(grid(wide, rows, 128, 1), [1, blocks, 1], "{rows} rows");
        }
        for (tiles, blocks) in [(66, 2), (67, 1), (132, 1), (133, 1), (65_535, 1)] {
            assert_eq!(grid(wide, 8192, 128 * tiles, 1), [tiles as u32, blocks, 1], "{tiles} tiles");
            assert_eq!(grid(wide, 8192, 128, tiles), [1, blocks, tiles as u32], "{tiles} products");
        }
    }

    /// Every persistent kernel fills a multiprocessor with one: of as many warps as it may have, or of fewer that have more
    /// registers.
    #[test]
    fn persistent_kernels_fill_a_multiprocessor() {
        let persistent: Vec<_> = entries::spmm().iter().filter(|entry| is_persistent(&entry.tile)).collect();
        assert!(!persistent.is_empty());
        for Entry { name, threads, bounds, .. } in persistent {
            assert_eq!((bounds.max_threads, bounds.min_blocks), (*threads, 1), "{name}");
            assert!(*threads > 512, "{name}: there would be room for a second block");
        }
    }

    #[test]
    fn narrow_rows_of_b_are_prefetched_where_they_are_used() {
        let ahead = |name: &str, cols, nnz| prefetched_rows(&entry(name).tile, 132, cols, nnz);
        let (narrow, wide) =
            ("spmm_f32_rowsplit_v4_l8_s2_w32_persistent", "spmm_f32_rowsplit_v4_l16_s2_w32_persistent");
        assert_eq!(ahead(narrow, 2048, 1_677_722), 1024);
        assert_eq!(ahead(narrow, 512, 1_677_722), 512);
        assert_eq!(ahead(wide, 2048, 1_677_722), 0);
        assert_eq!((ahead(narrow, 2048, 67_583), ahead(narrow, 2048, 67_584)), (0, 1024));
        assert_eq!((ahead(narrow, 0, 0), ahead(narrow, u64::MAX, u64::MAX)), (0, 1024));
    }
}

//! The tiles of a pattern by panels of columns: made once for a plan, by the host.
use std::cmp::Reverse;

use lacuna_gpu::GlobalPtr;
use lacuna_kernels::RowRecord;

use super::{Problem, Schedule};
use crate::pattern::DevicePattern;
use crate::{Buffer, Index, Result};

/// Bytes of a panel's rows of B: a part of what L1 holds, since blocks are not all at the same panel.
const PANEL_BYTES: usize = 128 << 10;
/// Products of elements that a tile should have at least, in the mean: what a group does before its first sum is the same for
/// long tiles.
const TILE_PRODUCTS: f64 = 3072.0;

/// Bounds of the most nonzeros of a tile: fewer would not be worth their start, more would not be worth less of it.
const SHORTEST_TILE: usize = 16;
const LONGEST_TILE: usize = 128;
/// Groups of lanes that a multiprocessor has at once, about.
const GROUPS: usize = 128;

/// How a pattern is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Panels {
    /// Columns of a panel.
    pub(super) columns: usize,
    /// The most nonzeros of a tile.
    pub(super) tile: u32,
}

impl Panels {
    /// Panels of as many columns as [`PANEL_BYTES`] hold, or more where tiles would be short; and tiles as long as keeps every
    /// group of lanes busy.
    pub(super) fn of(problem: &Problem) -> Self {
        let row_bytes = problem.k.max(1) * problem.value.bytes() as usize;
        let mut columns = (PANEL_BYTES / row_bytes).max(1).next_power_of_two();
        let of_row = (problem.nnz * problem.k) as f64 / problem.rows.max(1) as f64;
        while columns < problem.cols && of_row * columns as f64 / (problem.cols as f64) < TILE_PRODUCTS {
            columns *= 2;
        }
        let groups = problem.multiprocessors as usize * GROUPS;
        let tile = (problem.nnz * problem.batch / groups).max(1).next_power_of_two();
        Self {
            columns: columns.min(problem.cols.max(1)),
            tile: tile.clamp(SHORTEST_TILE, LONGEST_TILE) as u32,
        }
    }
}

/// The tiles of a pattern on a device.
#[derive(Debug)]
pub(super) struct PanelTiles {
    /// [`RowRecord`]s: panel after panel, the longest tiles of a panel first, or as rows stand.
    table: Buffer<u32>,
}

impl PanelTiles {
    /// Cuts a pattern: reads it from the device, and waits for that.
    pub(super) fn new<I: Index>(
        pattern: &DevicePattern<I>,
        panels: Panels,
        schedule: Schedule,
    ) -> Result<Self> {
        let device = pattern.row_table.device();
        let stream = device.stream()?;
        let all = pattern.columns.download(&stream)?;
        let rows = pattern.row_table.download(&stream)?;
        let rows = rows.as_chunks().0.iter().map(|record| RowRecord::from_words(*record));
        Ok(Self { table: device.upload(list(rows, &all, panels, schedule).as_flattened())? })
    }

    /// As the kernels take it.
    pub(super) fn pointer(&self) -> GlobalPtr<u32> {
        self.table.as_slice().pointer()
    }

    /// Tiles.
    pub(super) fn count(&self) -> u32 {
        (self.table.len() / RowRecord::WORDS) as u32
    }
}

/// The records of these rows, whose ascending columns are parts of `columns`.
fn list<I: Index>(
    rows: impl Iterator<Item = RowRecord>,
    columns: &[I],
    panels: Panels,
    schedule: Schedule,
) -> Vec<[u32; RowRecord::WORDS]> {
    let mut tiles = Vec::new();
    for RowRecord { row, mut start, end } in rows {
        while start < end {
            let panel = columns[start as usize].to_column() as usize / panels.columns;
            let most = &columns[start as usize..end.min(start + panels.tile) as usize];
            let is_in = |column: &I| column.to_column() as usize / panels.columns == panel;
            let count = most.partition_point(is_in) as u32;
            tiles.push((panel, RowRecord { row, start, end: start + count }));
            start += count;
        }
    }
    match schedule {
        Schedule::Unsorted => tiles.sort_by_key(|&(panel, tile)| (panel, tile.start)),
        // Rows of one length in their order: neighbours often have columns in common.
        _ => tiles.sort_by_key(|&(panel, tile)| (panel, Reverse(tile.end - tile.start), tile.row)),
    }
    tiles.into_iter().map(|(_, tile)| tile.to_words()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::choose::tests::problem;
    use super::*;

    #[test]
    fn rows_are_cut_at_panels_and_the_longest_come_first() {
        let rows = [(2, 0, 1), (0, 1, 5), (1, 5, 5)].map(|(row, start, end)| RowRecord { row, start, end });
        let columns = [9_u32, 0, 3, 4, 11];
        let tiles = |schedule| list(rows.into_iter(), &columns, Panels { columns: 4, tile: 128 }, schedule);
        assert_eq!(tiles(Schedule::Auto), [[0, 1, 3, 0], [0, 3, 4, 0], [0, 4, 5, 0], [2, 0, 1, 0]]);
    }

    #[test]
    fn unsorted_tiles_stand_as_rows_do() {
        // The longest row comes first in the table.
        let rows = [(1, 1, 4), (0, 0, 1), (2, 4, 6)].map(|(row, start, end)| RowRecord { row, start, end });
        let columns = [2_u32, 0, 1, 7, 1, 2];
        let tiles = list(rows.into_iter(), &columns, Panels { columns: 4, tile: 128 }, Schedule::Unsorted);
        assert_eq!(tiles, [[0, 0, 1, 0], [1, 1, 3, 0], [2, 4, 6, 0], [1, 3, 4, 0]]);
    }

    #[test]
    fn no_tile_has_too_many_nonzeros() {
        let columns: Vec<u16> = (0..300).collect();
        let row = RowRecord { row: 7, start: 0, end: 300 };
        let tiles = list([row].into_iter(), &columns, Panels { columns: 1000, tile: 128 }, Schedule::Auto);
        assert_eq!(tiles, [[7, 0, 128, 0], [7, 128, 256, 0], [7, 256, 300, 0]]);
    }

    #[test]
    fn panels_fit_a_cache_and_tiles_the_gpu() {
        let panels = |rows, k, cols, nnz| {
            let Panels { columns, tile } = Panels::of(&Problem { rows, cols, ..problem(nnz, k, 4) });
            (columns, tile)
        };
        assert_eq!(panels(8192, 128, 2048, 1_677_722), (256, 128));
        assert_eq!(panels(12_288, 64, 12_288, 7_549_747), (1024, 128));
        assert_eq!(panels(8192, 128, 2048, 8192), (2048, 16), "a nonzero a row");
        assert_eq!(panels(4096, 32, 1024, 419_430), (1024, 32), "few nonzeros");
        assert_eq!(panels(0, 0, 0, 0), (1, 16));
    }
}

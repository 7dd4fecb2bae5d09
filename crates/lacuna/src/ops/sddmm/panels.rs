//! The tiles of a pattern by panels of columns: made once for a plan, by the host.
use lacuna_gpu::GlobalPtr;
use lacuna_kernels::RowRecord;
use lacuna_matrix::Pattern;

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
    /// Cuts a pattern, [on the host](DevicePattern::on_host).
    pub(super) fn new<I: Index>(
        pattern: &DevicePattern<I>,
        panels: Panels,
        schedule: Schedule,
    ) -> Result<Self> {
        let tiles = list(&*pattern.on_host()?, panels, schedule);
        Ok(Self { table: pattern.row_table.device().upload(tiles.as_flattened())? })
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

/// The records of the tiles of a pattern.
fn list(pattern: &Pattern, panels: Panels, schedule: Schedule) -> Vec<[u32; RowRecord::WORDS]> {
    let (mut tiles, columns) = (Vec::new(), pattern.col_indices());
    for row in 0..pattern.rows() {
        let mut left = pattern.row_range(row);
        while !left.is_empty() {
            let panel = columns[left.start] as usize / panels.columns;
            let most = &columns[left.start..left.end.min(left.start + panels.tile as usize)];
            let end = (panel + 1) * panels.columns;
            let count = most.partition_point(|&column| (column as usize) < end);
            let [start, end] = [left.start, left.start + count].map(|place| place as u32);
            tiles.push((panel, RowRecord { row: row as u32, start, end }));
            left.start += count;
        }
    }
    // By panel, the longest of a panel first. Rows of one length stay in their order: neighbours often have columns in common.
    if schedule != Schedule::Unsorted {
        let shortness = |&(_, RowRecord { start, end, .. }): &(usize, RowRecord)| panels.tile - (end - start);
        tiles = sorted(&tiles, panels.tile as usize, |tile| shortness(tile) as usize);
    }
    let tiles = sorted(&tiles, pattern.cols().div_ceil(panels.columns), |&(panel, _)| panel);
    tiles.into_iter().map(|(_, tile)| tile.to_words()).collect()
}

/// These by their classes, below `classes`, and those of one class in their order: by counting.
fn sorted<T: Copy>(items: &[T], classes: usize, class: impl Fn(&T) -> usize) -> Vec<T> {
    let mut next = vec![0_usize; classes];
    items.iter().for_each(|item| next[class(item)] += 1);
    let mut start = 0;
    for next in &mut next {
        start += std::mem::replace(next, start);
    }
    let mut sorted = items.to_vec();
    for item in items {
        let next = &mut next[class(item)];
        sorted[*next] = *item;
        *next += 1;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::super::choose::tests::problem;
    use super::*;

    #[test]
    fn rows_are_cut_at_panels_and_the_longest_come_first() {
        let columns = vec![0, 3, 4, 11, 8, 9, 0, 1, 9];
        let pattern = Pattern::new(5, 12, vec![0, 4, 4, 6, 8, 9], columns).unwrap();
        let tiles = list(&pattern, Panels { columns: 4, tile: 128 }, Schedule::Auto);
        let first = [[0, 0, 2, 0], [3, 6, 8, 0], [0, 2, 3, 0]];
        assert_eq!(tiles, [&first[..], &[[2, 4, 6, 0], [0, 3, 4, 0], [4, 8, 9, 0]]].concat());
        assert!(
            list(
                &Pattern::new(0, 0, vec![0], vec![]).unwrap(),
                Panels { columns: 1, tile: 16 },
                Schedule::Auto
            )
            .is_empty()
        );
    }

    #[test]
    fn unsorted_tiles_stand_as_rows_do() {
        let pattern = Pattern::new(3, 8, vec![0, 1, 4, 6], vec![2, 0, 1, 7, 1, 2]).unwrap();
        let tiles = list(&pattern, Panels { columns: 4, tile: 128 }, Schedule::Unsorted);
        assert_eq!(tiles, [[0, 0, 1, 0], [1, 1, 3, 0], [2, 4, 6, 0], [1, 3, 4, 0]]);
    }

    #[test]
    fn no_tile_has_too_many_nonzeros() {
        let pattern = Pattern::new(2, 300, vec![0, 0, 300], (0..300).collect()).unwrap();
        let tiles = list(&pattern, Panels { columns: 1000, tile: 128 }, Schedule::Auto);
        assert_eq!(tiles, [[1, 0, 128, 0], [1, 128, 256, 0], [1, 256, 300, 0]]);
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

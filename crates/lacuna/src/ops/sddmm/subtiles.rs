//! A pattern's nonzeros by subtiles, and the tiles that have any: what tile kernels read in place of column indices. The host makes
//! them.
use std::ops::Range;

use lacuna_kernels::sddmm::Subtiles;
use lacuna_kernels::{IndexType, ValueType};
use lacuna_matrix::Pattern;

use crate::pattern::DevicePattern;
use crate::{Buffer, Device, Index, Result};

const ROWS: usize = Subtiles::ROWS as usize;
const COLUMNS: usize = Subtiles::COLUMNS as usize;

/// The lists may take this many times the memory of the nonzeros, and some more: sparser patterns have nearly as many subtiles
/// as nonzeros.
const MOST_TO_NONZEROS: u64 = 4;
const MOST_BESIDES: u64 = 1 << 20;

/// Whether a pattern of this size, and of nonzeros of these types, may be listed by subtiles.
pub(super) fn fit([rows, cols, nnz]: [usize; 3], value: ValueType, index: IndexType) -> bool {
    let subtiles = rows.div_ceil(ROWS) as u64 * cols.div_ceil(COLUMNS) as u64;
    // Of each subtile a start and a shift for each row; of each nonzero a place.
    let bytes = 4 * (1 + ROWS as u64) * subtiles + 2 * nnz as u64;
    bytes <= MOST_BESIDES + MOST_TO_NONZEROS * u64::from(value.bytes() + index.bytes()) * nnz as u64
}

/// The lists on the host, as [`Subtiles`] has them.
struct Lists {
    starts: Vec<u32>,
    shifts: Vec<u32>,
    places: Vec<u16>,
}

impl Lists {
    fn of(pattern: &Pattern) -> Self {
        let (down, across) = (pattern.rows().div_ceil(ROWS), pattern.cols().div_ceil(COLUMNS));
        let columns = pattern.col_indices();
        let mut starts = Vec::with_capacity(down * across + 1);
        let mut shifts = vec![0; down * across * ROWS];
        let mut places = vec![0; pattern.nnz()];
        // Of the subtiles beside each other, where the next nonzero goes.
        let mut next = vec![0_usize; across];
        for first_row in (0..pattern.rows()).step_by(ROWS) {
            let rows = first_row..pattern.rows().min(first_row + ROWS);
            let [begin, end] = [pattern.row_range(rows.start).start, pattern.row_range(rows.end - 1).end];
            next.fill(0);
            columns[begin..end].iter().for_each(|&column| next[column as usize / COLUMNS] += 1);
            let mut start = begin;
            for next in &mut next {
                starts.push(start as u32);
                start += std::mem::replace(next, start);
            }
            let shifts = &mut shifts[first_row / ROWS * across * ROWS..];
            for row in rows {
                let mut left = pattern.row_range(row);
                while let Some(&column) = columns[left.clone()].first() {
                    let subtile = column as usize / COLUMNS;
                    let to = &mut next[subtile];
                    shifts[subtile * ROWS + row % ROWS] = (left.start as u32).wrapping_sub(*to as u32);
                    while let Some(&column) = columns[left.clone()].first()
                        && column as usize / COLUMNS == subtile
                    {
                        places[*to] = (row % ROWS * COLUMNS + column as usize % COLUMNS) as u16;
                        *to += 1;
                        left.start += 1;
                    }
                }
            }
        }
        starts.push(pattern.nnz() as u32);
        Self { starts, shifts, places }
    }
}

/// The nonzeros of a pattern by subtiles, on a device.
#[derive(Debug)]
pub(super) struct SubtileLists {
    starts: Buffer<u32>,
    shifts: Buffer<u32>,
    places: Buffer<u16>,
    down: usize,
    across: usize,
    /// `starts`, for those who list tiles.
    on_host: Vec<u32>,
}

impl SubtileLists {
    fn new(device: &Device, pattern: &Pattern) -> Result<Self> {
        let Lists { starts, shifts, places } = Lists::of(pattern);
        Ok(Self {
            shifts: device.upload(&shifts)?,
            places: device.upload(&places)?,
            starts: device.upload(&starts)?,
            down: pattern.rows().div_ceil(ROWS),
            across: pattern.cols().div_ceil(COLUMNS),
            on_host: starts,
        })
    }

    /// As the kernels take them.
    pub(super) fn pointers(&self) -> Subtiles {
        Subtiles {
            starts: self.starts.as_slice().pointer(),
            shifts: self.shifts.as_slice().pointer(),
            places: self.places.as_slice().pointer(),
            down: self.down as u32,
            across: self.across as u32,
        }
    }

    /// The first row and column of each tile of so many rows and columns that has a nonzero: column after column of tiles, so that those
    /// which run together read the same rows of B.
    fn tiles(&self, rows: usize, columns: usize) -> Vec<[u32; 2]> {
        let (down, across) = (rows / ROWS, columns / COLUMNS);
        let mut tiles = vec![];
        for column in (0..self.across).step_by(across) {
            for row in (0..self.down).step_by(down) {
                let is_some = |row: usize| {
                    let Range { start, end } = column..self.across.min(column + across);
                    self.on_host[row * self.across + start] != self.on_host[row * self.across + end]
                };
                if (row..self.down.min(row + down)).any(is_some) {
                    tiles.push([row * ROWS, column * COLUMNS].map(|first| first as u32));
                }
            }
        }
        tiles
    }
}

impl<I: Index> DevicePattern<I> {
    /// The pattern's nonzeros by subtiles. The first call makes them, of the pattern [on the host](Self::on_host).
    pub(super) fn subtiles(&self) -> Result<&SubtileLists> {
        self.derived.get_or_make(|| SubtileLists::new(self.row_table.device(), &*self.on_host()?))
    }
}

/// The tiles of D that a kernel computes.
#[derive(Debug)]
pub(super) struct Tiles {
    /// The first row and column of each.
    pub(super) list: Buffer<u32>,
    pub(super) count: u32,
}

impl Tiles {
    /// Those of so many rows and columns, multiples of a subtile's, that have a nonzero.
    pub(super) fn new<I: Index>(pattern: &DevicePattern<I>, [rows, columns]: [u32; 2]) -> Result<Self> {
        let tiles = pattern.subtiles()?.tiles(rows as usize, columns as usize);
        let list = pattern.row_table.device().upload(tiles.as_flattened())?;
        Ok(Self { list, count: tiles.len() as u32 })
    }
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::generate;

    use super::*;

    /// What a kernel makes of the lists: of each nonzero of C, its row and column.
    fn read(pattern: &Pattern) -> Vec<[usize; 2]> {
        let Lists { starts, shifts, places } = Lists::of(pattern);
        let across = pattern.cols().div_ceil(COLUMNS);
        let mut found = vec![[usize::MAX; 2]; pattern.nnz()];
        for (subtile, ends) in starts.windows(2).enumerate() {
            for at in ends[0]..ends[1] {
                let place = usize::from(places[at as usize]);
                let shift = shifts[subtile * ROWS + place / COLUMNS];
                let first = [subtile / across * ROWS, subtile % across * COLUMNS];
                let to = &mut found[at.wrapping_add(shift) as usize];
                assert_eq!(*to, [usize::MAX; 2], "each nonzero once");
                *to = [first[0] + place / COLUMNS, first[1] + place % COLUMNS];
            }
        }
        found
    }

    #[test]
    fn lists_have_each_nonzero_where_it_is() {
        for [rows, cols] in [[1, 1], [16, 64], [17, 65], [50, 300], [3, 1000]] {
            for sparsity in [0.0, 0.5, 0.95, 1.0] {
                let pattern = generate::uniform(rows, cols, sparsity, 1).unwrap();
                let expected: Vec<_> = (0..rows)
                    .flat_map(|row| {
                        let columns = &pattern.col_indices()[pattern.row_range(row)];
                        columns.iter().map(move |&column| [row, column as usize])
                    })
                    .collect();
                assert_eq!(read(&pattern), expected, "{rows}×{cols}, {sparsity}");
            }
        }
        for [rows, cols] in [[0, 0], [0, 5], [5, 0]] {
            let lists = Lists::of(&Pattern::new(rows, cols, vec![0; rows + 1], vec![]).unwrap());
            assert_eq!((lists.starts, lists.places), (vec![0], vec![]));
        }
    }

    #[test]
    fn tiles_without_nonzeros_are_left_out() {
        // Of tiles of 32×128: (0, 0) by its last column and row, (1, 1) by its first, (1, 2), cut off, by its last.
        let mut offsets = vec![0; 41];
        offsets[32..].fill(1);
        offsets[33..].fill(2);
        offsets[40] = 3;
        let pattern = Pattern::new(40, 300, offsets, vec![127, 128, 299]).unwrap();
        let lists = SubtileLists::new(&Device::simulator(), &pattern).unwrap();
        assert_eq!(lists.tiles(32, 128), [[0, 0], [32, 128], [32, 256]]);
        assert_eq!(lists.tiles(128, 64), [[0, 64], [0, 128], [0, 256]]);
    }

    #[test]
    fn sparse_patterns_have_no_room_for_lists() {
        let fits = |rows, cols, nnz| fit([rows, cols, nnz], ValueType::F16, IndexType::U16);
        assert!(fits(2048, 2048, 1) && fits(1 << 20, 1 << 15, 1 << 28));
        assert!(!fits(1 << 20, 1 << 20, 1 << 20));
    }
}

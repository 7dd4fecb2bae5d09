//! The blocks of 64 queries × 64 keys of a mask: made once for a mask, by the host.
use std::cmp::Reverse;
use std::ops::Range;

use lacuna_gpu::GlobalPtr;
use lacuna_kernels::RowRecord;
use lacuna_kernels::attention::{BITMAP_WORDS, BLOCK, BlockEntry, BlockMask, place_of_bit};

use crate::pattern::DevicePattern;
use crate::{Buffer, Index, Result};

/// The most groups of 64 queries of a tile.
const MAX_GROUPS: usize = 3;
/// Queries of a block, and keys.
const SIDE: usize = BLOCK as usize;

/// How many blocks of 64 queries × 64 keys a mask has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// By tiles of one, two and three groups of 64 queries.
    pub tilings: [TilingCounts; MAX_GROUPS],
}

/// What tiles of some groups of 64 queries make of a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TilingCounts {
    /// Tiles.
    pub tiles: usize,
    /// Blocks of 64 keys that a query of a tile sees, summed over the tiles.
    pub entries: usize,
    /// The most of one tile.
    pub longest: usize,
}

/// The mask blocks of a mask, on its device.
#[derive(Debug)]
pub(crate) struct MaskBlocks {
    /// Of partial blocks, [`BITMAP_WORDS`] words each.
    bitmaps: Buffer<u32>,
    /// For each number of groups the [`RowRecord`]s of its tiles, the longest first, and their [`BlockEntry`]s.
    tilings: [[Buffer<u32>; 2]; MAX_GROUPS],
    counts: BlockCounts,
}

impl MaskBlocks {
    /// As a kernel takes them by tiles of so many queries: the table, the entries and the bitmaps.
    pub(super) fn pointers(&self, block_rows: u32) -> [GlobalPtr<u32>; 3] {
        let [table, entries] = &self.tilings[(block_rows / BLOCK) as usize - 1];
        [table, entries, &self.bitmaps].map(|buffer| buffer.as_slice().pointer())
    }
    pub(super) fn counts(&self) -> &BlockCounts {
        &self.counts
    }
}

/// Whether a mask's blocks hold keys enough that bitmaps may pay: [`FEWEST`] in the mean.
struct HasDenseBlocks(bool);

/// Keys of a block. Kernels that take a key at a time need less time for fewer.
const FEWEST: usize = 64;

impl<I: Index> DevicePattern<I> {
    /// Whether the mask may be one for blocks. The first call reads the pattern, as [`mask_blocks`](Self::mask_blocks) does.
    pub(super) fn has_dense_blocks(&self) -> Result<bool> {
        let has = self.derived.get_or_make(|| {
            let (columns, rows) = self.rows_on_host()?;
            // For each key block the last strip that sees it.
            let (mut seen, mut last) = (0, vec![usize::MAX; self.cols.div_ceil(SIDE)]);
            for (strip, rows) in rows.chunks(SIDE).enumerate() {
                for column in rows.iter().flat_map(|row| &columns[row.clone()]) {
                    let last = &mut last[column.to_column() as usize / SIDE];
                    seen += usize::from(std::mem::replace(last, strip) != strip);
                }
            }
            Ok(HasDenseBlocks(self.nnz >= FEWEST * seen))
        })?;
        Ok(has.0)
    }

    /// The mask's blocks. The first call makes them: it reads the pattern from the device, and waits for that.
    pub(super) fn mask_blocks(&self) -> Result<&MaskBlocks> {
        self.derived.get_or_make(|| {
            let device = self.row_table.device();
            let (columns, rows) = self.rows_on_host()?;
            let mut lists = Lists::new(self.cols);
            for strip in rows.chunks(SIDE) {
                lists.add_strip(strip, &columns);
            }
            let tilings = [1, 2, 3].map(|groups| lists.tiles(groups));
            let counts = BlockCounts { tilings: tilings.each_ref().map(|tiling| tiling.2) };
            let upload = |(table, entries, _): Tiles| -> Result<_> {
                Ok([device.upload(table.as_flattened())?, device.upload(entries.as_flattened())?])
            };
            let [one, two, three] = tilings.map(upload);
            Ok(MaskBlocks {
                bitmaps: device.upload(lists.bitmaps.as_flattened())?,
                tilings: [one?, two?, three?],
                counts,
            })
        })
    }
}

/// The bits of a partial block.
type Bitmap = [u32; BITMAP_WORDS as usize];

/// Records of tiles, their entries, and how many there are.
type Tiles = (Vec<[u32; RowRecord::WORDS]>, Vec<[u32; BlockEntry::WORDS]>, TilingCounts);

/// The blocks of a mask's strips of 64 queries.
struct Lists {
    /// Keys.
    cols: usize,
    /// For each strip its blocks that are not empty: the block of keys, and the [`BlockMask`] as memory holds it.
    strips: Vec<Vec<[u32; 2]>>,
    bitmaps: Vec<Bitmap>,
    /// For each key block its bitmap among those of the strip that is being listed; none in between.
    open: Vec<Option<usize>>,
}

impl Lists {
    fn new(cols: usize) -> Self {
        Self { cols, strips: vec![], bitmaps: vec![], open: vec![None; cols.div_ceil(SIDE)] }
    }

    /// Lists the blocks of the next 64 rows, or of the last ones.
    fn add_strip<I: Index>(&mut self, rows: &[Range<usize>], columns: &[I]) {
        let (mut blocks, mut bitmaps): (Vec<[u32; 2]>, Vec<Bitmap>) = (vec![], vec![]);
        for (query, range) in (0..).zip(rows) {
            for column in &columns[range.clone()] {
                let column = column.to_column();
                let (block, key) = (column / BLOCK, column % BLOCK);
                let bitmap = *self.open[block as usize].get_or_insert_with(|| {
                    blocks.push([block, blocks.len() as u32]);
                    bitmaps.push([0; BITMAP_WORDS as usize]);
                    bitmaps.len() - 1
                });
                let [word, bit] = place_of_bit(query, key);
                bitmaps[bitmap][word as usize] |= 1 << bit;
            }
        }
        blocks.sort_unstable();
        for [block, mask] in &mut blocks {
            self.open[*block as usize] = None;
            let bitmap = &bitmaps[*mask as usize];
            let seen: u32 = bitmap.iter().map(|word| word.count_ones()).sum();
            // Queries that are not there do not matter, keys that are not there must not be seen.
            let is_full = seen as usize == rows.len() * SIDE;
            *mask = if is_full {
                BlockMask::Full.to_word()
            } else {
                self.bitmaps.push(*bitmap);
                BlockMask::Partial(self.bitmaps.len() as u32 - 1).to_word()
            };
        }
        self.strips.push(blocks);
    }

    /// Records, entries and counts of tiles of so many strips.
    fn tiles(&self, groups: usize) -> Tiles {
        let (mut records, mut entries) = (vec![], vec![]);
        let mut masks = vec![[BlockMask::Empty.to_word(); MAX_GROUPS]; self.cols.div_ceil(SIDE)];
        for (tile, strips) in self.strips.chunks(groups).enumerate() {
            let start = entries.len() as u32;
            let mut blocks: Vec<u32> = vec![];
            for (group, strip) in strips.iter().enumerate() {
                for &[block, mask] in strip {
                    masks[block as usize][group] = mask;
                    blocks.push(block);
                }
            }
            blocks.sort_unstable();
            blocks.dedup();
            for key_block in blocks {
                let masks = std::mem::replace(
                    &mut masks[key_block as usize],
                    [BlockMask::Empty.to_word(); MAX_GROUPS],
                );
                entries.push(BlockEntry { key_block, masks }.to_words());
            }
            let row = (tile * groups * SIDE) as u32;
            records.push(RowRecord { row, start, end: entries.len() as u32 });
        }
        let len = |record: &RowRecord| record.end - record.start;
        records.sort_by_key(|record| Reverse(len(record)));
        let counts = TilingCounts {
            tiles: records.len(),
            entries: entries.len(),
            longest: records.first().map_or(0, len) as usize,
        };
        (records.into_iter().map(RowRecord::to_words).collect(), entries, counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: u32 = BlockMask::Empty.to_word();
    const FULL: u32 = BlockMask::Full.to_word();

    /// The lists of rows of ascending columns.
    fn lists(rows: &[Vec<u32>], cols: usize) -> Lists {
        let columns = rows.concat();
        let mut end = 0;
        let ranges: Vec<_> = rows
            .iter()
            .map(|row| {
                end += row.len();
                end - row.len()..end
            })
            .collect();
        let mut lists = Lists::new(cols);
        ranges.chunks(SIDE).for_each(|strip| lists.add_strip(strip, &columns));
        lists
    }

    #[test]
    fn blocks_are_empty_full_or_partial() {
        // 70 queries, 130 keys: all see the first 64; of the others the first query sees the last.
        let mut rows = vec![(0..64).collect::<Vec<u32>>(); 70];
        rows[0].push(129);
        let lists = lists(&rows, 130);
        assert_eq!(lists.strips, [vec![[0, FULL], [2, 0]], vec![[0, FULL]]]);
        let [word, bit] = place_of_bit(0, 1);
        let mut bitmap = [0; BITMAP_WORDS as usize];
        bitmap[word as usize] = 1 << bit;
        assert_eq!(lists.bitmaps, [bitmap]);
        let (table, entries, counts) = lists.tiles(1);
        assert_eq!(entries, [[0, FULL, EMPTY, EMPTY], [2, 0, EMPTY, EMPTY], [0, FULL, EMPTY, EMPTY]]);
        assert_eq!(table, [[0, 0, 2, 0], [64, 2, 3, 0]]);
        assert_eq!(counts, TilingCounts { tiles: 2, entries: 3, longest: 2 });
        let (table, entries, counts) = lists.tiles(3);
        assert_eq!(entries, [[0, FULL, FULL, EMPTY], [2, 0, EMPTY, EMPTY]]);
        assert_eq!(table, [[0, 0, 2, 0]]);
        assert_eq!(counts, TilingCounts { tiles: 1, entries: 2, longest: 2 });
    }

    #[test]
    fn the_last_keys_are_never_a_full_block() {
        let lists = lists(&vec![(0..100).collect::<Vec<u32>>(); 3], 100);
        assert_eq!(lists.strips, [[[0, FULL], [1, 0]]]);
        let seen: u32 = lists.bitmaps.as_flattened().iter().map(|word| word.count_ones()).sum();
        assert_eq!(seen, 3 * 36);
    }

    #[test]
    fn long_tiles_come_first() {
        // Strip 2 sees three blocks, the others one.
        let rows: Vec<Vec<u32>> =
            (0..192).map(|row| if row < 128 { vec![5] } else { vec![5, 70, 150] }).collect();
        let (table, ..) = lists(&rows, 192).tiles(1);
        assert_eq!(table.iter().map(|record| record[0]).collect::<Vec<_>>(), [128, 0, 64]);
    }

    #[test]
    fn each_bit_has_a_place_of_its_own() {
        let places = (0..64).flat_map(|query| (0..64).map(move |key| place_of_bit(query, key)));
        let mut places: Vec<_> = places.map(|[word, bit]| 32 * word + bit).collect();
        places.sort_unstable();
        assert_eq!(places, (0..4096).collect::<Vec<_>>());
    }
}

//! Tiles: groups of 64 queries that share the keys which a thread block loads.
use std::cmp::Reverse;

use lacuna_kernels::RowRecord;
use lacuna_kernels::attention::{BlockEntry, BlockMask};

use super::SIDE;
use super::strips::Strips;

/// The most groups of 64 queries of a tile.
pub(super) const MAX_GROUPS: usize = 3;

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

/// The tiles of a mask, as kernels read them.
pub(super) struct Tiles {
    /// [`RowRecord`]s, the longest first.
    pub(super) records: Vec<[u32; RowRecord::WORDS]>,
    /// [`BlockEntry`]s.
    pub(super) entries: Vec<[u32; BlockEntry::WORDS]>,
    pub(super) counts: TilingCounts,
}

impl Strips {
    /// Tiles of so many strips.
    pub(super) fn tiles(&self, groups: usize) -> Tiles {
        let (mut records, mut entries) = (vec![], vec![]);
        let mut masks = vec![[BlockMask::Empty.to_word(); MAX_GROUPS]; self.keys.div_ceil(SIDE)];
        let mut blocks: Vec<u32> = vec![];
        for (tile, strips) in self.strips.chunks(groups).enumerate() {
            let start = entries.len() as u32;
            blocks.clear();
            for (group, strip) in strips.iter().enumerate() {
                for &[block, mask] in strip {
                    masks[block as usize][group] = mask;
                    blocks.push(block);
                }
            }
            // Not unstably: these are ascending lists, which a merge sort finds.
            blocks.sort();
            blocks.dedup();
            for &key_block in &blocks {
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
        Tiles { records: records.into_iter().map(RowRecord::to_words).collect(), entries, counts }
    }
}

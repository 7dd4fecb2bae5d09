//! What four neighbouring queries see together: made once for a mask, by the host.
use std::cmp::Reverse;

use lacuna_gpu::{GlobalPtr, WARP};
use lacuna_kernels::RowRecord;
use lacuna_kernels::attention::{QUERIES, QueryTileEntry};
use rayon::prelude::*;

use crate::pattern::DevicePattern;
use crate::{Buffer, Index, Result};

/// The query tiles of a mask.
#[derive(Debug)]
pub(crate) struct QueryTiles {
    /// [`RowRecord`]s of query tiles: the first query, and where its entries begin and end. [In order](order).
    table: Buffer<u32>,
    /// [`QueryTileEntry`]s, [by pairs](by_pairs).
    entries: Buffer<u32>,
}

impl QueryTiles {
    /// As the kernels take them: the table and the entries.
    pub(super) fn pointers(&self) -> [GlobalPtr<u32>; 2] {
        [&self.table, &self.entries].map(|buffer| buffer.as_slice().pointer())
    }
    /// QueryTiles.
    pub(super) fn count(&self) -> u32 {
        (self.table.len() / RowRecord::WORDS) as u32
    }
    /// Entries of all query tiles.
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }
}

impl<I: Index> DevicePattern<I> {
    /// How many entries the mask's query tiles have: counted on the device, or, where [windows](Self::windows) would take too much memory,
    /// of the tiles themselves.
    pub(super) fn query_tile_entries(&self) -> Result<usize> {
        match self.windows()? {
            Some(windows) => Ok(windows.query_tile_entries()),
            None => Ok(self.query_tiles()?.entries()),
        }
    }

    /// The mask's query tiles. The first call makes them, of the pattern [on the host](Self::on_host).
    pub(super) fn query_tiles(&self) -> Result<&QueryTiles> {
        self.derived.get_or_make(|| {
            let device = self.row_table.device();
            let pattern = self.on_host()?;
            let rows = (0..self.rows).map(|row| pattern.row_columns(row));
            let (table, entries) = list(&rows.collect::<Vec<_>>());
            Ok(QueryTiles { table: device.upload(table.as_flattened())?, entries: device.upload(&entries)? })
        })
    }
}

/// Neighbouring query tiles that stay together. Most blocks have 12 warps, the others 8 or 16.
const GROUP: usize = 24;
/// How much longer groups may take than their mean query tile says: a block has the SM until its longest query tile is done.
const UNEVEN: f64 = 1.2;

/// Query tiles whose entries a thread lists at a time.
const AT_ONCE: usize = 64;

/// The table and the entries of a mask of these rows of ascending columns.
fn list(rows: &[&[u32]]) -> (Vec<[u32; RowRecord::WORDS]>, Vec<u32>) {
    // Of some tiles each, where the entries of each end, and the entries.
    let some = rows.par_chunks(QUERIES * AT_ONCE).map(|rows| {
        let (mut ends, mut entries) = (Vec::with_capacity(AT_ONCE), Vec::new());
        for rows in rows.chunks(QUERIES) {
            entries.extend(by_pairs(merge(rows)));
            ends.push(entries.len());
        }
        (ends, entries)
    });
    let some: Vec<(Vec<usize>, Vec<u32>)> = some.collect();
    let mut entries = Vec::with_capacity(some.iter().map(|(_, entries)| entries.len()).sum());
    let mut records = Vec::with_capacity(rows.len().div_ceil(QUERIES));
    for (ends, of_some) in some {
        let (first, mut start) = (entries.len(), entries.len() as u32);
        for end in ends {
            // No more entries than elements of the mask, which 32 bits count.
            let end = (first + end) as u32;
            records.push(RowRecord { row: (records.len() * QUERIES) as u32, start, end });
            start = end;
        }
        entries.extend(of_some);
    }
    (order(&records).into_iter().map(RowRecord::to_words).collect(), entries)
}

/// The query tiles in the order in which they are worked on: long ones first, so that the last to end are short, but neighbours
/// together where they are of about one length. They go along the same keys at a time, and find each other's in L1.
fn order(records: &[RowRecord]) -> Vec<RowRecord> {
    let len = |record: &RowRecord| (record.end - record.start) as usize;
    let longest = |group: &&[RowRecord]| group.iter().map(len).max().unwrap_or_default();
    // The group that is not whole has the first query tiles: with a causal mask the shortest.
    let mut groups: Vec<&[RowRecord]> = records.rchunks(GROUP).collect();
    let slots: usize = groups.iter().map(|group| longest(group) * group.len()).sum();
    let entries: usize = records.iter().map(len).sum();
    if slots as f64 > UNEVEN * entries as f64 {
        let mut records = records.to_vec();
        records.sort_by_key(|record| Reverse(len(record)));
        return records;
    }
    groups.sort_by_key(|group| Reverse(longest(group)));
    groups.concat()
}

/// The entries that up to four rows make, by key.
fn merge(rows: &[&[u32]]) -> Vec<QueryTileEntry> {
    /// No key.
    const END: u32 = u32::MAX;
    let (mut entries, mut at) = (Vec::new(), [0; QUERIES]);
    let key_at =
        |query: usize, at: usize| rows.get(query).and_then(|row| row.get(at)).map_or(END, |&key| key);
    let mut first: [u32; QUERIES] = std::array::from_fn(|query| key_at(query, 0));
    loop {
        let key = first.into_iter().min().unwrap_or(END);
        if key == END {
            return entries;
        }
        let mut seen_by = 0;
        for query in 0..QUERIES {
            let sees = first[query] == key;
            seen_by |= u32::from(sees) << query;
            at[query] += usize::from(sees);
            first[query] = key_at(query, at[query]);
        }
        entries.push(QueryTileEntry { key, seen_by });
    }
}

/// Entries in batches of a warp each, in which only the first two queries, only the last two, or all see keys: for two a
/// batch costs half the products. Batches begin by ascending keys.
fn by_pairs(entries: Vec<QueryTileEntry>) -> Vec<u32> {
    let mut waiting = [const { Vec::new() }; 3];
    let mut batches = Vec::with_capacity(entries.len());
    for entry in entries {
        let pairs = match (entry.seen_by & 0b0011, entry.seen_by & 0b1100) {
            (_, 0) => &mut waiting[0],
            (0, _) => &mut waiting[1],
            _ => &mut waiting[2],
        };
        pairs.push(entry.to_word());
        if pairs.len() == WARP as usize {
            batches.append(pairs);
        }
    }
    // At last, what fills no batch of its own.
    batches.extend(waiting.concat());
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_merged_in_fours() {
        let rows: [&[u32]; 6] = [&[0, 2, 9], &[2, 3], &[], &[9], &[5], &[1, 5, 7, 8, 100]];
        let (table, entries) = list(&rows);
        assert_eq!(table, [[0, 0, 4, 0], [4, 4, 9, 0]]);
        let entry = |key, seen_by| QueryTileEntry { key, seen_by }.to_word();
        let first = [entry(0, 1), entry(2, 3), entry(3, 2), entry(9, 9)];
        let second = [entry(1, 2), entry(5, 3), entry(7, 2), entry(8, 2), entry(100, 2)];
        assert_eq!(entries, [&first[..], &second[..]].concat());
        assert_eq!(list(&[]), (vec![], vec![]));
    }

    #[test]
    fn entries_of_a_pair_fill_batches() {
        // Keys that only the first pair sees, only the second, or both, in turn.
        let entries: Vec<_> = (0..300)
            .map(|key| QueryTileEntry { key, seen_by: [0b0010, 0b1000, 0b0110][key as usize % 3] })
            .collect();
        let words: Vec<_> = entries.iter().map(|entry| entry.to_word()).collect();
        let batches = by_pairs(entries);
        for (batch, seen_by) in batches.chunks(WARP as usize).zip([0b0010, 0b1000, 0b0110].repeat(3)) {
            assert!(batch.iter().all(|word| word % 16 == seen_by && batch[0] <= *word));
        }
        let mut sorted = batches;
        sorted.sort_unstable();
        assert_eq!(sorted, words);
    }

    #[test]
    fn neighbours_stay_together_unless_they_are_uneven() {
        let records = |len: fn(u32) -> u32| -> Vec<_> {
            (0..60).map(|tile| RowRecord { row: tile * 4, start: 0, end: len(tile) }).collect()
        };
        let rows = |len| order(&records(len)).iter().map(|record| record.row / 4).collect::<Vec<_>>();
        // Three groups from the end on, the longest first.
        assert_eq!(
            rows(|tile| 100 + tile / 12),
            [36..60, 12..36, 0..12].into_iter().flatten().collect::<Vec<_>>()
        );
        assert_eq!(rows(|tile| if tile % 12 == 7 { 100 } else { 1 })[..5], [7, 19, 31, 43, 55]);
    }

    #[test]
    fn a_band_has_little_more_entries_than_a_quarter_of_its_elements() {
        let mask = lacuna_matrix::generate::band_random(400, 64, 1.0, 1).unwrap();
        let rows: Vec<&[u32]> = (0..400).map(|row| mask.row_columns(row)).collect();
        let (_, entries) = list(&rows);
        // 67 keys for four queries of 64.
        assert!(entries.len() * 100 < mask.nnz() * 27, "{} of {}", entries.len(), mask.nnz());
    }
}

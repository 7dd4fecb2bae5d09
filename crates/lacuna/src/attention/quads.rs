//! What four neighbouring queries see together: made once for a mask, by the host.
use std::cmp::Reverse;

use lacuna_gpu::GlobalPtr;
use lacuna_kernels::attention::{QUERIES, QuadEntry};
use lacuna_kernels::spmm::RowRecord;

use crate::csr::DevicePattern;
use crate::{Buffer, Index, Result};

/// The quads of a mask.
#[derive(Debug)]
pub(crate) struct Quads {
    /// [`RowRecord`]s of quads: the first query, and where its entries begin and end. The longest first.
    table: Buffer<u32>,
    /// [`QuadEntry`]s.
    entries: Buffer<u32>,
}

impl Quads {
    /// As the kernels take them: the table and the entries.
    pub(super) fn pointers(&self) -> [GlobalPtr<u32>; 2] {
        [&self.table, &self.entries].map(|buffer| GlobalPtr::from_address(buffer.as_slice().address()))
    }
    /// Quads.
    pub(super) fn count(&self) -> u32 {
        (self.table.len() / RowRecord::WORDS) as u32
    }
    /// Entries of all quads.
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }
}

impl<I: Index> DevicePattern<I> {
    /// What part of the mask's keys quads load, where they were made: a quarter, where four neighbours see the same.
    pub(crate) fn quad_part(&self) -> Option<f64> {
        self.quads.get().map(|quads| quads.entries() as f64 / self.nnz.max(1) as f64)
    }

    /// The mask's quads. The first call makes them: it reads the pattern from the device, and waits for that.
    pub(super) fn quads(&self) -> Result<&Quads> {
        if let Some(quads) = self.quads.get() {
            return Ok(quads);
        }
        let device = self.row_table.device();
        let stream = device.stream()?;
        let columns = self.columns.download(&stream)?;
        let mut rows = vec![0..0; self.rows];
        for record in self.row_table.download(&stream)?.as_chunks().0 {
            let RowRecord { row, start, end } = RowRecord::from_words(*record);
            rows[row as usize] = start as usize..end as usize;
        }
        let row = |row: &std::ops::Range<usize>| &columns[row.clone()];
        let (table, entries) = list(&rows.iter().map(row).collect::<Vec<_>>());
        let quads = Quads { table: device.upload(table.as_flattened())?, entries: device.upload(&entries)? };
        // Another thread may have been faster: its quads are the same.
        Ok(self.quads.get_or_init(|| quads))
    }
}

/// The table and the entries of a mask of these rows of ascending columns.
fn list<I: Index>(rows: &[&[I]]) -> (Vec<[u32; RowRecord::WORDS]>, Vec<u32>) {
    let (mut records, mut entries) = (Vec::with_capacity(rows.len().div_ceil(QUERIES)), Vec::new());
    for (quad, rows) in rows.chunks(QUERIES).enumerate() {
        let start = entries.len() as u32;
        merge(rows, &mut entries);
        // No more entries than elements of the mask, which 32 bits count.
        records.push(RowRecord { row: (quad * QUERIES) as u32, start, end: entries.len() as u32 });
    }
    records.sort_by_key(|record| Reverse(record.end - record.start));
    (records.into_iter().map(RowRecord::to_words).collect(), entries)
}

/// Appends the entries of up to four rows.
fn merge<I: Index>(rows: &[&[I]], entries: &mut Vec<u32>) {
    let mut left = [&[] as &[I]; QUERIES];
    left[..rows.len()].copy_from_slice(rows);
    while let Some(key) = left.iter().filter_map(|row| row.first()).map(|key| key.to_column()).min() {
        let mut seen_by = 0;
        for (query, row) in left.iter_mut().enumerate() {
            if let [first, rest @ ..] = *row
                && first.to_column() == key
            {
                seen_by |= 1 << query;
                *row = rest;
            }
        }
        entries.push(QuadEntry { key, seen_by }.to_word());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_merged_in_fours() {
        let rows: [&[u32]; 6] = [&[0, 2, 9], &[2, 3], &[], &[9], &[5], &[1, 5, 7, 8, 100]];
        let (table, entries) = list(&rows);
        assert_eq!(table, [[4, 4, 9, 0], [0, 0, 4, 0]]);
        let entry = |key, seen_by| QuadEntry { key, seen_by }.to_word();
        let first = [entry(0, 1), entry(2, 3), entry(3, 2), entry(9, 9)];
        let second = [entry(1, 2), entry(5, 3), entry(7, 2), entry(8, 2), entry(100, 2)];
        assert_eq!(entries, [&first[..], &second[..]].concat());
        assert_eq!(list::<u16>(&[]), (vec![], vec![]));
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

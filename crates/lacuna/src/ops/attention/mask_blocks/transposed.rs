//! The blocks of the transposed mask: which queries see a key.
use lacuna_kernels::RowRecord;
use lacuna_kernels::attention::BlockEntry;

use super::bitmap::{self, Bitmap};
use super::strips::Strips;
use super::{MaskBlocks, SIDE};
use crate::Result;

impl MaskBlocks {
    /// The blocks of the transposed mask. The first call makes them: it reads these blocks from the device, and waits for that.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(in super::super) fn transposed(&self) -> Result<&Self> {
        self.lists.derived.get_or_make(|| {
            let stream = self.device().stream()?;
            let [of_strips, ..] = &self.lists.tilings;
            let [records, entries] = of_strips.each_ref().map(|list| list.download(&stream));
            let (records, entries) = (records?, entries?);
            let mut of_strips = vec![0..0; self.queries.div_ceil(SIDE)];
            for record in records.as_chunks().0 {
                let RowRecord { row, start, end } = RowRecord::from_words(*record);
                of_strips[row as usize / SIDE] = start as usize..end as usize;
            }
            let entries: &[[u32; BlockEntry::WORDS]] = entries.as_chunks().0;
            let mut strips = vec![vec![]; self.keys.div_ceil(SIDE)];
            for (strip, range) in of_strips.into_iter().enumerate() {
                for &[key_block, mask, ..] in &entries[range] {
                    strips[key_block as usize].push([strip as u32, mask]);
                }
            }
            let bitmaps = self.lists.bitmaps.download(&stream)?;
            let transposed = |bits: &Bitmap| bitmap::bitmap(&transpose(&bitmap::queries(bits)));
            let bitmaps = bitmaps.as_chunks().0.iter().map(transposed).collect();
            let (queries, keys, elements) = (self.keys, self.queries, self.elements);
            Self::upload(self.device(), &Strips { queries, keys, elements, strips, bitmaps })
        })
    }
}

/// Rows of bits as columns.
fn transpose(rows: &[u64; SIDE]) -> [u64; SIDE] {
    let mut bits = *rows;
    // Halves of a square change places, then those of its quarters, and so on.
    let mut half = SIDE / 2;
    let mut low = u64::MAX >> half;
    while half > 0 {
        for row in (0..SIDE).filter(|row| row & half == 0) {
            let moved = (bits[row] >> half ^ bits[row + half]) & low;
            bits[row] ^= moved << half;
            bits[row + half] ^= moved;
        }
        half /= 2;
        low ^= low << half;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::attention::Mask;

    #[test]
    fn bits_change_row_and_column() {
        for (row, column) in [(0, 0), (0, 63), (5, 40), (63, 0), (33, 31), (62, 63)] {
            let mut rows = [0; SIDE];
            rows[row] = 1 << column;
            let mut expected = [0; SIDE];
            expected[column] = 1 << row;
            assert_eq!(transpose(&rows), expected, "row {row}, column {column}");
        }
        let rows: [u64; SIDE] =
            std::array::from_fn(|row| 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(row as u64 + 1));
        assert_eq!(transpose(&transpose(&rows)), rows);
    }

    #[test]
    fn blocks_are_those_of_the_transposed_pattern() -> Result<()> {
        let device = Device::simulator();
        let stream = device.stream()?;
        let window = Mask::sliding_window(256, 140)?;
        let there = MaskBlocks::new(&device, &window)?;
        // Key j is seen by the 139 queries after it, too. A block that all of the last few queries see would be full one way alone.
        let expected = MaskBlocks::new(&device, &Mask::diagonals(256, 256, 0..140)?)?;
        let got = there.transposed()?;
        assert_eq!((got.queries(), got.keys(), got.elements()), (256, 256, there.elements()));
        assert_eq!(got.counts(), expected.counts());
        for ([records, entries], [expected_records, expected_entries]) in
            got.lists.tilings.iter().zip(&expected.lists.tilings)
        {
            assert_eq!(records.download(&stream)?, expected_records.download(&stream)?);
            // Bitmaps may have other numbers.
            let blocks = |list: &crate::Buffer<u32>, of: &MaskBlocks| -> Result<Vec<Vec<u32>>> {
                let bitmaps = of.lists.bitmaps.download(&stream)?;
                let (list, bitmaps) = (list.download(&stream)?, bitmaps.as_chunks::<128>().0);
                let bits = |&word: &u32| bitmaps.get(word as usize).map_or(vec![word], |bits| bits.to_vec());
                Ok(list
                    .chunks(4)
                    .map(|entry| [vec![entry[0]], entry[1..].iter().flat_map(bits).collect()].concat())
                    .collect())
            };
            assert_eq!(blocks(entries, got)?, blocks(expected_entries, &expected)?);
        }
        Ok(())
    }
}

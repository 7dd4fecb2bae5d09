//! The blocks of the transposed mask: which queries see a key.
use lacuna_kernels::attention::{BlockEntry, TransposeBitmaps, TransposeBitmapsArgs};
use lacuna_kernels::{RowRecord, entries};

use super::strips::Strips;
use super::{MaskBlocks, SIDE};
use crate::op::launch_kernel;
use crate::{Buffer, Result, Stream};

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
            let bitmaps = self.transposed_bitmaps(&stream)?;
            let (queries, keys, elements) = (self.keys, self.queries, self.elements);
            Self::with_bitmaps(&Strips { queries, keys, elements, strips, bitmaps: vec![] }, bitmaps)
        })
    }

    /// The bitmaps with queries and keys in each other's place. It waits for the device.
    fn transposed_bitmaps(&self, stream: &Stream) -> Result<Buffer<u32>> {
        let mut transposed = self.device().uninitialized(self.lists.bitmaps.len())?;
        if self.bitmaps() > 0 {
            let args = TransposeBitmapsArgs {
                bitmaps: self.lists.bitmaps.as_slice().pointer(),
                transposed: transposed.as_slice_mut().pointer(),
            };
            let grid = |_: &_| [self.bitmaps() as u32, 1, 1];
            launch_kernel::<TransposeBitmaps>(stream, entries::attention(), grid, &args)?;
            stream.synchronize()?;
        }
        Ok(transposed)
    }
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::Pattern;

    use super::super::tests::lists;
    use super::*;
    use crate::Device;
    use crate::attention::Mask;

    #[test]
    fn bits_change_row_and_column() -> Result<()> {
        // Any bits, and few enough that each block is seen in part.
        let sees = |query: u32, key: u32| query.wrapping_mul(0x9e37_79b9) ^ key.wrapping_mul(0x85eb_ca6b);
        let rows =
            (0..128).map(|query| (0..64).filter(|&key| sees(query, key) % 3 == 0).collect::<Vec<u32>>());
        let columns =
            (0..64).map(|key| (0..128).filter(|&query| sees(query, key) % 3 == 0).collect::<Vec<u32>>());
        let device = Device::simulator();
        let blocks = |pattern| MaskBlocks::new(&device, &Mask::from_pattern(pattern));
        let there = blocks(Pattern::of_rows(64, rows).unwrap())?;
        let expected = blocks(Pattern::of_rows(128, columns).unwrap())?;
        assert_eq!(there.bitmaps(), 2);
        assert_eq!(lists(there.transposed()?)?, lists(&expected)?);
        Ok(())
    }

    #[test]
    fn blocks_are_those_of_the_transposed_pattern() -> Result<()> {
        let device = Device::simulator();
        let window = Mask::sliding_window(256, 140)?;
        let there = MaskBlocks::new(&device, &window)?;
        // Key j is seen by the 139 queries after it, too. A block that all of the last few queries see would be full one way alone.
        let expected = MaskBlocks::new(&device, &Mask::diagonals(256, 256, 0..140)?)?;
        let got = there.transposed()?;
        assert_eq!((got.queries(), got.keys(), got.elements()), (256, 256, there.elements()));
        assert_eq!(got.counts(), expected.counts());
        assert_eq!(lists(got)?, lists(&expected)?);
        Ok(())
    }
}

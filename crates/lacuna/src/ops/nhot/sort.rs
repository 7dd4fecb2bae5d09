//! The nonzeros of bags, sorted on the device by the rows that they name.
use lacuna_gpu::{GlobalPtr, WARP};
use lacuna_kernels::transpose::bags::{
    CountDigits, Digits, MAX_DIGIT_BITS, ScatterDigits, ScatterDigitsArgs,
};
use lacuna_kernels::transpose::{ScanArgs, ScanChunks, ScanColumns};

use super::BagIndex;
use crate::ops::transpose::launch;
use crate::{Buffer, Device, Result, Slice, Stream};

/// A sort of nonzeros by their rows, those of one row in the order of their places; with the memory that it takes.
pub(super) struct Sort<I: BagIndex> {
    table_rows: usize,
    /// The row of each; the rows of the table for those of the padding index. By turns what a pass reads and what it writes.
    rows: [Buffer<I>; 2],
    /// Its number among the indices.
    places: [Buffer<u32>; 2],
    counters: Buffer<u32>,
    offsets: Buffer<u32>,
    /// Nonzeros of a chunk, which a warp goes through.
    chunk: u32,
    /// Bits of a digit.
    bits: u32,
    passes: u32,
}

impl<I: BagIndex> Sort<I> {
    /// Of so many indices (not 0), all below `table_rows`.
    pub(super) fn new(device: &Device, nnz: usize, table_rows: usize) -> Result<Self> {
        let [passes, bits] = digits(table_rows);
        let chunk = chunk(nnz);
        // The second half is not written by one pass.
        let second = if passes > 1 { nnz } else { 0 };
        Ok(Self {
            table_rows,
            rows: [device.uninitialized(nnz)?, device.uninitialized(second)?],
            places: [device.uninitialized(nnz)?, device.uninitialized(second)?],
            counters: device.uninitialized(nnz.div_ceil(chunk) << bits)?,
            offsets: device.uninitialized((1 << bits) + 1)?,
            // It fits 32 bits, as the number of nonzeros does: this was checked when the bags were made.
            chunk: chunk as u32,
            bits,
            passes,
        })
    }

    /// Nonzeros of a chunk.
    pub(super) fn chunk(&self) -> u32 {
        self.chunk
    }

    /// Sorts `indices`, and gives their rows and places. Returns at once: the sort stays until the stream was waited for.
    pub(super) fn run(
        &mut self,
        stream: &Stream,
        indices: Slice<'_, I>,
        padding: Option<usize>,
    ) -> Result<(Slice<'_, I>, Slice<'_, u32>)> {
        let nnz = indices.len() as u32;
        let chunks = nnz.div_ceil(self.chunk);
        let counters = self.counters.as_slice_mut().pointer();
        let offsets = self.offsets.as_slice_mut().pointer();
        let (mut from, mut places) = (indices.pointer(), GlobalPtr::from_address(0));
        for pass in 0..self.passes {
            let digits = Digits::<I> {
                rows: from,
                counters,
                nnz,
                chunk: self.chunk,
                shift: pass * self.bits,
                bits: self.bits,
                padding: padding.map_or(I::NONE, I::from_row),
                end: I::from_row(self.table_rows),
            };
            let scan = ScanArgs { counters, offsets, chunks, cols: 1 << self.bits };
            launch::<CountDigits<I>>(stream, chunks, 1, &digits)?;
            launch::<ScanChunks>(stream, scan.cols, 1, &scan)?;
            launch::<ScanColumns>(stream, scan.cols, 1, &scan)?;
            let turn = (pass % 2) as usize;
            let scatter = ScatterDigitsArgs {
                digits,
                offsets: self.offsets.as_slice().pointer(),
                places,
                sorted_rows: self.rows[turn].as_slice_mut().pointer(),
                sorted_places: self.places[turn].as_slice_mut().pointer(),
            };
            launch::<ScatterDigits<I>>(stream, chunks, 1, &scatter)?;
            (from, places) = (self.rows[turn].as_slice().pointer(), self.places[turn].as_slice().pointer());
        }
        Ok((self.rows[self.last()].as_slice(), self.places[self.last()].as_slice()))
    }

    /// The places, once the stream was waited for.
    pub(super) fn into_places(self) -> Buffer<u32> {
        let last = self.last();
        let [first, second] = self.places;
        if last == 0 { first } else { second }
    }

    /// Which half the last pass writes.
    fn last(&self) -> usize {
        (self.passes as usize - 1) % 2
    }
}

/// Passes, and bits of a digit, for rows below `table_rows` and that number itself.
fn digits(table_rows: usize) -> [u32; 2] {
    let bits = (usize::BITS - table_rows.leading_zeros()).max(1);
    let passes = bits.div_ceil(MAX_DIGIT_BITS);
    [passes, bits.div_ceil(passes)]
}

/// Nonzeros of a chunk: whole warps. Few chunks are long passes, many are a long scan; both wait for memory at each step, the
/// pass for 32 nonzeros together, the scan for eight chunks. Their sum is least with half the root of the number of nonzeros.
fn chunk(nnz: usize) -> usize {
    let chunks = (nnz.isqrt() / 2).max(1);
    nnz.div_ceil(chunks).next_multiple_of(WARP as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts on the simulator, and compares with the host.
    fn check<I: BagIndex>(indices: &[usize], table_rows: usize, padding: Option<usize>) {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let indices_of: Vec<I> = indices.iter().map(|&row| I::from_row(row)).collect();
        let on_device = device.upload(&indices_of).unwrap();
        let mut sort = Sort::<I>::new(&device, indices.len(), table_rows).unwrap();
        let (rows, places) = sort.run(&stream, on_device.as_slice(), padding).unwrap();
        let row_of = |place: u32| {
            let row = indices[place as usize];
            if Some(row) == padding { table_rows } else { row }
        };
        let mut expected: Vec<u32> = (0..indices.len() as u32).collect();
        expected.sort_by_key(|&place| row_of(place));
        assert_eq!(places.download(&stream).unwrap(), expected);
        let rows = rows.download(&stream).unwrap();
        assert!(rows.into_iter().zip(expected).all(|(row, place)| row.to_row() == row_of(place)));
    }

    /// Numbers all over a table.
    fn scattered(count: usize, table_rows: usize) -> Vec<usize> {
        (0..count).map(|at| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize % table_rows).collect()
    }

    #[test]
    fn rows_of_one_digit_and_of_several() {
        for (count, table_rows) in [(1, 1), (33, 1), (100, 7), (500, 2048), (900, 5000), (300, 3 << 22)] {
            let indices = scattered(count, table_rows);
            check::<u32>(&indices, table_rows, None);
            check::<u64>(&indices, table_rows, Some(indices[count / 2]));
        }
    }

    #[test]
    fn rows_that_32_bits_do_not_count() {
        check::<u64>(&scattered(200, 1 << 40), 1 << 40, None);
        let last = u32::MAX as usize - 1;
        check::<u32>(&[last, 0, last, 5], last + 1, Some(5));
    }

    #[test]
    fn digits_have_room_for_all_rows() {
        assert_eq!(digits(0), [1, 1]);
        assert_eq!(digits(2047), [1, 11]);
        assert_eq!(digits(2048), [2, 6]);
        assert_eq!(digits(isize::MAX as usize), [6, 11]);
        for rows in [1, 10_240, 300_000, u32::MAX as usize] {
            let [passes, bits] = digits(rows);
            assert!(bits <= MAX_DIGIT_BITS && rows >> (passes * bits) == 0, "{rows}");
        }
        assert_eq!((chunk(1), chunk(1 << 22)), (32, 4096));
    }
}

//! A pattern's bitmasks and places: what tile kernels read in place of column indices.
use lacuna_gpu::GlobalPtr;
use lacuna_kernels::spmm::{self as kernels, BitmaskArgs, Tile};
use lacuna_kernels::{Entry, IndexType, RowMask, ValueType, entries};

use crate::op::{MAX_GRID_YZ, launch_kernel};
use crate::pattern::{DevicePattern, padded};
use crate::{Buffer, Index, Result};

/// Bitmasks may take this many times the memory of the nonzeros, and some more: sparser patterns have nearly as many chunks
/// as nonzeros.
const MOST_TO_NONZEROS: u64 = 4;
const MOST_BESIDES: u64 = 1 << 20;

/// The bitmasks and places of a pattern.
#[derive(Debug)]
pub(super) struct Bitmasks {
    /// [`RowMask`]s.
    records: Buffer<u32>,
    /// A byte for each nonzero, then zeros to spare.
    places: Buffer<u8>,
}

impl Bitmasks {
    /// As the kernels take them.
    pub(super) fn pointers(&self) -> (GlobalPtr<u32>, GlobalPtr<u8>) {
        (self.records.as_slice().pointer(), self.places.as_slice().pointer())
    }
}

/// Whether a pattern of this size, and of nonzeros of these types, may be given as bitmasks: they are few enough, and their
/// kernel's grid reaches all of them.
pub(super) fn fit([rows, cols, nnz]: [usize; 3], value: ValueType, index: IndexType) -> bool {
    let bytes = (RowMask::count(rows, cols) * RowMask::WORDS * size_of::<u32>()) as u64;
    let most = MOST_BESIDES + MOST_TO_NONZEROS * u64::from(value.bytes() + index.bytes()) * nnz as u64;
    bytes <= most && cols.div_ceil(RowMask::COLUMNS as usize) <= MAX_GRID_YZ * RowMask::COLUMNS as usize
}

impl<I: Index> DevicePattern<I> {
    /// The pattern's bitmasks and places. The first call makes them, and waits for that.
    pub(super) fn bitmasks(&self) -> Result<&Bitmasks> {
        self.derived.get_or_make(|| self.make_bitmasks())
    }

    fn make_bitmasks(&self) -> Result<Bitmasks> {
        let device = self.row_table.device();
        let mut records = device.zeros(RowMask::count(self.rows, self.cols) * RowMask::WORDS)?;
        let mut places = device.zeros(padded(self.nnz))?;
        let args = BitmaskArgs::<I::Device> {
            row_table: self.row_table_pointer(),
            columns: self.columns_pointer(),
            masks: records.as_slice_mut().pointer(),
            places: places.as_slice_mut().pointer(),
            rows: self.rows as u32,
            cols: self.cols as u32,
        };
        let (rows, chunks) = (args.rows, RowMask::chunks(args.cols));
        let grid = |Entry { tile, .. }: &Entry<Tile>| {
            [rows.div_ceil(tile.block_rows), chunks.div_ceil(tile.block_columns), 1]
        };
        if rows > 0 && chunks > 0 {
            let stream = device.stream()?;
            launch_kernel::<kernels::Bitmasks<I::Device>>(&stream, entries::spmm(), grid, &args)?;
            stream.synchronize()?;
        }
        Ok(Bitmasks { records, places })
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use lacuna_kernels::PADDING;
    use lacuna_matrix::{Csr, generate};

    use super::*;
    use crate::{CsrMatrix, Device};

    #[test]
    fn places_are_columns_modulo_256() {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let host = generate::uniform(21, 300, 0.7, 1).unwrap();
        let values = generate::random_values(host.nnz(), 1);
        let host = Csr::with_values(host, values).unwrap();
        let a = CsrMatrix::<f32, u16>::with_index(&device, &host).unwrap();
        let mut expected: Vec<u8> = host.col_indices().iter().map(|&column| column as u8).collect();
        expected.resize(padded(a.nnz()), 0);
        assert_eq!(a.pattern().bitmasks().unwrap().places.download(&stream).unwrap(), expected);
    }

    /// Kernels load 16 bytes at once.
    #[test]
    fn values_of_a_batch_begin_at_multiples_of_sixteen_bytes_with_some_to_spare() {
        let device = Device::simulator();
        for nnz in 0..20 {
            let host =
                Csr::new(1, 20, vec![0, nnz], (0..nnz).collect(), vec![f16::ONE; nnz as usize]).unwrap();
            let a = CsrMatrix::new(&device, &host).unwrap();
            let batch = a.with_value_batch(3, &vec![f16::ONE; 3 * a.nnz()]).unwrap();
            assert!((batch.values_stride() * size_of::<f16>()).is_multiple_of(16));
            assert!(batch.values_stride() >= a.nnz() + PADDING);
        }
    }
}

//! What nonzero-split kernels read of a pattern, beside its columns: the row of each nonzero, and the tile schedule.
use lacuna_kernels::sddmm::{self as kernels, RowArgs, RowIndices, ScheduleArgs, TILE};
use lacuna_kernels::{Kernel, entries};

use crate::op::launch_kernel;
use crate::pattern::{DevicePattern, padded};
use crate::{Buffer, Device, Index, Result};

/// The row of each nonzero.
struct Rows(Buffer<u32>);
/// The tile schedule: in which order tiles of nonzeros are taken.
struct TileSchedule(Buffer<u32>);

impl<I: Index> DevicePattern<I> {
    /// The row of each nonzero, then the last again, as many as there are columns. The first call makes them, and waits for
    /// that.
    pub(in crate::ops) fn row_indices(&self) -> Result<&Buffer<u32>> {
        let make = || {
            let device = self.row_table.device();
            let len = padded(self.nnz);
            let mut indices = device.uninitialized(len)?;
            if self.nnz > 0 {
                let args = RowArgs {
                    row_table: self.row_table_pointer(),
                    indices: indices.as_slice_mut().pointer(),
                    rows: self.rows as u32,
                    nnz: self.nnz as u32,
                    len: len as u32,
                };
                run::<RowIndices>(device, args.rows, &args)?;
            }
            Ok(Rows(indices))
        };
        Ok(&self.derived.get_or_make(make)?.0)
    }

    /// The tile schedule: the order in which tiles are taken, for locality in L2. The first call makes it, and waits for that.
    pub(super) fn tile_schedule(&self) -> Result<&Buffer<u32>> {
        let make = || {
            let device = self.columns.device();
            let tiles = (self.nnz as u32).div_ceil(TILE);
            let mut order = device.uninitialized(tiles as usize)?;
            if tiles > 0 {
                let args = ScheduleArgs::<I::Device> {
                    columns: self.columns_pointer(),
                    order: order.as_slice_mut().pointer(),
                    tiles,
                };
                run::<kernels::TileSchedule<I::Device>>(device, tiles, &args)?;
            }
            Ok(TileSchedule(order))
        };
        Ok(&self.derived.get_or_make(make)?.0)
    }
}

/// Runs a kernel over so many items, and waits for it.
fn run<K: Kernel<Tile = lacuna_kernels::sddmm::Tile>>(
    device: &Device,
    items: u32,
    args: &K::Args,
) -> Result<()> {
    let stream = device.stream()?;
    let grid = |entry: &lacuna_kernels::Entry<K::Tile>| [items.div_ceil(entry.tile.block_items), 1, 1];
    launch_kernel::<K>(&stream, entries::sddmm(), grid, args)?;
    stream.synchronize()
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::{Csr, Pattern, generate};

    use super::*;
    use crate::CsrMatrix;

    #[test]
    fn each_nonzero_has_its_row_and_the_last_is_repeated() {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let offsets = vec![0, 0, 2, 2, 3, 43, 43];
        let columns = [0, 7, 5].into_iter().chain(0..40).collect();
        let pattern = Pattern::new(6, 50, offsets, columns).unwrap();
        let c = CsrMatrix::new(&device, &Csr::with_values(pattern, vec![0.0; 43]).unwrap()).unwrap();
        let got = c.pattern().row_indices().unwrap().download(&stream).unwrap();
        let mut expected = vec![1, 1, 3];
        expected.resize(padded(43), 4);
        assert_eq!(got, expected);
    }

    /// More than a span of 1024 tiles, the last of them not whole.
    #[test]
    fn tiles_of_a_span_rise_by_their_first_column() {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let pattern = generate::uniform_nnz(300, 900, 1030 * 32 + 5, 1).unwrap();
        let first_column = |tile: &u32| pattern.col_indices()[*tile as usize * 32];
        let mut expected: Vec<u32> = (0..1031).collect();
        expected[..1024].sort_by_key(first_column);
        expected[1024..].sort_by_key(first_column);
        let values = vec![0.0; pattern.nnz()];
        let host = Csr::with_values(pattern.clone(), values).unwrap();
        let c = CsrMatrix::<f32, u16>::with_index(&device, &host).unwrap();
        let got = c.pattern().tile_schedule().unwrap().download(&stream).unwrap();
        assert_eq!(got, expected);
    }
}

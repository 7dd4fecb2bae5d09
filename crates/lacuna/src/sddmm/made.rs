//! What kernels that go by nonzeros read of a pattern, beside its columns.
use std::ptr;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::sddmm::{OrderArgs, RowArgs, Scheme, TILE, Tile};
use lacuna_kernels::{Entry, entries};

use crate::backend::Launch;
use crate::csr::{DevicePattern, padded};
use crate::{Buffer, Device, Index, Result};

impl<I: Index> DevicePattern<I> {
    /// The row of each nonzero, then the last again, as many as there are columns. The first call makes them, and waits for
    /// that.
    pub(super) fn row_indices(&self) -> Result<&Buffer<u32>> {
        if let Some(indices) = self.row_indices.get() {
            return Ok(indices);
        }
        let device = self.row_table.device();
        let len = padded(self.nnz);
        let indices = device.uninitialized(len)?;
        if self.nnz > 0 {
            let args = RowArgs {
                row_table: GlobalPtr::from_address(self.row_table.as_slice().address()),
                indices: GlobalMut::from_address(indices.as_slice().address()),
                rows: self.rows as u32,
                nnz: self.nnz as u32,
                len: len as u32,
            };
            make::<u32, _>(device, Scheme::Rows, args.rows, &args)?;
        }
        // Another thread may have been faster: its indices are the same.
        Ok(self.row_indices.get_or_init(|| indices))
    }

    /// The order in which tiles are taken. The first call makes it, and waits for that.
    pub(super) fn tile_order(&self) -> Result<&Buffer<u32>> {
        if let Some(order) = self.tile_order.get() {
            return Ok(order);
        }
        let device = self.columns.device();
        let tiles = (self.nnz as u32).div_ceil(TILE);
        let order = device.uninitialized(tiles as usize)?;
        if tiles > 0 {
            let args = OrderArgs::<I::Device> {
                columns: GlobalPtr::from_address(self.columns.as_slice().address()),
                order: GlobalMut::from_address(order.as_slice().address()),
                tiles,
            };
            make::<I, _>(device, Scheme::Order, tiles, &args)?;
        }
        Ok(self.tile_order.get_or_init(|| order))
    }
}

/// Runs the kernel of this scheme, for indices of `I`, over so many items, and waits for it.
fn make<I: Index, A: Copy + 'static>(device: &Device, scheme: Scheme, items: u32, args: &A) -> Result<()> {
    let is_it = |Entry { tile, .. }: &&Entry<Tile>| tile.scheme == scheme && tile.index == I::TYPE;
    let entry = entries::sddmm().iter().find(is_it).expect("each index type has its kernels");
    let stream = device.stream()?;
    stream.launch(&Launch {
        entry: entry.name,
        grid: [items.div_ceil(entry.tile.block_items), 1, 1],
        threads: entry.threads,
        shared_bytes: entry.shared_bytes,
        args,
        args_pointer: ptr::from_ref(args).cast(),
    })?;
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
        let got = c.pattern().tile_order().unwrap().download(&stream).unwrap();
        assert_eq!(got, expected);
    }
}

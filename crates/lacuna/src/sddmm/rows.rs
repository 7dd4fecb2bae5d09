//! The row of each nonzero of a pattern: what kernels read that go by nonzeros.
use std::ptr;

use lacuna_gpu::{GlobalMut, GlobalPtr};
use lacuna_kernels::sddmm::{RowArgs, Scheme};
use lacuna_kernels::{Entry, entries};

use crate::backend::Launch;
use crate::csr::{DevicePattern, padded};
use crate::{Buffer, Index, Result};

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
            let entry = entries::sddmm().iter().find(|Entry { tile, .. }| tile.scheme == Scheme::Rows);
            let entry = entry.expect("the list has the kernel that makes row indices");
            let args = RowArgs {
                row_table: GlobalPtr::from_address(self.row_table.as_slice().address()),
                indices: GlobalMut::from_address(indices.as_slice().address()),
                rows: self.rows as u32,
                nnz: self.nnz as u32,
                len: len as u32,
            };
            let stream = device.stream()?;
            stream.launch(&Launch {
                entry: entry.name,
                grid: [args.rows.div_ceil(entry.tile.block_items), 1, 1],
                threads: entry.threads,
                shared_bytes: entry.shared_bytes,
                args: &args,
                args_pointer: ptr::from_ref(&args).cast(),
            })?;
            stream.synchronize()?;
        }
        // Another thread may have been faster: its indices are the same.
        Ok(self.row_indices.get_or_init(|| indices))
    }
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::{Csr, Pattern};

    use super::*;
    use crate::{CsrMatrix, Device};

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
}

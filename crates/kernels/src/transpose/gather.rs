//! Values in the order of Aᵀ.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, Scalar};

use super::Tile;
use crate::Kernel;

/// `out[i] = values[permutation[i]]`: a thread for `V` (1 or 4) neighbours, whose loads are under way together, and a row
/// of blocks (y) for each matrix of a batch.
/// `W` is a word as wide as a value: values are moved, and nothing is computed.
#[derive(Debug)]
pub struct Gather<W, const V: usize>(PhantomData<W>);

/// What [`Gather`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GatherArgs<W> {
    /// Where in `values` each element comes from: `nnz` indices; 16-byte aligned.
    pub permutation: GlobalPtr<u32>,
    /// The values, in the order of A: `nnz` elements a matrix.
    pub values: GlobalPtr<W>,
    /// The values, in the order of Aᵀ, to write: `len` elements a matrix, aligned to `V` of them.
    pub out: GlobalMut<W>,
    /// Elements of the matrix.
    pub nnz: u32,
    /// Elements to write: `nnz`, or more (below 2³² − 1024). Those past `nnz` become zero.
    pub len: u32,
    /// Elements from the values of one matrix to those of the next, in both: a multiple of `V`.
    pub batch_stride: u32,
}

const THREADS: u32 = 256;

impl<W: Scalar, const V: usize> Kernel for Gather<W, V> {
    type Args = GatherArgs<W>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V == 1 || V == 4, "a thread moves 1 or 4 values");
        Tile { block_items: THREADS * V as u32 }
    };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: GatherArgs<W>) {
        let width = V as u32;
        let matrix = gpu.block_idx_y() as usize * args.batch_stride as usize;
        let (values, out) = (args.values.add(matrix), args.out.add(matrix));
        let first = gpu.block_idx_x() * Self::TILE.block_items + gpu.thread_idx_x() * width;
        // SAFETY: an index below `nnz` has a source, which is one of the matrix's `nnz` values; one below `len` has a place.
        unsafe {
            if first < args.nnz && args.nnz - first >= width {
                let sources: [u32; V] = gpu.load_streaming(args.permutation.add(first as usize));
                let mut gathered = [W::default(); V];
                for (value, &source) in gathered.iter_mut().zip(&sources) {
                    [*value] = gpu.load_readonly(values.add(source as usize));
                }
                gpu.store(out.add(first as usize), gathered);
            } else {
                for index in first..first + width {
                    if index < args.len {
                        let mut value = [W::default()];
                        if index < args.nnz {
                            let [source] = gpu.load_streaming(args.permutation.add(index as usize));
                            value = gpu.load_readonly(values.add(source as usize));
                        }
                        gpu.store(out.add(index as usize), value);
                    }
                }
            }
        }
    }
}

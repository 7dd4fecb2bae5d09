//! Indices of a table's rows, from an array of another program's: checked, and copied to where kernels read them.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu};

use super::{SourceIndex, THREADS, Tile};
use crate::Kernel;
use crate::nhot::TableIndex;

/// Checks and copies indices: a thread an element.
#[derive(Debug)]
pub struct Indices<S, I>(PhantomData<(S, I)>);

/// What [`Indices`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IndicesArgs<S, I> {
    /// The indices: `count` elements.
    pub source: GlobalPtr<S>,
    /// The indices, to write: `count` elements. Wrong ones become zero.
    pub indices: GlobalMut<I>,
    /// One element, 0 before: 2³² − 1 less the number of the first wrong element, to write; 0 where all are right.
    pub verdict: GlobalMut<u32>,
    /// Rows of the table: not more than `I` can index.
    pub rows: u64,
    /// Elements (below 2³² − 256).
    pub count: u32,
}

impl<S: SourceIndex, I: TableIndex> Kernel for Indices<S, I> {
    type Args = IndicesArgs<S, I>;
    type Tile = Tile;

    const TILE: Tile = Tile { block_items: THREADS };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: IndicesArgs<S, I>) {
        let index = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        if index >= args.count {
            return;
        }
        // SAFETY: an index below `count` has a source, and a place.
        unsafe {
            let [found] = gpu.load_readonly(args.source.add(index as usize));
            let mut number = found.number();
            if number >= args.rows {
                gpu.atomic_max(args.verdict, u32::MAX - index);
                number = 0;
            }
            gpu.store(args.indices.add(index as usize), [I::from_number(number)]);
        }
    }
}

//! Adds up what splits of K came to.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu};

use super::{Operands, Scheme, Tile};
use crate::{DeviceValue, IndexType, Kernel};

/// Results of the sums of splits, a nonzero a thread: in the order of the splits, so that results do not depend on timing.
#[derive(Debug)]
pub struct SumSplits<T>(PhantomData<T>);

/// What [`SumSplits`] takes. The grid's x is the nonzeros, its z the batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SumSplitsArgs<T> {
    /// A sum for each nonzero, of each split of each product.
    pub sums: GlobalPtr<f32>,
    /// Where results go: `partial` is 0. A and B are not read.
    pub operands: Operands<T>,
}

/// Threads of a block.
const THREADS: u32 = 128;
/// Sums that are under way together.
const AT_ONCE: usize = 8;

impl<T: DeviceValue> Kernel for SumSplits<T> {
    type Args = SumSplitsArgs<T>;
    type Tile = Tile;

    const TILE: Tile =
        Tile { value: T::TYPE, ..Tile::without_products(IndexType::U32, THREADS, Scheme::SumSplits) };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: SumSplitsArgs<T>) {
        let Operands { splits, nonzeros, .. } = args.operands;
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        if at >= nonzeros {
            return;
        }
        let batch = gpu.block_idx_z();
        let first = batch as usize * splits as usize * nonzeros as usize + at as usize;
        let mut sum = 0.0;
        let mut split = 0;
        while split < splits {
            let mut parts = [0.0; AT_ONCE];
            for (i, part) in parts.iter_mut().enumerate() {
                let split = split + i as u32;
                if split < splits {
                    let from = args.sums.add(first + split as usize * nonzeros as usize);
                    // SAFETY: each split has a sum for the nonzero.
                    [*part] = unsafe { gpu.load_readonly(from) };
                }
            }
            for part in &parts {
                sum += part;
            }
            split += AT_ONCE as u32;
        }
        // SAFETY: the nonzero is this thread's alone.
        unsafe { args.operands.store(gpu, at, batch, sum) };
    }
}

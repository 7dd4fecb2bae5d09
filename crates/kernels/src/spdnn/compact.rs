//! The rows that are alive, listed.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::{Scheme, Tile};
use crate::common::{strided, sums_of_block};
use crate::{Kernel, ValueType};

/// Lists, in order, the rows whose bits are set, and clears the bits: one block. A thread counts the bits of a word, the counts are
/// added up over the block, and warps write the rows of a word in turn, a lane a row.
#[derive(Debug)]
pub struct Compact;

/// What [`Compact`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CompactArgs {
    /// A bit a row; 0 afterwards.
    pub alive: GlobalMut<u32>,
    /// One number: the rows that `alive` has bits of.
    pub count: GlobalPtr<u32>,
    /// For each of these rows, which sample it is. Address 0: the same.
    pub ids: GlobalPtr<u32>,
    /// One number: the rows that are alive.
    pub count_out: GlobalMut<u32>,
    /// For each row that is alive, which of the rows it is.
    pub source_out: GlobalMut<u32>,
    /// For each row that is alive, which sample it is.
    pub ids_out: GlobalMut<u32>,
}

const THREADS: u32 = 1024;
const WARPS: u32 = THREADS / WARP;

impl Kernel for Compact {
    type Args = CompactArgs;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::Compact, input_bits: false, weights: ValueType::F32 };
    const THREADS: u32 = THREADS;
    /// A word and the rows before it, of each thread; the sums of warps.
    const SHARED_BYTES: u32 = (2 * THREADS + WARPS) * 4;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: CompactArgs) {
        let (thread, lane) = (gpu.thread_idx_x(), gpu.lane_id());
        let words_of = SharedPtr::<u32>::from_offset(0);
        let firsts = words_of.add(THREADS);
        let totals = firsts.add(THREADS);
        // SAFETY: there is a word for each 32 rows that are counted, and each list has room for as many rows. A thread reads
        // and clears its own word; shared words are its own before the barrier, and read only after it.
        unsafe {
            let [rows] = gpu.load_readonly(args.count);
            let words = rows.div_ceil(WARP);
            let mut listed = 0;
            let mut chunk = 0;
            while chunk < words {
                let word = chunk + thread;
                let mut bits = 0;
                if word < words {
                    [bits] = gpu.load(args.alive.add(word as usize));
                    gpu.store(args.alive.add(word as usize), [0]);
                }
                let [before, all] = sums_of_block(gpu, totals, bits.count_ones());
                gpu.shared_store(words_of.add(thread), [bits]);
                gpu.shared_store(firsts.add(thread), [listed + before]);
                gpu.sync_threads();
                let in_chunk = if words - chunk < THREADS { words - chunk } else { THREADS };
                strided(thread / WARP, in_chunk, WARPS, |of| {
                    let [bits] = gpu.shared_load::<u32, 1>(words_of.add(of));
                    let [at] = gpu.shared_load::<u32, 1>(firsts.add(of));
                    if bits >> lane & 1 != 0 {
                        let row = (chunk + of) * WARP + lane;
                        let at = (at + (bits & ((1 << lane) - 1)).count_ones()) as usize;
                        let mut id = row;
                        if args.ids.address() != 0 {
                            [id] = gpu.load_readonly(args.ids.add(row as usize));
                        }
                        gpu.store(args.source_out.add(at), [row]);
                        gpu.store(args.ids_out.add(at), [id]);
                    }
                });
                listed += all;
                chunk += THREADS;
            }
            if thread == 0 {
                gpu.store(args.count_out, [listed]);
            }
        }
    }
}

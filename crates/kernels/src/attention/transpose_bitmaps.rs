//! The bitmaps of a transposed mask: in each, queries and keys change places.
//!
//! A thread block takes a bitmap. Its words go to shared memory, and a thread makes a word of the result of the 32 bits that it wants.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::wgmma::{BITMAP_WORDS, BLOCK, place_of_bit};
use super::{Scheme, Tile};
use crate::{Kernel, ValueType};

/// Transposes bitmaps.
#[derive(Debug)]
pub struct TransposeBitmaps;

/// What [`TransposeBitmaps`] takes. The grid is a block a bitmap.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TransposeBitmapsArgs {
    /// Bitmaps of [`BITMAP_WORDS`] words.
    pub bitmaps: GlobalPtr<u32>,
    /// As many, to write.
    pub transposed: GlobalMut<u32>,
}

impl Kernel for TransposeBitmaps {
    type Args = TransposeBitmapsArgs;
    type Tile = Tile;

    const TILE: Tile = Tile {
        value: ValueType::F32,
        vector: 1,
        lanes: 1,
        dimension: BLOCK,
        block_rows: BLOCK,
        scheme: Scheme::TransposeBitmaps,
    };
    const THREADS: u32 = BITMAP_WORDS;
    const SHARED_BYTES: u32 = BITMAP_WORDS * 4;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TransposeBitmapsArgs) {
        let thread = gpu.thread_idx_x();
        let words = SharedPtr::<u32>::from_offset(0);
        let at = gpu.block_idx_x() as usize * BITMAP_WORDS as usize + thread as usize;
        // What this thread's word holds, as `place_of_bit` says it: of two queries two keys of each eight.
        let (query, key) = (thread / WARP * 16 + thread % WARP / 4, thread % 4 * 2);
        // SAFETY: a bitmap has a word for each thread; a barrier stands between all words and their use.
        unsafe {
            let [word]: [u32; 1] = gpu.load_readonly(args.bitmaps.add(at));
            gpu.shared_store(words.add(thread), [word]);
            gpu.sync_threads();
            let mut transposed = 0;
            for bit in 0..32 {
                let (query, key) = (query + bit / 2 % 2 * 8, key + bit / 4 * 8 + bit % 2);
                let [from, place] = place_of_bit(key, query);
                let [word]: [u32; 1] = gpu.shared_load(words.add(from));
                transposed |= (word >> place & 1) << bit;
            }
            gpu.store(args.transposed.add(at), [transposed]);
        }
    }
}

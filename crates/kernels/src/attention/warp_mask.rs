//! What a warp sees of a step's keys.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, WARP};

use super::wgmma::{BITMAP_WORDS, BlockEntry, BlockMask};

/// What the warp's group of 64 rows sees of a block, and the lane's word of it.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) mask: u32,
    pub(super) word: u32,
}

impl Seen {
    /// That of entry `index` of a tile, which has `count`; nothing from there on.
    ///
    /// # Safety
    /// The whole warp is here; entries and bitmaps are live.
    #[inline(always)]
    pub(super) unsafe fn load<G: Gpu>(
        gpu: G,
        (entries, bitmaps): (GlobalPtr<u32>, GlobalPtr<u32>),
        (index, count): (u32, u32),
        group: u32,
    ) -> Self {
        // SAFETY: as promised by the caller; a bitmap has a word for each lane of a group.
        unsafe {
            let mask = BlockEntry::load_mask(gpu, entries, index, count, group);
            // It is the same for all lanes, which the compiler sees by way of a shuffle.
            let mask = gpu.warp_shuffle_idx(FULL_WARP, mask, 0, WARP);
            let mut word = u32::MAX;
            if mask < BlockMask::FULL {
                let thread = gpu.thread_idx_x() % BITMAP_WORDS;
                let at = mask as usize * BITMAP_WORDS as usize + thread as usize;
                [word] = gpu.load_readonly(bitmaps.add(at));
            }
            Self { mask, word }
        }
    }
}

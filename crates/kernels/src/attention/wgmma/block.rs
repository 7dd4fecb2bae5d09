//! Mask blocks: what 64 queries and 64 keys make of a mask.
use lacuna_gpu::{GlobalPtr, Gpu, WARP};

use super::super::lanes::ABSENT;
use super::super::row::Keys;
use crate::RowRecord;

/// Queries of a mask block, and keys.
pub const BLOCK: u32 = 64;

/// Words of a block's bitmap: each thread of the warpgroup that takes the block has one.
pub const BITMAP_WORDS: u32 = BLOCK * BLOCK / 32;

/// What a group of 64 queries sees of 64 keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockMask {
    /// None.
    Empty,
    /// All.
    Full,
    /// Those of this bitmap.
    Partial(u32),
}

impl BlockMask {
    pub(in super::super) const EMPTY: u32 = u32::MAX;
    pub(in super::super) const FULL: u32 = u32::MAX - 1;

    /// The block as memory holds it.
    pub const fn to_word(self) -> u32 {
        match self {
            Self::Empty => Self::EMPTY,
            Self::Full => Self::FULL,
            Self::Partial(bitmap) => bitmap,
        }
    }
}

/// Where a bitmap has the bit of a query and a key of its block: the word, and the bit. It is where the query's thread has the
/// score among those that a warpgroup's product of 64 columns leaves it.
#[inline(always)]
pub const fn place_of_bit(query: u32, key: u32) -> [u32; 2] {
    let lane = query % 8 * 4 + key % 8 / 2;
    [query / 16 * WARP + lane, key / 8 * 4 + query % 16 / 8 * 2 + key % 2]
}

/// The bits that a query has in one word of a bitmap, of those of its 64 keys: one pair of keys of each eight, four bits from one
/// pair to the next, as [`place_of_bit`] says it.
#[inline(always)]
pub const fn bits_of_pairs(keys: [u32; 2], pair: u32) -> u32 {
    let [low, high] = [keys[0] >> (2 * pair) & 0x0303_0303, keys[1] >> (2 * pair) & 0x0303_0303];
    // From the low bits of bytes to those of half bytes.
    let [low, high] = [(low | low >> 4) & 0x00ff_00ff, (high | high >> 4) & 0x00ff_00ff];
    (low | low >> 8) & 0xffff | (high | high >> 8) << 16
}

/// A key block that some queries of a tile see: its number, and a [`BlockMask`] for each 64 queries, up to three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// Which 64 keys.
    pub key_block: u32,
    /// What the groups of 64 queries see of them.
    pub masks: [u32; 3],
}

impl BlockEntry {
    /// Words of an entry in memory.
    pub const WORDS: usize = 4;
    /// In place of an entry that is not there.
    pub(super) const NONE: Self = Self { key_block: 0, masks: [BlockMask::EMPTY; 3] };

    /// The entry as memory holds it.
    pub const fn to_words(self) -> [u32; Self::WORDS] {
        [self.key_block, self.masks[0], self.masks[1], self.masks[2]]
    }

    /// Loads entry `index` of a list, or gives [`NONE`](Self::NONE) from `end` on.
    ///
    /// # Safety
    /// The list is live, and ends there.
    #[inline(always)]
    pub(in super::super) unsafe fn load<G: Gpu>(
        gpu: G,
        entries: GlobalPtr<u32>,
        index: u32,
        end: u32,
    ) -> Self {
        if index >= end {
            return Self::NONE;
        }
        // SAFETY: as promised by the caller.
        let [key_block, a, b, c] = unsafe { gpu.load_readonly(entries.add(index as usize * Self::WORDS)) };
        Self { key_block, masks: [a, b, c] }
    }

    /// Loads the key block of entry `index` of a list; the first from `end` on.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[inline(always)]
    pub(in super::super) unsafe fn load_key_block<G: Gpu>(
        gpu: G,
        entries: GlobalPtr<u32>,
        index: u32,
        end: u32,
    ) -> u32 {
        if index >= end {
            return Self::NONE.key_block;
        }
        // SAFETY: as promised by the caller.
        let [key_block] = unsafe { gpu.load_readonly(entries.add(index as usize * Self::WORDS)) };
        key_block
    }

    /// Loads what a group sees of entry `index` of a list, as memory holds it; nothing from `end` on.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[inline(always)]
    pub(in super::super) unsafe fn load_mask<G: Gpu>(
        gpu: G,
        entries: GlobalPtr<u32>,
        index: u32,
        end: u32,
        group: u32,
    ) -> u32 {
        if index >= end {
            return BlockMask::EMPTY;
        }
        let entry = entries.add(index as usize * Self::WORDS);
        // SAFETY: as promised by the caller.
        let [mask] = unsafe { gpu.load_readonly(entry.add(1 + group as usize)) };
        mask
    }
}

/// What the entry points of kernels by mask blocks take, with operands of `O`. The grid's x is the heads, its y the tiles.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BlockArgs<O> {
    /// A record of [`RowRecord`] words a tile: its first row, and where its entries begin and end.
    pub tile_table: GlobalPtr<u32>,
    /// [`BlockEntry`]s.
    pub entries: GlobalPtr<u32>,
    /// Bitmaps of [`BITMAP_WORDS`] words.
    pub bitmaps: GlobalPtr<u32>,
    /// Tiles whose records are taken in reverse order: the first of them, and how many.
    pub reversed: [u32; 2],
    /// What is multiplied.
    pub operands: O,
}

/// The tile of a thread block.
#[derive(Clone, Copy)]
pub(in super::super) struct BlockTile {
    /// Its first row.
    pub(in super::super) first: u32,
    /// Its first entry, and how many there are.
    pub(in super::super) entries: GlobalPtr<u32>,
    pub(in super::super) count: u32,
}

impl<O> BlockArgs<O> {
    /// The tile of this thread block.
    ///
    /// # Safety
    /// The table is live, and has a record for each tile of the grid; the reversed ones are among these.
    #[inline(always)]
    pub(in super::super) unsafe fn tile<G: Gpu>(&self, gpu: G) -> BlockTile {
        let [first, count] = self.reversed;
        let index = gpu.block_idx_y();
        let place = index.wrapping_sub(first);
        let index = if place < count { first + count - 1 - place } else { index };
        // SAFETY: as promised by the caller.
        let record = unsafe { RowRecord::load(gpu, self.tile_table, index as usize) };
        BlockTile {
            first: record.row,
            entries: self.entries.add(record.start as usize * BlockEntry::WORDS),
            count: record.end - record.start,
        }
    }
}

/// The keys that one query of a tile sees, entry by entry: 64 places each.
#[derive(Clone, Copy)]
pub(in super::super) struct BlockKeys {
    /// The tile's first entry.
    pub(in super::super) entries: GlobalPtr<u32>,
    pub(in super::super) bitmaps: GlobalPtr<u32>,
    /// Places.
    pub(in super::super) end: u32,
    /// The query: which 64, and which of them.
    pub(in super::super) group: u32,
    pub(in super::super) query: u32,
}

impl Keys for BlockKeys {
    #[inline(always)]
    unsafe fn column<G: Gpu>(self, gpu: G, index: u32) -> u32 {
        if index >= self.end {
            return ABSENT;
        }
        let entry = self.entries.add((index / BLOCK) as usize * BlockEntry::WORDS);
        let key = index % BLOCK;
        // SAFETY: as promised by the caller; a bitmap has a word for each thread.
        unsafe {
            let [key_block] = gpu.load_readonly(entry);
            let [mask] = gpu.load_readonly(entry.add(1 + self.group as usize));
            let seen = if mask < BlockMask::FULL {
                let [word, bit] = place_of_bit(self.query, key);
                let bitmap = self.bitmaps.add(mask as usize * BITMAP_WORDS as usize);
                let [bits] = gpu.load_readonly(bitmap.add(word as usize));
                bits >> bit & 1 != 0
            } else {
                mask == BlockMask::FULL
            };
            if seen { key_block * BLOCK + key } else { ABSENT }
        }
    }
}

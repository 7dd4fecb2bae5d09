//! The blocks of a mask, strip by strip, with their bitmaps numbered.
use std::collections::HashMap;
use std::hash::BuildHasher as _;

use lacuna_kernels::attention::BlockMask;

use super::bitmap::{Bitmap, bitmap};
use crate::ops::attention::mask::{Bits, Strip};
use crate::{Error, Result};

/// The most blocks: entries count them in 32 bits, of which two values mean empty and full.
const MAX_BLOCKS: usize = u32::MAX as usize - 2;

/// The blocks of a mask's strips of 64 queries.
pub(super) struct Strips {
    pub(super) queries: usize,
    pub(super) keys: usize,
    /// Pairs of a query and a key that it sees.
    pub(super) elements: u64,
    /// For each strip its blocks that are not empty: the block of keys, and the [`BlockMask`] as memory holds it.
    pub(super) strips: Vec<Vec<[u32; 2]>>,
    /// Of partial blocks. Blocks with equal bits share one.
    pub(super) bitmaps: Vec<Bitmap>,
}

impl Strips {
    /// The blocks of a mask of queries × keys whose strips these are.
    pub(super) fn list([queries, keys]: [usize; 2], strips: impl IntoIterator<Item = Strip>) -> Result<Self> {
        let mut list = Self { queries, keys, elements: 0, strips: vec![], bitmaps: vec![] };
        let (mut distinct, mut blocks) = (Distinct::default(), 0);
        for strip in strips {
            list.elements += strip.elements();
            blocks += strip.blocks.len();
            Error::expect_at_most("the number of mask blocks", MAX_BLOCKS, blocks)?;
            let numbers: Vec<u32> = strip.bits.iter().map(|bits| distinct.number(bits)).collect();
            let blocks = strip.blocks.iter().map(|seen| {
                let mask = seen.bits.map_or(BlockMask::Full, |at| BlockMask::Partial(numbers[at]));
                [seen.block, mask.to_word()]
            });
            list.strips.push(blocks.collect());
        }
        list.bitmaps = distinct.bits.iter().map(bitmap).collect();
        Ok(list)
    }
}

/// The bits of partial blocks, and which have a hash. Of two with one hash, which chance hardly ever makes, only the first is found again.
#[derive(Default)]
struct Distinct {
    bits: Vec<Bits>,
    by_hash: HashMap<u64, u32>,
}

impl Distinct {
    /// The number of these bits.
    fn number(&mut self, bits: &Bits) -> u32 {
        let next = self.bits.len() as u32;
        let hash = self.by_hash.hasher().hash_one(bits);
        let number = *self.by_hash.entry(hash).or_insert(next);
        if self.bits.get(number as usize) == Some(bits) {
            return number;
        }
        self.bits.push(*bits);
        next
    }
}

#[cfg(test)]
mod tests;

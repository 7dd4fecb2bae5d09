//! The blocks of a mask, strip by strip, with their bitmaps numbered.
use std::collections::HashMap;
use std::ops::Range;

use lacuna_kernels::attention::BlockMask;
use rayon::prelude::*;

use super::bitmap::{Bitmap, bitmap};
use crate::ops::attention::mask::{Bits, SIDE, Strip};
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
    /// Of partial blocks; empty where they are on the device already. Blocks with equal bits share one.
    pub(super) bitmaps: Vec<Bitmap>,
}

impl Strips {
    /// The blocks of a mask of queries × keys; `strip` gives the strip of these queries, and is asked in parallel.
    pub(super) fn list(
        [queries, keys]: [usize; 2],
        strip: impl Fn(Range<usize>) -> Strip + Sync,
    ) -> Result<Self> {
        let mut list = Self { queries, keys, elements: 0, strips: vec![], bitmaps: vec![] };
        let (mut distinct, mut blocks) = (Distinct::default(), 0);
        for first in (0..queries.div_ceil(SIDE)).step_by(AT_ONCE) {
            let numbers = first..queries.div_ceil(SIDE).min(first + AT_ONCE);
            let hashed = |at: usize| {
                let strip = strip(at * SIDE..queries.min((at + 1) * SIDE));
                let hashes: Vec<u64> = strip.bits.iter().map(hash).collect();
                (strip, hashes)
            };
            for (strip, hashes) in numbers.into_par_iter().map(hashed).collect::<Vec<_>>() {
                list.elements += strip.elements();
                blocks += strip.blocks.len();
                expect_blocks(blocks)?;
                let hashed = strip.bits.iter().zip(hashes);
                let numbers: Vec<u32> = hashed.map(|(bits, hash)| distinct.number(bits, hash)).collect();
                let blocks = strip.blocks.iter().map(|seen| {
                    let mask = seen.bits.map_or(BlockMask::Full, |at| BlockMask::Partial(numbers[at]));
                    [seen.block, mask.to_word()]
                });
                list.strips.push(blocks.collect());
            }
        }
        list.bitmaps = distinct.bits.par_iter().map(bitmap).collect();
        Ok(list)
    }
}

/// Refuses more blocks than entries can count.
pub(super) fn expect_blocks(blocks: usize) -> Result<()> {
    Error::expect_at_most("the number of mask blocks", MAX_BLOCKS, blocks)
}

/// Strips that are listed before their blocks are numbered: so many have their bits in memory at once.
const AT_ONCE: usize = 256;

/// A number that differs for most bits.
fn hash(bits: &Bits) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    bits.iter().fold(0, |hash: u64, &keys| (hash.rotate_left(23) ^ keys).wrapping_mul(ODD))
}

/// The bits of partial blocks, and which have a hash. Of two with one hash, which chance hardly ever makes, only the first is found again.
#[derive(Default)]
struct Distinct {
    bits: Vec<Bits>,
    by_hash: HashMap<u64, u32>,
}

impl Distinct {
    /// The number of these bits, of which this is the hash.
    fn number(&mut self, bits: &Bits, hash: u64) -> u32 {
        let next = self.bits.len() as u32;
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

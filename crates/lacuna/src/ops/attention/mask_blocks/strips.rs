//! Which blocks of 64 keys strips of 64 queries see.
use std::collections::HashMap;
use std::ops::Range;

use lacuna_kernels::attention::{BLOCK, BlockMask};

use super::SIDE;
use super::bitmap::{Bitmap, bitmap};
use crate::ops::attention::mask::Ranges;
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
    /// Of partial blocks. No two are equal.
    pub(super) bitmaps: Vec<Bitmap>,
}

/// Queries of a strip that see the same.
struct Alike {
    queries: Range<usize>,
    /// Which of the strip's ranges.
    ranges: Range<usize>,
}

/// A block that is neither empty nor full, with the bits of each query.
struct Partial {
    block: u32,
    queries: [u64; SIDE],
}

/// What is used again from strip to strip.
struct Lister {
    /// By how many queries more a block is seen than the one before it, and is seen whole; zeros in between.
    steps: Vec<[i32; 2]>,
    ranges: Ranges,
    alike: Vec<Alike>,
    partial: Vec<Partial>,
    /// The bitmaps so far, and which they are.
    known: HashMap<Bitmap, u32>,
}

impl Strips {
    /// Lists the blocks of a mask of queries × keys. `row` adds the keys that a query sees to a list of ranges, and gives the first later
    /// query that may see others.
    pub(super) fn list(
        [queries, keys]: [usize; 2],
        row: impl Fn(usize, &mut Ranges) -> usize,
    ) -> Result<Self> {
        let mut lister = Lister {
            steps: vec![[0; 2]; keys.div_ceil(SIDE) + 1],
            ranges: vec![],
            alike: vec![],
            partial: vec![],
            known: HashMap::new(),
        };
        let mut list = Self { queries, keys, elements: 0, strips: vec![], bitmaps: vec![] };
        let mut blocks = 0;
        for first in (0..queries).step_by(SIDE) {
            let strip = first..queries.min(first + SIDE);
            list.elements += lister.see(strip.clone(), &row);
            let strip = lister.blocks(strip.len(), &mut list.bitmaps);
            blocks += strip.len();
            Error::expect_at_most("the number of mask blocks", MAX_BLOCKS, blocks)?;
            list.strips.push(strip);
        }
        Ok(list)
    }
}

impl Lister {
    /// Asks for what the queries of a strip see. Gives the number of elements.
    fn see(&mut self, strip: Range<usize>, row: impl Fn(usize, &mut Ranges) -> usize) -> u64 {
        self.ranges.clear();
        self.alike.clear();
        let (mut elements, mut query) = (0, strip.start);
        while query < strip.end {
            let first = self.ranges.len();
            let next = row(query, &mut self.ranges).min(strip.end);
            let queries = query - strip.start..next - strip.start;
            for range in &self.ranges[first..] {
                elements += (queries.len() * range.len()) as u64;
                let seen = [range.start / BLOCK, range.end.div_ceil(BLOCK)];
                let whole = [range.start.div_ceil(BLOCK), range.end / BLOCK];
                let by = queries.len() as i32;
                for (which, [start, end]) in [seen, whole].into_iter().enumerate() {
                    if start < end {
                        self.steps[start as usize][which] += by;
                        self.steps[end as usize][which] -= by;
                    }
                }
            }
            self.alike.push(Alike { queries, ranges: first..self.ranges.len() });
            query = next;
        }
        elements
    }

    /// The blocks of what was seen last, by so many queries. Bitmaps that are new are added to the list.
    fn blocks(&mut self, queries: usize, bitmaps: &mut Vec<Bitmap>) -> Vec<[u32; 2]> {
        const UNKNOWN: u32 = BlockMask::Empty.to_word();
        let first = self.ranges.iter().map(|range| range.start / BLOCK).min().unwrap_or(0);
        let end = self.ranges.iter().map(|range| range.end.div_ceil(BLOCK)).max().unwrap_or(0);
        let (mut strip, [mut seen, mut whole]) = (vec![], [0; 2]);
        self.partial.clear();
        for block in first..end {
            let step = std::mem::take(&mut self.steps[block as usize]);
            (seen, whole) = (seen + step[0], whole + step[1]);
            // Queries that are not there do not matter; keys that are not there are in no range.
            if whole as usize == queries {
                strip.push([block, BlockMask::Full.to_word()]);
            } else if seen > 0 {
                strip.push([block, UNKNOWN]);
                self.partial.push(Partial { block, queries: [0; SIDE] });
            }
        }
        self.steps[end as usize] = [0; 2];
        self.fill();
        let unknown = strip.iter_mut().filter(|[_, mask]| *mask == UNKNOWN);
        for ([_, mask], partial) in unknown.zip(&self.partial) {
            let bits = bitmap(&partial.queries);
            let number = *self.known.entry(bits).or_insert_with(|| {
                bitmaps.push(bits);
                bitmaps.len() as u32 - 1
            });
            *mask = BlockMask::Partial(number).to_word();
        }
        strip
    }

    /// Sets the bits of partial blocks.
    fn fill(&mut self) {
        for Alike { queries, ranges } in &self.alike {
            let mut at = 0;
            for range in &self.ranges[ranges.clone()] {
                let is_before = |partial: &Partial| partial.block < range.start / BLOCK;
                while self.partial.get(at).is_some_and(is_before) {
                    at += 1;
                }
                while let Some(partial) = self.partial.get_mut(at).filter(|it| it.block * BLOCK < range.end) {
                    let first = partial.block * BLOCK;
                    let (start, end) = (range.start.saturating_sub(first), (range.end - first).min(BLOCK));
                    let bits = u64::MAX >> (BLOCK - (end - start)) << start;
                    partial.queries[queries.clone()].iter_mut().for_each(|seen| *seen |= bits);
                    at += 1;
                }
                // The next range may begin in the block in which this one ends.
                at = at.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! What up to 64 neighbouring queries see, in blocks of 64 keys.
use std::ops::Range;

use lacuna_kernels::attention::BLOCK;

use super::ranges::Ranges;

/// Queries of a strip, and keys of a block.
pub(in super::super) const SIDE: usize = BLOCK as usize;

/// For each query of a strip the keys of a block that it sees, a bit each.
pub(in super::super) type Bits = [u64; SIDE];

/// What a strip sees.
pub(in super::super) struct Strip {
    /// How many queries it has.
    pub(in super::super) queries: usize,
    /// The blocks of keys that are not empty, ascending.
    pub(in super::super) blocks: Vec<Seen>,
    /// Of partial blocks. Queries that are not there have no bits.
    pub(in super::super) bits: Vec<Bits>,
}

/// What is seen of a block of keys.
pub(in super::super) struct Seen {
    pub(in super::super) block: u32,
    /// Where its bits are; none where all queries see all keys.
    pub(in super::super) bits: Option<usize>,
}

impl Strip {
    pub(super) fn new(queries: usize) -> Self {
        Self { queries, blocks: vec![], bits: vec![] }
    }

    /// Of these queries. `row` adds the keys that a query sees to a list of ranges, and gives the first later query that may see others.
    pub(super) fn of_ranges(queries: Range<usize>, row: impl Fn(usize, &mut Ranges) -> usize) -> Self {
        let (mut ranges, mut alike) = (vec![], vec![]);
        let mut query = queries.start;
        while query < queries.end {
            let first = ranges.len();
            let next = row(query, &mut ranges).min(queries.end);
            alike.push((query - queries.start..next - queries.start, first..ranges.len()));
            query = next;
        }
        let first = ranges.iter().map(|range| range.start / BLOCK).min().unwrap_or(0);
        let end = ranges.iter().map(|range| range.end.div_ceil(BLOCK)).max().unwrap_or(0);
        // By how many queries more a block is seen than the one before it, and is seen whole.
        let mut steps = vec![[0; 2]; (end - first) as usize + 1];
        for (queries, of_queries) in &alike {
            for range in &ranges[of_queries.clone()] {
                let seen = range.start / BLOCK..range.end.div_ceil(BLOCK);
                let whole = range.start.div_ceil(BLOCK)..range.end / BLOCK;
                for (which, blocks) in [seen, whole].into_iter().enumerate() {
                    if !blocks.is_empty() {
                        steps[(blocks.start - first) as usize][which] += queries.len() as i32;
                        steps[(blocks.end - first) as usize][which] -= queries.len() as i32;
                    }
                }
            }
        }
        let (mut strip, [mut seen, mut whole]) = (Self::new(queries.len()), [0; 2]);
        for (block, step) in (first..end).zip(steps) {
            (seen, whole) = (seen + step[0], whole + step[1]);
            if whole as usize == strip.queries {
                strip.blocks.push(Seen { block, bits: None });
            } else if seen > 0 {
                strip.push_partial(block, [0; SIDE]);
            }
        }
        strip.set_bits(&alike, &ranges);
        strip
    }

    /// Sets the bits of partial blocks. Some queries each see some of the ranges.
    fn set_bits(&mut self, alike: &[(Range<usize>, Range<usize>)], ranges: &Ranges) {
        let partial: Vec<u32> =
            self.blocks.iter().filter(|seen| seen.bits.is_some()).map(|seen| seen.block).collect();
        for (queries, of_queries) in alike {
            let mut at = 0;
            for range in &ranges[of_queries.clone()] {
                while partial.get(at).is_some_and(|&block| block < range.start / BLOCK) {
                    at += 1;
                }
                while let Some(first) = partial.get(at).map(|block| block * BLOCK)
                    && first < range.end
                {
                    let (start, end) = (range.start.saturating_sub(first), (range.end - first).min(BLOCK));
                    let bits = u64::MAX >> (BLOCK - (end - start)) << start;
                    self.bits[at][queries.clone()].iter_mut().for_each(|seen| *seen |= bits);
                    at += 1;
                }
                // The next range may begin in the block in which this one ends.
                at = at.saturating_sub(1);
            }
        }
    }

    /// Of queries that see these keys, which ascend.
    pub(in super::super) fn of_columns(rows: &[&[u32]]) -> Self {
        let mut strip = Self::new(rows.len());
        let block = |key: &u32| key / BLOCK;
        let Some(first) = rows.iter().filter_map(|row| row.first()).map(block).min() else { return strip };
        let last = rows.iter().filter_map(|row| row.last()).map(block).max().unwrap_or(first);
        // Row by row, so that a row's bits stay in the nearest cache.
        let blocks = (last - first) as usize + 1;
        let mut bits = vec![0; blocks * rows.len()];
        for (row, bits) in rows.iter().zip(bits.chunks_exact_mut(blocks)) {
            for &key in *row {
                bits[(key / BLOCK - first) as usize] |= 1 << (key % BLOCK);
            }
        }
        for (at, block) in (first..=last).enumerate() {
            let mut of_block = [0; SIDE];
            for (seen, bits) in of_block.iter_mut().zip(bits.chunks_exact(blocks)) {
                *seen = bits[at];
            }
            strip.push(block, of_block);
        }
        strip
    }

    /// What both see.
    pub(super) fn and(&self, other: &Self) -> Self {
        let (mut both, mut others) = (Self::new(self.queries), other.blocks.iter().peekable());
        for seen in &self.blocks {
            while others.next_if(|it| it.block < seen.block).is_some() {}
            let Some(it) = others.next_if(|it| it.block == seen.block) else { continue };
            match (seen.bits, it.bits) {
                (Some(a), Some(b)) => {
                    let (a, b) = (&self.bits[a], &other.bits[b]);
                    both.push(seen.block, std::array::from_fn(|query| a[query] & b[query]));
                }
                (Some(a), None) => both.push_partial(seen.block, self.bits[a]),
                (None, Some(b)) => both.push_partial(seen.block, other.bits[b]),
                (None, None) => both.blocks.push(Seen { block: seen.block, bits: None }),
            }
        }
        both
    }

    /// What either sees, or both do.
    pub(super) fn or(&self, other: &Self) -> Self {
        let mut either = Self::new(self.queries);
        let [mut a, mut b] = [self, other].map(|strip| strip.blocks.iter().peekable());
        loop {
            let next = [a.peek(), b.peek()].into_iter().flatten().map(|seen| seen.block).min();
            let Some(block) = next else { return either };
            let [a, b] = [&mut a, &mut b].map(|strip| strip.next_if(|seen| seen.block == block));
            let is_full = [a, b].into_iter().flatten().any(|seen| seen.bits.is_none());
            if is_full {
                either.blocks.push(Seen { block, bits: None });
                continue;
            }
            let bits = [(self, a), (other, b)]
                .map(|(strip, seen)| seen.and_then(|seen| seen.bits).map_or([0; SIDE], |at| strip.bits[at]));
            either.push(block, std::array::from_fn(|query| bits[0][query] | bits[1][query]));
        }
    }

    /// Adds a block as what it is: empty, full or partial.
    fn push(&mut self, block: u32, bits: Bits) {
        if bits[..self.queries].iter().all(|&keys| keys == u64::MAX) {
            self.blocks.push(Seen { block, bits: None });
        } else if bits.iter().any(|&keys| keys != 0) {
            self.push_partial(block, bits);
        }
    }

    fn push_partial(&mut self, block: u32, bits: Bits) {
        self.blocks.push(Seen { block, bits: Some(self.bits.len()) });
        self.bits.push(bits);
    }

    /// Pairs of a query and a key that it sees.
    pub(in super::super) fn elements(&self) -> u64 {
        let full = self.blocks.len() - self.bits.len();
        let ones: u64 = self.bits.as_flattened().iter().map(|keys| u64::from(keys.count_ones())).sum();
        (full * self.queries * SIDE) as u64 + ones
    }

    /// Adds the keys that a query of it sees to a list.
    pub(super) fn push_keys(&self, query: usize, keys: &mut Vec<u32>) {
        for seen in &self.blocks {
            let first = seen.block * BLOCK;
            let mut bits = seen.bits.map_or(u64::MAX, |at| self.bits[at][query]);
            if bits == u64::MAX {
                keys.extend(first..=first + (BLOCK - 1));
                continue;
            }
            while bits != 0 {
                keys.push(first + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
}

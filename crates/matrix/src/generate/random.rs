//! From random bits to indices and reals, in a way that no other crate can change.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// The generator of this crate.
pub(super) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(super) fn generator(&mut self) -> &mut impl Rng {
        &mut self.0
    }

    /// A real in [0, 1), a multiple of 2^-53.
    pub(super) fn real(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * 2f64.powi(-53)
    }

    /// An `f32` in [-1, 1), a multiple of 2^-23.
    pub(super) fn value(&mut self) -> f32 {
        (self.0.next_u64() >> 40) as f32 * 2f32.powi(-23) - 1.0
    }

    /// An integer below `end`, which is not 0, each as likely as any other.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // The high half of a product is spread evenly but for a few low halves, which are drawn again (Lemire,
        // "Fast random integer generation in an interval", 2019).
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(end);
            let low = product as u64;
            if low >= end || low >= end.wrapping_neg() % end {
                return (product >> 64) as u64;
            }
        }
    }

    /// `count` different integers below `end`, ascending; each such set as likely as any other.
    ///
    /// `count` must not be above `end`. Takes time and memory in proportion to `count`, but for logarithms.
    pub(super) fn distinct_below(&mut self, end: u64, count: usize) -> Vec<u64> {
        if count as u64 > end / 2 {
            let left_out = self.distinct_below(end, (end - count as u64) as usize);
            let mut left_out = left_out.into_iter().peekable();
            return (0..end).filter(|&candidate| left_out.next_if_eq(&candidate).is_none()).collect();
        }
        // Either way the set is that of the first `count` different draws, so no set is favoured.
        if end <= count as u64 * u64::from(u64::BITS) {
            self.mark(end, count)
        } else {
            self.draw_and_sort(end, count)
        }
    }

    /// Marks what is drawn in a bit for each candidate: fast where many of them are drawn.
    fn mark(&mut self, end: u64, count: usize) -> Vec<u64> {
        let mut words = vec![0u64; end.div_ceil(64) as usize];
        let mut missing = count;
        while missing > 0 {
            let drawn = self.below(end);
            let (word, bit) = (&mut words[(drawn / 64) as usize], 1 << (drawn % 64));
            missing -= usize::from(*word & bit == 0);
            *word |= bit;
        }
        let mut marked = Vec::with_capacity(count);
        for (index, mut word) in words.into_iter().enumerate() {
            while word != 0 {
                marked.push(index as u64 * 64 + u64::from(word.trailing_zeros()));
                word &= word - 1;
            }
        }
        marked
    }

    /// Draws, drops what was drawn before, draws the rest, and so on: small where few candidates are drawn.
    fn draw_and_sort(&mut self, end: u64, count: usize) -> Vec<u64> {
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let missing = count - drawn.len();
            drawn.extend((0..missing).map(|_| self.below(end)));
            // Takes linear time from the second round on, as all but the new end is sorted.
            drawn.sort();
            drawn.dedup();
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which way is taken is a matter of speed only.
    #[test]
    fn both_ways_of_drawing_give_the_same_set() {
        for (end, count) in [(1, 0), (1, 1), (64, 32), (65, 30), (1000, 10), (1000, 499)] {
            let marked = Random::new(3).mark(end, count);
            assert_eq!(marked, Random::new(3).draw_and_sort(end, count));
            assert_eq!(marked.len(), count);
        }
    }

    #[test]
    fn integers_are_spread_evenly() {
        let mut random = Random::new(4);
        let mut counts = [0; 7];
        (0..70_000).for_each(|_| counts[random.below(7) as usize] += 1);
        // 10,000 each, deviation 93.
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }
}

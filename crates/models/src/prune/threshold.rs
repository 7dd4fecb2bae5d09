//! Which magnitudes are pruned, by counting: no sort, and no memory but the counts.

/// The bits of a magnitude: those of a number but its sign. They order as magnitudes do, and NaN above infinity.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// Magnitudes are counted by their upper 16 bits, and then by these lower ones.
const LOW_BITS: u32 = 15;

/// What is pruned: magnitudes below `bits`, and of those that are equal to it all but the first `stay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Threshold {
    bits: u32,
    stay: usize,
}

fn magnitude(value: f32) -> u32 {
    value.to_bits() & MAGNITUDE
}

impl Threshold {
    /// The threshold below which there are `zeros` elements of these. None where nothing is pruned.
    ///
    /// # Panics
    /// If there are fewer elements.
    pub(super) fn of<'v>(parts: impl Iterator<Item = &'v [f32]> + Clone, zeros: usize) -> Option<Self> {
        if zeros == 0 {
            return None;
        }
        let values = || parts.clone().flatten().map(|&value| magnitude(value));
        let mut counts = vec![0_usize; 1 << 16];
        values().for_each(|bits| counts[(bits >> LOW_BITS) as usize] += 1);
        let (high, before) = bin_of(&counts, zeros);
        let mut counts = vec![0_usize; 1 << LOW_BITS];
        let low = (1 << LOW_BITS) - 1;
        values().filter(|bits| bits >> LOW_BITS == high).for_each(|bits| counts[(bits & low) as usize] += 1);
        let (bin, smaller) = bin_of(&counts, zeros - before);
        let pruned = zeros - before - smaller;
        Some(Self { bits: high << LOW_BITS | bin, stay: counts[bin as usize] - pruned })
    }

    /// Prunes values. Called part by part, in the order in which they were counted.
    pub(super) fn prune(&mut self, values: &mut [f32]) {
        for value in values {
            let bits = magnitude(*value);
            if bits == self.bits && self.stay > 0 {
                self.stay -= 1;
            } else if bits <= self.bits {
                *value = 0.0;
            }
        }
    }
}

/// The bin in which the element number `rank` is, counted from 1, and the elements in bins before it.
fn bin_of(counts: &[usize], rank: usize) -> (u32, usize) {
    let mut before = 0;
    for (bin, &count) in (0..).zip(counts) {
        if before + count >= rank {
            return (bin, before);
        }
        before += count;
    }
    panic!("expected {rank} elements, got {before}");
}

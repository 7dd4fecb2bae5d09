//! Offsets in one piece of memory.

/// Elements of which offsets are multiples: of `f32`, 256 bytes, as whole buffers have them.
pub const ALIGNMENT: usize = 64;

/// A piece of memory that is needed for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Its elements.
    pub len: usize,
    /// The step that writes it first.
    pub first: usize,
    /// The last step that reads or writes it.
    pub last: usize,
}

/// Where pieces lie: those that are needed at the same time do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arena {
    offsets: Vec<usize>,
    len: usize,
    sum: usize,
}

impl Lifetime {
    fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl Arena {
    /// Places pieces from the largest to the smallest, each into the lowest gap that it fits into ("greedy by size": Pisarchyk and Lee,
    /// *Efficient Memory Management for Deep Neural Net Inference*, 2020, section 5.2, with the first gap in place of the smallest).
    pub fn plan(pieces: &[Lifetime]) -> Self {
        let aligned = |len: usize| len.div_ceil(ALIGNMENT) * ALIGNMENT;
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        order.sort_by_key(|&piece| std::cmp::Reverse(pieces[piece].len));
        let mut offsets = vec![0; pieces.len()];
        // Piece numbers by offset.
        let mut placed: Vec<usize> = Vec::with_capacity(pieces.len());
        for piece in order {
            let mut offset = 0;
            for &other in placed.iter().filter(|&&other| pieces[other].overlaps(&pieces[piece])) {
                if offset + pieces[piece].len <= offsets[other] {
                    break;
                }
                offset = offset.max(offsets[other] + aligned(pieces[other].len));
            }
            offsets[piece] = offset;
            let at = placed.partition_point(|&other| offsets[other] <= offset);
            placed.insert(at, piece);
        }
        let ends = offsets.iter().zip(pieces).map(|(offset, piece)| offset + piece.len);
        let (len, sum) = (ends.max().unwrap_or(0), pieces.iter().map(|piece| piece.len).sum());
        Self { offsets, len, sum }
    }

    /// Where each piece begins.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Elements of the memory: the peak.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Elements of all pieces, each with memory of its own.
    pub fn sum(&self) -> usize {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_chain_needs_two_neighbours_at_a_time() {
        let pieces: Vec<Lifetime> =
            (0..10).map(|step| Lifetime { len: 640, first: step, last: step + 1 }).collect();
        let arena = Arena::plan(&pieces);
        assert_eq!((arena.len(), arena.sum()), (1280, 6400));
        assert!(Arena::plan(&[]).is_empty());
    }

    #[test]
    fn a_gap_between_two_is_used() {
        let piece = |len, first, last| Lifetime { len, first, last };
        let arena = Arena::plan(&[piece(200, 0, 9), piece(130, 0, 3), piece(128, 0, 9), piece(100, 4, 9)]);
        assert_eq!(arena.offsets(), [0, 256, 448, 256]);
        assert_eq!(arena.len(), 576);
    }

    proptest! {
        #[test]
        fn what_is_needed_at_one_time_does_not_overlap(
            pieces in prop::collection::vec((0_usize..500, 0_usize..30, 0_usize..6), 0..40)
        ) {
            let lifetime = |(len, first, time)| Lifetime { len, first, last: first + time };
            let pieces: Vec<Lifetime> = pieces.into_iter().map(lifetime).collect();
            let arena = Arena::plan(&pieces);
            let live = |step| pieces.iter().filter(move |p| p.first <= step && step <= p.last);
            let least = (0..40).map(|step| live(step).map(|p| p.len).sum::<usize>()).max().unwrap();
            prop_assert!(arena.len() >= least);
            for (a, &from) in pieces.iter().zip(arena.offsets()) {
                prop_assert_eq!(from % ALIGNMENT, 0);
                prop_assert!(from + a.len <= arena.len());
                for (b, &other) in pieces.iter().zip(arena.offsets()) {
                    let is_apart = from + a.len <= other || other + b.len <= from;
                    prop_assert!(std::ptr::eq(a, b) || !a.overlaps(b) || is_apart);
                }
            }
        }
    }
}

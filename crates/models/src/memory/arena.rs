//! Offsets in one piece of memory.
use std::cmp::Reverse;

/// Elements of which offsets are multiples: of `f32`, 256 bytes, as whole buffers have them; of 16-bit values half of it.
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
    least: usize,
    sum: usize,
}

impl Lifetime {
    fn is_needed(&self, step: usize) -> bool {
        self.first <= step && step <= self.last
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl Arena {
    /// Places pieces one after another, each into the lowest gap that it fits into among those of its time. Two orders are tried, from the largest to
    /// the smallest (Pisarchyk and Lee, *Efficient Memory Management for Deep Neural Net Inference*, 2020: "greedy by size"), and by size times
    /// time, which saves DenseNet a twentieth; the lower peak is taken.
    pub fn plan(pieces: &[Lifetime]) -> Self {
        let time = |piece: &Lifetime| piece.last.saturating_sub(piece.first).saturating_add(1);
        let by_size = place(pieces, |piece| piece.len);
        let by_area = place(pieces, |piece| piece.len.saturating_mul(time(piece)));
        let end = |offsets: &Vec<usize>| {
            let ends = offsets.iter().zip(pieces).map(|(offset, piece)| offset + piece.len);
            ends.max().unwrap_or(0)
        };
        let offsets = if end(&by_area) < end(&by_size) { by_area } else { by_size };
        // What is needed at one time is most where a piece begins.
        let needed =
            |step| pieces.iter().filter(move |piece| piece.is_needed(step)).map(|piece| piece.len).sum();
        let least = pieces.iter().map(|piece| needed(piece.first)).max().unwrap_or(0);
        Self { len: end(&offsets), offsets, least, sum: pieces.iter().map(|piece| piece.len).sum() }
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

    /// Elements of the pieces of that time at which they are most: no plan needs fewer.
    pub fn least(&self) -> usize {
        self.least
    }

    /// Elements of all pieces, each with memory of its own.
    pub fn sum(&self) -> usize {
        self.sum
    }
}

/// The offset of each piece, where those with the greatest of these numbers are placed first.
fn place(pieces: &[Lifetime], number: impl Fn(&Lifetime) -> usize) -> Vec<usize> {
    let aligned = |len: usize| len.div_ceil(ALIGNMENT) * ALIGNMENT;
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|&piece| Reverse(number(&pieces[piece])));
    let mut offsets = vec![0; pieces.len()];
    // By offset.
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
    offsets
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
    fn those_of_other_times_share_a_place() {
        let piece = |len, first, last| Lifetime { len, first, last };
        let arena = Arena::plan(&[piece(200, 0, 9), piece(130, 0, 3), piece(128, 0, 9), piece(100, 4, 9)]);
        assert_eq!(arena.offsets(), [0, 384, 256, 384]);
        assert_eq!(arena.len(), 514);
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
            prop_assert_eq!(arena.least(), least);
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

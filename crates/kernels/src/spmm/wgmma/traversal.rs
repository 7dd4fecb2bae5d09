//! The order in which the groups of a block go through its steps along K.
use core::marker::PhantomData;

use super::cluster::Cluster;
use crate::spmm::mma::Stages;

/// Blocks begin at so many different steps, at most. The more, the farther apart are the parts of B that blocks read at once.
const TURNS: u32 = 16;

/// The steps that one group takes: of the block's, which are gone round once, every `GROUPS`-th.
///
/// Blocks of neighbouring rows of tiles begin at different steps. If all began at the first, all would read the same few lines of B
/// at the same time: of 8 columns, a step of 256 rows is 4 KiB.
#[derive(Clone, Copy)]
pub(super) struct Traversal<S> {
    /// The step it is at, or where it would go on if there are no more.
    at: u32,
    /// The one after the block's last, and how many there are.
    end: u32,
    steps: u32,
    /// The group's steps from this one on.
    left: u32,
    stages: PhantomData<S>,
}

impl<S: Stages> Traversal<S> {
    /// The way of group `group` in a block of the tiles in row `tile`.
    #[inline(always)]
    pub(super) fn new<const BLOCKS: u32>(cluster: &Cluster<BLOCKS>, tile: u32, group: u32) -> Self {
        let Cluster { first, steps, .. } = *cluster;
        let turns = if steps < TURNS { steps } else { TURNS };
        let turn = tile.checked_rem(turns).unwrap_or(0);
        Self { at: first + turn, end: first + steps, steps, left: steps, stages: PhantomData }.after(group)
    }

    /// The step it is at; none once it has gone round.
    #[inline(always)]
    pub(super) fn step(&self) -> Option<u32> {
        (self.left > 0).then_some(self.at)
    }

    /// The way from the group's next step on.
    #[inline(always)]
    pub(super) fn next(&self) -> Self {
        self.after(S::GROUPS)
    }

    /// The way from the `count`-th step after this on.
    #[inline(always)]
    fn after(&self, count: u32) -> Self {
        let at = self.at + count;
        let at = if at >= self.end { at - self.steps } else { at };
        Self { at, left: self.left.saturating_sub(count), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spmm::mma::StagesOf;

    type ThreeGroups = StagesOf<2, 3, 4, 3>;

    #[test]
    fn groups_take_each_step_once() {
        for (steps, tile) in (0..40).flat_map(|steps| (0..20).map(move |tile| (steps, tile))) {
            for block in 0..2 {
                let cluster = Cluster::<2>::new(block, steps);
                let mut taken = [0; 40];
                for group in 0..3 {
                    let mut traversal = Traversal::<ThreeGroups>::new(&cluster, tile, group);
                    while let Some(step) = traversal.step() {
                        taken[step as usize] += 1;
                        traversal = traversal.next();
                    }
                }
                let own = cluster.first..cluster.first + cluster.steps;
                for (step, times) in (0..).zip(taken) {
                    assert_eq!(times, u32::from(own.contains(&step)), "step {step} of {steps}, tile {tile}");
                }
            }
        }
    }

    #[test]
    fn neighbours_begin_apart() {
        let cluster = Cluster::<1>::new(0, 8);
        let first = |tile| Traversal::<ThreeGroups>::new(&cluster, tile, 0).step();
        assert_eq!([0, 1, 7, 8].map(first), [0, 1, 7, 0].map(Some));
    }
}

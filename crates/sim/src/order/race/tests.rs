//! What races with what, on one granule.
use super::*;
use crate::order::clock::Clocks;

/// A block and one granule.
struct Bench {
    clocks: Clocks,
    /// What warps have left at a named barrier.
    left: Known,
    races: Races,
    granule: Granule,
}

impl Bench {
    /// Of two warps.
    fn new() -> Self {
        Self::of(64)
    }
    fn of(threads: usize) -> Self {
        let mut clocks = Clocks::default();
        clocks.start(threads);
        Self { clocks, left: Known::default(), races: Races::default(), granule: Granule::default() }
    }
    /// Warps come to a named barrier: some arrive only, some wait.
    fn meet(&mut self, arriving: &[usize], waiting: &[usize]) {
        self.left = Known::default();
        for &warp in arriving.iter().chain(waiting) {
            self.clocks.release(warp, u32::MAX, &mut self.left);
        }
        for &warp in waiting {
            self.clocks.acquire(warp, u32::MAX, &self.left);
        }
    }
    fn part(&mut self, thread: u32, access: Access, mask: u8) -> bool {
        let now = self.clocks.now(thread);
        let who = self.clocks.who(&now, thread);
        self.races.visit(&mut self.granule, 0, mask, access, &who).is_some()
    }
    fn races(&mut self, thread: u32, access: Access) -> bool {
        self.part(thread, access, 0xf)
    }
}

#[test]
fn a_warp_barrier_orders_its_own_lanes_only() {
    let mut bench = Bench::new();
    assert!(!bench.races(0, Access::Write));
    bench.clocks.warp_barrier(0, 0b0011);
    assert!(!bench.races(1, Access::Read));
    assert!(bench.races(2, Access::Read));
    assert!(bench.races(32, Access::Read));
}

#[test]
fn order_is_passed_on() {
    let mut bench = Bench::new();
    bench.races(0, Access::Write);
    bench.clocks.warp_barrier(0, 0b0011);
    bench.clocks.warp_barrier(0, 0b0110);
    assert!(!bench.races(2, Access::Write));
}

#[test]
fn a_block_barrier_orders_all() {
    let mut bench = Bench::new();
    bench.races(0, Access::Write);
    bench.clocks.block_barrier();
    assert!(!bench.races(40, Access::Write));
}

#[test]
fn readers_do_not_race_and_a_writer_races_with_any_of_them() {
    let mut bench = Bench::new();
    assert!(!bench.races(3, Access::Read));
    assert!(!bench.races(4, Access::Read));
    bench.clocks.warp_barrier(0, 0b1001);
    assert!(!bench.races(0, Access::Read));
    assert!(bench.races(3, Access::Write), "lane 4 was not at the barrier");
}

#[test]
fn readers_with_different_clocks_are_all_remembered() {
    let mut bench = Bench::new();
    bench.clocks.warp_barrier(0, 0b0011);
    bench.races(0, Access::Read);
    bench.clocks.warp_barrier(0, 0b1100);
    bench.races(2, Access::Read);
    bench.clocks.warp_barrier(0, 0b1111);
    assert!(!bench.races(3, Access::Write));
}

#[test]
fn atomics_race_with_plain_accesses_only() {
    let mut bench = Bench::new();
    assert!(!bench.races(0, Access::Atomic));
    assert!(!bench.races(40, Access::Atomic));
    assert!(bench.races(1, Access::Read));
    bench.clocks.block_barrier();
    assert!(!bench.races(1, Access::Write));
    assert!(bench.races(2, Access::Atomic));
}

#[test]
fn a_writer_s_own_atomic_does_not_hide_its_write() {
    let mut bench = Bench::new();
    assert!(!bench.races(0, Access::Write));
    assert!(!bench.races(0, Access::Atomic));
    assert!(bench.races(1, Access::Atomic));
    assert!(bench.races(40, Access::Atomic));
}

#[test]
fn an_atomic_does_not_hide_earlier_readers() {
    let mut bench = Bench::new();
    assert!(!bench.races(0, Access::Read));
    assert!(!bench.races(0, Access::Atomic));
    assert!(bench.races(1, Access::Atomic));
}

#[test]
fn atomics_with_different_clocks_are_all_remembered() {
    let mut bench = Bench::new();
    bench.races(0, Access::Atomic);
    bench.clocks.warp_barrier(0, 0b1100);
    bench.races(2, Access::Atomic);
    bench.clocks.warp_barrier(0, 0b0110);
    assert!(bench.races(1, Access::Write), "lane 0 was at neither barrier");
}

#[test]
fn a_named_barrier_orders_what_comes_before_it_for_those_that_wait() {
    let mut bench = Bench::of(96);
    bench.races(0, Access::Write);
    bench.meet(&[0], &[1]);
    assert!(!bench.races(40, Access::Read));
    assert!(bench.races(70, Access::Read), "warp 2 was not there");
    assert!(!bench.races(0, Access::Read), "its own");
    assert!(bench.races(0, Access::Write), "who arrives comes after nothing");
}

#[test]
fn what_comes_after_an_arrival_is_not_ordered() {
    let mut bench = Bench::of(64);
    bench.meet(&[0], &[1]);
    bench.races(0, Access::Write);
    assert!(bench.races(40, Access::Read));
}

#[test]
fn named_barriers_pass_order_on_and_order_lanes() {
    let mut bench = Bench::of(96);
    bench.races(5, Access::Write);
    bench.meet(&[0], &[1]);
    bench.meet(&[1], &[2]);
    assert!(!bench.races(64, Access::Write));
    bench.meet(&[], &[2]);
    assert!(!bench.races(65, Access::Write), "another lane of a warp that has waited");
}

#[test]
fn readers_of_several_warps_are_all_remembered() {
    let readers = [3, 40, 41, 70];
    for missing in 0..3 {
        let mut bench = Bench::of(128);
        // Before the reads, so that they are told apart from those before any named barrier.
        bench.meet(&[], &[3]);
        readers.iter().for_each(|&thread| assert!(!bench.races(thread, Access::Read)));
        let arriving: Vec<_> = (0..3).filter(|&warp| warp != missing).collect();
        bench.meet(&arriving, &[3]);
        assert!(bench.races(100, Access::Write), "warp {missing} was not there");
    }
    let mut bench = Bench::of(128);
    bench.meet(&[], &[3]);
    readers.iter().for_each(|&thread| assert!(!bench.races(thread, Access::Read)));
    bench.meet(&[0, 1, 2], &[3]);
    assert!(!bench.races(100, Access::Write));
}

#[test]
fn readers_before_the_first_named_barrier_are_remembered() {
    for [arriving, later] in [[0, 1], [1, 0]] {
        let mut bench = Bench::of(96);
        bench.races(0, Access::Read);
        bench.races(40, Access::Read);
        bench.meet(&[arriving], &[2]);
        // The other reads on, so that all clocks are kept.
        bench.races(32 * later as u32 + 9, Access::Read);
        assert!(bench.races(70, Access::Write), "warp {later} was not there");
    }
    let mut bench = Bench::of(96);
    bench.races(0, Access::Read);
    bench.races(40, Access::Read);
    bench.meet(&[0, 1], &[2]);
    assert!(!bench.races(70, Access::Write));
}

#[test]
fn lanes_of_ones_own_warp_stay_apart_among_readers_of_others() {
    let mut bench = Bench::of(64);
    bench.races(40, Access::Read);
    bench.meet(&[1], &[0]);
    bench.races(7, Access::Read);
    bench.races(3, Access::Read);
    bench.clocks.warp_barrier(0, 0b0000_1001);
    assert!(bench.races(0, Access::Write), "lane 7 was not at the warp's barrier");
    let mut bench = Bench::of(64);
    bench.races(40, Access::Read);
    bench.meet(&[1], &[0]);
    bench.races(7, Access::Read);
    bench.races(0, Access::Read);
    bench.clocks.warp_barrier(0, 0b1000_0001);
    assert!(!bench.races(0, Access::Write));
}

#[test]
fn an_epoch_forgets_what_named_barriers_told() {
    let mut bench = Bench::of(64);
    bench.meet(&[0], &[1]);
    bench.clocks.block_barrier();
    bench.races(0, Access::Read);
    bench.races(40, Access::Read);
    assert!(bench.races(41, Access::Write));
}

#[test]
fn bytes_keep_the_clocks_of_several_warps() {
    let mut bench = Bench::of(96);
    bench.meet(&[], &[2]);
    bench.races(0, Access::Read);
    bench.races(40, Access::Read);
    bench.meet(&[0], &[2]);
    assert!(bench.part(70, Access::Write, 0b1100), "warp 1 was not there");
}

#[test]
fn bytes_of_a_granule_are_apart() {
    let mut bench = Bench::new();
    assert!(!bench.part(0, Access::Write, 0b0011));
    assert!(!bench.part(1, Access::Write, 0b1100));
    assert!(bench.part(2, Access::Read, 0b1000));
    assert!(bench.races(0, Access::Read), "half of it is lane 1's");
}

//! Block barriers and deadlocks.
use lacuna_gpu::FULL_WARP;
use lacuna_sim::FindingKind::{Deadlock, DivergentBarrier};

use crate::support::{Bench, blamed, kernel, line, other};

const FILE: &str = include_str!("barriers.rs");

kernel!(TwoLines, 64, 0, |gpu, args| {
    if args.fault && gpu.thread_idx_x() < 32 {
        gpu.sync_threads(); // blame: first barrier
    } else {
        gpu.sync_threads(); // blame: second barrier
    }
});

#[test]
fn barriers_at_two_lines() {
    let finding = Bench::new().fault::<TwoLines>(1);
    assert_eq!((finding.kind, blamed(&finding)), (DivergentBarrier, line(FILE, "second barrier")));
    assert_eq!((other(&finding), finding.thread), (line(FILE, "first barrier"), Some(32)));
    assert!(finding.detail.contains("threads 0–31 wait at sync_threads"), "{finding}");
}

kernel!(BarrierAgainstShuffle, 32, 0, |gpu, args| {
    if args.fault && gpu.lane_id() == 9 {
        gpu.sync_threads();
    }
    gpu.warp_shuffle_xor(FULL_WARP, 1u32, 1, 32); // blame: waits for lane 9
});

#[test]
fn a_lane_at_the_block_barrier_while_its_warp_shuffles() {
    let finding = Bench::new().fault::<BarrierAgainstShuffle>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Deadlock, line(FILE, "waits for lane 9")));
    for part in ["threads 0–8 wait at warp_shuffle_xor", "threads 9–9 wait at sync_threads", "threads 10–31"]
    {
        assert!(finding.detail.contains(part), "{finding}");
    }
}

kernel!(ExitedThreadsDoNotCount, 64, 0, |gpu, args| {
    let thread = gpu.thread_idx_x();
    if thread.is_multiple_of(3) {
        return;
    }
    let count = gpu.sync_threads_count(thread < 10);
    gpu.store(args.output.add(thread as usize), [count]);
});

#[test]
fn a_barrier_does_not_wait_for_threads_that_have_exited() {
    let bench = Bench::zeroed();
    bench.run::<ExitedThreadsDoNotCount>(1);
    assert_eq!(bench.output()[..5], [0, 6, 6, 0, 6]);
}

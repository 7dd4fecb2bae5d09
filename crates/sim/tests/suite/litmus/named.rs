//! Named barriers.
use lacuna_gpu::SharedPtr;
use lacuna_sim::FindingKind::{
    AbsentLane, BadArgument, Deadlock, MismatchedBarrier, MismatchedWarpOperation, Race, UnfinishedBarrier,
};

use crate::support::{Bench, blamed, kernel, line, other};

const FILE: &str = include_str!("named.rs");

fn word(index: u32) -> SharedPtr<u32> {
    SharedPtr::from_offset(4 * index)
}

kernel!(BadId, 32, 0, |gpu, args| {
    gpu.barrier_sync(if args.fault { 16 } else { 15 }, 32); // blame: id
});

#[test]
fn a_barrier_beyond_the_last() {
    let finding = Bench::new().fault::<BadId>(1);
    assert_eq!((finding.kind, blamed(&finding), finding.count), (BadArgument, line(FILE, "id"), 32));
}

kernel!(IdOfTheBlock, 32, 0, |gpu, args| {
    gpu.barrier_arrive(if args.fault { 0 } else { 1 }, 32); // blame: zero
});

#[test]
fn the_block_s_own_barrier_by_its_number() {
    let finding = Bench::new().fault::<IdOfTheBlock>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "zero")));
}

kernel!(NoWarps, 32, 0, |gpu, args| {
    gpu.barrier_sync(1, if args.fault { 0 } else { 32 }); // blame: nobody
});
kernel!(PartOfAWarp, 64, 0, |gpu, args| {
    gpu.barrier_sync(1, if args.fault { 48 } else { 64 }); // blame: 48 threads
});
kernel!(MoreThanTheBlock, 64, 0, |gpu, args| {
    gpu.barrier_sync(1, if args.fault { 96 } else { 64 }); // blame: 96 threads
});

#[test]
fn numbers_of_threads_that_cannot_be() {
    let nobody = Bench::new().fault::<NoWarps>(1);
    assert_eq!((nobody.kind, blamed(&nobody)), (BadArgument, line(FILE, "nobody")));
    let part = Bench::new().fault::<PartOfAWarp>(1);
    assert_eq!((part.kind, blamed(&part)), (BadArgument, line(FILE, "48 threads")));
    let more = Bench::new().fault::<MoreThanTheBlock>(1);
    assert_eq!((more.kind, blamed(&more)), (BadArgument, line(FILE, "96 threads")));
}

kernel!(TwoCounts, 96, 0, |gpu, args| {
    if gpu.thread_idx_x() < 32 {
        gpu.barrier_arrive(3, if args.fault { 64 } else { 96 }); // blame: 64
    } else {
        gpu.barrier_sync(3, 96); // blame: 96
    }
});

#[test]
fn warps_that_ask_for_different_numbers() {
    let finding = Bench::new().fault::<TwoCounts>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedBarrier, line(FILE, "96")));
    assert_eq!(other(&finding), line(FILE, "64"));
    assert!(finding.detail.contains("barrier_arrive(3, 64)"), "{finding}");
}

kernel!(TwiceByOne, 64, 0, |gpu, args| {
    if gpu.thread_idx_x() < 32 {
        gpu.barrier_arrive(2, 64); // blame: first time
        if args.fault {
            gpu.barrier_arrive(2, 64); // blame: second time
        }
    } else {
        gpu.barrier_sync(2, 64);
    }
});

#[test]
fn a_warp_that_stands_for_another() {
    let finding = Bench::new().fault::<TwiceByOne>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedBarrier, line(FILE, "second time")));
    assert_eq!(other(&finding), line(FILE, "first time"));
    assert!(finding.detail.contains("32 of 64"), "{finding}");
}

kernel!(LeftOver, 64, 0, |gpu, args| {
    if gpu.thread_idx_x() < 32 {
        gpu.barrier_arrive(5, 64); // blame: left over
    } else if !args.fault {
        gpu.barrier_sync(5, 64);
    }
});

#[test]
fn an_arrival_that_nobody_waits_for() {
    let finding = Bench::new().fault::<LeftOver>(1);
    assert_eq!((finding.kind, blamed(&finding)), (UnfinishedBarrier, line(FILE, "left over")));
    assert_eq!((finding.thread, finding.count), (Some(0), 1));
    assert!(finding.detail.contains("barrier_arrive(5, 64): 32 of 64"), "{finding}");
}

kernel!(WaitsForTheDead, 96, 0, |gpu, args| {
    if gpu.thread_idx_x() >= 32 || !args.fault {
        gpu.barrier_sync(7, 96); // blame: waits for warp 0
    }
});

#[test]
fn a_wait_for_a_warp_that_never_comes() {
    let finding = Bench::new().fault::<WaitsForTheDead>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Deadlock, line(FILE, "waits for warp 0")));
    for part in ["threads 0–31 exited", "threads 32–95 wait at barrier_sync(7, 96)", "64 of 96"] {
        assert!(finding.detail.contains(part), "{finding}");
    }
}

kernel!(TwoKinds, 64, 0, |gpu, args| {
    if gpu.thread_idx_x() < 32 || !args.fault {
        gpu.barrier_sync(4, 64); // blame: named
    } else {
        gpu.sync_threads();
    }
});

#[test]
fn a_named_barrier_against_the_block_s() {
    let finding = Bench::new().fault::<TwoKinds>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Deadlock, line(FILE, "named")));
    assert!(finding.detail.contains("threads 32–63 wait at sync_threads"), "{finding}");
}

kernel!(TwoLines, 32, 0, |gpu, args| {
    if args.fault && gpu.lane_id() < 16 {
        gpu.barrier_arrive(1, 32); // blame: half
    } else {
        gpu.barrier_sync(1, 32); // blame: other half
    }
});

#[test]
fn a_warp_in_two_halves() {
    let finding = Bench::new().fault::<TwoLines>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedWarpOperation, line(FILE, "half")));
    assert_eq!(other(&finding), line(FILE, "other half"));
}

kernel!(HalfAWarp, 64, 0, |gpu, args| {
    if args.fault && gpu.lane_id() >= 16 {
        return;
    }
    gpu.barrier_sync(1, 64); // blame: without half
});

#[test]
fn a_warp_whose_other_half_has_exited() {
    let finding = Bench::new().fault::<HalfAWarp>(1);
    assert_eq!((finding.kind, blamed(&finding)), (AbsentLane, line(FILE, "without half")));
    assert!(finding.detail.contains("barrier_sync") && finding.detail.contains("0x0000ffff"), "{finding}");
}

kernel!(ArrivingTakesNothing, 64, 8, |gpu, args| {
    let thread = gpu.thread_idx_x();
    if thread < 32 {
        if thread == 0 {
            gpu.shared_store(word(0), [1u32]); // blame: left
        }
        gpu.barrier_sync(1, 64);
        return;
    }
    if args.fault {
        gpu.barrier_arrive(1, 64);
        gpu.shared_load::<u32, 1>(word(0)); // blame: not taken
    } else {
        gpu.barrier_sync(1, 64);
        gpu.shared_load::<u32, 1>(word(0));
    }
});

#[test]
fn who_only_arrives_comes_after_nothing() {
    let finding = Bench::new().fault::<ArrivingTakesNothing>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "not taken")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "left"), 32));
}

kernel!(TooLate, 64, 8, |gpu, args| {
    let thread = gpu.thread_idx_x();
    if thread >= 32 {
        gpu.barrier_sync(1, 64);
        gpu.shared_load::<u32, 1>(word(0)); // blame: reads
        return;
    }
    if thread == 0 {
        gpu.shared_store(word(0), [7u32]);
    }
    gpu.barrier_arrive(1, 64);
    if thread == 0 && args.fault {
        gpu.shared_store(word(0), [8u32]); // blame: too late
    }
});

#[test]
fn what_comes_after_the_arrival_is_not_handed_over() {
    let finding = Bench::new().fault::<TooLate>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "reads")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "too late"), 32));
}

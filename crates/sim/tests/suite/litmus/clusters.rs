//! Blocks of a cluster: their barrier, and stores to each other's shared memory.
use lacuna_gpu::{Gpu, SharedPtr};
use lacuna_sim::FindingKind::{
    AbsentBlock, BadArgument, Deadlock, Misaligned, MismatchedBarrier, RaceInCluster,
};
use lacuna_sim::LaunchError;

use crate::support::{Bench, blamed, kernel, line, other};

const FILE: &str = include_str!("clusters.rs");

/// The thread's word of shared memory.
fn own<G: Gpu>(gpu: G) -> SharedPtr<u32> {
    SharedPtr::from_offset(0).add(gpu.thread_idx_x())
}

/// The place of the thread in the output.
fn at<G: Gpu>(gpu: G) -> usize {
    (gpu.block_idx_x() * gpu.block_dim_x() + gpu.thread_idx_x()) as usize
}

/// The barrier of the cluster.
fn meet<G: Gpu>(gpu: G) {
    gpu.cluster_arrive();
    gpu.cluster_wait();
}

// Each block of four gives its words to the next one, twice; warps arrive long before they wait.
kernel!(Round, 64, 256, cluster of 4, |gpu, args| {
    let next = (gpu.block_idx_x() + 1) % 4;
    gpu.cluster_arrive();
    let [word] = gpu.load_readonly::<u32, 1>(args.input.add(at(gpu)));
    gpu.cluster_wait();
    gpu.cluster_store(next, own(gpu), [word]);
    meet(gpu);
    let [mut word] = gpu.shared_load::<u32, 1>(own(gpu));
    gpu.cluster_arrive();
    word += 1000;
    gpu.cluster_wait();
    gpu.cluster_store(next, own(gpu), [word]);
    meet(gpu);
    let [word] = gpu.shared_load::<u32, 1>(own(gpu));
    gpu.store(args.output.add(at(gpu)), [word]);
});

#[test]
fn blocks_of_a_cluster_hand_on_words() {
    let bench = Bench::new();
    bench.run::<Round>(4);
    let expected: Vec<u32> = (0..256).map(|i| (i + 128) % 256 + 1000).collect();
    assert_eq!(bench.output(), expected);
}

#[test]
fn a_grid_that_cannot_be_cut() {
    let error = Bench::new().launch::<Round>(6).unwrap_err();
    assert!(matches!(error, LaunchError::Cluster { cluster: 4, grid: [6, 1, 1], limit: 8, .. }), "{error}");
}

// Block 1 gives a word to block 0, which reads it; for the fault before it has waited.
kernel!(ReadsEarly, 32, 128, cluster of 2, |gpu, args| {
    meet(gpu);
    if gpu.block_idx_x() == 1 {
        gpu.cluster_store(0, own(gpu), [7]); // blame: given
        meet(gpu);
    } else {
        gpu.cluster_arrive();
        if !args.fault {
            gpu.cluster_wait();
        } else {
            gpu.shared_store(own(gpu), [0]); // blame: early
            gpu.cluster_wait();
        }
        let [word] = gpu.shared_load::<u32, 1>(own(gpu));
        gpu.store(args.output.add(at(gpu)), [word]);
    }
});

#[test]
fn a_use_that_no_barrier_orders_with_the_store() {
    // Block 0 runs first: the store comes after its use, and is to blame.
    let finding = Bench::new().fault::<ReadsEarly>(2);
    assert_eq!((finding.kind, blamed(&finding)), (RaceInCluster, line(FILE, "given")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "early"), 32));
}

// Block 0 gives a word to block 1, which runs later and, for the fault, has not waited.
kernel!(UsesLate, 32, 128, cluster of 2, |gpu, args| {
    meet(gpu);
    if gpu.block_idx_x() == 0 {
        gpu.cluster_store(1, own(gpu), [7]); // blame: stored
        meet(gpu);
    } else {
        gpu.cluster_arrive();
        if !args.fault {
            gpu.cluster_wait();
        }
        let [word] = gpu.shared_load::<u32, 1>(own(gpu)); // blame: late
        gpu.store(args.output.add(at(gpu)), [word]);
        if args.fault {
            gpu.cluster_wait();
        }
    }
});

#[test]
fn a_read_before_the_wait() {
    let finding = Bench::new().fault::<UsesLate>(2);
    assert_eq!((finding.kind, blamed(&finding)), (RaceInCluster, line(FILE, "late")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "stored"), 32));
}

// Blocks 1 and 2 give to block 0: to places of their own, or for the fault to one.
kernel!(TwoGivers, 32, 256, cluster of 3, |gpu, args| {
    let block = gpu.block_idx_x();
    meet(gpu);
    if block > 0 {
        let place = if args.fault { own(gpu) } else { own(gpu).add((block - 1) * 32) };
        gpu.cluster_store(0, place, [block]); // blame: one place
    }
    meet(gpu);
});

#[test]
fn two_blocks_that_store_to_one_place() {
    let finding = Bench::new().fault::<TwoGivers>(3);
    assert_eq!((finding.kind, blamed(&finding)), (RaceInCluster, line(FILE, "one place")));
    assert_eq!(other(&finding), line(FILE, "one place"));
}

// A warp that has used its place before it came to the barrier, and one that uses it after.
kernel!(Between, 32, 128, cluster of 2, |gpu, args| {
    if !args.fault {
        gpu.shared_store(own(gpu), [1]);
    }
    gpu.cluster_arrive();
    if args.fault {
        gpu.shared_store(own(gpu), [1]); // blame: between
    }
    gpu.cluster_wait();
    if gpu.block_idx_x() == 1 {
        gpu.cluster_store(0, own(gpu), [2]); // blame: over it
    }
    meet(gpu);
});

#[test]
fn what_lies_between_coming_and_waiting_is_not_ordered() {
    let finding = Bench::new().fault::<Between>(2);
    assert_eq!((finding.kind, blamed(&finding)), (RaceInCluster, line(FILE, "over it")));
    assert_eq!(other(&finding), line(FILE, "between"));
}

// A place that one warp uses (for the fault when it has come to the barrier), and after it a warp that has not come.
kernel!(OneHasCome, 64, 128, cluster of 2, |gpu, args| {
    let place = SharedPtr::<u32>::from_offset(0).add(gpu.lane_id());
    if gpu.thread_idx_x() < 32 {
        gpu.shared_store(place, [1]);
        gpu.cluster_arrive();
        if args.fault {
            gpu.shared_load::<u32, 1>(place); // blame: has come
        }
        gpu.barrier_sync(1, 64);
    } else {
        gpu.barrier_sync(1, 64);
        gpu.shared_load::<u32, 1>(place);
        gpu.cluster_arrive();
    }
    gpu.cluster_wait();
    if gpu.block_idx_x() == 1 && gpu.thread_idx_x() < 32 {
        gpu.cluster_store(0, place, [2]); // blame: over both
    }
    meet(gpu);
});

#[test]
fn a_later_use_does_not_hide_one_that_is_not_ordered() {
    let finding = Bench::new().fault::<OneHasCome>(2);
    assert_eq!((finding.kind, blamed(&finding)), (RaceInCluster, line(FILE, "over both")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "has come"), 32));
}

// The first store of a cluster, before any barrier.
kernel!(NobodyThere, 32, 128, cluster of 2, |gpu, args| {
    if args.fault {
        gpu.cluster_store(gpu.block_idx_x() ^ 1, own(gpu), [1]); // blame: nobody
    }
    meet(gpu);
});

#[test]
fn a_store_to_a_block_that_may_not_have_begun() {
    let finding = Bench::new().fault::<NobodyThere>(2);
    assert_eq!((finding.kind, blamed(&finding), finding.count), (AbsentBlock, line(FILE, "nobody"), 64));
}

// Block 0 ends without waiting for what block 1 gives it.
kernel!(Gone, 32, 128, cluster of 2, |gpu, args| {
    meet(gpu);
    if gpu.block_idx_x() == 0 && args.fault {
        return;
    }
    if gpu.block_idx_x() == 1 {
        gpu.cluster_store(0, own(gpu), [1]); // blame: gone
    }
    meet(gpu);
});

#[test]
fn a_store_to_a_block_that_has_ended() {
    let finding = Bench::new().fault::<Gone>(2);
    assert_eq!((finding.kind, blamed(&finding), finding.count), (AbsentBlock, line(FILE, "gone"), 32));
}

kernel!(NoSuchBlock, 32, 128, cluster of 2, |gpu, args| {
    meet(gpu);
    let block = if args.fault { 2 } else { 0 };
    if gpu.block_idx_x() == 1 {
        gpu.cluster_store(block, own(gpu), [1]); // blame: no such
    }
    meet(gpu);
});

#[test]
fn a_store_to_a_block_that_the_cluster_does_not_have() {
    let finding = Bench::new().fault::<NoSuchBlock>(2);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "no such")));
}

kernel!(Askew, 32, 128, cluster of 2, |gpu, args| {
    meet(gpu);
    if gpu.block_idx_x() == 1 && gpu.thread_idx_x() == 0 {
        let place = SharedPtr::<u32>::from_offset(if args.fault { 8 } else { 16 });
        gpu.cluster_store(0, place, [1; 4]); // blame: askew
    }
    meet(gpu);
});

#[test]
fn a_misaligned_store() {
    let finding = Bench::new().fault::<Askew>(2);
    assert_eq!((finding.kind, blamed(&finding)), (Misaligned, line(FILE, "askew")));
}

kernel!(ComesTwice, 32, 0, cluster of 2, |gpu, args| {
    gpu.cluster_arrive();
    if args.fault {
        gpu.cluster_arrive(); // blame: twice
    }
    gpu.cluster_wait();
});

#[test]
fn a_warp_that_comes_twice() {
    let finding = Bench::new().fault::<ComesTwice>(2);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedBarrier, line(FILE, "twice")));
}

kernel!(BeginsLate, 32, 128, cluster of 2, |gpu, args| {
    if args.fault {
        gpu.shared_store(own(gpu), [1]);
    }
    gpu.cluster_arrive_relaxed(); // blame: not first
    gpu.cluster_wait();
    gpu.cluster_store(gpu.block_idx_x() ^ 1, own(gpu), [2]);
    gpu.cluster_arrive();
    gpu.cluster_wait();
    let [word] = gpu.shared_load(own(gpu));
    gpu.store(args.output.add(at(gpu)), [word]);
});

/// What a thread has done before it arrives so would be ordered by nothing.
#[test]
fn a_relaxed_arrival_that_is_not_the_first_thing() {
    let finding = Bench::new().fault::<BeginsLate>(2);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedBarrier, line(FILE, "not first")));
}

kernel!(WaitsAlone, 32, 0, cluster of 2, |gpu, args| {
    if !args.fault {
        gpu.cluster_arrive();
    }
    gpu.cluster_wait(); // blame: not come
});

#[test]
fn a_warp_that_waits_and_has_not_come() {
    let finding = Bench::new().fault::<WaitsAlone>(2);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedBarrier, line(FILE, "not come")));
}

// For the fault, a warp of block 1 waits for the others of its block before it comes.
kernel!(Stuck, 64, 0, cluster of 2, |gpu, args| {
    let is_late = args.fault && gpu.block_idx_x() == 1 && gpu.thread_idx_x() >= 32;
    if is_late {
        gpu.sync_threads();
    }
    gpu.cluster_arrive();
    gpu.cluster_wait(); // blame: stuck
    if !is_late {
        gpu.sync_threads();
    }
});

#[test]
fn a_cluster_that_waits_for_ever() {
    let finding = Bench::new().fault::<Stuck>(2);
    assert_eq!((finding.kind, blamed(&finding)), (Deadlock, line(FILE, "stuck")));
    assert!(finding.detail.contains("wait for their cluster"), "{}", finding.detail);
}

// One warp waits for the cluster; the other, who has come, waits for that one first.
kernel!(Crossed, 64, 0, cluster of 2, |gpu, args| {
    gpu.cluster_arrive();
    if gpu.thread_idx_x() < 32 {
        gpu.cluster_wait();
        gpu.barrier_sync(1, 64);
    } else {
        gpu.barrier_sync(1, 64);
        gpu.cluster_wait();
    }
    gpu.store(args.output.add(at(gpu)), [1]);
});

#[test]
fn some_may_wait_for_their_block_meanwhile() {
    let bench = Bench::new();
    bench.run::<Crossed>(2);
    assert_eq!(bench.output()[..128], [1; 128]);
}

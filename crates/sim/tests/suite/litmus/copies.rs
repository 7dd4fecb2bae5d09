//! Asynchronous copies.
use lacuna_gpu::{FULL_WARP, SharedPtr};
use lacuna_sim::FindingKind::{CopyInFlight, CopyNotWaited, Race};

use crate::support::{Bench, blamed, kernel, line, other};

const FILE: &str = include_str!("copies.rs");

fn word(index: u32) -> SharedPtr<u32> {
    SharedPtr::from_offset(4 * index)
}

kernel!(ReadTooEarly, 32, 128, |gpu, args| {
    let lane = gpu.lane_id();
    gpu.copy_async::<u32, 1>(word(lane), args.input.add(lane as usize)); // blame: copy
    gpu.copy_async_commit();
    if !args.fault {
        gpu.copy_async_wait::<0>();
    }
    let [value] = gpu.shared_load::<u32, 1>(word(lane)); // blame: too early
    gpu.copy_async_wait::<0>();
    gpu.store(args.output.add(lane as usize), [value]);
});

#[test]
fn a_read_before_the_wait() {
    let bench = Bench::new();
    let (simulator, output) = (bench.simulator.clone(), bench.args.output.address());
    let finding = bench.fault::<ReadTooEarly>(1);
    assert_eq!((finding.kind, blamed(&finding)), (CopyInFlight, line(FILE, "too early")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "copy"), 32));
    let mut bytes = [1; 4];
    simulator.read(output + 4 * 5, &mut bytes).unwrap();
    assert_eq!(u32::from_le_bytes(bytes), 0, "the data had not landed");
}

kernel!(ReadTooEarlyInBlocks, 32, 128, |gpu, args| {
    let lane = gpu.lane_id();
    let index = (gpu.block_idx_x() * 32 + lane) as usize;
    gpu.copy_async::<u32, 1>(word(lane), args.input.add(index));
    gpu.copy_async_commit();
    if !args.fault {
        gpu.copy_async_wait::<0>();
    }
    let [value] = gpu.shared_load::<u32, 1>(word(lane)); // blame: too early in blocks
    gpu.copy_async_wait::<0>();
    gpu.store(args.output.add(index), [value]);
});

#[test]
fn a_read_before_the_wait_sees_nothing_of_earlier_blocks() {
    let bench = Bench::new();
    let (simulator, output) = (bench.simulator.clone(), bench.args.output.address());
    // One host thread, so that all blocks use the same shared memory.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let finding = pool.install(|| bench.fault::<ReadTooEarlyInBlocks>(4));
    assert_eq!((finding.kind, blamed(&finding)), (CopyInFlight, line(FILE, "too early in blocks")));
    assert_eq!(finding.count, 4 * 32);
    let mut bytes = [1; 4 * 128];
    simulator.read(output, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 4 * 128]);
}

kernel!(WriteTooEarly, 1, 16, |gpu, args| {
    gpu.copy_async::<u32, 4>(word(0), args.input);
    gpu.copy_async_commit();
    if !args.fault {
        gpu.copy_async_wait::<0>();
    }
    gpu.shared_store(word(3), [1u32]); // blame: overwrites
    gpu.copy_async_wait::<0>();
});

#[test]
fn a_write_before_the_wait() {
    let finding = Bench::new().fault::<WriteTooEarly>(1);
    assert_eq!((finding.kind, blamed(&finding)), (CopyInFlight, line(FILE, "overwrites")));
}

kernel!(WrongGroup, 1, 32, |gpu, args| {
    for group in 0..2 {
        gpu.copy_async::<u32, 2>(word(2 * group), args.input.add(2 * group as usize));
        gpu.copy_async_commit();
    }
    gpu.copy_async_wait::<1>();
    gpu.shared_load::<u32, 2>(word(if args.fault { 2 } else { 0 })); // blame: second group
    gpu.copy_async_wait::<0>();
});

#[test]
fn a_wait_that_covers_the_older_group_only() {
    let finding = Bench::new().fault::<WrongGroup>(1);
    assert_eq!((finding.kind, blamed(&finding)), (CopyInFlight, line(FILE, "second group")));
}

kernel!(Uncommitted, 1, 16, |gpu, args| {
    gpu.copy_async::<u32, 1>(word(0), args.input); // blame: never landed
    if !args.fault {
        gpu.copy_async_commit();
    }
    gpu.copy_async_wait::<0>();
});

#[test]
fn a_wait_does_not_cover_what_was_not_committed() {
    let finding = Bench::new().fault::<Uncommitted>(1);
    assert_eq!((finding.kind, blamed(&finding)), (CopyNotWaited, line(FILE, "never landed")));
}

kernel!(NoBarrier, 32, 128, |gpu, args| {
    let lane = gpu.lane_id();
    gpu.copy_async::<u32, 1>(word(lane), args.input.add(lane as usize)); // blame: lands
    gpu.copy_async_commit();
    gpu.copy_async_wait::<0>();
    if !args.fault {
        gpu.sync_warp(FULL_WARP);
    }
    let [value] = gpu.shared_load::<u32, 1>(word(lane & !1)); // blame: neighbour
    gpu.store(args.output.add(lane as usize), [value]);
});

#[test]
fn a_read_of_a_neighbours_copy_without_a_barrier() {
    let finding = Bench::new().fault::<NoBarrier>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "neighbour")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "lands"), 16));
}

kernel!(RefillTooSoon, 32, 4, |gpu, args| {
    if gpu.lane_id() == 31 {
        gpu.copy_async::<u32, 1>(word(0), args.input);
        gpu.copy_async_commit();
        gpu.copy_async_wait::<0>();
    }
    gpu.sync_warp(FULL_WARP);
    gpu.shared_load::<u32, 1>(word(0)); // blame: still reading
    if !args.fault {
        gpu.sync_warp(FULL_WARP);
    }
    if gpu.lane_id() == 31 {
        gpu.copy_async::<u32, 1>(word(0), args.input.add(1)); // blame: refill
        gpu.copy_async_commit();
    }
    gpu.sync_warp(FULL_WARP);
    gpu.copy_async_wait::<0>();
});

#[test]
fn a_copy_into_what_others_still_read() {
    let finding = Bench::new().fault::<RefillTooSoon>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "refill")));
    assert_eq!(other(&finding), line(FILE, "still reading"));
}

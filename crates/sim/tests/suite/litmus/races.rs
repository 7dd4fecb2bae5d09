//! Races within a warp, between warps, between blocks; and what is no race.
use lacuna_gpu::{FULL_WARP, GlobalPtr, SharedPtr};
use lacuna_sim::FindingKind::{Race, RaceBetweenBlocks, ReadonlyWritten};

use crate::support::{Bench, blamed, kernel, line, other};

const FILE: &str = include_str!("races.rs");

fn word(index: u32) -> SharedPtr<u32> {
    SharedPtr::from_offset(4 * index)
}

kernel!(LanesWithoutBarrier, 32, 128, |gpu, args| {
    let lane = gpu.lane_id();
    gpu.shared_store(word(lane), [lane]); // blame: lane writes
    if !args.fault {
        gpu.sync_warp(FULL_WARP);
    }
    let [next] = gpu.shared_load::<u32, 1>(word(lane.saturating_sub(1))); // blame: lane reads
    gpu.store(args.output.add(lane as usize), [next]);
});

#[test]
fn lanes_of_a_warp_without_a_barrier() {
    let finding = Bench::new().fault::<LanesWithoutBarrier>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "lane reads")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "lane writes"), 31));
    assert_eq!(finding.place.unwrap().buffer, "shared memory");
}

kernel!(WarpsWithoutBarrier, 64, 256, |gpu, args| {
    let thread = gpu.thread_idx_x();
    gpu.shared_store(word(thread), [thread]); // blame: warp writes
    if args.fault {
        gpu.sync_warp(FULL_WARP);
    } else {
        gpu.sync_threads();
    }
    if thread >= 32 {
        gpu.shared_load::<u32, 1>(word(thread - 32)); // blame: warp reads
    }
});

#[test]
fn warps_with_only_a_warp_barrier() {
    let finding = Bench::new().fault::<WarpsWithoutBarrier>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "warp reads")));
    assert_eq!(other(&finding), line(FILE, "warp writes"));
}

kernel!(WriteAfterRead, 64, 4, |gpu, args| {
    let thread = gpu.thread_idx_x();
    if thread == 0 {
        gpu.shared_store(word(0), [1u32]);
    }
    gpu.sync_threads();
    gpu.shared_load::<u32, 1>(word(0)); // blame: all read
    if !args.fault {
        gpu.sync_threads();
    }
    if thread == 0 {
        gpu.shared_store(word(0), [2u32]); // blame: one overwrites
    }
});

#[test]
fn an_overwrite_while_others_read() {
    let finding = Bench::new().fault::<WriteAfterRead>(1);
    assert_eq!(finding.kind, Race);
    // Warp 0 runs first, so it is the other warp's read that meets the new value.
    let lines = [line(FILE, "all read"), line(FILE, "one overwrites")];
    assert!(lines.contains(&blamed(&finding)) && lines.contains(&other(&finding)), "{finding}");
}

kernel!(Subwarps, 32, 128, |gpu, args| {
    let lane = gpu.lane_id();
    let half = if lane < 16 { 0x0000_ffff } else { 0xffff_0000 };
    gpu.shared_store(word(lane), [lane]); // blame: half writes
    gpu.sync_warp(half);
    let from = if args.fault { lane ^ 16 } else { lane ^ 15 };
    gpu.shared_load::<u32, 1>(word(from)); // blame: half reads
});

#[test]
fn a_barrier_of_half_a_warp_orders_that_half() {
    let finding = Bench::new().fault::<Subwarps>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "half reads")));
}

kernel!(GlobalInBlock, 64, 0, |gpu, args| {
    let thread = gpu.thread_idx_x() as usize;
    gpu.store(args.output.add(thread), [1]); // blame: block writes
    if !args.fault {
        gpu.sync_threads();
    }
    if thread >= 32 {
        gpu.load::<u32, 1>(args.output.add(63 - thread)); // blame: block reads
    }
});

#[test]
fn threads_of_a_block_in_global_memory() {
    let finding = Bench::zeroed().fault::<GlobalInBlock>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "block reads")));
    assert_eq!(other(&finding), line(FILE, "block writes"));
    assert_eq!(finding.place.unwrap().buffer, "output");
}

kernel!(AcrossBlocks, 1, 0, |gpu, args| {
    let index = if args.fault { 5 } else { gpu.block_idx_x() };
    gpu.store(args.output.add(index as usize), [1]); // blame: blocks write
});

#[test]
fn blocks_that_write_one_place() {
    let finding = Bench::new().fault::<AcrossBlocks>(7);
    assert_eq!((finding.kind, blamed(&finding)), (RaceBetweenBlocks, line(FILE, "blocks write")));
    assert_eq!((finding.block, finding.count, other(&finding)), ([6, 0, 0], 1, blamed(&finding)));
    let place = finding.place.as_ref().unwrap();
    assert_eq!((place.buffer.as_str(), place.element), ("output", 5));
    assert!(finding.detail.contains("[0, 0, 0]"));
}

kernel!(AtomicsAndStore, 1, 0, |gpu, args| {
    gpu.atomic_add(args.output, 1); // blame: atomic
    if args.fault && gpu.block_idx_x() == 3 {
        gpu.store(args.output, [0]); // blame: beside atomics
    }
});

#[test]
fn a_plain_store_beside_atomics() {
    let finding = Bench::zeroed().fault::<AtomicsAndStore>(5);
    assert_eq!((finding.kind, finding.count), (RaceBetweenBlocks, 1));
    let lines = [line(FILE, "atomic"), line(FILE, "beside atomics")];
    assert!(lines.contains(&blamed(&finding)) && lines.contains(&other(&finding)), "{finding}");
}

kernel!(SharedAtomics, 64, 4, |gpu, args| {
    if gpu.thread_idx_x() == 0 {
        gpu.shared_store(word(0), [0u32]);
    }
    gpu.sync_threads();
    gpu.shared_atomic_add(word(0), 1); // blame: shared atomic
    if args.fault && gpu.thread_idx_x() == 40 {
        gpu.shared_load::<u32, 1>(word(0)); // blame: shared plain
    }
});

#[test]
fn a_plain_load_beside_shared_atomics() {
    let findings = Bench::new().faults::<SharedAtomics>(1);
    // The load meets the atomics before it, and the atomics after it meet the load.
    let lines: Vec<_> = findings.iter().map(|finding| (finding.kind, blamed(finding))).collect();
    assert_eq!(lines, ["shared atomic", "shared plain"].map(|name| (Race, line(FILE, name))));
}

kernel!(StoreThenSharedAtomics, 32, 4, |gpu, args| {
    if gpu.lane_id() == 0 {
        gpu.shared_store(word(0), [0u32]); // blame: shared reset
    }
    if !args.fault {
        gpu.sync_warp(FULL_WARP);
    }
    gpu.shared_atomic_add(word(0), 1); // blame: shared sum
});

#[test]
fn a_shared_store_before_everybody_s_atomics() {
    let finding = Bench::new().fault::<StoreThenSharedAtomics>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "shared sum")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "shared reset"), 31));
}

kernel!(StoreThenGlobalAtomics, 64, 0, |gpu, args| {
    if gpu.thread_idx_x() == 0 {
        gpu.store(args.output, [0]); // blame: global reset
    }
    if !args.fault {
        gpu.sync_threads();
    }
    gpu.atomic_add(args.output, 1); // blame: global sum
});

#[test]
fn a_global_store_before_everybody_s_atomics() {
    let finding = Bench::zeroed().fault::<StoreThenGlobalAtomics>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "global sum")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "global reset"), 63));
}

kernel!(LoadThenSharedAtomics, 2, 4, |gpu, args| {
    let lane = gpu.lane_id();
    if lane == 0 {
        gpu.shared_store(word(0), [0u32]);
    }
    gpu.sync_threads();
    if lane == 0 {
        gpu.shared_load::<u32, 1>(word(0)); // blame: shared look
        gpu.shared_atomic_add(word(0), 1);
    }
    if !args.fault {
        gpu.sync_warp(0b11);
    }
    if lane == 1 {
        gpu.shared_atomic_add(word(0), 1); // blame: shared atomic of another
    }
});

#[test]
fn a_shared_load_before_another_s_atomic() {
    let finding = Bench::new().fault::<LoadThenSharedAtomics>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "shared atomic of another")));
    assert_eq!(other(&finding), line(FILE, "shared look"));
}

kernel!(LoadThenGlobalAtomics, 64, 0, |gpu, args| {
    let thread = gpu.thread_idx_x();
    if thread == 0 {
        gpu.load::<u32, 1>(args.output); // blame: global look
        gpu.atomic_add(args.output, 1);
    }
    if !args.fault {
        gpu.sync_threads();
    }
    if thread == 32 {
        gpu.atomic_add(args.output, 1); // blame: global atomic of another
    }
});

#[test]
fn a_global_load_before_another_s_atomic() {
    let finding = Bench::zeroed().fault::<LoadThenGlobalAtomics>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "global atomic of another")));
    assert_eq!(other(&finding), line(FILE, "global look"));
}

kernel!(CopyOfWritten, 1, 16, |gpu, args| {
    gpu.store(args.output, [1]); // blame: writes source
    let from = if args.fault { args.output } else { args.output.add(4) };
    gpu.copy_async::<u32, 1>(word(0), GlobalPtr::from_address(from.address())); // blame: copies
    gpu.copy_async_commit();
    gpu.copy_async_wait::<0>();
});

#[test]
fn asynchronous_copies_of_what_the_launch_writes() {
    let finding = Bench::zeroed().fault::<CopyOfWritten>(1);
    assert_eq!((finding.kind, blamed(&finding)), (ReadonlyWritten, line(FILE, "copies")));
    assert_eq!(other(&finding), line(FILE, "writes source"));
}

kernel!(ReadonlyOfWritten, 1, 0, |gpu, args| {
    gpu.store(args.output.add(gpu.block_idx_x() as usize), [1]); // blame: writes
    let index = if args.fault { 0 } else { 10 };
    let same = GlobalPtr::<u32>::from_address(args.output.add(index).address());
    if gpu.block_idx_x() == 3 {
        gpu.load_readonly::<u32, 1>(same); // blame: readonly
        gpu.load_streaming::<u32, 1>(same); // blame: streaming
    }
});

#[test]
fn readonly_loads_of_what_the_launch_writes() {
    let findings = Bench::zeroed().faults::<ReadonlyOfWritten>(4);
    let lines: Vec<_> = findings.iter().map(|finding| (finding.kind, blamed(finding))).collect();
    assert_eq!(lines, ["readonly", "streaming"].map(|name| (ReadonlyWritten, line(FILE, name))));
    assert!(findings.iter().all(|finding| other(finding) == line(FILE, "writes")));
}

kernel!(HalfWords, 32, 64, |gpu, args| {
    let lane = gpu.lane_id();
    if args.fault && lane % 2 == 1 {
        gpu.shared_store(SharedPtr::from_offset((lane - 1) * 2), [lane]); // blame: wide store
    } else {
        gpu.shared_store(SharedPtr::from_offset(lane * 2), [lane as u16]); // blame: half store
    }
});

#[test]
fn halves_of_a_word_are_apart() {
    let finding = Bench::new().fault::<HalfWords>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "wide store")));
    assert_eq!(other(&finding), line(FILE, "half store"));
}

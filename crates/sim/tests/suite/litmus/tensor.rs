//! Operations of the whole warp on tensors: absent lanes, mismatches, faults of memory; copies that may give zeros.
use lacuna_gpu::{FULL_WARP, GlobalPtr, SharedPtr};
use lacuna_sim::FindingKind::{
    AbsentLane, CopyInFlight, Misaligned, MismatchedWarpOperation, OutOfBounds, Race, Uninitialised,
};

use crate::support::{Bench, blamed, kernel, line, other};

const FILE: &str = include_str!("tensor.rs");
const ZEROS: [f32; 4] = [0.0; 4];

kernel!(WithoutTheDead, 32, 0, |gpu, args| {
    if args.fault && gpu.lane_id() == 0 {
        return;
    }
    let [sum, ..] = gpu.mma_bf16([0; 4], [0; 2], [1.0; 4]); // blame: exited
    gpu.store(args.output.add(gpu.lane_id() as usize), [sum.to_bits()]);
});

#[test]
fn a_product_without_a_lane_that_has_exited() {
    let bench = Bench::new();
    let (simulator, output) = (bench.simulator.clone(), bench.args.output.address());
    let finding = bench.fault::<WithoutTheDead>(1);
    assert_eq!((finding.kind, blamed(&finding)), (AbsentLane, line(FILE, "exited")));
    assert_eq!((finding.thread, finding.count), (Some(1), 1));
    assert!(finding.detail.contains("mma_bf16") && finding.detail.contains("0xfffffffe"), "{finding}");
    let mut bytes = [1; 4];
    simulator.read(output + 4 * 5, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 4], "an undefined result is zero");
}

kernel!(HalfAWarp, 48, 768, |gpu, args| {
    let place = SharedPtr::from_offset(16 * gpu.thread_idx_x());
    gpu.shared_store(place, [0u16; 8]);
    gpu.sync_threads();
    if args.fault || gpu.thread_idx_x() < 32 {
        gpu.shared_load_matrices::<false>(place); // blame: half
    }
});

#[test]
fn a_load_of_matrices_by_half_a_warp() {
    let finding = Bench::new().fault::<HalfAWarp>(1);
    assert_eq!((finding.kind, blamed(&finding)), (AbsentLane, line(FILE, "half")));
    assert_eq!(finding.thread, Some(32));
}

kernel!(TwoLines, 32, 0, |gpu, args| {
    if args.fault && gpu.lane_id() < 16 {
        gpu.mma_tf32(ZEROS, [0.0; 2], ZEROS); // blame: one line
    } else {
        gpu.mma_tf32(ZEROS, [0.0; 2], ZEROS); // blame: other line
    }
});

#[test]
fn a_product_that_lanes_reach_at_two_lines() {
    let finding = Bench::new().fault::<TwoLines>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedWarpOperation, line(FILE, "one line")));
    assert_eq!(other(&finding), line(FILE, "other line"));
}

kernel!(TwoKinds, 32, 0, |gpu, args| {
    if args.fault && gpu.lane_id() == 9 {
        gpu.sync_warp(FULL_WARP); // blame: barrier
    }
    gpu.mma_f16([0; 4], [0; 2], ZEROS); // blame: product
});

#[test]
fn a_product_and_a_barrier() {
    let finding = Bench::new().fault::<TwoKinds>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedWarpOperation, line(FILE, "product")));
    assert_eq!(other(&finding), line(FILE, "barrier"));
}

kernel!(ProductsOrderNothing, 32, 128, |gpu, args| {
    let lane = gpu.lane_id();
    gpu.shared_store(SharedPtr::from_offset(4 * lane), [lane]); // blame: own word
    gpu.mma_f16([0; 4], [0; 2], ZEROS);
    if !args.fault {
        gpu.sync_warp(FULL_WARP);
    }
    gpu.shared_load::<u32, 1>(SharedPtr::from_offset(4 * (lane ^ 1))); // blame: other's word
});

#[test]
fn a_product_orders_no_memory() {
    let findings = Bench::new().faults::<ProductsOrderNothing>(1);
    let races: Vec<_> = findings.iter().filter(|finding| finding.kind == Race).collect();
    assert_eq!(races.iter().map(|race| blamed(race)).collect::<Vec<_>>(), [line(FILE, "other's word")]);
    assert_eq!(other(races[0]), line(FILE, "own word"));
}

kernel!(RowOfAnother, 32, 512, |gpu, args| {
    let lane = gpu.lane_id();
    gpu.shared_store(SharedPtr::from_offset(16 * lane), [lane; 4]); // blame: row
    if !args.fault {
        gpu.sync_warp(FULL_WARP);
    }
    gpu.shared_load_matrices::<true>(SharedPtr::from_offset(16 * (lane ^ 1))); // blame: matrices
});

#[test]
fn a_load_of_matrices_without_a_barrier() {
    let findings = Bench::new().faults::<RowOfAnother>(1);
    let race = findings.iter().find(|finding| finding.kind == Race).unwrap();
    let lines = [blamed(race), other(race)];
    // Lane 0 reads before lane 1 has stored, and lane 1 after lane 0 has: each pair races once, at either line.
    assert!(lines.contains(&line(FILE, "row")) && lines.contains(&line(FILE, "matrices")), "{race}");
}

kernel!(CrookedRows, 32, 544, |gpu, args| {
    let lane = gpu.lane_id();
    gpu.shared_store(SharedPtr::from_offset(16 * lane), [0u32; 4]);
    gpu.sync_warp(FULL_WARP);
    let shift = if args.fault { 8 } else { 0 };
    gpu.shared_load_matrices::<false>(SharedPtr::from_offset(16 * lane + shift)); // blame: crooked
});

#[test]
fn a_row_that_does_not_start_at_16_bytes() {
    let finding = Bench::new().fault::<CrookedRows>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Misaligned, line(FILE, "crooked")));
    assert_eq!((finding.count, finding.place.unwrap().bytes), (32, 16));
}

kernel!(RowsBeyond, 32, 512, |gpu, args| {
    let lane = gpu.lane_id();
    gpu.shared_store(SharedPtr::from_offset(16 * lane), [0u32; 4]);
    gpu.sync_warp(FULL_WARP);
    let shift = if args.fault { 16 } else { 0 };
    gpu.shared_load_matrices::<false>(SharedPtr::from_offset(16 * lane + shift)); // blame: beyond
});

#[test]
fn a_row_past_the_end_of_shared_memory() {
    let finding = Bench::new().fault::<RowsBeyond>(1);
    assert_eq!((finding.kind, blamed(&finding)), (OutOfBounds, line(FILE, "beyond")));
    assert_eq!((finding.thread, finding.count), (Some(31), 1));
}

kernel!(UnwrittenRow, 32, 512, |gpu, args| {
    let lane = gpu.lane_id();
    if !args.fault || lane != 20 {
        gpu.shared_store(SharedPtr::from_offset(16 * lane), [0u32; 4]);
    }
    gpu.sync_warp(FULL_WARP);
    gpu.shared_load_matrices::<false>(SharedPtr::from_offset(16 * lane)); // blame: unwritten
});

#[test]
fn a_row_that_nobody_wrote() {
    let finding = Bench::new().fault::<UnwrittenRow>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Uninitialised, line(FILE, "unwritten")));
    assert_eq!(finding.thread, Some(20));
}

kernel!(ZerosInFlight, 32, 512, |gpu, args| {
    let lane = gpu.lane_id();
    let place = SharedPtr::<u16>::from_offset(16 * lane);
    gpu.copy_async_or_zero::<u16, 8>(place, GlobalPtr::from_address(0), false); // blame: zeros
    gpu.copy_async_commit();
    if !args.fault {
        gpu.copy_async_wait::<0>();
    }
    gpu.sync_warp(FULL_WARP);
    gpu.shared_load_matrices::<false>(place); // blame: too early
    gpu.copy_async_wait::<0>();
});

#[test]
fn matrices_of_zeros_that_have_not_landed() {
    let finding = Bench::new().fault::<ZerosInFlight>(1);
    assert_eq!((finding.kind, blamed(&finding)), (CopyInFlight, line(FILE, "too early")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "zeros"), 32));
}

kernel!(ZerosFromNowhere, 32, 512, |gpu, args| {
    let lane = gpu.lane_id();
    let beyond = args.input.add(crate::support::LEN);
    let valid = args.fault && lane == 6;
    gpu.copy_async_or_zero::<u32, 4>(SharedPtr::from_offset(16 * lane), beyond, valid); // blame: nowhere
    gpu.copy_async_commit();
    gpu.copy_async_wait::<0>();
});

#[test]
fn a_source_is_checked_where_it_is_read() {
    let finding = Bench::new().fault::<ZerosFromNowhere>(1);
    assert_eq!((finding.kind, blamed(&finding)), (OutOfBounds, line(FILE, "nowhere")));
    assert_eq!((finding.thread, finding.count), (Some(6), 1));
}

//! Warp operations: masks, absent lanes, mismatches, bad arguments.
use lacuna_gpu::FULL_WARP;
use lacuna_sim::FindingKind::{AbsentLane, BadArgument, CallerNotInMask, MismatchedWarpOperation};

use crate::support::{Bench, blamed, kernel, line, other};

const FILE: &str = include_str!("warps.rs");

kernel!(NotNamed, 32, 0, |gpu, args| {
    let mask = if args.fault && gpu.lane_id() == 4 { FULL_WARP & !0x10 } else { FULL_WARP };
    if !args.fault || gpu.lane_id() == 4 {
        gpu.sync_warp(mask); // blame: not named
    }
});

#[test]
fn a_caller_that_its_mask_does_not_name() {
    let finding = Bench::new().fault::<NotNamed>(1);
    assert_eq!((finding.kind, blamed(&finding)), (CallerNotInMask, line(FILE, "not named")));
    assert_eq!(finding.thread, Some(4));
}

kernel!(FromOutside, 32, 0, |gpu, args| {
    if gpu.lane_id() < 16 {
        let source = if args.fault { 20 } else { 3 };
        gpu.warp_shuffle_idx(0xffff, gpu.lane_id(), source, 32); // blame: outside
    }
});

#[test]
fn a_shuffle_from_a_lane_outside_the_mask() {
    let finding = Bench::new().fault::<FromOutside>(1);
    assert_eq!((finding.kind, blamed(&finding)), (AbsentLane, line(FILE, "outside")));
    assert_eq!(finding.count, 16);
    assert!(finding.detail.contains("lane 20") && finding.detail.contains("not in the mask"), "{finding}");
}

kernel!(FromTheDead, 32, 0, |gpu, args| {
    if args.fault && gpu.lane_id() == 31 {
        return;
    }
    let sum = gpu.warp_shuffle_xor(FULL_WARP, 1u32, 1, 32); // blame: exited
    gpu.store(args.output.add(gpu.lane_id() as usize), [sum]);
});

#[test]
fn a_shuffle_from_a_lane_that_has_exited() {
    let finding = Bench::new().fault::<FromTheDead>(1);
    assert_eq!((finding.kind, blamed(&finding)), (AbsentLane, line(FILE, "exited")));
    assert_eq!((finding.thread, finding.count), (Some(30), 1));
}

kernel!(TwoMasks, 32, 0, |gpu, args| {
    let mask = if args.fault && gpu.lane_id() == 7 { 0xff } else { FULL_WARP };
    gpu.sync_warp(mask); // blame: two masks
});

#[test]
fn lanes_with_different_masks() {
    let finding = Bench::new().fault::<TwoMasks>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedWarpOperation, line(FILE, "two masks")));
    assert!(finding.detail.contains("threads 7–7 wait at sync_warp(0x000000ff)"), "{finding}");
}

kernel!(TwoOperations, 32, 0, |gpu, args| {
    if args.fault && gpu.lane_id() < 16 {
        gpu.warp_any(FULL_WARP, true); // blame: any
    } else {
        gpu.warp_all(FULL_WARP, true); // blame: all
    }
});

#[test]
fn lanes_at_different_operations() {
    let finding = Bench::new().fault::<TwoOperations>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedWarpOperation, line(FILE, "any")));
    assert_eq!(other(&finding), line(FILE, "all"));
}

kernel!(OddWidth, 32, 0, |gpu, args| {
    let width = if args.fault { 12 } else { 16 };
    gpu.warp_shuffle_down(FULL_WARP, 1u32, 1, width); // blame: width
});

#[test]
fn a_width_that_is_no_power_of_two() {
    let finding = Bench::new().fault::<OddWidth>(1);
    assert_eq!((finding.kind, blamed(&finding), finding.count), (BadArgument, line(FILE, "width"), 32));
}

kernel!(BeyondWidth, 32, 0, |gpu, args| {
    let lanes = if args.fault { 8 } else { 4 };
    gpu.warp_shuffle_xor(FULL_WARP, 1u32, lanes, 8); // blame: beyond
});

#[test]
fn lane_bits_beyond_the_width() {
    let finding = Bench::new().fault::<BeyondWidth>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "beyond")));
}

//! Products of a warpgroup from core matrices: where A and B may lie, and that all lanes and warps say so.
use lacuna_gpu::{CoreMatrices, Gpu, SharedPtr};
use lacuna_sim::FindingKind::{BadArgument, Misaligned, MismatchedWarpgroup, OutOfBounds, Uninitialised};

use crate::support::{Bench, blamed, kernel, line};

const FILE: &str = include_str!("cores.rs");

/// Bytes of A, and of B, of 32 columns: in core matrices without room between.
const A: u32 = 64 * 32;
const B: u32 = 32 * 32;

/// Fills A and B but for the last `left_out` bytes, with zeros, for all.
///
/// # Safety
/// See `Gpu`.
unsafe fn publish<G: Gpu>(gpu: G, left_out: u32) {
    let mut place = 8 * gpu.thread_idx_x();
    while place < A + B - left_out {
        // SAFETY: passed on.
        unsafe { gpu.shared_store(SharedPtr::from_offset(place), [0u16; 4]) };
        place += 8 * 128;
    }
    gpu.fence_async_proxy();
    gpu.sync_threads();
}

/// A product of zeros, with A's and B's first byte, and the distances of their core matrices.
///
/// # Safety
/// See `Gpu`.
unsafe fn multiply<G: Gpu>(gpu: G, a: [u32; 3], b: [u32; 3]) {
    let mut sums = [0.0; 16];
    let [a, b] = [a, b].map(|[first, leading, stride]| CoreMatrices {
        first: SharedPtr::from_offset(first),
        leading,
        stride,
    });
    gpu.warpgroup_arrive();
    // SAFETY: passed on.
    unsafe { gpu.warpgroup_mma_bf16_cores(&mut sums, a, b) }; // blame: product
    gpu.warpgroup_commit();
    gpu.warpgroup_wait::<0, 16>(&mut sums);
}

const OF_A: [u32; 3] = [0, 1024, 128];
const OF_B: [u32; 3] = [A, 512, 128];

kernel!(PastTheEnd, 128, A + B, |gpu, args| {
    publish(gpu, 0);
    let stride = if args.fault { 144 } else { 128 };
    multiply(gpu, OF_A, [A, 512, stride]);
});

#[test]
fn b_whose_last_rows_end_past_the_end() {
    let finding = Bench::new().fault::<PastTheEnd>(1);
    assert_eq!((finding.kind, blamed(&finding)), (OutOfBounds, line(FILE, "product")));
    assert!(finding.to_string().contains("48 bytes past its end"), "{finding}");
}

kernel!(OddDistance, 128, A + B, |gpu, args| {
    publish(gpu, 0);
    let leading = if args.fault { 1016 } else { 1008 };
    multiply(gpu, [0, leading, 128], OF_B);
});

#[test]
fn distances_that_are_no_multiples_of_16() {
    let finding = Bench::new().fault::<OddDistance>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Misaligned, line(FILE, "product")));
    assert!(finding.to_string().contains("leading 1016 and stride 128"), "{finding}");
}

kernel!(Unwritten, 128, A + B, |gpu, args| {
    publish(gpu, if args.fault { 16 } else { 0 });
    multiply(gpu, OF_A, OF_B);
});

#[test]
fn the_last_row_that_nobody_wrote() {
    let finding = Bench::new().fault::<Unwritten>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Uninitialised, line(FILE, "product")));
    assert_eq!((finding.place.unwrap().offset, finding.count), (i64::from(A + B - 16), 4));
}

kernel!(LaneAtOdds, 128, A + B, |gpu, args| {
    publish(gpu, 0);
    let leading = if args.fault && gpu.thread_idx_x() == 37 { 512 } else { 1024 };
    multiply(gpu, [0, leading, 128], OF_B);
});

#[test]
fn a_lane_with_another_distance() {
    let finding = Bench::new().fault::<LaneAtOdds>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "product")));
    assert_eq!((finding.thread, finding.count), (Some(37), 1));
}

kernel!(WarpsAtOdds, 128, A + B, |gpu, args| {
    publish(gpu, 0);
    let stride = if args.fault && gpu.thread_idx_x() >= 64 { 112 } else { 128 };
    multiply(gpu, OF_A, [A, 512, stride]);
});

#[test]
fn warps_with_another_distance() {
    let finding = Bench::new().fault::<WarpsAtOdds>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedWarpgroup, line(FILE, "product")));
    assert_eq!((finding.thread, finding.count), (Some(64), 2));
}

//! Products of a warpgroup: whether all warps and lanes do the same, and what becomes of the sums.
use lacuna_gpu::{Gpu, SharedPtr};
use lacuna_sim::FindingKind::{
    AbsentLane, BadArgument, MismatchedWarpgroup, MissingArrive, ProductNotWaited, SumsInFlight,
};

use crate::support::{Bench, blamed, kernel, line};

pub(super) const FILE: &str = include_str!("warpgroups.rs");

/// Bytes of a B of 32 columns.
pub(super) const B: u32 = 1024;
/// Bytes of A's panel. B lies behind it.
pub(super) const A: u32 = 64 * 128;

/// The second 16 columns of A.
pub(super) const COLUMNS: u32 = 32;

/// A place of B, or of what lies behind it.
pub(super) fn at<T>(offset: u32) -> SharedPtr<T> {
    SharedPtr::from_offset(A + offset)
}

/// Fills a thread's part of A, 64 bytes, and fences it.
///
/// # Safety
/// See `Gpu`.
pub(super) unsafe fn fill_a<G: Gpu>(gpu: G) {
    for i in 0..4 {
        let place = SharedPtr::from_offset(64 * gpu.thread_idx_x() + 16 * i);
        // SAFETY: passed on.
        unsafe { gpu.shared_store(place, [0u16; 8]) }; // blame: part of A
    }
    gpu.fence_async_proxy();
}

/// Fills a thread's part of B, 8 bytes, after that of A.
///
/// # Safety
/// See `Gpu`.
pub(super) unsafe fn fill<G: Gpu>(gpu: G) {
    // SAFETY: passed on.
    unsafe {
        fill_a(gpu);
        gpu.shared_store(at(8 * gpu.thread_idx_x()), [0u16; 4]); // blame: fill
    }
}

/// Hands a thread's part of A and B to all.
///
/// # Safety
/// See `Gpu`.
pub(super) unsafe fn publish<G: Gpu>(gpu: G) {
    // SAFETY: passed on.
    unsafe { fill(gpu) };
    gpu.fence_async_proxy();
    gpu.sync_threads();
}

/// Starts a product of zeros.
///
/// # Safety
/// See `Gpu`.
pub(super) unsafe fn multiply<G: Gpu>(gpu: G, sums: &mut [f32; 16], b: u32) {
    // SAFETY: passed on.
    unsafe { gpu.warpgroup_mma_f16::<16, 0>(sums, SharedPtr::from_offset(COLUMNS), at(b)) }; // blame: product
}

/// Ends all products.
pub(super) fn finish<G: Gpu>(gpu: G, sums: &mut [f32; 16]) {
    gpu.warpgroup_commit();
    gpu.warpgroup_wait::<0, 16>(sums);
}

/// One product of zeros, from its beginning to its end.
///
/// # Safety
/// See `Gpu`.
pub(super) unsafe fn multiply_once<G: Gpu>(gpu: G, b: u32) {
    let mut sums = [0.0; 16];
    gpu.warpgroup_arrive();
    // SAFETY: passed on.
    unsafe { multiply(gpu, &mut sums, b) };
    finish(gpu, &mut sums);
}

kernel!(NoArrive, 128, A + B, |gpu, args| {
    let mut sums = [0.0; 16];
    publish(gpu);
    gpu.warpgroup_arrive();
    multiply(gpu, &mut sums, 0);
    finish(gpu, &mut sums);
    if !args.fault {
        gpu.warpgroup_arrive();
    }
    multiply(gpu, &mut sums, 0);
    finish(gpu, &mut sums);
});

#[test]
fn a_product_without_arrive_since_the_last_wait() {
    let finding = Bench::new().fault::<NoArrive>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MissingArrive, line(FILE, "product")));
    assert_eq!(finding.count, 4);
}

kernel!(TouchedSums, 128, A + B, |gpu, args| {
    let mut sums = [0.0; 16];
    publish(gpu);
    gpu.warpgroup_arrive();
    multiply(gpu, &mut sums, 0);
    if args.fault && gpu.thread_idx_x() == 9 {
        sums[3] = 0.0;
    }
    finish(gpu, &mut sums);
    gpu.store(args.output.add(gpu.thread_idx_x() as usize), [sums[3].to_bits()]);
});

#[test]
fn sums_that_are_changed_in_flight() {
    let finding = Bench::new().fault::<TouchedSums>(1);
    assert_eq!((finding.kind, finding.thread, finding.count), (SumsInFlight, Some(9), 1));
}

kernel!(TwoArrays, 128, A + B, |gpu, _args| {
    let (mut sums, mut others) = ([1.0; 16], [2.0; 16]);
    publish(gpu);
    gpu.warpgroup_arrive();
    multiply(gpu, &mut sums, 0);
    gpu.warpgroup_commit();
    multiply(gpu, &mut others, 0);
    gpu.warpgroup_commit();
    gpu.warpgroup_wait::<1, 16>(&mut sums);
    assert_eq!(sums, [1.0; 16], "the older product is over");
    assert!(others.iter().all(|sum| sum.is_nan()), "the younger is not");
    gpu.warpgroup_wait::<0, 16>(&mut others);
    assert_eq!(others, [2.0; 16]);
    // One wait is for all products; each array is asked for.
    gpu.warpgroup_arrive();
    multiply(gpu, &mut sums, 0);
    multiply(gpu, &mut others, 0);
    finish(gpu, &mut sums);
    gpu.warpgroup_wait::<0, 16>(&mut others);
    assert_eq!((sums, others), ([1.0; 16], [2.0; 16]));
});

kernel!(ArraysAtOdds, 128, A + B, |gpu, args| {
    let (mut sums, mut others) = ([0.0; 16], [0.0; 16]);
    publish(gpu);
    gpu.warpgroup_arrive();
    multiply(gpu, &mut sums, 0);
    multiply(gpu, &mut others, 0);
    let exchanged = args.fault && gpu.thread_idx_x() == 9;
    let [first, second] = if exchanged { [&mut others, &mut sums] } else { [&mut sums, &mut others] };
    multiply(gpu, first, 0);
    finish(gpu, first);
    gpu.warpgroup_wait::<0, 16>(second);
});

#[test]
fn two_arrays_of_sums_may_be_in_flight() {
    Bench::new().run::<TwoArrays>(1);
}

#[test]
fn a_lane_with_another_array_of_sums() {
    let finding = Bench::new().fault::<ArraysAtOdds>(1);
    assert_eq!((finding.kind, finding.thread, finding.count), (SumsInFlight, Some(9), 1));
}

kernel!(NotCommitted, 128, A + B, |gpu, args| {
    let mut sums = [0.0; 16];
    publish(gpu);
    gpu.warpgroup_arrive();
    multiply(gpu, &mut sums, 0);
    if !args.fault {
        gpu.warpgroup_commit();
    }
    gpu.warpgroup_wait::<0, 16>(&mut sums);
    gpu.store(args.output.add(gpu.thread_idx_x() as usize), [u32::from(sums[0].is_nan())]);
});

#[test]
fn a_wait_does_not_cover_what_was_not_committed() {
    let bench = Bench::zeroed();
    let (simulator, output) = (bench.simulator.clone(), bench.args.output.address());
    let finding = bench.fault::<NotCommitted>(1);
    assert_eq!((finding.kind, blamed(&finding)), (ProductNotWaited, line(FILE, "product")));
    assert_eq!(finding.count, 128);
    let mut bytes = [0; 4];
    simulator.read(output, &mut bytes).unwrap();
    assert_eq!(u32::from_le_bytes(bytes), 1, "there is no result");
}

kernel!(NotWaited, 128, A + B, |gpu, args| {
    let mut sums = [0.0; 16];
    publish(gpu);
    gpu.warpgroup_arrive();
    multiply(gpu, &mut sums, 0);
    gpu.warpgroup_commit();
    if args.fault {
        gpu.warpgroup_wait::<1, 16>(&mut sums);
    } else {
        gpu.warpgroup_wait::<0, 16>(&mut sums);
    }
});

#[test]
fn an_exit_before_the_wait() {
    let finding = Bench::new().fault::<NotWaited>(1);
    assert_eq!((finding.kind, blamed(&finding)), (ProductNotWaited, line(FILE, "product")));
}

kernel!(ThreeWarps, 128, A + B, |gpu, args| {
    let mut sums = [0.0; 16];
    publish(gpu);
    if !args.fault || gpu.thread_idx_x() < 96 {
        gpu.warpgroup_arrive(); // blame: three warps
        multiply(gpu, &mut sums, 0);
        finish(gpu, &mut sums);
    }
});

#[test]
fn a_warp_that_does_not_come() {
    let finding = Bench::new().fault::<ThreeWarps>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedWarpgroup, line(FILE, "three warps")));
    assert!(finding.detail.contains("warp 3"), "{finding}");
}

kernel!(SmallBlock, 64, A + B, |gpu, _args| {
    let mut sums = [0.0; 16];
    for i in 0..8 {
        gpu.shared_store(SharedPtr::from_offset(128 * gpu.thread_idx_x() + 16 * i), [0u16; 8]);
    }
    gpu.shared_store(at(16 * gpu.thread_idx_x()), [0u16; 8]);
    gpu.fence_async_proxy();
    gpu.sync_threads();
    gpu.warpgroup_arrive(); // blame: small block
    multiply(gpu, &mut sums, 0);
    finish(gpu, &mut sums);
});

#[test]
fn a_block_without_a_whole_warpgroup() {
    let error = Bench::new().launch::<SmallBlock>(1).unwrap_err().to_string();
    assert!(error.contains("warp 2 of the warpgroup"), "{error}");
}

kernel!(TwoPlaces, 128, A + 2 * B, |gpu, args| {
    let mut sums = [0.0; 16];
    gpu.shared_store(at(B + 8 * gpu.thread_idx_x()), [0u16; 4]);
    publish(gpu);
    gpu.warpgroup_arrive();
    let b = if args.fault && gpu.thread_idx_x() >= 64 { B } else { 0 };
    multiply(gpu, &mut sums, b);
    finish(gpu, &mut sums);
});

#[test]
fn warps_that_give_different_places_of_b() {
    let finding = Bench::new().fault::<TwoPlaces>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedWarpgroup, line(FILE, "product")));
    assert_eq!((finding.thread, finding.count), (Some(64), 2));
}

kernel!(LanesAtOdds, 128, A + 2 * B, |gpu, args| {
    publish(gpu);
    multiply_once(gpu, if args.fault && gpu.thread_idx_x() == 37 { B } else { 0 });
});

#[test]
fn lanes_that_give_different_places_of_b() {
    let finding = Bench::new().fault::<LanesAtOdds>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "product")));
    assert_eq!((finding.thread, finding.count), (Some(37), 1));
}

kernel!(TwoPanels, 128, A + B, |gpu, args| {
    let mut sums = [0.0; 16];
    publish(gpu);
    gpu.warpgroup_arrive();
    let a = SharedPtr::from_offset(if args.fault && gpu.thread_idx_x() >= 64 { COLUMNS } else { 0 });
    gpu.warpgroup_mma_f16::<16, 0>(&mut sums, a, at(0)); // blame: two panels
    finish(gpu, &mut sums);
});

#[test]
fn warps_that_give_different_places_of_a() {
    let finding = Bench::new().fault::<TwoPanels>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MismatchedWarpgroup, line(FILE, "two panels")));
    assert_eq!((finding.thread, finding.count), (Some(64), 2));
}

kernel!(LaneAtOdds, 128, A + B, |gpu, args| {
    let mut sums = [0.0; 16];
    publish(gpu);
    gpu.warpgroup_arrive();
    let a = SharedPtr::from_offset(if args.fault && gpu.thread_idx_x() == 37 { COLUMNS } else { 0 });
    gpu.warpgroup_mma_f16::<16, 0>(&mut sums, a, at(0)); // blame: lane at odds
    finish(gpu, &mut sums);
});

#[test]
fn lanes_that_give_different_places_of_a() {
    let finding = Bench::new().fault::<LaneAtOdds>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "lane at odds")));
    assert_eq!((finding.thread, finding.count), (Some(37), 1));
}

kernel!(HalfAWarp, 128, A + B, |gpu, args| {
    publish(gpu);
    if args.fault && gpu.thread_idx_x() % 32 >= 16 {
        return;
    }
    multiply_once(gpu, 0);
});

#[test]
fn warps_that_are_not_whole() {
    let findings = Bench::new().faults::<HalfAWarp>(1);
    assert!(findings.iter().all(|finding| finding.kind == AbsentLane), "{findings:#?}");
    assert!(findings.iter().any(|finding| blamed(finding) == line(FILE, "product")), "{findings:#?}");
}

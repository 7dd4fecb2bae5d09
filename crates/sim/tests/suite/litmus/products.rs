//! Products of a warpgroup: who writes A and B and when, and where they lie.
use lacuna_gpu::{Gpu, SharedPtr};
use lacuna_sim::FindingKind::{
    CopyInFlight, Misaligned, MissingProxyFence, OutOfBounds, Race, Uninitialised,
};

use super::warpgroups::{self, A, B, COLUMNS, at, fill, fill_a, finish, multiply, multiply_once, publish};
use crate::support::{Bench, blamed, kernel, line, other};

const FILE: &str = include_str!("products.rs");

kernel!(NoFence, 128, A + B, |gpu, args| {
    fill(gpu);
    if !args.fault || gpu.thread_idx_x() != 77 {
        gpu.fence_async_proxy();
    }
    gpu.sync_threads();
    multiply_once(gpu, 0);
});

#[test]
fn a_writer_that_does_not_fence() {
    let finding = Bench::new().fault::<NoFence>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MissingProxyFence, line(warpgroups::FILE, "product")));
    assert_eq!((other(&finding), finding.count), (line(warpgroups::FILE, "fill"), 4));
    assert_eq!(finding.place.unwrap().offset, i64::from(A) + 77 * 8 / 16 * 16);
}

kernel!(FenceTooLate, 128, A + B, |gpu, args| {
    fill(gpu);
    if !args.fault {
        gpu.fence_async_proxy();
    }
    gpu.sync_threads();
    gpu.fence_async_proxy();
    multiply_once(gpu, 0);
});

#[test]
fn a_fence_after_the_barrier() {
    let finding = Bench::new().fault::<FenceTooLate>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MissingProxyFence, line(warpgroups::FILE, "product")));
    assert_eq!(other(&finding), line(warpgroups::FILE, "fill"));
}

kernel!(FenceBeforeTheCopy, 128, A + B, |gpu, args| {
    let thread = gpu.thread_idx_x();
    fill_a(gpu);
    gpu.copy_async::<u32, 2>(at(8 * thread), args.input.add(2 * thread as usize)); // blame: copy
    gpu.copy_async_commit();
    if args.fault {
        gpu.fence_async_proxy();
        gpu.copy_async_wait::<0>();
    } else {
        gpu.copy_async_wait::<0>();
        gpu.fence_async_proxy();
    }
    gpu.sync_threads();
    multiply_once(gpu, 0);
});

#[test]
fn a_fence_before_copies_have_landed() {
    let finding = Bench::new().fault::<FenceBeforeTheCopy>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MissingProxyFence, line(warpgroups::FILE, "product")));
    assert_eq!((other(&finding), finding.count), (line(FILE, "copy"), 4 * 64));
}

kernel!(CopyUnderWay, 128, A + B, |gpu, args| {
    let thread = gpu.thread_idx_x();
    fill_a(gpu);
    gpu.copy_async::<u32, 2>(at(8 * thread), args.input.add(2 * thread as usize)); // blame: under way
    gpu.copy_async_commit();
    if !args.fault {
        gpu.copy_async_wait::<0>();
        gpu.fence_async_proxy();
    }
    gpu.sync_threads();
    multiply_once(gpu, 0);
    gpu.sync_threads();
    gpu.copy_async_wait::<0>();
});

#[test]
fn a_product_of_what_copies_are_filling() {
    let finding = Bench::new().fault::<CopyUnderWay>(1);
    assert_eq!((finding.kind, blamed(&finding)), (CopyInFlight, line(warpgroups::FILE, "product")));
    assert_eq!(other(&finding), line(FILE, "under way"));
}

kernel!(NoBarrier, 128, A + B, |gpu, args| {
    fill(gpu);
    gpu.fence_async_proxy();
    if !args.fault {
        gpu.sync_threads();
    }
    multiply_once(gpu, 0);
    gpu.sync_threads();
});

#[test]
fn a_product_of_what_nothing_orders() {
    let findings = Bench::new().faults::<NoBarrier>(1);
    // The first warp multiplies before the others write, and may read all of A.
    let races = findings.iter().filter(|finding| finding.kind == Race);
    let races: Vec<_> = races.map(|race| (blamed(race), other(race))).collect();
    let product = line(warpgroups::FILE, "product");
    let [a, b] = ["part of A", "fill"].map(|write| line(warpgroups::FILE, write));
    assert_eq!(races, [(a, product), (b, product), (product, a)]);
    assert!(findings.iter().all(|finding| finding.kind != MissingProxyFence), "{findings:#?}");
}

/// What a thread of the second warp writes once its own product is over, and when all are.
fn refill_between<G: Gpu>(gpu: G, all_are_over: bool) {
    // SAFETY: each thread has its part of B.
    unsafe {
        publish(gpu);
        multiply_once(gpu, 0);
        if all_are_over {
            gpu.sync_threads();
        }
        if gpu.thread_idx_x() == 40 {
            gpu.shared_store(at(64), [1u16]); // blame: refill
        }
    }
}

kernel!(RefillTooSoon, 128, A + B, |gpu, args| {
    refill_between(gpu, !args.fault);
});

#[test]
fn a_write_that_other_warps_products_do_not_wait_for() {
    let findings = Bench::new().faults::<RefillTooSoon>(1);
    let has = |a, b| {
        findings.iter().any(|finding| finding.kind == Race && (blamed(finding), other(finding)) == (a, b))
    };
    let (refill, product) = (line(FILE, "refill"), line(warpgroups::FILE, "product"));
    assert!(has(refill, product) && has(product, refill), "{findings:#?}");
}

kernel!(WriteInFlight, 128, A + B, |gpu, args| {
    let mut sums = [0.0; 16];
    publish(gpu);
    gpu.warpgroup_arrive();
    multiply(gpu, &mut sums, 0);
    gpu.warpgroup_commit();
    if !args.fault {
        gpu.warpgroup_wait::<0, 16>(&mut sums);
    }
    gpu.sync_threads();
    if gpu.thread_idx_x() == 0 {
        gpu.shared_store(at(512), [1u16; 8]); // blame: in flight
    }
    gpu.sync_threads();
    gpu.warpgroup_wait::<0, 16>(&mut sums);
});

#[test]
fn a_write_between_start_and_wait_that_barriers_order() {
    let finding = Bench::new().fault::<WriteInFlight>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "in flight")));
    assert_eq!((other(&finding), finding.count), (line(warpgroups::FILE, "product"), 4));
}

kernel!(WaitForTheOlder, 128, A + 2 * B, |gpu, args| {
    let mut sums = [0.0; 16];
    let thread = gpu.thread_idx_x();
    gpu.shared_store(at(B + 8 * thread), [0u16; 4]);
    publish(gpu);
    gpu.warpgroup_arrive();
    for b in [0, B] {
        multiply(gpu, &mut sums, b);
        gpu.warpgroup_commit();
    }
    gpu.warpgroup_wait::<1, 16>(&mut sums);
    gpu.sync_threads();
    gpu.shared_store(at(if args.fault { B } else { 0 } + 8 * thread), [0u16; 4]); // blame: younger
    gpu.sync_threads();
    gpu.warpgroup_wait::<0, 16>(&mut sums);
});

#[test]
fn a_wait_that_covers_the_older_group_only() {
    let finding = Bench::new().fault::<WaitForTheOlder>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "younger")));
    assert_eq!((other(&finding), finding.count), (line(warpgroups::FILE, "product"), 4 * 64));
}

kernel!(OddPlace, 128, A + 2 * B, |gpu, args| {
    gpu.shared_store(at(B + 8 * gpu.thread_idx_x()), [0u16; 4]);
    publish(gpu);
    multiply_once(gpu, if args.fault { 256 } else { 512 });
});

#[test]
fn b_that_does_not_begin_where_its_rows_are_swizzled() {
    let finding = Bench::new().fault::<OddPlace>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Misaligned, line(warpgroups::FILE, "product")));
    assert_eq!(finding.count, 4);
}

kernel!(PastTheEnd, 128, A + B, |gpu, args| {
    publish(gpu);
    multiply_once(gpu, if args.fault { 512 } else { 0 });
});

#[test]
fn b_that_ends_past_the_end() {
    let finding = Bench::new().fault::<PastTheEnd>(1);
    assert_eq!((finding.kind, blamed(&finding)), (OutOfBounds, line(warpgroups::FILE, "product")));
    assert!(finding.to_string().contains("512 bytes past its end"), "{finding}");
}

kernel!(Unwritten, 128, A + B, |gpu, args| {
    if !args.fault || gpu.thread_idx_x() != 5 {
        fill(gpu);
    }
    gpu.fence_async_proxy();
    gpu.sync_threads();
    multiply_once(gpu, 0);
});

#[test]
fn b_that_nobody_wrote() {
    let finding = Bench::new().fault::<Unwritten>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Uninitialised, line(warpgroups::FILE, "product")));
    assert_eq!((finding.place.unwrap().offset, finding.count), (i64::from(A) + 32, 4));
}

// Of A, for the fault, the last row of the third warp is not fenced. That warp alone reads it.
kernel!(NoFenceOfA, 128, A + B, |gpu, args| {
    publish(gpu);
    let row = SharedPtr::<u16>::from_offset(47 * 128);
    if gpu.thread_idx_x() == 3 {
        for piece in 0..8 {
            gpu.shared_store(row.add(8 * piece), [0u16; 8]); // blame: row of A
        }
        if !args.fault {
            gpu.fence_async_proxy();
        }
    }
    gpu.sync_threads();
    multiply_once(gpu, 0);
});

#[test]
fn rows_of_a_are_their_warps() {
    let finding = Bench::new().fault::<NoFenceOfA>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MissingProxyFence, line(warpgroups::FILE, "product")));
    assert_eq!((other(&finding), finding.thread, finding.count), (line(FILE, "row of A"), Some(64), 2));
    // Row 47 is the last of eight: the pieces lie in the places of 5 and 4.
    assert_eq!(finding.place.unwrap().offset, 47 * 128 + 16 * (2 ^ 7));
}

kernel!(OddColumnsOfA, 128, A + B, |gpu, args| {
    let mut sums = [0.0; 16];
    publish(gpu);
    gpu.warpgroup_arrive();
    let a = SharedPtr::from_offset(COLUMNS + if args.fault { 16 } else { 0 });
    gpu.warpgroup_mma_f16::<16, 0>(&mut sums, a, at(0)); // blame: odd columns
    finish(gpu, &mut sums);
});

#[test]
fn a_that_does_not_begin_at_a_step() {
    let finding = Bench::new().fault::<OddColumnsOfA>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Misaligned, line(FILE, "odd columns")));
}

kernel!(PanelPastTheEnd, 128, A + B, |gpu, args| {
    let mut sums = [0.0; 16];
    publish(gpu);
    gpu.warpgroup_arrive();
    let a = SharedPtr::from_offset(if args.fault { 2 * B } else { 0 });
    gpu.warpgroup_mma_f16::<16, 0>(&mut sums, a, at(0)); // blame: past the end
    finish(gpu, &mut sums);
});

#[test]
fn a_whose_panel_ends_past_the_end() {
    let finding = Bench::new().fault::<PanelPastTheEnd>(1);
    assert_eq!((finding.kind, blamed(&finding)), (OutOfBounds, line(FILE, "past the end")));
    assert!(finding.to_string().contains("1024 bytes past its end"), "{finding}");
}

kernel!(RowOverwritten, 128, A + B, |gpu, args| {
    let mut sums = [0.0; 16];
    publish(gpu);
    gpu.warpgroup_arrive();
    multiply(gpu, &mut sums, 0);
    gpu.warpgroup_commit();
    if !args.fault {
        gpu.warpgroup_wait::<0, 16>(&mut sums);
    }
    gpu.sync_threads();
    if gpu.thread_idx_x() == 0 {
        gpu.shared_store(SharedPtr::from_offset(COLUMNS), [1u16; 8]); // blame: overwritten
    }
    gpu.sync_threads();
    gpu.warpgroup_wait::<0, 16>(&mut sums);
});

#[test]
fn a_write_to_a_between_start_and_wait() {
    let finding = Bench::new().fault::<RowOverwritten>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Race, line(FILE, "overwritten")));
    assert_eq!((other(&finding), finding.count), (line(warpgroups::FILE, "product"), 4));
}

//! Bulk tensor copies.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, Tensor, TensorMap};
use lacuna_sim::FindingKind::{
    BadArgument, CopyInFlight, CopyNotWaited, MissingProxyFence, OutOfBounds, Race, Uninitialised,
};

use crate::support::{Bench, blamed, kernel, line, other};

const FILE: &str = include_str!("bulk.rs");
/// Where the barrier lies: behind a box.
const BARRIER: SharedPtr<u64> = SharedPtr::from_offset(BOX);
/// Bytes of a box of 8 rows of 64 columns.
const BOX: u32 = 1024;
const SHARED: u32 = BOX + 8;

fn place<T>(offset: u32) -> SharedPtr<T> {
    SharedPtr::from_offset(offset)
}

/// The input as rows of 64 columns: the numbers 0, 0, 1, 0, 2, 0 and so on in 16 bits.
fn tensor(input: GlobalPtr<u32>) -> Tensor {
    Tensor { address: input.address(), extent: [64, 8, 1], stride_bytes: [128, 1024], box_dim: [64, 8] }
}

fn map(input: GlobalPtr<u32>) -> TensorMap {
    TensorMap::of(&tensor(input))
}

/// Expects and starts the copy of a whole box.
///
/// # Safety
/// As for the methods.
unsafe fn copy<G: Gpu>(gpu: G, input: GlobalPtr<u32>) {
    // SAFETY: passed on to the caller.
    unsafe {
        gpu.bulk_expect(BARRIER, BOX);
        gpu.bulk_copy(place(0), &map(input), [0; 3], BARRIER); // blame: copy
    }
}

kernel!(Copied, 32, SHARED, |gpu, args| {
    // Three times, each box further on in the tensor.
    gpu.bulk_barrier_init(BARRIER);
    for turn in 0..3 {
        gpu.bulk_expect(BARRIER, BOX);
        gpu.bulk_copy(place(0), &map(args.input), [16 * turn, 3 * turn, 0], BARRIER);
        gpu.bulk_wait(BARRIER, turn);
        gpu.fence_async_proxy();
        gpu.sync_warp(FULL_WARP);
        if turn == 2 {
            for i in 0..8 {
                let word = i * 32 + gpu.lane_id();
                let [value] = gpu.shared_load::<u32, 1>(place(4 * word));
                gpu.store(args.output.add(word as usize), [value]);
            }
        }
        gpu.sync_warp(FULL_WARP);
    }
});

#[test]
fn a_box_comes_swizzled_and_with_zeros_outside() {
    let bench = Bench::new();
    bench.run::<Copied>(1);
    let output = bench.output();
    for row in 0..8 {
        for column in 0..32 {
            // Two numbers of 16 bits a word.
            let (from_row, from_column) = (row + 6, column + 16);
            let value = if from_row < 8 && from_column < 32 { from_row * 32 + from_column } else { 0 };
            let at = row * 32 + (column ^ (row % 8 * 4));
            assert_eq!(output[at], value as u32, "row {row}, word {column}");
        }
    }
}

kernel!(Narrow, 1, SHARED, |gpu, args| {
    let narrow =
        Tensor { extent: [32, 8, 2], stride_bytes: [64, 512], box_dim: [32, 8], ..tensor(args.input) };
    gpu.bulk_barrier_init(BARRIER);
    gpu.bulk_expect(BARRIER, BOX / 2);
    gpu.bulk_copy(place(0), &TensorMap::of(&narrow), [0, 0, 1], BARRIER);
    gpu.bulk_wait(BARRIER, 0);
    for word in 0..BOX / 8 {
        let [value] = gpu.shared_load::<u32, 1>(place(4 * word));
        gpu.store(args.output.add(word as usize), [value]);
    }
});

#[test]
fn narrow_boxes_have_a_swizzle_of_their_own() {
    let bench = Bench::zeroed();
    bench.run::<Narrow>(1);
    let output = bench.output();
    for row in 0..8 {
        for column in 0..16 {
            let at = row * 16 + (column ^ (row / 2 % 4 * 4));
            assert_eq!(output[at], (128 + row * 16 + column) as u32, "row {row}, word {column}");
        }
    }
}

kernel!(ReadTooEarly, 1, SHARED, |gpu, args| {
    gpu.bulk_barrier_init(BARRIER);
    copy(gpu, args.input);
    if !args.fault {
        gpu.bulk_wait(BARRIER, 0);
    }
    gpu.shared_load::<u32, 1>(place(64)); // blame: too early
    if args.fault {
        gpu.bulk_wait(BARRIER, 0);
    }
});

#[test]
fn a_read_before_the_wait() {
    let findings = Bench::new().faults::<ReadTooEarly>(1);
    let finding = findings.iter().find(|finding| finding.kind == CopyInFlight).unwrap();
    assert_eq!((blamed(finding), other(finding)), (line(FILE, "too early"), line(FILE, "copy")));
    assert!(findings.iter().all(|finding| matches!(finding.kind, CopyInFlight | Uninitialised)));
}

kernel!(NeverWaited, 1, SHARED, |gpu, args| {
    gpu.bulk_barrier_init(BARRIER);
    copy(gpu, args.input);
    if !args.fault {
        gpu.bulk_wait(BARRIER, 0);
    }
});

#[test]
fn an_exit_before_the_wait() {
    let finding = Bench::new().fault::<NeverWaited>(1);
    assert_eq!((finding.kind, blamed(&finding)), (CopyNotWaited, line(FILE, "copy")));
}

kernel!(TooMuchExpected, 1, SHARED, |gpu, args| {
    gpu.bulk_barrier_init(BARRIER);
    gpu.bulk_expect(BARRIER, if args.fault { BOX + 16 } else { BOX });
    gpu.bulk_copy(place(0), &map(args.input), [0; 3], BARRIER);
    gpu.bulk_wait(BARRIER, 0); // blame: forever
});

#[test]
fn bytes_that_never_come() {
    let finding = Bench::new().fault::<TooMuchExpected>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "forever")));
    assert!(finding.detail.contains("1040 bytes are expected, and copies of 1024"), "{}", finding.detail);
}

kernel!(ExpectedTwice, 1, SHARED, |gpu, args| {
    gpu.bulk_barrier_init(BARRIER);
    if args.fault {
        gpu.bulk_expect(BARRIER, BOX);
    }
    gpu.bulk_expect(BARRIER, BOX); // blame: twice
    gpu.bulk_copy(place(0), &map(args.input), [0; 3], BARRIER);
    gpu.bulk_wait(BARRIER, 0);
});

#[test]
fn bytes_that_are_expected_twice() {
    let finding = Bench::new().fault::<ExpectedTwice>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "twice")));
}

kernel!(MadeTwice, 1, SHARED, |gpu, args| {
    gpu.bulk_barrier_init(BARRIER);
    copy(gpu, args.input);
    if !args.fault {
        gpu.bulk_wait(BARRIER, 0);
    }
    gpu.bulk_barrier_init(BARRIER); // blame: made again
});

#[test]
fn a_barrier_that_is_made_again_while_copies_are_under_way() {
    let finding = Bench::new().fault::<MadeTwice>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "made again")));
}

kernel!(WrongTurn, 1, SHARED, |gpu, args| {
    gpu.bulk_barrier_init(BARRIER);
    for turn in 0..2 {
        copy(gpu, args.input);
        gpu.bulk_wait(BARRIER, if args.fault { 0 } else { turn }); // blame: wrong turn
        gpu.fence_async_proxy();
    }
});

#[test]
fn a_turn_that_is_over() {
    let finding = Bench::new().fault::<WrongTurn>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "wrong turn")));
}

kernel!(ForeignBarrier, 64, SHARED, |gpu, args| {
    let warp = gpu.thread_idx_x() / 32;
    if warp == 0 {
        gpu.bulk_barrier_init(BARRIER);
    }
    gpu.sync_threads();
    if warp == u32::from(args.fault) {
        gpu.bulk_expect(BARRIER, BOX); // blame: not its own
    }
    if warp == 0 && !args.fault {
        gpu.bulk_copy(place(0), &map(args.input), [0; 3], BARRIER);
        gpu.bulk_wait(BARRIER, 0);
    }
});

#[test]
fn a_barrier_of_another_warp() {
    let finding = Bench::new().fault::<ForeignBarrier>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "not its own")));
}

kernel!(NotFenced, 1, SHARED, |gpu, args| {
    gpu.shared_store(place(32), [1u32]); // blame: written
    if !args.fault {
        gpu.fence_async_proxy();
    }
    gpu.bulk_barrier_init(BARRIER);
    copy(gpu, args.input);
    gpu.bulk_wait(BARRIER, 0);
});

#[test]
fn a_copy_over_what_was_not_fenced() {
    let finding = Bench::new().fault::<NotFenced>(1);
    assert_eq!((finding.kind, blamed(&finding)), (MissingProxyFence, line(FILE, "copy")));
    assert_eq!(other(&finding), line(FILE, "written"));
}

kernel!(NoBarrier, 32, SHARED, |gpu, args| {
    gpu.bulk_barrier_init(BARRIER);
    copy(gpu, args.input);
    gpu.bulk_wait(BARRIER, 0);
    if !args.fault {
        gpu.sync_warp(FULL_WARP);
    }
    if gpu.lane_id() == 1 {
        gpu.shared_load::<u32, 1>(place(64)); // blame: other thread
    }
});

#[test]
fn a_read_by_another_thread_without_a_barrier() {
    let findings = Bench::new().faults::<NoBarrier>(1);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!((findings[0].kind, blamed(&findings[0])), (Race, line(FILE, "other thread")));
}

kernel!(Misplaced, 1, SHARED + BOX, |gpu, args| {
    gpu.bulk_barrier_init(BARRIER);
    gpu.bulk_expect(BARRIER, BOX);
    gpu.bulk_copy(place(if args.fault { 128 } else { 0 }), &map(args.input), [0; 3], BARRIER); // blame: misplaced
    if !args.fault {
        gpu.bulk_wait(BARRIER, 0);
    }
});

#[test]
fn a_box_at_a_place_that_is_not_aligned() {
    let finding = Bench::new().fault::<Misplaced>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "misplaced")));
}

kernel!(BadTensor, 1, SHARED, |gpu, args| {
    let tensor = tensor(args.input);
    let tensor = match args.fault {
        true => Tensor { stride_bytes: [120, 1024], ..tensor },
        false => tensor,
    };
    gpu.bulk_barrier_init(BARRIER);
    gpu.bulk_expect(BARRIER, BOX);
    gpu.bulk_copy(place(0), &TensorMap::of(&tensor), [0; 3], BARRIER); // blame: strides
    if !args.fault {
        gpu.bulk_wait(BARRIER, 0);
    }
});

#[test]
fn a_tensor_whose_rows_are_not_aligned() {
    let finding = Bench::new().fault::<BadTensor>(1);
    assert_eq!((finding.kind, blamed(&finding)), (BadArgument, line(FILE, "strides")));
}

kernel!(TooLarge, 1, SHARED, |gpu, args| {
    let rows = if args.fault { 16 } else { 8 };
    let tensor = Tensor { extent: [64, rows, 1], ..tensor(args.input) };
    gpu.bulk_barrier_init(BARRIER);
    copy(gpu, args.input);
    gpu.bulk_wait(BARRIER, 0);
    gpu.fence_async_proxy();
    gpu.bulk_expect(BARRIER, BOX);
    gpu.bulk_copy(place(0), &TensorMap::of(&tensor), [0, 1, 0], BARRIER); // blame: beyond
    gpu.bulk_wait(BARRIER, 1);
});

#[test]
fn a_tensor_larger_than_its_buffer() {
    let finding = Bench::new().fault::<TooLarge>(1);
    assert_eq!((finding.kind, blamed(&finding)), (OutOfBounds, line(FILE, "beyond")));
    assert_eq!(finding.count, 8, "a row is 8 pieces");
}

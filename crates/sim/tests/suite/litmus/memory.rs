//! Bounds, alignment, lifetime and initialisation.
use lacuna_gpu::{GlobalMut, SharedPtr};
use lacuna_sim::FindingKind::{Misaligned, OutOfBounds, Uninitialised, UseAfterFree};
use lacuna_sim::LaunchError;

use crate::support::{Bench, LEN, blamed, kernel, line};

const FILE: &str = include_str!("memory.rs");

kernel!(PastTheEnd, 32, 0, |gpu, args| {
    let shift = if args.fault { 1 } else { 0 };
    let index = LEN - 32 + gpu.thread_idx_x() as usize + shift;
    let [value] = gpu.load_readonly::<u32, 1>(args.input.add(index)); // blame: past the end
    gpu.store(args.output.add(gpu.thread_idx_x() as usize), [value]);
});

#[test]
fn a_load_past_the_end() {
    let bench = Bench::new();
    let (simulator, output) = (bench.simulator.clone(), bench.args.output.address());
    let finding = bench.fault::<PastTheEnd>(1);
    assert_eq!((finding.kind, blamed(&finding)), (OutOfBounds, line(FILE, "past the end")));
    assert_eq!((finding.thread, finding.block, finding.count), (Some(31), [0, 0, 0], 1));
    let place = finding.place.as_ref().unwrap();
    assert_eq!((place.buffer.as_str(), place.element, place.bytes), ("input", LEN as i64, 4));
    assert!(finding.to_string().contains("4 bytes past its end"), "{finding}");
    let mut last = [1; 4];
    simulator.read(output + 31 * 4, &mut last).unwrap();
    assert_eq!(last, [0; 4], "the load gave zero and the kernel went on");
}

kernel!(BeforeTheStart, 1, 0, |gpu, args| {
    let to = if args.fault { args.output.add_bytes(4u64.wrapping_neg()) } else { args.output };
    gpu.store(to, [1]); // blame: before the start
});

#[test]
fn a_store_before_the_start() {
    let finding = Bench::new().fault::<BeforeTheStart>(1);
    assert_eq!((finding.kind, blamed(&finding)), (OutOfBounds, line(FILE, "before the start")));
    let place = finding.place.unwrap();
    assert_eq!((place.buffer.as_str(), place.offset, place.element), ("output", -4, -1));
}

kernel!(Nowhere, 1, 0, |gpu, args| {
    let to = if args.fault { GlobalMut::from_address(0) } else { args.output };
    gpu.store(to, [1u32]); // blame: nowhere
});

#[test]
fn a_store_to_address_zero() {
    let finding = Bench::new().fault::<Nowhere>(1);
    assert_eq!((finding.kind, blamed(&finding)), (OutOfBounds, line(FILE, "nowhere")));
    assert!(finding.detail.contains("0x0"));
}

kernel!(WideAtOddPlace, 4, 0, |gpu, args| {
    let first = if args.fault { 2 } else { 0 };
    let at = args.input.add(first + 4 * gpu.thread_idx_x() as usize);
    gpu.load_readonly::<u32, 4>(at); // blame: misaligned
});

#[test]
fn a_misaligned_vector_load() {
    let finding = Bench::new().fault::<WideAtOddPlace>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Misaligned, line(FILE, "misaligned")));
    assert_eq!((finding.count, finding.place.unwrap().element), (4, 2));
}

kernel!(OddAtomic, 1, 0, |gpu, args| {
    let at = if args.fault { args.output.add_bytes(2) } else { args.output };
    gpu.atomic_add(at, 1); // blame: misaligned atomic
});

#[test]
fn a_misaligned_atomic() {
    let finding = Bench::zeroed().fault::<OddAtomic>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Misaligned, line(FILE, "misaligned atomic")));
}

kernel!(ReadsInput, 1, 0, |gpu, args| {
    gpu.load_readonly::<u32, 1>(args.input); // blame: freed
});

#[test]
fn a_load_after_free() {
    let bench = Bench::new();
    bench.run::<ReadsInput>(1);
    bench.simulator.free(bench.args.input.address()).unwrap();
    let Err(LaunchError::Findings(report)) = bench.launch::<ReadsInput>(1) else { panic!("not found") };
    let finding = &report.findings[0];
    assert_eq!((finding.kind, blamed(finding)), (UseAfterFree, line(FILE, "freed")));
    assert_eq!(finding.place.as_ref().unwrap().buffer, "input");
}

kernel!(ReadsOutput, 2, 0, |gpu, args| {
    let thread = gpu.thread_idx_x() as usize;
    gpu.store(args.output.add(thread), [7]);
    let ahead = if args.fault { 2 } else { 0 };
    gpu.load::<u32, 1>(args.output.add(thread + ahead)); // blame: unwritten
});

#[test]
fn a_load_of_global_memory_never_written() {
    let finding = Bench::new().fault::<ReadsOutput>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Uninitialised, line(FILE, "unwritten")));
    assert_eq!(finding.place.unwrap().element, 2);
}

kernel!(SharedUnwritten, 1, 64, |gpu, args| {
    gpu.shared_store(SharedPtr::from_offset(0), [1u32, 2]);
    let from = SharedPtr::<u32>::from_offset(if args.fault { 4 } else { 0 });
    gpu.shared_load::<u32, 1>(from.add(if args.fault { 1 } else { 0 })); // blame: shared unwritten
});

#[test]
fn a_load_of_shared_memory_never_written() {
    let finding = Bench::new().fault::<SharedUnwritten>(2);
    assert_eq!((finding.kind, blamed(&finding)), (Uninitialised, line(FILE, "shared unwritten")));
    assert_eq!(finding.count, 2, "what one block wrote is not there in the next");
    assert_eq!(finding.place.unwrap().element, 2);
}

kernel!(AtomicUnwritten, 1, 0, |gpu, args| {
    gpu.store(args.output, [7]);
    let index = if args.fault { 1 } else { 0 };
    gpu.atomic_add(args.output.add(index), 1); // blame: atomic unwritten
});

#[test]
fn an_atomic_on_global_memory_never_written() {
    let bench = Bench::new();
    let (simulator, output) = (bench.simulator.clone(), bench.args.output.address());
    let finding = bench.fault::<AtomicUnwritten>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Uninitialised, line(FILE, "atomic unwritten")));
    assert_eq!(finding.place.unwrap().element, 1);
    let mut sum = [9; 4];
    simulator.read(output + 4, &mut sum).unwrap();
    assert_eq!(u32::from_le_bytes(sum), 1, "it counted from zero");
}

kernel!(SharedAtomicUnwritten, 1, 8, |gpu, args| {
    gpu.shared_store(SharedPtr::from_offset(0), [7u32]);
    let at = SharedPtr::<u32>::from_offset(if args.fault { 4 } else { 0 });
    gpu.shared_atomic_max(at, 1); // blame: shared atomic unwritten
});

#[test]
fn an_atomic_on_shared_memory_never_written() {
    let finding = Bench::new().fault::<SharedAtomicUnwritten>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Uninitialised, line(FILE, "shared atomic unwritten")));
    assert_eq!(finding.place.unwrap().element, 1);
}

kernel!(SharedPastTheEnd, 1, 60, |gpu, args| {
    let offset = if args.fault { 56 } else { 48 };
    gpu.shared_store(SharedPtr::from_offset(offset), [1u32, 2]); // blame: shared end
    gpu.shared_store(SharedPtr::from_offset(offset + 8), [1u32]); // blame: shared far
});

#[test]
fn a_store_past_the_end_of_shared_memory() {
    let findings = Bench::new().faults::<SharedPastTheEnd>(1);
    let lines: Vec<_> = findings.iter().map(|finding| (finding.kind, blamed(finding))).collect();
    let expected = ["shared end", "shared far"].map(|name| (OutOfBounds, line(FILE, name)));
    assert_eq!(lines, expected);
    assert_eq!(findings[0].place.as_ref().unwrap().buffer, "shared memory");
}

kernel!(SharedOdd, 1, 64, |gpu, args| {
    let offset = if args.fault { 4 } else { 8 };
    gpu.shared_store(SharedPtr::from_offset(offset), [1u32, 2]); // blame: shared misaligned
});

#[test]
fn a_misaligned_store_to_shared_memory() {
    let finding = Bench::new().fault::<SharedOdd>(1);
    assert_eq!((finding.kind, blamed(&finding)), (Misaligned, line(FILE, "shared misaligned")));
}

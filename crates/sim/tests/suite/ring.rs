//! A ring of stages in shared memory: one warp fills them, two read them. Right, and with each of its waits left out.
use lacuna_gpu::{Gpu, SharedPtr};
use lacuna_kernels::Kernel;
use lacuna_sim::FindingKind::{CopyInFlight, MismatchedBarrier, Race, UnfinishedBarrier};
use lacuna_sim::{Finding, FindingKind, Operation};

use crate::support::{Args, Bench, blamed, line, other};

const FILE: &str = include_str!("ring.rs");

const STAGES: u32 = 3;
const STEPS: u32 = 7;
/// Words of a stage: 32 by asynchronous copies, one by a plain store.
const STAGE: u32 = 36;
const THREADS: u32 = 96;

/// What a faulty ring leaves out.
const NO_WAIT_FOR_EMPTY: u32 = 1;
const NO_WAIT_FOR_FULL: u32 = 2;
const NO_WAIT_FOR_COPIES: u32 = 3;
const NO_LAST_WAIT_FOR_EMPTY: u32 = 4;

/// Each reader writes the sum, over the steps, of its neighbour's word and the stage's plain word.
struct Ring<const FAULT: u32>;

impl<const FAULT: u32> Kernel for Ring<FAULT> {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = 4 * STAGES * STAGE;

    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let keeps = |part: u32| !args.fault || FAULT != part;
        let (thread, lane) = (gpu.thread_idx_x(), gpu.lane_id());
        let word = |stage: u32, index: u32| SharedPtr::<u32>::from_offset(4 * (stage * STAGE + index));
        let (full, empty) = (|stage: u32| 1 + stage, |stage: u32| 1 + STAGES + stage);
        let mut sum = 0;
        for step in 0..STEPS {
            let stage = step % STAGES;
            // SAFETY: the input has more than 32 words a step; barriers order the accesses to a stage.
            unsafe {
                if thread < 32 {
                    let last = step + 1 == STEPS;
                    if step >= STAGES && keeps(NO_WAIT_FOR_EMPTY) && (keeps(NO_LAST_WAIT_FOR_EMPTY) || !last)
                    {
                        gpu.barrier_sync(empty(stage), THREADS);
                    }
                    gpu.copy_async::<u32, 1>(word(stage, lane), args.input.add((32 * step + lane) as usize)); // blame: copy
                    if lane == 0 {
                        gpu.shared_store(word(stage, 32), [1000 * step]); // blame: plain
                    }
                    gpu.copy_async_commit();
                    if keeps(NO_WAIT_FOR_COPIES) {
                        gpu.copy_async_wait::<0>();
                    }
                    gpu.barrier_arrive(full(stage), THREADS); // blame: filled
                } else {
                    if keeps(NO_WAIT_FOR_FULL) {
                        gpu.barrier_sync(full(stage), THREADS);
                    }
                    let [neighbour] = gpu.shared_load::<u32, 1>(word(stage, lane ^ 1)); // blame: read copied
                    let [plain] = gpu.shared_load::<u32, 1>(word(stage, 32)); // blame: read plain
                    sum += neighbour + plain;
                    if step + STAGES < STEPS {
                        gpu.barrier_arrive(empty(stage), THREADS); // blame: emptied
                    }
                }
            }
        }
        if thread < 32 {
            gpu.copy_async_wait::<0>();
        } else {
            // SAFETY: the output has more words than the block threads.
            unsafe { gpu.store(args.output.add(thread as usize - 32), [sum]) };
        }
    }
}

#[test]
fn a_ring_computes_and_is_clean() {
    let bench = Bench::zeroed();
    let report = bench.run::<Ring<0>>(1);
    let sum = |lane: u32| (0..STEPS).map(|step| 32 * step + (lane ^ 1) + 1000 * step).sum::<u32>();
    let expected: Vec<u32> = (0..64).map(|thread| sum(thread % 32)).collect();
    assert_eq!(bench.output()[..64], expected);
    let barriers = report.total(|operation| operation == Operation::NamedBarrier);
    assert_eq!(barriers.executions, u64::from(THREADS * (STEPS + (STEPS - STAGES))));
}

/// Whether some finding is of this class and between these lines, in either order.
fn has(findings: &[Finding], kind: FindingKind, lines: [&str; 2]) -> bool {
    let [a, b] = lines.map(|name| line(FILE, name));
    findings.iter().any(|finding| {
        let found = (blamed(finding), other(finding));
        finding.kind == kind && (found == (a, b) || found == (b, a))
    })
}

#[test]
fn a_stage_that_is_filled_before_it_is_empty() {
    let findings = Bench::zeroed().faults::<Ring<NO_WAIT_FOR_EMPTY>>(1);
    // The filling warp comes to the first stage's barrier again before the readers have come once.
    assert!(has(&findings, MismatchedBarrier, ["filled", "filled"]), "{findings:#?}");
    assert!(has(&findings, Race, ["copy", "read copied"]), "{findings:#?}");
    assert!(has(&findings, Race, ["plain", "read plain"]), "{findings:#?}");
}

#[test]
fn a_stage_that_is_read_before_it_is_full() {
    let findings = Bench::zeroed().faults::<Ring<NO_WAIT_FOR_FULL>>(1);
    assert!(has(&findings, Race, ["copy", "read copied"]), "{findings:#?}");
    assert!(has(&findings, Race, ["plain", "read plain"]), "{findings:#?}");
}

#[test]
fn a_stage_that_is_announced_before_its_copies_have_landed() {
    let findings = Bench::zeroed().faults::<Ring<NO_WAIT_FOR_COPIES>>(1);
    assert!(has(&findings, CopyInFlight, ["copy", "read copied"]), "{findings:#?}");
    assert!(!has(&findings, Race, ["plain", "read plain"]), "{findings:#?}");
}

#[test]
fn a_last_fill_that_does_not_wait_for_the_readers() {
    let findings = Bench::zeroed().faults::<Ring<NO_LAST_WAIT_FOR_EMPTY>>(1);
    assert!(has(&findings, Race, ["copy", "read copied"]), "{findings:#?}");
    let unfinished = findings.iter().find(|finding| finding.kind == UnfinishedBarrier).unwrap();
    assert_eq!(blamed(unfinished), line(FILE, "emptied"));
    assert!(unfinished.detail.contains("64 of 96"), "{unfinished}");
}

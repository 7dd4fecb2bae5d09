//! Hand-over between blocks: the last one sums what all have written.
use lacuna_gpu::{FULL_WARP, GlobalMut, Gpu, SharedPtr};
use lacuna_kernels::Kernel;
use lacuna_sim::Finding;
use lacuna_sim::FindingKind::RaceBetweenBlocks;

use crate::support::{Args, Bench, blamed, kernel, line, other};

const FILE: &str = include_str!("handover.rs");
const BLOCKS: u32 = 3;

fn counter(args: Args) -> GlobalMut<u32> {
    args.output.add(255)
}

const NO_FENCE: u32 = 0;
const NO_BARRIER: u32 = 1;
const LATE_FENCE: u32 = 2;
const EVERY_BLOCK: u32 = 3;
const WRITES_AGAIN: u32 = 4;
const NO_ATOMIC: u32 = 5;

/// Every thread leaves a number; the block that counts last adds up, and sets the counter back.
struct LastBlock<const FAULT: u32>;
impl<const FAULT: u32> Kernel for LastBlock<FAULT> {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 64;
    const SHARED_BYTES: u32 = 4;
    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let (thread, block) = (gpu.thread_idx_x(), gpu.block_idx_x());
        let has = |fault| args.fault && FAULT == fault;
        let place = |block: u32| args.output.add((64 * block + thread) as usize);
        let flag = SharedPtr::<u32>::from_offset(0);
        // SAFETY: three blocks' numbers, 32 sums and the counter have places of their own.
        unsafe {
            if has(LATE_FENCE) {
                gpu.thread_fence();
            }
            gpu.store(place(block), [block + thread]); // blame: number
            if !has(NO_FENCE) && !has(LATE_FENCE) {
                gpu.thread_fence();
            }
            if !has(NO_BARRIER) {
                gpu.sync_threads();
            }
            // The second warp, so that without the barrier the first is ahead of it.
            if thread == 32 {
                let to = if has(NO_ATOMIC) { args.output.add((252 + block) as usize) } else { counter(args) };
                let old = if has(NO_ATOMIC) { BLOCKS - 1 } else { gpu.atomic_add(to, 1) };
                gpu.shared_store(flag, [old + 1]);
            }
            gpu.sync_threads();
            if has(WRITES_AGAIN) {
                gpu.store(place(block), [0]); // blame: again
            }
            let [count] = gpu.shared_load::<u32, 1>(flag);
            if count == BLOCKS || has(EVERY_BLOCK) {
                let mut sum = 0;
                for other in 0..BLOCKS {
                    let [number] = gpu.load::<u32, 1>(place(other)); // blame: sum
                    sum += number;
                }
                if count == BLOCKS && thread < 32 && !has(NO_ATOMIC) {
                    gpu.store(args.output.add((192 + thread) as usize), [sum]);
                }
            }
            if count == BLOCKS && thread == 32 && !has(NO_ATOMIC) {
                gpu.atomic_add(counter(args), BLOCKS.wrapping_neg());
            }
        }
    }
}

#[test]
fn the_last_block_may_read_what_all_have_fenced() {
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let bench = Bench::zeroed();
        pool.install(|| bench.run::<LastBlock<NO_FENCE>>(BLOCKS));
        let expected: Vec<u32> = (0..32).map(|thread| 3 * thread + 3).collect();
        assert_eq!(bench.output()[192..224], expected);
        assert_eq!(bench.output()[255], 0);
    }
}

/// The races of a fault, which must be between these lines.
fn race<K: Kernel<Args = Args>>(blocks: u32, writes: &str, reads: &str) -> Vec<Finding> {
    let findings = Bench::zeroed().faults::<K>(blocks);
    for finding in &findings {
        assert_eq!(finding.kind, RaceBetweenBlocks, "{finding}");
        assert_eq!(blamed(finding), line(FILE, reads), "{finding}");
        assert_eq!(other(finding), line(FILE, writes), "{finding}");
    }
    findings
}

#[test]
fn numbers_without_a_fence() {
    let findings = race::<LastBlock<NO_FENCE>>(BLOCKS, "number", "sum");
    assert_eq!(findings[0].count, 2 * 64, "all but the last block's own");
}

#[test]
fn a_fence_before_the_numbers() {
    race::<LastBlock<LATE_FENCE>>(BLOCKS, "number", "sum");
}

#[test]
fn a_count_that_does_not_wait_for_the_other_warp() {
    race::<LastBlock<NO_BARRIER>>(BLOCKS, "number", "sum");
}

#[test]
fn sums_of_blocks_that_are_not_the_last() {
    race::<LastBlock<EVERY_BLOCK>>(BLOCKS, "number", "sum");
}

#[test]
fn numbers_without_a_count() {
    race::<LastBlock<NO_ATOMIC>>(BLOCKS, "number", "sum");
}

#[test]
fn numbers_that_are_written_again() {
    race::<LastBlock<WRITES_AGAIN>>(BLOCKS, "again", "sum");
}

kernel!(OneThread, 1, 0, |gpu, args| {
    let block = gpu.block_idx_x();
    gpu.store(args.output.add(block as usize), [block]); // blame: one writes
    gpu.thread_fence();
    if gpu.atomic_add(counter(args), 1) == 9 {
        if !args.fault {
            gpu.thread_fence();
        }
        for other in 0..10 {
            gpu.load::<u32, 1>(args.output.add(other)); // blame: one reads
        }
        gpu.atomic_add(counter(args), 10u32.wrapping_neg());
    }
});

#[test]
fn loads_that_may_run_ahead_of_the_count() {
    let findings = race::<OneThread>(10, "one writes", "one reads");
    assert_eq!(findings[0].count, 9);
}

kernel!(OneWarp, 32, 0, |gpu, args| {
    let (lane, block) = (gpu.lane_id() as usize, gpu.block_idx_x() as usize);
    gpu.store(args.output.add(32 * block + lane), [1]); // blame: lane writes
    if !args.fault {
        gpu.sync_warp(FULL_WARP);
    }
    let mut last = 0;
    if lane == 31 {
        gpu.thread_fence();
        last = gpu.atomic_add(counter(args), 1);
        gpu.thread_fence();
    }
    gpu.sync_warp(FULL_WARP);
    if gpu.warp_shuffle_idx(FULL_WARP, last, 31, 32) == 3 {
        for other in 0..4 {
            let [..] = gpu.load::<u32, 4>(args.output.add(32 * other + lane / 4 * 4)); // blame: warp reads
        }
        gpu.sync_warp(FULL_WARP);
        if lane == 31 {
            gpu.atomic_add(counter(args), 4u32.wrapping_neg());
        }
    }
});

#[test]
fn a_fence_covers_what_a_barrier_put_before_it() {
    race::<OneWarp>(4, "lane writes", "warp reads");
}

kernel!(OneLane, 32, 0, |gpu, args| {
    let (lane, block) = (gpu.lane_id(), gpu.block_idx_x());
    let mut count = 0;
    if lane == 0 {
        gpu.store(args.output.add(block as usize), [block]); // blame: lane 0 writes
        gpu.thread_fence();
        count = gpu.atomic_add(counter(args), 1);
    }
    if args.fault {
        gpu.barrier_arrive(1, 32);
    } else {
        gpu.barrier_sync(1, 32);
    }
    if lane == 0 && count == 9 {
        for other in 0..10 {
            gpu.load::<u32, 1>(args.output.add(other)); // blame: lane 0 reads
        }
        gpu.atomic_add(counter(args), 10u32.wrapping_neg());
    }
});

#[test]
fn arriving_at_a_named_barrier_does_not_hold_loads_back() {
    race::<OneLane>(10, "lane 0 writes", "lane 0 reads");
}

//! Counters, their independence of the host's threads, and the model.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr};
use lacuna_kernels::Kernel;
use lacuna_sim::{Counts, LaunchError, Machine, Operation, Report};

use crate::support::{Args, Bench, kernel, line};

const FILE: &str = include_str!("counters.rs");

fn counts(report: &Report, name: &str) -> Counts {
    let number = line(FILE, name);
    let mut lines = report.lines.iter().filter(|line| line.source.line == number);
    let counts = lines.next().unwrap_or_else(|| panic!("nothing was counted at {name}")).counts;
    assert!(lines.next().is_none(), "one operation at {name}");
    counts
}

kernel!(GlobalPatterns, 32, 0, |gpu, args| {
    let lane = gpu.lane_id() as usize;
    for _ in 0..3 {
        gpu.load_readonly::<u32, 1>(args.input.add(lane)); // blame: coalesced
    }
    gpu.load_readonly::<u32, 4>(args.input.add(4 * lane)); // blame: vector
    gpu.load_readonly::<u32, 1>(args.input.add(8 * lane)); // blame: stride
    gpu.load_readonly::<u32, 1>(args.input.add(77)); // blame: broadcast
    gpu.load_readonly::<u32, 1>(args.input.add(7 + lane)); // blame: unaligned
    gpu.load_readonly::<u32, 1>(args.input.add(31 - lane)); // blame: backwards
    if lane < 8 && gpu.block_idx_x() == 0 {
        gpu.store(args.output.add(lane), [1]); // blame: part
    }
});

#[test]
fn sectors_of_global_requests() {
    let report = Bench::new().run::<GlobalPatterns>(2);
    let sectors = |name| counts(&report, name).sectors_per_request();
    assert_eq!(counts(&report, "coalesced").requests, 6);
    assert_eq!(counts(&report, "coalesced").bytes, 6 * 128);
    assert_eq!(sectors("coalesced"), 4.0);
    assert_eq!(sectors("vector"), 16.0);
    assert_eq!(sectors("stride"), 32.0);
    assert_eq!(sectors("broadcast"), 1.0);
    assert_eq!(sectors("unaligned"), 5.0);
    assert_eq!(sectors("backwards"), 4.0);
    assert_eq!((sectors("part"), counts(&report, "part").executions), (1.0, 8));
    assert_eq!((report.sectors_read, report.sectors_written), (32, 1));
    assert_eq!(report.block_sectors_read, 64);
}

struct Bank<const BYTES_APART: u32>;
impl<const BYTES_APART: u32> Kernel for Bank<BYTES_APART> {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 32;
    const SHARED_BYTES: u32 = 32 * 128 + 16;
    unsafe fn run<G: Gpu>(gpu: G, _: Args) {
        let at = gpu.lane_id() * BYTES_APART;
        // SAFETY: lanes are at most 128 bytes apart, and each has its own place or writes the same value as others.
        unsafe {
            let places = 32 * 128 / 16;
            let mut place = gpu.lane_id();
            while place < places {
                gpu.shared_store(SharedPtr::from_offset(16 * place), [0u32; 4]);
                place += 32;
            }
            gpu.sync_warp(FULL_WARP);
            gpu.shared_load::<u32, 1>(SharedPtr::from_offset(at)); // blame: word
            gpu.shared_load::<u32, 2>(SharedPtr::from_offset(at & !7)); // blame: pair
            gpu.shared_load::<u32, 4>(SharedPtr::from_offset(at & !15)); // blame: quad
        }
    }
}

fn wavefronts<const BYTES_APART: u32>() -> [u64; 3] {
    let report = Bench::new().run::<Bank<BYTES_APART>>(1);
    ["word", "pair", "quad"].map(|name| counts(&report, name).wavefronts)
}

#[test]
fn bank_conflicts_of_shared_requests() {
    assert_eq!(wavefronts::<0>(), [1, 1, 1], "broadcast");
    assert_eq!(wavefronts::<4>()[0], 1, "a word each");
    assert_eq!(wavefronts::<8>()[..2], [2, 2], "a pair each");
    assert_eq!(wavefronts::<16>()[2], 4, "a quad each");
    assert_eq!(wavefronts::<16>()[0], 4, "every fourth bank");
    assert_eq!(wavefronts::<128>(), [32, 32, 32], "all in one bank");
}

kernel!(HalvesTogether, 32, 1024, |gpu, _args| {
    let lane = gpu.lane_id();
    gpu.shared_store(SharedPtr::from_offset(16 * lane), [0u32; 4]);
    gpu.shared_store(SharedPtr::from_offset(512 + 16 * lane), [0u32; 4]);
    gpu.sync_warp(FULL_WARP);
    gpu.shared_load::<u32, 4>(SharedPtr::from_offset(lane / 16 * 144)); // blame: apart
    gpu.shared_load::<u32, 4>(SharedPtr::from_offset(lane / 16 * 128)); // blame: same banks
});

#[test]
fn broadcasts_to_halves_of_a_warp_share_a_pass_if_their_banks_differ() {
    let report = Bench::new().run::<HalvesTogether>(1);
    assert_eq!(counts(&report, "apart").wavefronts, 1);
    assert_eq!(counts(&report, "same banks").wavefronts, 2);
}

kernel!(Others, 32, 0, |gpu, args| {
    let mut sum = 0.0;
    for step in 0..5 {
        sum = gpu.fma(step as f32, 2.0, sum); // blame: fma
    }
    gpu.exp2_approx(sum); // blame: exp2
    gpu.warp_shuffle_down(FULL_WARP, sum, 1, 32); // blame: shuffle
    gpu.sync_threads(); // blame: barrier
    gpu.atomic_add(args.output.add(gpu.lane_id() as usize / 16), 1); // blame: atomic
});

#[test]
fn everything_else_is_counted_too() {
    let report = Bench::zeroed().run::<Others>(3);
    assert_eq!(report.fmas(), 3 * 32 * 5);
    for (name, executions) in [("fma", 480), ("exp2", 96), ("shuffle", 96), ("barrier", 96), ("atomic", 96)] {
        assert_eq!(counts(&report, name).executions, executions, "{name}");
    }
    let atomics = report.total(|operation| operation == Operation::Atomic);
    assert_eq!((atomics.requests, atomics.sectors), (3, 3));
}

kernel!(LongLoops, 32, 0, |gpu, args| {
    for step in 0..1000 {
        gpu.load_readonly::<u32, 1>(args.input.add((gpu.lane_id() as usize + step) % 200)); // blame: long
    }
    if gpu.lane_id() == 3 {
        for _ in 0..1000 {
            gpu.load_readonly::<u32, 1>(args.input); // blame: alone
        }
    }
});

#[test]
fn long_loops_make_whole_requests() {
    let report = Bench::new().run::<LongLoops>(1);
    assert_eq!((counts(&report, "long").requests, counts(&report, "long").executions), (1000, 32_000));
    assert_eq!(counts(&report, "alone").requests, 1000);
}

kernel!(Untidy, 64, 256, |gpu, args| {
    let thread = gpu.thread_idx_x();
    gpu.shared_store(SharedPtr::from_offset(4 * thread), [thread]);
    let [value] = gpu.shared_load::<u32, 1>(SharedPtr::from_offset(4 * (63 - thread)));
    let index = (gpu.block_idx_x() * 13 + value) as usize % 300;
    gpu.store(args.output.add(index), [value]);
    gpu.load_readonly::<u32, 1>(GlobalPtr::from_address(args.output.add(index / 2).address()));
    gpu.store(GlobalMut::from_address(args.output.address() + u64::from(thread)), [0u16]);
});

#[test]
fn reports_do_not_depend_on_the_host_s_threads() {
    let report = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        match pool.install(|| Bench::zeroed().launch::<Untidy>(100)) {
            Err(LaunchError::Findings(report)) => *report,
            other => panic!("findings expected, got {other:?}"),
        }
    };
    let alone = report(1);
    assert!(alone.findings.len() >= 5, "{alone}");
    for threads in [2, 5] {
        assert_eq!(report(threads), alone);
    }
}

#[test]
fn the_model_adds_up() {
    let report = Bench::new().run::<GlobalPatterns>(200);
    let estimate = report.estimate(&Machine::A100, 32);
    assert_eq!((estimate.machine, estimate.residency.blocks_per_sm), ("A100", 32));
    let loads = 200.0 * (3.0 * 4.0 + 16.0 + 32.0 + 1.0 + 5.0 + 4.0) * 32.0;
    let l1_us = loads / (128.0 * 108.0 * 1410.0);
    assert!((estimate.l1_us - l1_us).abs() < 1e-9);
    assert!((estimate.dram_us - 33.0 * 32.0 / 2.039e6).abs() < 1e-9);
    assert!((estimate.imbalance - 216.0 / 200.0).abs() < 1e-9);
    // 200 blocks fit at once on 108 SMs: one wave. The stores of 8 lanes of the first block write one sector.
    assert_eq!(estimate.latency_us, 2.0 + 0.5);
    let l2_us = (200.0 * 32.0 + 1.0) * 32.0 / (5120.0 * 1410.0);
    assert!((estimate.l2_us - l2_us).abs() < 1e-9);
    assert_eq!((estimate.shared_us, estimate.fma_us, estimate.special_us), (0.0, 0.0, 0.0));
    let model_us = 2.5 + (l1_us * 216.0 / 200.0).max(l2_us).max(33.0 * 32.0 / 2.039e6);
    assert!((estimate.model_us - model_us).abs() < 1e-9, "{estimate:?}");
    let json = serde_json::to_value(estimate).unwrap();
    assert_eq!(json["model_us"].as_f64(), Some(estimate.model_us));
    assert_eq!(json["limiter"], "blocks");
    assert!(serde_json::to_value(&report).unwrap()["lines"][0]["sectors"].is_u64());
}

kernel!(Heavy, 32, 1024, |gpu, _args| {
    for place in 0..8 {
        gpu.shared_store(SharedPtr::from_offset(4 * (gpu.lane_id() + 32 * place)), [0u32]);
    }
    let mut sum = 1.0;
    for _ in 0..500 {
        sum = gpu.fma(sum, 0.5, 1.0);
    }
    for _ in 0..50 {
        sum = gpu.exp2_approx(-sum);
    }
});

#[test]
fn the_model_takes_the_largest_term_of_an_sm() {
    let (blocks, machine) = (1000.0, Machine::V100);
    let estimate = Bench::new().run::<Heavy>(1000).estimate(&machine, 32);
    let per_us = 80.0 * 1530.0;
    let expected = [
        ("shared", estimate.shared_us, blocks * 8.0 * 128.0 / (128.0 * per_us)),
        ("fma", estimate.fma_us, blocks * 32.0 * 500.0 / (64.0 * per_us)),
        ("special", estimate.special_us, blocks * 32.0 * 50.0 / (16.0 * per_us)),
        ("imbalance", estimate.imbalance, 13.0 * 80.0 / 1000.0),
        ("model", estimate.model_us, 2.5 + estimate.fma_us * 1.04),
    ];
    for (name, got, expected) in expected {
        assert!((got - expected).abs() < 1e-9, "{name}: {got}, expected {expected}");
    }
    assert_eq!((estimate.dram_us, estimate.l2_us, estimate.l1_us), (0.0, 0.0, 0.0));
}

#[test]
fn a_block_that_does_not_fit_takes_for_ever() {
    let estimate =
        Bench::new().run::<Heavy>(1).estimate(&Machine { shared_bytes: 1000, ..Machine::V100 }, 32);
    assert_eq!((estimate.residency.blocks_per_sm, estimate.model_us), (0, f64::INFINITY));
    assert!(serde_json::to_value(estimate).unwrap()["model_us"].is_null());
}

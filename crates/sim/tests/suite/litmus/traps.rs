//! Kernels that panic or never end.
use lacuna_gpu::FULL_WARP;
use lacuna_sim::FindingKind::{StepLimit, Trap};
use lacuna_sim::{LaunchError, Limits, Simulator};

use crate::support::{Bench, blamed, kernel, line};

const FILE: &str = include_str!("traps.rs");

kernel!(Panics, 64, 0, |gpu, args| {
    gpu.sync_warp(FULL_WARP);
    assert!(!args.fault || gpu.thread_idx_x() != 33, "thread 33 gives up"); // blame: trap
    gpu.sync_threads();
});

#[test]
fn a_panic_is_a_trap_and_ends_the_block() {
    let finding = Bench::new().fault::<Panics>(3);
    assert_eq!((finding.kind, blamed(&finding)), (Trap, line(FILE, "trap")));
    assert_eq!((finding.thread, finding.block, finding.count), (Some(33), [0, 0, 0], 3));
    assert_eq!(finding.detail, "thread 33 gives up");
}

kernel!(SpinsForEver, 32, 0, |gpu, args| {
    let mut go_on = true;
    while go_on {
        let [value] = gpu.load::<u32, 1>(args.output); // blame: spin
        go_on = args.fault && value == 0;
    }
});

/// A bench whose threads may take 1000 steps.
fn limited() -> Bench {
    let mut bench = Bench::zeroed();
    let limited = Simulator::with_limits(Limits { steps_per_thread: 1000, ..Limits::default() });
    let output = limited.alloc(4).unwrap();
    limited.fill(output, 4, 0).unwrap();
    bench.args.output = lacuna_gpu::GlobalMut::from_address(output);
    bench.simulator = limited;
    bench
}

#[test]
fn a_loop_without_end_is_stopped() {
    let mut bench = limited();
    bench.run::<SpinsForEver>(1);
    bench.args.fault = true;
    let Err(LaunchError::Findings(report)) = bench.launch::<SpinsForEver>(1) else { panic!("not found") };
    assert_eq!(report.findings.len(), 1);
    let finding = &report.findings[0];
    assert_eq!((finding.kind, blamed(finding)), (StepLimit, line(FILE, "spin")));
    assert!(finding.detail.contains("1000"));
}

#[test]
fn blocks_that_have_not_started_are_skipped_after_the_step_limit() {
    let mut bench = limited();
    bench.args.fault = true;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let result = pool.install(|| bench.launch::<SpinsForEver>(1 << 20));
    let Err(LaunchError::Findings(report)) = result else { panic!("not found") };
    assert_eq!(report.findings.len(), 1);
    // At most one block a host thread had started.
    assert!((1..=2).contains(&report.findings[0].count), "{report}");
}

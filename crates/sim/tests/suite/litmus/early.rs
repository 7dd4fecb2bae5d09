//! Kernels that look ahead before they wait for the launch before them.
use lacuna_gpu::GlobalPtr;
use lacuna_sim::FindingKind::TooEarly;

use crate::support::{Bench, blamed, kernel, line};

const FILE: &str = include_str!("early.rs");

kernel!(LooksAhead, 32, 0, looks_ahead, |gpu, args| {
    let index = gpu.thread_idx_x() as usize;
    let [value] = gpu.load_readonly::<u32, 1>(args.input.add(index));
    if args.fault {
        gpu.store(args.output.add(index), [value]); // blame: early
    }
    gpu.grid_dependency_wait();
    gpu.store(args.output.add(index), [value]);
});

#[test]
fn a_store_before_the_wait() {
    let finding = Bench::new().fault::<LooksAhead>(1);
    assert_eq!((finding.kind, blamed(&finding)), (TooEarly, line(FILE, "early")));
    assert_eq!(finding.count, 32);
}

kernel!(NeverWaits, 32, 0, looks_ahead, |gpu, args| {
    let index = gpu.thread_idx_x();
    if index < 16 || !args.fault {
        gpu.grid_dependency_wait();
    }
    gpu.store(args.output.add(index as usize), [index]); // blame: never waited
});

#[test]
fn a_store_of_threads_that_never_wait() {
    let finding = Bench::new().fault::<NeverWaits>(1);
    assert_eq!((finding.kind, blamed(&finding)), (TooEarly, line(FILE, "never waited")));
    assert_eq!((finding.thread, finding.count), (Some(16), 16));
}

// Writes its output; for the fault it reads, before it waits, what the launch before wrote.
kernel!(ReadsAhead, 32, 0, looks_ahead, |gpu, args| {
    let index = gpu.thread_idx_x() as usize;
    if args.fault {
        gpu.load_readonly::<u32, 1>(GlobalPtr::from_address(args.output.add(index).address())); // blame: ahead
    }
    gpu.grid_dependency_wait();
    if !args.fault {
        gpu.store(args.output.add(index), [1]);
    }
});

#[test]
fn a_load_of_what_the_launch_before_wrote() {
    let finding = Bench::new().fault::<ReadsAhead>(1);
    assert_eq!((finding.kind, blamed(&finding)), (TooEarly, line(FILE, "ahead")));
    assert_eq!(finding.count, 32);
}

#[test]
fn what_the_host_has_waited_for_may_be_read_ahead() {
    let mut bench = Bench::new();
    bench.run::<ReadsAhead>(1);
    bench.simulator.synchronize();
    bench.args.fault = true;
    bench.run::<ReadsAhead>(1);
}

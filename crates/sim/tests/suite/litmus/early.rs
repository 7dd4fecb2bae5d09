//! Kernels that look ahead before they wait for the launch before them.
use lacuna_gpu::Gpu;
use lacuna_kernels::Kernel;
use lacuna_sim::FindingKind::TooEarly;

use crate::support::{Args, Bench, blamed, line};

const FILE: &str = include_str!("early.rs");

/// Reads its input before it waits, which it may, and writes its output; for the fault it writes before.
struct LooksAhead;

impl Kernel for LooksAhead {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 32;
    const SHARED_BYTES: u32 = 0;
    const LOOKS_AHEAD: bool = true;

    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let index = gpu.thread_idx_x() as usize;
        // SAFETY: the simulator checks every access.
        unsafe {
            let [value] = gpu.load_readonly::<u32, 1>(args.input.add(index));
            if args.fault {
                gpu.store(args.output.add(index), [value]); // blame: early
            }
            gpu.wait_for_previous();
            gpu.store(args.output.add(index), [value]);
        }
    }
}

#[test]
fn a_store_before_the_wait() {
    let finding = Bench::new().fault::<LooksAhead>(1);
    assert_eq!((finding.kind, blamed(&finding)), (TooEarly, line(FILE, "early")));
    assert_eq!(finding.count, 32);
}

/// As [`LooksAhead`], but its second half never waits.
struct NeverWaits;

impl Kernel for NeverWaits {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 32;
    const SHARED_BYTES: u32 = 0;
    const LOOKS_AHEAD: bool = true;

    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let index = gpu.thread_idx_x();
        if index < 16 || !args.fault {
            gpu.wait_for_previous();
        }
        // SAFETY: the simulator checks every access.
        unsafe { gpu.store(args.output.add(index as usize), [index]) }; // blame: never waited
    }
}

#[test]
fn a_store_of_threads_that_never_wait() {
    let finding = Bench::new().fault::<NeverWaits>(1);
    assert_eq!((finding.kind, blamed(&finding)), (TooEarly, line(FILE, "never waited")));
    assert_eq!((finding.thread, finding.count), (Some(16), 16));
}

//! Simulated loads per second on one core, with all checks on. The aim is 10 million.
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr};
use lacuna_kernels::Kernel;
use lacuna_sim::Simulator;
use rayon::{ThreadPool, ThreadPoolBuilder};

const BLOCKS: u32 = 64;
const THREADS: u32 = 128;
const STEPS: usize = 64;
const LOADS: u64 = BLOCKS as u64 * THREADS as u64 * STEPS as u64;

#[derive(Clone, Copy)]
struct Args {
    input: GlobalPtr<f32>,
    output: GlobalMut<f32>,
}

/// What the kernels do in their loop: the load that is measured. `index` counts the loads of the grid.
trait Step: 'static {
    const SHARED_BYTES: u32 = 0;
    unsafe fn step<G: Gpu>(gpu: G, args: &Args, index: usize, step: usize) -> f32;
}

/// Coalesced loads of single values.
struct Scalar;
impl Step for Scalar {
    unsafe fn step<G: Gpu>(gpu: G, args: &Args, index: usize, _: usize) -> f32 {
        // SAFETY: the caller's index is inside the input.
        let [value] = unsafe { gpu.load_readonly::<f32, 1>(args.input.add(index)) };
        value
    }
}

/// Loads of four values, and a fused multiply-add for each: the inner loop of a sparse product.
struct Vector;
impl Step for Vector {
    unsafe fn step<G: Gpu>(gpu: G, args: &Args, index: usize, _: usize) -> f32 {
        // SAFETY: the caller's index is inside the input, and a quarter of it even more so.
        let values = unsafe { gpu.load_readonly::<f32, 4>(args.input.add(index / 4 * 4)) };
        values.into_iter().fold(0.0, |sum, value| gpu.fma(value, 2.0, sum))
    }
}

/// Loads of four values from shared memory.
struct Shared;
impl Step for Shared {
    const SHARED_BYTES: u32 = THREADS * 16;
    unsafe fn step<G: Gpu>(gpu: G, _: &Args, _: usize, step: usize) -> f32 {
        let own = SharedPtr::<f32>::from_offset(gpu.thread_idx_x() * 16);
        if step == 0 {
            // SAFETY: each thread has four values of its own.
            unsafe { gpu.shared_store(own, [1.0f32; 4]) };
        }
        // SAFETY: as above; the first step has stored them.
        let values = unsafe { gpu.shared_load::<f32, 4>(own) };
        values[0]
    }
}

/// Loads of single values, each followed by a shuffle.
struct Shuffle;
impl Step for Shuffle {
    unsafe fn step<G: Gpu>(gpu: G, args: &Args, index: usize, _: usize) -> f32 {
        // SAFETY: the caller's index is inside the input.
        let [value] = unsafe { gpu.load_readonly::<f32, 1>(args.input.add(index)) };
        gpu.warp_shuffle_xor(FULL_WARP, value, 1, 32)
    }
}

struct Loop<S>(S);
impl<S: Step> Kernel for Loop<S> {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = S::SHARED_BYTES;
    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let thread = gpu.thread_idx_x() as usize;
        let first = gpu.block_idx_x() as usize * THREADS as usize * STEPS;
        let mut sum = 0.0;
        for step in 0..STEPS {
            // SAFETY: the input has a value for each load of the grid.
            sum += unsafe { S::step(gpu, &args, first + step * THREADS as usize + thread, step) };
        }
        gpu.sync_warp(FULL_WARP);
        let index = (gpu.block_idx_x() * THREADS) as usize + thread;
        // SAFETY: the output has a value for each thread.
        unsafe { gpu.store(args.output.add(index), [sum]) };
    }
}

fn measure<S: Step>(criterion: &mut Criterion, pool: &ThreadPool, name: &str) {
    let simulator = Simulator::new();
    let input = simulator.alloc(4 * LOADS).expect("enough memory");
    let output = simulator.alloc(4 * u64::from(BLOCKS * THREADS)).expect("enough memory");
    simulator.fill(input, 4 * LOADS, 0).expect("a live buffer");
    let args = Args { input: GlobalPtr::from_address(input), output: GlobalMut::from_address(output) };
    simulator.launch::<Loop<S>>([BLOCKS, 1, 1], args).expect("no findings");
    let mut group = criterion.benchmark_group("loads");
    group.throughput(Throughput::Elements(LOADS)).sample_size(20);
    group.bench_function(name, |bencher| {
        bencher
            .iter(|| pool.install(|| black_box(simulator.launch::<Loop<S>>([BLOCKS, 1, 1], args)).is_ok()));
    });
    group.finish();
}

fn benchmarks(criterion: &mut Criterion) {
    let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    measure::<Scalar>(criterion, &pool, "global, 4 bytes");
    measure::<Vector>(criterion, &pool, "global, 16 bytes and 4 fma");
    measure::<Shuffle>(criterion, &pool, "global, 4 bytes, and a shuffle");
    measure::<Shared>(criterion, &pool, "shared, 16 bytes");
}

criterion_group!(loads, benchmarks);
criterion_main!(loads);

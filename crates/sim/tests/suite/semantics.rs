//! Operations give what a GPU gives.
use lacuna_gpu::{FULL_WARP, GlobalMut, Gpu, SharedPtr};
use lacuna_kernels::Kernel;
use lacuna_sim::{Limits, MemoryError, Simulator};

use crate::support::{Args, Bench, LEN, kernel};

const IDX: u32 = 0;
const DOWN: u32 = 1;
const UP: u32 = 2;
const XOR: u32 = 3;

/// Shuffles `100 + lane` by `BY` in segments of `WIDTH` lanes.
struct Shuffle<const MODE: u32, const WIDTH: u32, const BY: u32>;

impl<const MODE: u32, const WIDTH: u32, const BY: u32> Kernel for Shuffle<MODE, WIDTH, BY> {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 32;
    const SHARED_BYTES: u32 = 0;
    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let value = 100 + gpu.lane_id();
        let got = match MODE {
            IDX => gpu.warp_shuffle_idx(FULL_WARP, value, BY, WIDTH),
            DOWN => gpu.warp_shuffle_down(FULL_WARP, value, BY, WIDTH),
            UP => gpu.warp_shuffle_up(FULL_WARP, value, BY, WIDTH),
            _ => gpu.warp_shuffle_xor(FULL_WARP, value, BY, WIDTH),
        };
        // SAFETY: the output has more than 32 elements.
        unsafe { gpu.store(args.output.add(gpu.lane_id() as usize), [got]) };
    }
}

/// What the shuffle must give: lists are cut into segments, and each lane picks from its own.
fn shuffled(mode: u32, width: usize, by: usize) -> Vec<u32> {
    let lanes: Vec<u32> = (100..132).collect();
    let pick = |segment: &[u32], lane: usize| match mode {
        IDX => segment[by % width],
        DOWN => *segment.get(lane + by).unwrap_or(&segment[lane]),
        UP => lane.checked_sub(by).map_or(segment[lane], |from| segment[from]),
        _ => segment[lane ^ by],
    };
    lanes.chunks(width).flat_map(|segment| (0..width).map(move |lane| pick(segment, lane))).collect()
}

fn check_shuffle<const MODE: u32, const WIDTH: u32, const BY: u32>() {
    let bench = Bench::zeroed();
    bench.run::<Shuffle<MODE, WIDTH, BY>>(1);
    let expected = shuffled(MODE, WIDTH as usize, BY as usize);
    assert_eq!(bench.output()[..32], expected, "mode {MODE}, width {WIDTH}, by {BY}");
}

#[test]
fn shuffles_of_every_mode_and_width() {
    macro_rules! all {
        ($($width:literal by $by:literal),*) => {$(
            check_shuffle::<IDX, $width, $by>();
            check_shuffle::<DOWN, $width, $by>();
            check_shuffle::<UP, $width, $by>();
            check_shuffle::<XOR, $width, $by>();
        )*};
    }
    all!(1 by 0, 2 by 1, 4 by 1, 4 by 3, 8 by 5, 16 by 8, 16 by 15, 32 by 0, 32 by 1, 32 by 17, 32 by 31);
    check_shuffle::<IDX, 8, 21>();
    check_shuffle::<DOWN, 8, 21>();
    check_shuffle::<UP, 8, 21>();
}

kernel!(Votes, 32, 0, |gpu, args| {
    let lane = gpu.lane_id();
    let half = if lane < 16 { 0x0000_ffff } else { 0xffff_0000 };
    let low = lane < 20;
    let ballot = gpu.warp_ballot(half, low);
    let all = u32::from(gpu.warp_all(half, low));
    let any = u32::from(gpu.warp_any(half, lane == 17));
    gpu.store(args.output.add(4 * lane as usize), [ballot, all, any, gpu.thread_idx_x()]);
});

#[test]
fn votes_of_half_warps() {
    let bench = Bench::zeroed();
    bench.run::<Votes>(1);
    let output = bench.output();
    assert_eq!(output[..4], [0xffff, 1, 0, 0]);
    assert_eq!(output[4 * 31..4 * 32], [0x000f_0000, 0, 1, 31]);
}

kernel!(VoteOfTheLiving, 32, 0, |gpu, args| {
    let lane = gpu.lane_id();
    if lane % 2 == 1 {
        return;
    }
    let ballot = gpu.warp_ballot(FULL_WARP, true);
    let all = u32::from(gpu.warp_all(FULL_WARP, true));
    gpu.store(args.output.add(lane as usize), [ballot, all]);
});

#[test]
fn exited_lanes_have_no_vote() {
    let bench = Bench::zeroed();
    bench.run::<VoteOfTheLiving>(1);
    assert_eq!(bench.output()[..2], [0x5555_5555, 1]);
}

kernel!(NestedMasks, 32, 0, |gpu, args| {
    if gpu.lane_id() == 1 {
        gpu.sync_warp(0b10);
    }
    gpu.sync_warp(FULL_WARP);
    gpu.store(args.output.add(gpu.lane_id() as usize), [1]);
});

#[test]
fn a_lane_may_synchronise_with_itself_first() {
    let bench = Bench::zeroed();
    bench.run::<NestedMasks>(1);
    assert_eq!(bench.output()[..33].iter().sum::<u32>(), 32);
}

kernel!(Reductions, 70, 0, |gpu, args| {
    let thread = gpu.thread_idx_x();
    let count = gpu.sync_threads_count(thread.is_multiple_of(7));
    let none = u32::from(gpu.sync_threads_or(false));
    let one = u32::from(gpu.sync_threads_or(thread == 69));
    if thread == 69 {
        gpu.store(args.output, [count, none, one, gpu.lane_id()]);
    }
});

#[test]
fn barriers_that_reduce() {
    let bench = Bench::zeroed();
    bench.run::<Reductions>(1);
    assert_eq!(bench.output()[..4], [10, 0, 1, 5]);
}

kernel!(Indices, 33, 0, |gpu, args| {
    let block =
        gpu.block_idx_x() + gpu.grid_dim_x() * (gpu.block_idx_y() + gpu.grid_dim_y() * gpu.block_idx_z());
    gpu.atomic_add(args.output.add(block as usize), gpu.thread_idx_x());
    let shape =
        [gpu.block_dim_x(), gpu.block_dim_y(), gpu.block_dim_z(), gpu.thread_idx_y(), gpu.thread_idx_z()];
    let index = 100 + shape.iter().fold(0, |index, &part| 3 * index + part) as usize;
    gpu.atomic_max(args.output.add(index % LEN), gpu.grid_dim_z());
});

#[test]
fn every_thread_of_an_odd_grid_runs_once() {
    let bench = Bench::zeroed();
    let report = bench.simulator.launch::<Indices>([3, 5, 2], bench.args).unwrap();
    assert_eq!((report.blocks(), report.threads), (30, 33));
    let output = bench.output();
    assert_eq!(output[..31], [[528; 30].as_slice(), &[0]].concat());
    let shape = 100 + (((33 * 3 + 1) * 3 + 1) * 3) * 3;
    assert_eq!(output[shape % LEN], 2);
}

kernel!(Atomics, 64, 16, |gpu, args| {
    let thread = gpu.thread_idx_x();
    let words = SharedPtr::<u32>::from_offset(0);
    if thread == 0 {
        gpu.shared_store(words, [0u32, 5]);
    }
    gpu.sync_threads();
    let ticket = gpu.shared_atomic_add(words, 2);
    gpu.shared_atomic_max(words.add(1), thread);
    gpu.sync_threads();
    let totals = gpu.shared_load::<u32, 2>(words);
    if thread == 0 {
        gpu.store(args.output, totals);
    }
    gpu.store(args.output.add(8 + thread as usize), [ticket]);
    let old = gpu.atomic_add::<f32>(GlobalMut::from_address(args.output.add(4).address()), 0.5);
    gpu.atomic_max(args.output.add(5), (2.0 * old) as u32);
    // Every second bit, each by four threads: the first of them finds it unset.
    let bit = 1 << (thread % 16 * 2);
    if gpu.atomic_or(args.output.add(6), bit) & bit == 0 {
        gpu.atomic_add(args.output.add(7), 1);
    }
});

#[test]
fn atomics_give_the_old_value_and_lose_nothing() {
    let bench = Bench::zeroed();
    bench.run::<Atomics>(1);
    let output = bench.output();
    assert_eq!(output[..2], [128, 63]);
    let mut tickets = output[8..72].to_vec();
    tickets.sort_unstable();
    assert_eq!(tickets, (0..64).map(|ticket| 2 * ticket).collect::<Vec<_>>());
    assert_eq!((f32::from_bits(output[4]), output[5]), (32.0, 63));
    assert_eq!(output[6..8], [0x5555_5555, 16]);
}

kernel!(Pipeline, 32, 512, |gpu, args| {
    let lane = gpu.lane_id();
    let stage = |number: u32| SharedPtr::<u32>::from_offset(number % 2 * 256 + lane * 8);
    let start = |number: u32| {
        gpu.copy_async::<u32, 2>(stage(number), args.input.add((number * 64 + lane * 2) as usize));
        gpu.copy_async_commit();
    };
    start(0);
    let mut sum = 0;
    for number in 0..3 {
        start(number + 1);
        gpu.copy_async_wait::<1>();
        sum += gpu.shared_load::<u32, 2>(stage(number)).iter().sum::<u32>();
    }
    gpu.copy_async_wait::<0>();
    gpu.store(args.output.add(lane as usize), [sum]);
});

#[test]
fn a_pipeline_of_asynchronous_copies() {
    let bench = Bench::zeroed();
    bench.run::<Pipeline>(1);
    let expected = |lane: u32| (0..3).map(|stage| 2 * (stage * 64 + lane * 2) + 1).sum::<u32>();
    assert_eq!(bench.output()[..32], (0..32).map(expected).collect::<Vec<_>>());
}

kernel!(SmallValues, 32, 0, |gpu, args| {
    let lane = gpu.lane_id() as usize;
    let bytes = GlobalMut::<u8>::from_address(args.output.address());
    gpu.store(bytes.add(lane), [lane as u8]);
    let halves = GlobalMut::<u16>::from_address(args.output.address() + 64);
    gpu.store_streaming(halves.add(2 * lane), [lane as u16, 7]);
    let sum = gpu.fma(2.0, gpu.log2_approx(8.0), gpu.exp2_approx(gpu.rcp_approx(0.5)));
    gpu.thread_fence();
    gpu.store(args.output.add(100 + lane), [sum as u32]);
    let powers = [-126.0, -126.5, f32::NEG_INFINITY, 3.0].map(|x| gpu.exp2_flush(x).to_bits());
    let nan = f32::from_bits(0xffc0_1234);
    let maxima = [(1.0, 2.0), (-1.0, f32::NEG_INFINITY), (nan, 1.0), (1.0, nan)];
    if lane == 0 {
        gpu.store(args.output.add(200), powers);
        gpu.store(args.output.add(204), maxima.map(|(a, b)| gpu.max_nan(a, b).to_bits()));
    }
});

#[test]
fn bytes_and_halves_keep_apart() {
    let bench = Bench::zeroed();
    bench.run::<SmallValues>(1);
    let output = bench.output();
    assert_eq!((output[0], output[7]), (0x0302_0100, 0x1f1e_1d1c));
    assert_eq!((output[16], output[47]), (0x0007_0000, 0x0007_001f));
    assert_eq!(output[131], 10);
    // Subnormal results are 0, and the least that is not stays.
    assert_eq!(output[200..204], [f32::MIN_POSITIVE.to_bits(), 0, 0, 8.0_f32.to_bits()]);
    assert_eq!(output[204..208], [2.0_f32.to_bits(), (-1.0_f32).to_bits(), 0x7fff_ffff, 0x7fff_ffff]);
}

#[test]
fn memory_is_written_filled_and_copied() {
    let simulator = Simulator::with_limits(Limits { memory_bytes: 100, ..Limits::default() });
    let (a, b) = (simulator.alloc(40).unwrap(), simulator.alloc(40).unwrap());
    simulator.write(a + 3, b"lacuna").unwrap();
    simulator.fill(a + 9, 2, b'!').unwrap();
    simulator.copy(b + 1, a + 3, 8).unwrap();
    let mut text = [0; 8];
    simulator.read(b + 1, &mut text).unwrap();
    assert_eq!(&text, b"lacuna!!");
    assert!(simulator.clone().is_same(&simulator) && !Simulator::new().is_same(&simulator));
    assert_eq!(simulator.alloc(21), Err(MemoryError::OutOfMemory { requested: 21, used: 80, limit: 100 }));
    simulator.free(a).unwrap();
    assert!(simulator.write(a, b"x").is_err());
    assert_eq!(simulator.used_bytes(), 40);
}

#[test]
fn copies_within_a_buffer_may_overlap() {
    const LEN: usize = 200_001;
    let before: Vec<u8> = (0..LEN).map(|index| (index * 7 / 3) as u8).collect();
    for (to, from, bytes) in [(3, 0, LEN - 3), (0, 3, LEN - 3), (100_000, 0, 100_001), (5, 5, 70_000)] {
        let simulator = Simulator::new();
        let base = simulator.alloc(LEN as u64).unwrap();
        simulator.write(base, &before).unwrap();
        simulator.copy(base + to as u64, base + from as u64, bytes as u64).unwrap();
        let mut expected = before.clone();
        expected.copy_within(from..from + bytes, to);
        let mut after = vec![0; LEN];
        simulator.read(base, &mut after).unwrap();
        assert!(after == expected, "{bytes} bytes from {from} to {to}");
    }
}

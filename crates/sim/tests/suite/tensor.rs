//! Tensor cores, loads of matrices, copies that may give zeros, and conversions do what a GPU does.
use half::{bf16, f16};
use lacuna_gpu::{Bf16, F16, FULL_WARP, GlobalPtr, Gpu, Real, SharedPtr};
use lacuna_kernels::Kernel;
use lacuna_sim::{Machine, Operation};

use crate::support::{Args, Bench, kernel};

const TF32: u32 = 0;
pub(crate) const HALF: u32 = 1;
pub(crate) const BRAIN: u32 = 2;

/// Small whole numbers, exact in every type.
pub(crate) fn a(row: u32, depth: u32) -> f32 {
    ((3 * row + 5 * depth) % 7) as f32 - 3.0
}
pub(crate) fn b(depth: u32, column: u32) -> f32 {
    ((2 * depth + 3 * column) % 5) as f32 - 2.0
}
pub(crate) fn c(row: u32, column: u32) -> f32 {
    100.0 * row as f32 - column as f32
}

/// Two numbers in a word.
pub(crate) fn pair(kind: u32, lower: f32, upper: f32) -> u32 {
    let bits = |x| if kind == HALF { f16::from_f32(x).to_bits() } else { bf16::from_f32(x).to_bits() };
    u32::from(bits(lower)) | u32::from(bits(upper)) << 16
}

/// The product of [`a`] and [`b`], plus [`c`], row by row in the output.
struct Product<const KIND: u32>;
impl<const KIND: u32> Kernel for Product<KIND> {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 32;
    const SHARED_BYTES: u32 = 0;
    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        let sums = [c(g, 2 * t), c(g, 2 * t + 1), c(g + 8, 2 * t), c(g + 8, 2 * t + 1)];
        let sums = if KIND == TF32 {
            let left = [a(g, t), a(g + 8, t), a(g, t + 4), a(g + 8, t + 4)];
            gpu.mma_tf32(left, [b(t, g), b(t + 4, g)], sums)
        } else {
            let along = |row, depth| pair(KIND, a(row, depth), a(row, depth + 1));
            let down = |depth, column| pair(KIND, b(depth, column), b(depth + 1, column));
            let left = [along(g, 2 * t), along(g + 8, 2 * t), along(g, 2 * t + 8), along(g + 8, 2 * t + 8)];
            let right = [down(2 * t, g), down(2 * t + 8, g)];
            if KIND == HALF { gpu.mma_f16(left, right, sums) } else { gpu.mma_bf16(left, right, sums) }
        };
        for (word, sum) in (0..).zip(sums) {
            let (row, column) = (g + word / 2 * 8, 2 * t + word % 2);
            if gpu.block_idx_x() == 0 {
                // SAFETY: the output has more than 16 · 8 elements.
                unsafe { gpu.store(args.output.add((8 * row + column) as usize), [sum.to_bits()]) };
            }
        }
    }
}

fn check_product<const KIND: u32>(depth: u32) {
    let bench = Bench::zeroed();
    bench.run::<Product<KIND>>(1);
    let output = bench.output();
    for row in 0..16 {
        for column in 0..8 {
            let sum: f32 = c(row, column) + (0..depth).map(|k| a(row, k) * b(k, column)).sum::<f32>();
            let got = f32::from_bits(output[(8 * row + column) as usize]);
            assert_eq!(got, sum, "type {KIND}, row {row}, column {column}");
        }
    }
}

#[test]
fn products_of_whole_numbers_are_exact() {
    check_product::<TF32>(8);
    check_product::<HALF>(16);
    check_product::<BRAIN>(16);
}

#[test]
fn products_are_counted_by_warps() {
    let report = Bench::zeroed().run::<Product<TF32>>(3);
    let of = |kind| report.total(|operation| operation == kind).executions;
    assert_eq!((of(Operation::MmaTf32), of(Operation::Mma)), (3, 0));
    assert_eq!(report.tensor_fmas(), 3 * 16 * 8 * 8);
    assert_eq!(Bench::zeroed().run::<Product<BRAIN>>(2).tensor_fmas(), 2 * 16 * 8 * 16);
}

#[test]
fn the_model_has_a_term_for_tensor_cores() {
    let us = |machine| {
        let tf32 = Bench::zeroed().run::<Product<TF32>>(50).estimate(machine, 32);
        let f16 = Bench::zeroed().run::<Product<HALF>>(50).estimate(machine, 32);
        assert_eq!(tf32.tensor_us, f16.tensor_us, "half the work at half the rate");
        f16
    };
    let expected = 50.0 * 2048.0 / (1024.0 * 108.0 * 1410.0);
    assert!((us(&Machine::A100).tensor_us - expected).abs() < 1e-12);
    assert!(us(&Machine::H200).model_us.is_finite());
    assert_eq!((us(&Machine::V100).tensor_us, us(&Machine::V100).model_us), (f64::INFINITY, f64::INFINITY));
}

kernel!(Odd, 32, 0, |gpu, args| {
    let lane = gpu.lane_id();
    let first = if lane < 4 { 1.0 } else { 0.0 };
    // Row 0 of A against column 0 of B, both in lanes 0 to 3; the other sums are +0.
    let low = f32::from_bits(1.0f32.to_bits() | 0x1fff);
    let [cut, ..] = gpu.mma_tf32([first * low, 0.0, 0.0, 0.0], [first, 0.0], [0.0; 4]);
    let [nan, ..] = gpu.mma_tf32([first, 0.0, 0.0, 0.0], [f32::NAN * first, 0.0], [0.0; 4]);
    let [infinite, ..] = gpu.mma_tf32([first, 0.0, 0.0, 0.0], [first, 0.0], [f32::INFINITY; 4]);
    // 2²⁴ + 3, where numbers are 2 apart.
    let [short, ..] = gpu.mma_tf32([0.75 * first, 0.0, 0.0, 0.0], [first, 0.0], [16_777_216.0; 4]);
    gpu.store(args.output.add(4 * lane as usize), [cut, nan, infinite, short].map(f32::to_bits));
});

#[test]
fn products_cut_off_and_pass_on_what_is_not_finite() {
    let bench = Bench::zeroed();
    bench.run::<Odd>(1);
    let output = bench.output();
    let numbers = |lane: usize| -> Vec<f32> {
        output[4 * lane..4 * lane + 4].iter().map(|&bits| f32::from_bits(bits)).collect()
    };
    assert_eq!(numbers(0)[0], 4.0, "the lower 13 bits do not count");
    assert_eq!(output[1], 0x7fff_ffff);
    assert_eq!(numbers(0)[2..], [f32::INFINITY, 16_777_218.0]);
    assert_eq!(numbers(9)[0].to_bits(), 0, "rows without numbers are +0");
}

/// Stores 32 rows of 8 numbers, last row first, and loads them as four matrices.
struct Matrices<const TRANSPOSED: bool>;
impl<const TRANSPOSED: bool> Kernel for Matrices<TRANSPOSED> {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 32;
    const SHARED_BYTES: u32 = 512;
    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let lane = gpu.lane_id();
        let row = SharedPtr::<u16>::from_offset(16 * (31 - lane));
        let numbers: [u16; 8] = std::array::from_fn(|column| (100 * lane) as u16 + column as u16);
        // SAFETY: each lane has 16 bytes of shared memory and four words of the output.
        unsafe {
            gpu.shared_store(row, numbers);
            gpu.sync_warp(FULL_WARP);
            let words = gpu.shared_load_matrices::<TRANSPOSED>(row);
            gpu.store(args.output.add(4 * lane as usize), words);
        }
    }
}

#[test]
fn matrices_are_spread_over_the_warp() {
    let [straight, turned] = [Bench::zeroed(), Bench::zeroed()];
    let report = straight.run::<Matrices<false>>(1);
    turned.run::<Matrices<true>>(1);
    let (straight, turned) = (straight.output(), turned.output());
    let element = |matrix: u32, row: u32, column: u32| 100 * (8 * matrix + row) + column;
    for lane in 0..32 {
        let (row, column) = (lane / 4, 2 * (lane % 4));
        for matrix in 0..4 {
            let at = (4 * lane + matrix) as usize;
            let expected = element(matrix, row, column) | element(matrix, row, column + 1) << 16;
            assert_eq!(straight[at], expected, "lane {lane}, matrix {matrix}");
            let expected = element(matrix, column, row) | element(matrix, column + 1, row) << 16;
            assert_eq!(turned[at], expected, "lane {lane}, matrix {matrix}, transposed");
        }
    }
    let loads = report.total(|operation| operation == Operation::SharedLoadMatrices);
    assert_eq!((loads.executions, loads.requests, loads.bytes, loads.wavefronts), (32, 1, 512, 4));
}

/// Rows of matrices, so many bytes apart.
struct Rows<const BYTES_APART: u32>;
impl<const BYTES_APART: u32> Kernel for Rows<BYTES_APART> {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 32;
    const SHARED_BYTES: u32 = 32 * 144;
    unsafe fn run<G: Gpu>(gpu: G, _: Args) {
        // SAFETY: rows are at most 144 bytes apart.
        unsafe {
            let mut place = 16 * gpu.lane_id();
            while place < Self::SHARED_BYTES {
                gpu.shared_store(SharedPtr::from_offset(place), [0u32; 4]);
                place += 512;
            }
            gpu.sync_warp(FULL_WARP);
            gpu.shared_load_matrices::<false>(SharedPtr::from_offset(gpu.lane_id() * BYTES_APART));
        }
    }
}

fn row_wavefronts<const BYTES_APART: u32>() -> u64 {
    let report = Bench::new().run::<Rows<BYTES_APART>>(1);
    report.total(|operation| operation == Operation::SharedLoadMatrices).wavefronts
}

#[test]
fn each_matrix_has_its_own_bank_conflicts() {
    assert_eq!(row_wavefronts::<16>(), 4, "rows one after the other");
    assert_eq!(row_wavefronts::<144>(), 4, "a row of banks and four more");
    assert_eq!(row_wavefronts::<32>(), 8, "every other row of banks");
    assert_eq!(row_wavefronts::<128>(), 32, "all in the same banks");
    assert_eq!(row_wavefronts::<0>(), 4, "matrices share no pass");
}

kernel!(ZerosOrNumbers, 32, 512, |gpu, args| {
    let lane = gpu.lane_id();
    let place = SharedPtr::from_offset(16 * lane);
    gpu.shared_store(place, [77u32; 4]);
    for step in 0..2 {
        // Odd lanes in the first step, all in the second.
        let valid = step == 1 || lane % 2 == 1;
        let from = if valid { args.input.add(4 * lane as usize) } else { GlobalPtr::from_address(0) };
        gpu.copy_async_or_zero::<u32, 4>(place, from, valid);
        gpu.copy_async_commit();
        gpu.copy_async_wait::<0>();
        let [got, ..] = gpu.shared_load::<u32, 4>(place);
        gpu.store(args.output.add((32 * step + lane) as usize), [got]);
    }
});

#[test]
fn copies_without_a_source_give_zeros() {
    let bench = Bench::zeroed();
    let report = bench.run::<ZerosOrNumbers>(1);
    let output = bench.output();
    for lane in 0..32 {
        assert_eq!(output[lane], if lane % 2 == 1 { 4 * lane as u32 } else { 0 }, "lane {lane}");
        assert_eq!(output[32 + lane], 4 * lane as u32, "lane {lane}");
    }
    let global = report.total(|operation| operation == Operation::CopyAsync);
    assert_eq!((global.executions, global.requests, global.bytes), (48, 2, 48 * 16));
    assert_eq!(global.sectors, 16 + 16);
    let shared = report.total(|operation| operation == Operation::CopyAsyncWrite);
    assert_eq!((shared.executions, shared.requests, shared.bytes), (64, 2, 64 * 16));
}

/// Numbers, their nearest halves and their nearest bfloat16s.
const CONVERSIONS: [(u32, u16, u16); 12] = [
    (0x0000_0000, 0x0000, 0x0000),
    (0x8000_0000, 0x8000, 0x8000),
    (0x3f80_0000, 0x3c00, 0x3f80),
    // 1 + 2⁻¹¹ lies half-way between halves, 1 + 3 · 2⁻¹¹ too: ties go to the even one.
    (0x3f80_1000, 0x3c00, 0x3f80),
    (0x3f80_3000, 0x3c02, 0x3f80),
    // 1 + 2⁻⁸ and 1 + 3 · 2⁻⁸, the same for bfloat16.
    (0x3f80_8000, 0x3c04, 0x3f80),
    (0x3f81_8000, 0x3c0c, 0x3f82),
    // 65,519.996 and 65,520: the largest half, and the first number beyond.
    (0x477f_efff, 0x7bff, 0x4780),
    (0x477f_f000, 0x7c00, 0x4780),
    // 2⁻²⁴, the least half; half of it is a tie with zero.
    (0x3380_0000, 0x0001, 0x3380),
    (0x3300_0000, 0x0000, 0x3300),
    // The largest number: infinite in both.
    (0x7f7f_ffff, 0x7c00, 0x7f80),
];

kernel!(Conversions, 1, 0, |gpu, args| {
    for (index, (bits, ..)) in CONVERSIONS.into_iter().enumerate() {
        let x = f32::from_bits(bits);
        let (half, brain) = (F16::from_f32(gpu, x), Bf16::from_f32(gpu, x));
        let back = [half.to_f32(gpu).to_bits(), brain.to_f32(gpu).to_bits()];
        gpu.store(args.output.add(4 * index), [half.0.into(), brain.0.into(), back[0], back[1]]);
        gpu.store(args.output.add(100 + index), [gpu.pack_bf16(x, -x)]);
        gpu.store(args.output.add(150 + index), [gpu.pack_f16(x, -x)]);
    }
    let nan = f32::from_bits(0x7f80_0001);
    let packed = f32::from_bits(gpu.pack_bf16(1.0, nan) & 0xffff_0000);
    gpu.store(args.output.add(242), [u32::from(packed.is_nan())]);
    let nans = [F16::from_f32(gpu, nan).to_f32(gpu), Bf16::from_f32(gpu, nan).to_f32(gpu)];
    gpu.store(args.output.add(240), nans.map(|x| u32::from(x.is_nan())));
});

#[test]
fn conversions_round_to_the_nearest() {
    let bench = Bench::zeroed();
    bench.run::<Conversions>(1);
    let output = bench.output();
    for (got, (bits, half, brain)) in output.chunks(4).zip(CONVERSIONS) {
        assert_eq!(Bf16::nearest(f32::from_bits(bits)).0, brain, "{bits:#010x}, without an instruction");
        assert_eq!(got[..2], [u32::from(half), u32::from(brain)], "{bits:#010x}");
        let numbers = [f16::from_bits(half).to_f32(), bf16::from_bits(brain).to_f32()];
        assert_eq!(got[2..], numbers.map(f32::to_bits), "{bits:#010x}");
    }
    for (got, (bits, _, brain)) in output[100..].iter().zip(CONVERSIONS) {
        let [low, high] = [brain, brain ^ 0x8000].map(u32::from);
        assert_eq!(*got, high << 16 | low, "{bits:#010x}");
    }
    for (got, (bits, half, _)) in output[150..].iter().zip(CONVERSIONS) {
        let [low, high] = [half, half ^ 0x8000].map(u32::from);
        assert_eq!(*got, high << 16 | low, "{bits:#010x}");
    }
    assert_eq!(output[240..243], [1; 3], "a NaN stays one");
    // A NaN whose upper half is an infinity's, and one that would round to more than all bits.
    for bits in [0x7f80_0001, 0xffff_ffff] {
        assert!(bf16::from_bits(Bf16::nearest(f32::from_bits(bits)).0).is_nan(), "{bits:#010x}");
    }
}

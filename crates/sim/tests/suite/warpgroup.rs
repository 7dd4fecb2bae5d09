//! Products of a warpgroup: what they compute, when it can be seen, and what they count.
use lacuna_gpu::{CoreMatrices, GlobalMut, Gpu, SharedPtr};
use lacuna_kernels::Kernel;
use lacuna_sim::{Machine, Operation, Report, Simulator};

use crate::tensor::{BRAIN, HALF, a, b, c, pair};

/// Rows of B: two products, one after the other.
const DEPTH: u32 = 32;

/// The sum `index` of a thread: row and column.
fn position(thread: u32, index: u32) -> (u32, u32) {
    let (warp, lane) = (thread / 32, thread % 32);
    (16 * warp + lane / 4 + index / 2 % 2 * 8, index / 4 * 8 + lane % 4 * 2 + index % 2)
}

/// Bytes of A's panel, of which the first 32 columns are used; B lies behind it.
const A_BYTES: u32 = 64 * 128;

/// Where an element of A lies.
fn place_of_a(row: u32, column: u32) -> u32 {
    128 * row + 16 * ((column / 8) ^ (row % 8)) + 2 * (column % 8)
}

/// Where an element of B lies, from where it begins.
fn place<const L: usize, const PANEL: u32>(row: u32, column: u32) -> u32 {
    let (panel, column) = if L == 16 { (0, column) } else { (column / 64, column % 64) };
    let (piece, rest) = (column / 8, column % 8);
    let within =
        if L == 16 { 64 * row + 16 * (piece ^ (row / 2 % 4)) } else { 128 * row + 16 * (piece ^ (row % 8)) };
    panel * PANEL + within + 2 * rest
}

#[derive(Clone, Copy)]
struct Args {
    output: GlobalMut<f32>,
}

/// The product of [`a`] and [`b`], plus [`c`], row by row in the output.
struct Product<const KIND: u32, const L: usize, const PANEL: u32, const REGISTERS: bool>;

impl<const KIND: u32, const L: usize, const PANEL: u32, const REGISTERS: bool>
    Product<KIND, L, PANEL, REGISTERS>
{
    const COLUMNS: u32 = 2 * L as u32;

    /// # Safety
    /// A and B have their places in shared memory.
    unsafe fn multiply<G: Gpu>(gpu: G, sums: &mut [f32; L], depth: u32) {
        let row_bytes = if L == 16 { 64 } else { 128 };
        let left = SharedPtr::from_offset(2 * depth);
        let right = SharedPtr::from_offset(A_BYTES + depth * row_bytes);
        let (warp, lane) = (gpu.thread_idx_x() / 32, gpu.lane_id());
        let registers: [u32; 4] = std::array::from_fn(|word| {
            let (row, column) =
                (16 * warp + lane / 4 + word as u32 % 2 * 8, depth + lane % 4 * 2 + word as u32 / 2 * 8);
            pair(KIND, a(row, column), a(row, column + 1))
        });
        // SAFETY: passed on.
        unsafe {
            if REGISTERS && KIND == HALF {
                gpu.warpgroup_mma_f16_registers::<L, PANEL>(sums, registers, right);
            } else if REGISTERS {
                gpu.warpgroup_mma_bf16_registers::<L, PANEL>(sums, registers, right);
            } else if KIND == HALF {
                gpu.warpgroup_mma_f16::<L, PANEL>(sums, left, right);
            } else {
                gpu.warpgroup_mma_bf16::<L, PANEL>(sums, left, right);
            }
        }
    }
}

impl<const KIND: u32, const L: usize, const PANEL: u32, const REGISTERS: bool> Kernel
    for Product<KIND, L, PANEL, REGISTERS>
{
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 128;
    const SHARED_BYTES: u32 = A_BYTES + PANEL * Self::COLUMNS.div_ceil(64);

    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let thread = gpu.thread_idx_x();
        for element in (thread..64 * DEPTH).step_by(128) {
            let (row, column) = (element / DEPTH, element % DEPTH);
            let place = SharedPtr::<u16>::from_offset(place_of_a(row, column));
            // SAFETY: each element has one thread.
            unsafe { gpu.shared_store(place, [pair(KIND, a(row, column), 0.0) as u16]) };
        }
        for element in (thread..DEPTH * Self::COLUMNS).step_by(128) {
            let (row, column) = (element / Self::COLUMNS, element % Self::COLUMNS);
            let place = SharedPtr::<u16>::from_offset(A_BYTES + place::<L, PANEL>(row, column));
            // SAFETY: each element has one thread.
            unsafe { gpu.shared_store(place, [pair(KIND, b(row, column), 0.0) as u16]) };
        }
        gpu.fence_async_proxy();
        gpu.sync_threads();
        let mut sums: [f32; L] = std::array::from_fn(|index| {
            let (row, column) = position(thread, index as u32);
            c(row, column)
        });
        gpu.warpgroup_arrive();
        for depth in [0, 16] {
            // SAFETY: A and B are there since the barrier.
            unsafe { Self::multiply(gpu, &mut sums, depth) };
            gpu.warpgroup_commit();
            assert!(sums.iter().all(|sum| sum.is_nan()), "nothing can be seen before the wait");
        }
        gpu.warpgroup_wait::<1, L>(&mut sums);
        assert!(sums.iter().all(|sum| sum.is_nan()), "a group is under way");
        gpu.warpgroup_wait::<0, L>(&mut sums);
        for (index, sum) in (0..).zip(sums) {
            let (row, column) = position(thread, index);
            // SAFETY: the output has 64 rows.
            unsafe { gpu.store(args.output.add((row * Self::COLUMNS + column) as usize), [sum]) };
        }
    }
}

fn check<const KIND: u32, const L: usize, const PANEL: u32, const REGISTERS: bool>() -> Report {
    let columns = 2 * L as u32;
    let simulator = Simulator::new();
    let mut bytes = vec![0; 64 * 4 * columns as usize];
    let output = simulator.alloc_named("output", bytes.len() as u64).unwrap();
    let args = Args { output: GlobalMut::from_address(output) };
    let report = simulator
        .launch::<Product<KIND, L, PANEL, REGISTERS>>([1, 1, 1], args)
        .unwrap_or_else(|error| panic!("type {KIND}, {columns} columns: {error}"));
    simulator.read(output, &mut bytes).unwrap();
    for (index, got) in (0..).zip(bytes.chunks_exact(4)) {
        let (row, column) = (index / columns, index % columns);
        let sum: f32 = c(row, column) + (0..DEPTH).map(|k| a(row, k) * b(k, column)).sum::<f32>();
        let got = f32::from_le_bytes(got.try_into().unwrap());
        assert_eq!(got, sum, "type {KIND}, {columns} columns, row {row}, column {column}");
    }
    report
}

#[test]
fn products_of_whole_numbers_are_exact() {
    check::<HALF, 16, 2048, false>();
    check::<HALF, 32, 4096, false>();
    check::<HALF, 64, 4096, false>();
    check::<BRAIN, 16, 2048, false>();
    check::<BRAIN, 32, 4096, false>();
    check::<BRAIN, 64, 5120, false>();
}

#[test]
fn a_may_be_in_registers() {
    check::<HALF, 16, 2048, true>();
    check::<HALF, 32, 4096, true>();
    check::<BRAIN, 64, 5120, true>();
    let report = check::<HALF, 64, 4096, true>();
    let products = report.total(|operation| operation == Operation::WarpgroupMma);
    // B alone.
    assert_eq!(products.bytes, 2 * 16 * 128 * 2);
}

#[test]
fn products_are_counted_by_eight_columns_of_a_warp() {
    let report = check::<HALF, 64, 4096, false>();
    let products = report.total(|operation| operation == Operation::WarpgroupMma);
    assert_eq!((products.executions, products.requests), (2 * 4 * 16, 2 * 4));
    // A, and B once for the four warps.
    let bytes = 2 * 16 * (64 + 128) * 2;
    assert_eq!((products.bytes, products.wavefronts), (bytes, bytes / 128));
    assert_eq!(report.tensor_fmas(), 2 * 64 * 16 * 128);
    let fences = report.total(|operation| operation == Operation::ProxyFence);
    let control = report.total(|operation| operation == Operation::WarpgroupControl);
    assert_eq!((fences.executions, control.executions), (128, 128 * 5));
}

#[test]
fn the_model_has_a_rate_for_products_of_warpgroups() {
    let report = check::<BRAIN, 16, 2048, false>();
    let us = |machine: &Machine| report.estimate(machine, 32).tensor_us;
    let expected = 2.0 * 64.0 * 16.0 * 32.0 / (2048.0 * 132.0 * 1980.0);
    assert!((us(&Machine::H200) - expected).abs() < 1e-12);
    assert_eq!(us(&Machine::A100), f64::INFINITY);
}

/// Core matrices of A: from 8 columns to the next, and from 8 rows to the next. A begins at the second row of the first.
const OF_A: [u32; 2] = [1600, 160];
/// The same of B, which lies behind, with no room between eights of its columns.
const OF_B: [u32; 2] = [16 * COLUMNS, 128];
const B_CORES: u32 = 2 * OF_A[0];
/// Columns of B.
const COLUMNS: u32 = 64;

/// Where an element lies, by its row of A or column of B, and its place along K.
fn place_in_cores([leading, stride]: [u32; 2], row: u32, depth: u32) -> u32 {
    depth / 8 * leading + row / 8 * stride + row % 8 * 16 + depth % 8 * 2
}

/// A thread's part of [`c`].
fn first_sums(thread: u32) -> [f32; 32] {
    std::array::from_fn(|index| {
        let (row, column) = position(thread, index as u32);
        c(row, column)
    })
}

/// Writes a thread's sums.
///
/// # Safety
/// The output has 64 rows of [`COLUMNS`].
unsafe fn store_sums<G: Gpu>(gpu: G, args: Args, sums: [f32; 32]) {
    for (index, sum) in (0..).zip(sums) {
        let (row, column) = position(gpu.thread_idx_x(), index);
        // SAFETY: as promised by the caller.
        unsafe { gpu.store(args.output.add((row * COLUMNS + column) as usize), [sum]) };
    }
}

/// Runs a kernel, whose output must be the product of [`a`] and [`b`], `depth` deep, plus [`c`].
fn check_sums<K: Kernel<Args = Args>>(depth: u32) -> Report {
    let simulator = Simulator::new();
    let mut bytes = vec![0; 64 * 4 * COLUMNS as usize];
    let output = simulator.alloc_named("output", bytes.len() as u64).unwrap();
    let args = Args { output: GlobalMut::from_address(output) };
    let report = simulator.launch::<K>([1, 1, 1], args).unwrap_or_else(|error| panic!("{error}"));
    simulator.read(output, &mut bytes).unwrap();
    for (index, got) in (0..).zip(bytes.chunks_exact(4)) {
        let (row, column) = (index / COLUMNS, index % COLUMNS);
        let sum: f32 = c(row, column) + (0..depth).map(|k| a(row, k) * b(k, column)).sum::<f32>();
        assert_eq!(f32::from_le_bytes(got.try_into().unwrap()), sum, "row {row}, column {column}");
    }
    report
}

/// The product of [`a`] and [`b`], 16 deep, plus [`c`], from core matrices.
struct OfCores;

impl Kernel for OfCores {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 128;
    const SHARED_BYTES: u32 = B_CORES + 2 * OF_B[0];

    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let thread = gpu.thread_idx_x();
        for element in (thread..64 * 16).step_by(128) {
            let (row, depth) = (element / 16, element % 16);
            let place = SharedPtr::<u16>::from_offset(16 + place_in_cores(OF_A, row, depth));
            // SAFETY: each element has one thread.
            unsafe { gpu.shared_store(place, [pair(BRAIN, a(row, depth), 0.0) as u16]) };
        }
        for element in (thread..COLUMNS * 16).step_by(128) {
            let (column, depth) = (element / 16, element % 16);
            let place = SharedPtr::<u16>::from_offset(B_CORES + place_in_cores(OF_B, column, depth));
            // SAFETY: each element has one thread.
            unsafe { gpu.shared_store(place, [pair(BRAIN, b(depth, column), 0.0) as u16]) };
        }
        gpu.fence_async_proxy();
        gpu.sync_threads();
        let mut sums = first_sums(thread);
        let matrix = |first, [leading, stride]: [u32; 2]| CoreMatrices {
            first: SharedPtr::from_offset(first),
            leading,
            stride,
        };
        gpu.warpgroup_arrive();
        // SAFETY: A and B are there since the barrier.
        unsafe { gpu.warpgroup_mma_bf16_cores(&mut sums, matrix(16, OF_A), matrix(B_CORES, OF_B)) };
        gpu.warpgroup_commit();
        gpu.warpgroup_wait::<0, 32>(&mut sums);
        // SAFETY: the output has 64 rows.
        unsafe { store_sums(gpu, args, sums) };
    }
}

#[test]
fn products_from_core_matrices_are_exact() {
    check_sums::<OfCores>(16);
}

/// The product of [`a`] and [`b`], 16 deep, plus [`c`]: the second 16 columns of A's panel, and the third 16 numbers of the rows of B's. Its
/// warps take registers before.
struct OfColumns;

impl Kernel for OfColumns {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 128;
    const SHARED_BYTES: u32 = A_BYTES + COLUMNS * 128;

    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let thread = gpu.thread_idx_x();
        for element in (thread..64 * 16).step_by(128) {
            let (line, depth) = (element / 16, element % 16);
            let of_a = SharedPtr::<u16>::from_offset(place_of_a(line, 16 + depth));
            let of_b = SharedPtr::<u16>::from_offset(A_BYTES + place_of_a(line, 32 + depth));
            // SAFETY: each element has one thread.
            unsafe {
                gpu.shared_store(of_a, [pair(HALF, a(line, depth), 0.0) as u16]);
                gpu.shared_store(of_b, [pair(HALF, b(depth, line), 0.0) as u16]);
            }
        }
        gpu.fence_async_proxy();
        gpu.sync_threads();
        let mut sums = first_sums(thread);
        gpu.warpgroup_take_registers::<160>();
        gpu.warpgroup_arrive();
        let (a, b) = (SharedPtr::from_offset(32), SharedPtr::from_offset(A_BYTES + 64));
        // SAFETY: A and B are there since the barrier.
        unsafe { gpu.warpgroup_mma_f16_columns(&mut sums, a, b) };
        gpu.warpgroup_commit();
        gpu.warpgroup_wait::<0, 32>(&mut sums);
        // SAFETY: the output has 64 rows.
        unsafe { store_sums(gpu, args, sums) };
    }
}

#[test]
fn b_may_lie_column_by_column() {
    let report = check_sums::<OfColumns>(16);
    let products = report.total(|operation| operation == Operation::WarpgroupMma);
    assert_eq!((products.executions, products.bytes), (4 * 8, 16 * (64 + 64) * 2));
}

/// Where B begins, whose first 8 rows are not used, and those of a product of 8: `f32`, column by column.
const B_SINGLES: u32 = 32;

/// The product of [`a`] and [`b`], 8 deep, plus [`c`], in TF32: A from registers.
struct OfSingles;

impl Kernel for OfSingles {
    type Args = Args;
    type Tile = ();
    const TILE: () = ();
    const THREADS: u32 = 128;
    const SHARED_BYTES: u32 = COLUMNS * 128;

    unsafe fn run<G: Gpu>(gpu: G, args: Args) {
        let (thread, lane) = (gpu.thread_idx_x(), gpu.lane_id());
        for element in (thread..COLUMNS * 8).step_by(128) {
            let (column, depth) = (element / 8, element % 8);
            let piece = (B_SINGLES / 16 + depth / 4) ^ (column % 8);
            let place = SharedPtr::<f32>::from_offset(128 * column + 16 * piece + 4 * (depth % 4));
            // SAFETY: each element has one thread.
            unsafe { gpu.shared_store(place, [b(depth, column)]) };
        }
        gpu.fence_async_proxy();
        gpu.sync_threads();
        let mut sums = first_sums(thread);
        let rows: [f32; 4] = std::array::from_fn(|word| {
            let row = 16 * (thread / 32) + lane / 4 + word as u32 % 2 * 8;
            // What TF32 has no room for does not count.
            f32::from_bits(a(row, lane % 4 + word as u32 / 2 * 4).to_bits() | 0x1fff)
        });
        gpu.warpgroup_arrive();
        // SAFETY: B is there since the barrier.
        unsafe { gpu.warpgroup_mma_tf32_registers(&mut sums, rows, SharedPtr::from_offset(B_SINGLES)) };
        gpu.warpgroup_commit();
        gpu.warpgroup_wait::<0, 32>(&mut sums);
        // SAFETY: the output has 64 rows.
        unsafe { store_sums(gpu, args, sums) };
    }
}

#[test]
fn products_in_tf32_take_b_column_by_column() {
    let report = check_sums::<OfSingles>(8);
    let products = report.total(|operation| operation == Operation::WarpgroupMmaTf32);
    assert_eq!((products.executions, products.bytes), (4 * 8, 8 * 64 * 4));
    assert_eq!(report.tensor_fmas(), 64 * 8 * 64);
    // Half as many multiply-adds, at half the rate of other products.
    let expected = 64.0 * 16.0 * 64.0 / (2048.0 * 132.0 * 1980.0);
    assert!((report.estimate(&Machine::H200, 32).tensor_us - expected).abs() < 1e-12);
}

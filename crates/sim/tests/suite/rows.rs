//! SpMM's rows by persistent blocks, in grids so small that each block takes many rows.
use lacuna_gpu::{GlobalMut, GlobalPtr, Scalar};
use lacuna_kernels::spmm::{Args, Form, Hybrid, Output, Partial, Persistent, Plain, RowSplit, Wide};
use lacuna_kernels::{DeviceIndex, Kernel};
use lacuna_kernels::{PADDING, RowRecord};
use lacuna_sim::Simulator;

const COLS: u32 = 300;
/// Two tiles of columns for 8 lanes, the last of them partial.
const N: u32 = 40;
/// More rows than a block has groups: empty ones, such as begin anywhere, and such as take several stages.
const LENGTHS: [u32; 21] = [0, 3, 1, 40, 0, 7, 97, 2, 33, 64, 5, 0, 11, 32, 31, 1, 1, 65, 6, 9, 0];

/// One shape in any form: 8 lanes, and 8 rows of a block. Blocks that stay are of as many warps as divide 32.
type Shape<I, F> = RowSplit<f32, I, 4, 8, 1, 2, F>;
/// The same with two subwarps, and 4 rows of a block.
type Subwarps<I, F> = RowSplit<f32, I, 4, 8, 2, 2, F>;

fn upload<T: Scalar>(
    simulator: &Simulator,
    elements: impl Iterator<Item = T>,
    bytes: fn(T) -> Vec<u8>,
) -> u64 {
    let bytes: Vec<u8> = elements.flat_map(bytes).collect();
    let address = simulator.alloc(bytes.len() as u64).unwrap();
    simulator.write(address, &bytes).unwrap();
    address
}

/// C, every element of which must have been written.
fn product<I: DeviceIndex, K: Kernel<Args = Args<f32, I>>>(
    grid: [u32; 3],
    index_bytes: fn(I) -> Vec<u8>,
) -> Vec<u32> {
    mixed_product::<I, K>(grid, index_bytes, LENGTHS.len() as u32)
}

/// The same, with so many long rows.
fn mixed_product<I: DeviceIndex, K: Kernel<Args = Args<f32, I>>>(
    grid: [u32; 3],
    index_bytes: fn(I) -> Vec<u8>,
    long_rows: u32,
) -> Vec<u32> {
    product_of::<I, K>(&LENGTHS, 0, grid, index_bytes, long_rows)
}

/// The same for rows of these lengths, the first of which begins at this index.
fn product_of<I: DeviceIndex, K: Kernel<Args = Args<f32, I>>>(
    lengths: &[u32],
    first: u32,
    grid: [u32; 3],
    index_bytes: fn(I) -> Vec<u8>,
    long_rows: u32,
) -> Vec<u32> {
    let simulator = Simulator::new();
    let (rows, nnz) = (lengths.len() as u32, lengths.iter().sum::<u32>());
    let before = |elements: u64, bytes: u64| elements.wrapping_sub(u64::from(first) * bytes);
    let number = |at: u32| (at * 7919 % 1009) as f32 / 512.0 - 1.0;
    let f32_bytes = |x: f32| x.to_le_bytes().to_vec();
    let u32_bytes = |x: u32| x.to_le_bytes().to_vec();
    let mut start = first;
    let table: Vec<u32> = (0..rows)
        .flat_map(|row| {
            let end = start + lengths[row as usize];
            let record = RowRecord { row, start, end }.to_words();
            start = end;
            record
        })
        .collect();
    let values = (0..nnz).map(number).chain([f32::NAN; PADDING]);
    let columns = (0..nnz).map(|at| I::narrow(at * 97 % COLS)).chain([I::narrow(u32::MAX); PADDING]);
    let c_bytes = u64::from(rows * N * 4);
    let c = simulator.alloc_named("C", c_bytes).unwrap();
    let args = Args {
        row_table: GlobalPtr::from_address(upload(&simulator, table.into_iter(), u32_bytes)),
        values: GlobalPtr::from_address(before(upload(&simulator, values, f32_bytes), 4)),
        columns: GlobalPtr::from_address(before(
            upload(&simulator, columns, index_bytes),
            size_of::<I>() as u64,
        )),
        b: GlobalPtr::from_address(upload(&simulator, (0..COLS * N).map(|at| number(at + 1)), f32_bytes)),
        b_batch: 0,
        output: Output {
            c: GlobalMut::from_address(c),
            c_batch: 0,
            bias: GlobalPtr::from_address(0),
            row_scale: GlobalPtr::from_address(0),
            alpha: 1.0,
            beta: 0.0,
            lo: f32::NEG_INFINITY,
            hi: f32::INFINITY,
            c_stride_bytes: N * 4,
        },
        partial: Partial {
            values: GlobalMut::from_address(0),
            winners: GlobalMut::from_address(0),
            stride: 0,
        },
        rows,
        long_rows,
        ahead_rows: COLS / 2 + 1,
        n: N,
        b_stride_bytes: N * 4,
        values_batch: 0,
    };
    simulator.launch::<K>(grid, args).unwrap_or_else(|error| panic!("{grid:?}: {error}"));
    let mut bytes = vec![0; c_bytes as usize];
    // Reading what was not written is an error.
    simulator.read(c, &mut bytes).unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn wide<F: Form>(grid: [u32; 3]) -> Vec<u32> {
    product::<u32, Shape<u32, F>>(grid, |x| x.to_le_bytes().to_vec())
}

#[test]
fn however_many_blocks_share_a_tile_the_bits_are_those_of_blocks_that_go() {
    let expected = wide::<Plain>([3, 2, 1]);
    assert!(expected.iter().any(|&bits| bits != 0));
    // One block for all rows, some that each take several turns, one with fewer rows than others, and some without any.
    for blocks in [1, 2, 3, 5, 21, 30] {
        assert!(wide::<Persistent>([2, blocks, 1]) == expected, "{blocks} blocks");
    }
}

#[test]
fn teams_and_16_bit_indices_likewise() {
    let of = |x: u16| x.to_le_bytes().to_vec();
    let expected = product::<u16, Subwarps<u16, Plain>>([6, 2, 1], of);
    for blocks in [1, 3, 4] {
        assert!(product::<u16, Subwarps<u16, Persistent>>([2, blocks, 1], of) == expected, "{blocks} blocks");
    }
}

#[test]
fn subwarps_share_long_rows_and_take_one_short_row_each() {
    type Warp<F> = RowSplit<f32, u32, 4, 8, 4, 2, F>;
    let bytes = |x: u32| x.to_le_bytes().to_vec();
    // These numbers' sums are exact, in any order.
    let expected = wide::<Plain>([3, 2, 1]);
    for blocks in [1, 2, 5, 21] {
        for long in [0, 1, 2, 3, 7, 16, LENGTHS.len() - 1, LENGTHS.len()] {
            let mixed = mixed_product::<u32, Warp<Hybrid>>([2, blocks, 1], bytes, long as u32);
            assert!(mixed == expected, "{long} long rows, {blocks} blocks");
        }
    }
}

#[test]
fn columns_staged_in_16_or_32_bits_give_the_same() {
    assert!(wide::<Wide>([3, 2, 1]) == wide::<Plain>([3, 2, 1]));
}

/// Groups of a warp go on together. One whose row has ended must not count on past the largest index, and begin anew.
#[test]
fn a_short_row_at_the_largest_indices_may_be_beside_a_long_one() {
    let bytes = |x: u32| x.to_le_bytes().to_vec();
    let lengths = [5000, 3];
    let largest = u32::MAX - 4096;
    let of = |first| product_of::<u32, Shape<u32, Plain>>(&lengths, first, [1, 2, 1], bytes, 2);
    assert!(of((largest - 5003) & !3) == of(0));
}

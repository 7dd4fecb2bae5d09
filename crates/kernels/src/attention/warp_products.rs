//! Products of a warp's 16 rows with rows of swizzled panels in shared memory (mma.sync of sm_80), along the rows and along the columns
//! of these.
use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr};

use super::tile_rows::LANES;
use super::wgmma::{BLOCK, WgmmaValue};
use crate::HalfValue;
use crate::common::Rows;

/// Bytes of eight elements of a row, of a row of a panel, which are 64 elements, and of a panel of 64 rows.
const PIECE: u32 = 16;
pub(super) const ROW: u32 = 8 * PIECE;
pub(super) const PANEL: u32 = BLOCK * ROW;
/// Rows of a warp.
pub(super) const WARP_ROWS: u32 = 16;

/// Where eight elements of a row lie, of a matrix at `base`.
#[inline(always)]
pub(super) const fn place(base: u32, row: u32, piece: u32) -> u32 {
    base + piece / 8 * PANEL + (row * 8 + ((piece % 8) ^ (row % 8))) * PIECE
}

/// The lane's part of 16 rows of `dim` elements from global memory, as products take them. Zeros stand for what is not there.
///
/// # Safety
/// The rows are live, and the dimension is a multiple of 8.
#[inline(always)]
pub(super) unsafe fn load_rows<G: Gpu, T: WgmmaValue, const SLICES: usize>(
    gpu: G,
    rows: &Rows<T>,
    dim: u32,
) -> [[u32; 4]; SLICES] {
    let (row, pair) = (gpu.lane_id() / LANES, gpu.lane_id() % LANES * 2);
    let mut loaded = [[0; 4]; SLICES];
    for (slice, words) in loaded.iter_mut().enumerate() {
        for (i, word) in words.iter_mut().enumerate() {
            let (row, column) = (row + i as u32 % 2 * 8, slice as u32 * 16 + i as u32 / 2 * 8 + pair);
            if rows.first + row < rows.end && column < dim {
                let from = rows.at(row, column).address();
                // SAFETY: as promised by the caller.
                [*word] = unsafe { gpu.load_readonly(GlobalPtr::<u32>::from_address(from)) };
            }
        }
    }
    loaded
}

/// The same of elements `16·slice` and on of 16 rows of panels, from row `first` on; and of values in two parts those of the second, so many
/// bytes further.
///
/// # Safety
/// They are there; the whole warp is here.
#[inline(always)]
pub(super) unsafe fn load_slice<G: Gpu, T: WgmmaValue>(
    gpu: G,
    lane: u32,
    (base, to_rest): (u32, u32),
    first: u32,
    slice: usize,
) -> [[u32; 4]; 2] {
    // Eight elements of rows 0–7, of rows 8–15; then the next eight.
    let from = place(base, first + lane % 16, 2 * slice as u32 + lane / 16);
    // SAFETY: as promised by the caller.
    unsafe { load_parts::<G, T, false>(gpu, from, to_rest) }
}

/// Loads four matrices of 8 × 8 elements, of which a lane gives the place of a row of one; and of values in two parts those of the second, so
/// many bytes further.
///
/// # Safety
/// They are there; the whole warp is here.
#[inline(always)]
unsafe fn load_parts<G: Gpu, T: WgmmaValue, const TRANSPOSES: bool>(
    gpu: G,
    from: u32,
    to_rest: u32,
) -> [[u32; 4]; 2] {
    // SAFETY: as promised by the caller.
    unsafe {
        let first = load_matrices::<G, TRANSPOSES>(gpu, from);
        [first, if T::PARTS > 1 { load_matrices::<G, TRANSPOSES>(gpu, from + to_rest) } else { [0; 4] }]
    }
}

/// Loads four matrices of 8 × 8 elements, of which a lane gives the place of a row of one.
///
/// # Safety
/// They are there; the whole warp is here.
#[inline(always)]
unsafe fn load_matrices<G: Gpu, const TRANSPOSES: bool>(gpu: G, from: u32) -> [u32; 4] {
    // SAFETY: as promised by the caller.
    unsafe { gpu.shared_load_matrices::<TRANSPOSES>(SharedPtr::<u16>::from_offset(from)) }
}

/// Adds products along rows: of the warp's rows, of which `a` gives 16 elements each, in parts, and 2·`N` rows of `b`, whose second part lies
/// so many bytes further.
///
/// # Safety
/// These are there; the whole warp is here.
#[inline(always)]
pub(super) unsafe fn multiply_rows<G: Gpu, T: WgmmaValue, const N: usize>(
    gpu: G,
    lane: u32,
    slices: usize,
    a: impl Fn(usize) -> [[u32; 4]; 2],
    (b, to_rest): (u32, u32),
    sums: &mut [f32; N],
) {
    // Of 16 rows and 16 elements: rows 0–7 and eight elements, the next eight; then rows 8–15.
    let (row, eight) = (lane % 8 + lane / 16 * 8, lane / 8 % 2);
    for slice in 0..slices {
        let a = a(slice);
        for rows in 0..N / 8 {
            let from = place(b, 16 * rows as u32 + row, 2 * slice as u32 + eight);
            // SAFETY: as promised by the caller.
            let b = unsafe { load_parts::<G, T, false>(gpu, from, to_rest) };
            add_products::<G, T, N>(gpu, sums, 8 * rows, a, b);
        }
    }
}

/// Adds products along columns: of the warp's rows of numbers in pairs, in parts, a row of `b` for each.
///
/// # Safety
/// As for [`multiply_rows`].
#[inline(always)]
pub(super) unsafe fn multiply_columns<G: Gpu, T: WgmmaValue, const L: usize>(
    gpu: G,
    lane: u32,
    pairs: &[[u32; 2]],
    (b, to_rest): (u32, u32),
    sums: &mut [f32; L],
) {
    // Of 16 rows and 16 elements: eight elements of rows 0–7, of rows 8–15; then the next eight elements.
    let (row, eight) = (lane % 16, lane / 16);
    for rows in 0..pairs.len() / 4 {
        let a = [0, 1].map(|part: usize| [0, 1, 2, 3].map(|i: usize| pairs[4 * rows + i][part]));
        for slice in 0..L / 8 {
            let from = place(b, 16 * rows as u32 + row, 2 * slice as u32 + eight);
            // SAFETY: as promised by the caller.
            let b = unsafe { load_parts::<G, T, true>(gpu, from, to_rest) };
            add_products::<G, T, L>(gpu, sums, 8 * slice, a, b);
        }
    }
}

/// Adds products of 16 rows and twice eight columns, in parts, the least first, to the eight sums from `at` on.
#[inline(always)]
fn add_products<G: Gpu, T: WgmmaValue, const N: usize>(
    gpu: G,
    sums: &mut [f32; N],
    at: usize,
    [a, rest_of_a]: [[u32; 4]; 2],
    [b, rest_of_b]: [[u32; 4]; 2],
) {
    let mut add = |a, [w, x, y, z]: [u32; 4]| {
        add_product::<G, T::Part, N>(gpu, sums, at, a, [w, x]);
        add_product::<G, T::Part, N>(gpu, sums, at + 4, a, [y, z]);
    };
    if T::PARTS > 1 {
        add(rest_of_a, b);
        add(a, rest_of_b);
    }
    add(a, b);
}

/// Adds a product of 16 rows and eight columns to the four sums from `at` on.
#[inline(always)]
fn add_product<G: Gpu, T: HalfValue, const N: usize>(
    gpu: G,
    sums: &mut [f32; N],
    at: usize,
    a: [u32; 4],
    b: [u32; 2],
) {
    let c = [sums[at], sums[at + 1], sums[at + 2], sums[at + 3]];
    [sums[at], sums[at + 1], sums[at + 2], sums[at + 3]] = T::mma(gpu, a, b, c);
}

//! Products of a warp's 16 rows with rows of swizzled panels in shared memory (mma.sync of sm_80), along the rows and along the columns
//! of these.
use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr};

use super::tile_rows::LANES;
use super::wgmma::BLOCK;
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
pub(super) unsafe fn load_rows<G: Gpu, T: HalfValue, const SLICES: usize>(
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

/// The same of elements `16·slice` and on of 16 rows of panels, from row `first` on.
///
/// # Safety
/// They are there; the whole warp is here.
#[inline(always)]
pub(super) unsafe fn load_slice<G: Gpu>(gpu: G, lane: u32, base: u32, first: u32, slice: usize) -> [u32; 4] {
    // Eight elements of rows 0–7, of rows 8–15; then the next eight.
    let from = place(base, first + lane % 16, 2 * slice as u32 + lane / 16);
    // SAFETY: as promised by the caller.
    unsafe { load_matrices::<G, false>(gpu, from) }
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

/// Adds products along rows: of the warp's rows, of which `a` gives 16 elements each, and 2·`N` rows of `b`.
///
/// # Safety
/// These are there; the whole warp is here.
#[inline(always)]
pub(super) unsafe fn multiply_rows<G: Gpu, T: HalfValue, const N: usize>(
    gpu: G,
    lane: u32,
    slices: usize,
    a: impl Fn(usize) -> [u32; 4],
    b: u32,
    sums: &mut [f32; N],
) {
    // Of 16 rows and 16 elements: rows 0–7 and eight elements, the next eight; then rows 8–15.
    let (row, eight) = (lane % 8 + lane / 16 * 8, lane / 8 % 2);
    for slice in 0..slices {
        let a = a(slice);
        for rows in 0..N / 8 {
            let from = place(b, 16 * rows as u32 + row, 2 * slice as u32 + eight);
            // SAFETY: as promised by the caller.
            let [w, x, y, z] = unsafe { load_matrices::<G, false>(gpu, from) };
            add_product::<G, T, N>(gpu, sums, 8 * rows, a, [w, x]);
            add_product::<G, T, N>(gpu, sums, 8 * rows + 4, a, [y, z]);
        }
    }
}

/// Adds products along columns: of the warp's rows of numbers in pairs, a row of `b` for each.
///
/// # Safety
/// As for [`multiply_rows`].
#[inline(always)]
pub(super) unsafe fn multiply_columns<G: Gpu, T: HalfValue, const L: usize>(
    gpu: G,
    lane: u32,
    pairs: &[[u32; 2]],
    b: u32,
    sums: &mut [f32; L],
) {
    // Of 16 rows and 16 elements: eight elements of rows 0–7, of rows 8–15; then the next eight elements.
    let (row, eight) = (lane % 16, lane / 16);
    for rows in 0..pairs.len() / 4 {
        let a = [0, 1, 2, 3].map(|i: usize| pairs[4 * rows + i][0]);
        for slice in 0..L / 8 {
            let from = place(b, 16 * rows as u32 + row, 2 * slice as u32 + eight);
            // SAFETY: as promised by the caller.
            let [w, x, y, z] = unsafe { load_matrices::<G, true>(gpu, from) };
            add_product::<G, T, L>(gpu, sums, 8 * slice, a, [w, x]);
            add_product::<G, T, L>(gpu, sums, 8 * slice + 4, a, [y, z]);
        }
    }
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

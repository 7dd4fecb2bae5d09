//! The epilogue: from accumulators to C.
use core::convert::identity;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, Real};

use crate::common::round_into;

/// C, and how sums are finished: C = clamp(alpha · scale · sum + beta · C + bias, lo, hi).
///
/// Everything is computed in f32, in this order, and rounded to `T` once. With beta = 0, C is not read. A clamp leaves
/// NaN as it is, and -0 beside a limit of +0. The plain product, alpha = 1 and nothing else, is the sum to the last bit.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Output<T> {
    /// C.
    pub c: GlobalMut<T>,
    /// Elements from one C of the batch to the next.
    pub c_batch: u64,
    /// A value for each row of C, the same for the whole batch; address 0 where there is none.
    pub bias: GlobalPtr<T>,
    /// Multiplies the sums of each row, before all else: of means one over the row's nonzeros; address 0 where there is none.
    pub row_scale: GlobalPtr<f32>,
    /// Multiplies the sums.
    pub alpha: f32,
    /// Multiplies what C holds.
    pub beta: f32,
    /// The least result; -∞ for no limit.
    pub lo: f32,
    /// The greatest result; +∞ for no limit.
    pub hi: f32,
    /// Bytes from one row of C to the next.
    pub c_stride_bytes: u32,
}

/// Steps: beta times what C holds is added, and the bias. Whatever else there is, is the bit 1.
const ADDS_C: u32 = 2;
const ADDS_BIAS: u32 = 4;
/// And the row's scale is multiplied with.
const SCALES_ROW: u32 = 8;

impl<T: Real> Output<T> {
    /// Finishes the sums of `V` neighbouring elements, and writes them.
    ///
    /// # Safety
    /// `row`, `batch` and the columns from `column` on lie in C, and in `bias` and `row_scale` where there are such; they are this
    /// lane's alone, and their address is a multiple of their size together.
    #[inline(always)]
    pub unsafe fn store<G: Gpu, const V: usize>(
        &self,
        gpu: G,
        row: u32,
        column: u32,
        batch: u32,
        accumulators: [f32; V],
    ) {
        // SAFETY: as promised by the caller.
        unsafe { self.store_by(gpu, self.steps(), self.product(batch), [row, column], accumulators, false) };
    }

    /// C of a product of the batch.
    #[inline(always)]
    pub(in crate::spmm) fn product(&self, batch: u32) -> GlobalMut<T> {
        self.c.add((u64::from(batch) * self.c_batch) as usize)
    }

    /// As [`store`](Self::store), for those who know the [steps](Self::steps) and the product's C, which with `streams` is first to
    /// leave the caches.
    ///
    /// # Safety
    /// As for `store`.
    #[inline(always)]
    pub(super) unsafe fn store_by<G: Gpu, const V: usize>(
        &self,
        gpu: G,
        steps: u32,
        c: GlobalMut<T>,
        [row, column]: [u32; 2],
        mut accumulators: [f32; V],
        streams: bool,
    ) {
        let c = c.add_rows(row, self.c_stride_bytes).add(column as usize);
        if steps != 0 {
            // SAFETY: as promised by the caller.
            unsafe { self.finish(gpu, steps, c, row, &mut accumulators) };
        }
        let mut rounded = [T::default(); V];
        round_into(gpu, &accumulators, identity, &mut rounded);
        // SAFETY: as promised by the caller.
        unsafe {
            if streams {
                gpu.store_streaming(c, rounded);
            } else {
                gpu.store(c, rounded);
            }
        }
    }

    /// What is done to sums, a bit each, the same for all threads of a launch; 0 where they go to C as they are.
    #[inline(always)]
    pub(super) fn steps(&self) -> u32 {
        let is_limited = self.lo != f32::NEG_INFINITY || self.hi != f32::INFINITY;
        let (adds_c, adds_bias) = (self.beta != 0.0, self.bias.address() != 0);
        u32::from(self.alpha != 1.0 || is_limited)
            | if adds_c { ADDS_C } else { 0 }
            | if adds_bias { ADDS_BIAS } else { 0 }
            | if self.row_scale.address() != 0 { SCALES_ROW } else { 0 }
    }

    /// # Safety
    /// As for [`store`](Self::store), with `c` the address of the elements.
    #[inline(always)]
    unsafe fn finish<G: Gpu, const V: usize>(
        &self,
        gpu: G,
        steps: u32,
        c: GlobalMut<T>,
        row: u32,
        accumulators: &mut [f32; V],
    ) {
        if steps & SCALES_ROW != 0 {
            // SAFETY: as promised by the caller.
            let [scale] = unsafe { gpu.load_readonly(self.row_scale.add(row as usize)) };
            for sum in accumulators.iter_mut() {
                *sum *= scale;
            }
        }
        for sum in accumulators.iter_mut() {
            *sum *= self.alpha;
        }
        if steps & ADDS_C != 0 {
            // SAFETY: as promised by the caller.
            let old: [T; V] = unsafe { gpu.load(c) };
            for (sum, &old) in accumulators.iter_mut().zip(&old) {
                *sum = gpu.fma(self.beta, old.to_f32(gpu), *sum);
            }
        }
        if steps & ADDS_BIAS != 0 {
            // SAFETY: as promised by the caller.
            let [bias] = unsafe { gpu.load_readonly::<T, 1>(self.bias.add(row as usize)) };
            let bias = bias.to_f32(gpu);
            for sum in accumulators.iter_mut() {
                *sum += bias;
            }
        }
        for sum in accumulators.iter_mut() {
            // Comparisons with NaN are false: it passes.
            if *sum < self.lo {
                *sum = self.lo;
            } else if *sum > self.hi {
                *sum = self.hi;
            }
        }
    }

    /// A result between the limits, without a branch. Kernels by rows take more registers so.
    #[inline(always)]
    fn limited(&self, sum: f32) -> f32 {
        // Comparisons with NaN are false: it passes.
        let sum = if sum < self.lo { self.lo } else { sum };
        if sum > self.hi { self.hi } else { sum }
    }

    /// Finishes a lane's sums of a tile before they are rounded, those of [`TileSums`], with the same results as [`store`](Self::store). One way for all of them:
    /// code that runs once takes the time to fetch it, so that what is not to be done is passed over as a whole.
    ///
    /// # Safety
    /// As for `store`, of those elements that are in C, which is `product`. All lanes of the warp are here.
    #[inline(always)]
    pub(super) unsafe fn finish_tile<G: Gpu, const L: usize>(
        &self,
        gpu: G,
        product: GlobalMut<T>,
        [rows, columns]: [u32; 2],
        [row, column]: [u32; 2],
        sums: &mut [f32; L],
    ) {
        let steps = self.steps();
        if steps == 0 {
            return;
        }
        let below = row + TileSums::ROWS_APART;
        // SAFETY: as promised by the caller.
        let ends = unsafe { [self.ends(gpu, steps, row, rows), self.ends(gpu, steps, below, rows)] };
        let [[first_scale, first_bias], [second_scale, second_bias]] = ends;
        for [a, b, c, d] in sums.as_chunks_mut::<4>().0 {
            *a = *a * first_scale * self.alpha;
            *b = *b * first_scale * self.alpha;
            *c = *c * second_scale * self.alpha;
            *d = *d * second_scale * self.alpha;
        }
        if steps & ADDS_C != 0 {
            for (eight, [a, b, c, d]) in sums.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                let column = column + eight as u32 * 8;
                let add = |row: u32, first: &mut f32, second: &mut f32| {
                    if row < rows && column < columns {
                        let to = product.add_rows(row, self.c_stride_bytes).add(column as usize);
                        // SAFETY: as promised by the caller.
                        let old: [T; 2] = unsafe { gpu.load(to) };
                        *first = gpu.fma(self.beta, old[0].to_f32(gpu), *first);
                        *second = gpu.fma(self.beta, old[1].to_f32(gpu), *second);
                    }
                };
                add(row, a, b);
                add(below, c, d);
            }
            // Other lanes of the row write these elements.
            gpu.sync_warp(FULL_WARP);
        }
        for [a, b, c, d] in sums.as_chunks_mut::<4>().0 {
            *a = self.limited(*a + first_bias);
            *b = self.limited(*b + first_bias);
            *c = self.limited(*c + second_bias);
            *d = self.limited(*d + second_bias);
        }
    }

    /// What a row's sums are multiplied with, and what is added. What there is not changes nothing: 1 in products, -0 in sums.
    ///
    /// # Safety
    /// As for [`store`](Self::store), if C has the row.
    #[inline(always)]
    unsafe fn ends<G: Gpu>(&self, gpu: G, steps: u32, row: u32, rows: u32) -> [f32; 2] {
        let (mut scale, mut bias) = (1.0, -0.0);
        // SAFETY: as promised by the caller.
        unsafe {
            if steps & SCALES_ROW != 0 && row < rows {
                [scale] = gpu.load_readonly(self.row_scale.add(row as usize));
            }
            if steps & ADDS_BIAS != 0 && row < rows {
                let [own] = gpu.load_readonly::<T, 1>(self.bias.add(row as usize));
                bias = own.to_f32(gpu);
            }
        }
        [scale, bias]
    }
}

/// Which sums of a tile of 16 rows a lane has after products on tensor cores: of each 8 columns two neighbours, in two rows, one row after the other.
pub(super) struct TileSums;

impl TileSums {
    /// From the lane's first row to its second.
    pub(super) const ROWS_APART: u32 = 8;
}

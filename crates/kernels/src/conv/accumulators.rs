//! What becomes of a warp's accumulators on tensor cores: results, or partial sums.
//!
//! A warp has two rows of eight pixels. A thread has the same column of both, and of each eight filters two neighbours: four accumulators, by row
//! and then filter. Eight threads write a row of a filter, which is a sector of 32 bytes, or the filters of a pixel.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, WARP};

use super::Target;
use super::mma::{MMA_SIDE, MmaConvArgs};
use crate::DeviceValue;
use crate::common::are_finite;

/// Eights of filters whose residuals are under way at once.
const AT_ONCE: usize = 4;

/// Filter and row of accumulator `at` in a thread whose first filter is `own`.
#[inline(always)]
const fn place(at: u32, own: u32) -> (u32, u32) {
    (at / 4 * 8 + own + at % 2, at / 2 % 2)
}

/// Writes a warp's results of tile `tile` of all images, or its partial sums where there are several splits: rows `2 * warp` and the next.
///
/// # Safety
/// The rows are the warp's (of a run of pixels, eight of them are a row), whose threads are all here; the arguments are those of the launch, whose groups have 2·`L` filters.
#[inline(always)]
pub(super) unsafe fn write<G: Gpu, T: DeviceValue, const L: usize>(
    gpu: G,
    args: &MmaConvArgs<T>,
    tile: u32,
    warp: u32,
    sums: &mut [f32; L],
) {
    let (filters, pixels) = (2 * L as u32, MMA_SIDE * MMA_SIDE);
    let (target, group) = (&args.target, gpu.block_idx_y());
    let (column, own) = (gpu.lane_id() / 4, gpu.lane_id() % 4 * 2);
    if gpu.grid_dim_z() > 1 {
        let block = (gpu.block_idx_z() * gpu.grid_dim_y() + group) * args.tiles + tile;
        let partial = args.partial.add_rows(block, filters * pixels * 4);
        let is_last = target.channels_last != 0;
        let [of_filter, of_pixel] = if is_last { [1, filters] } else { [pixels, 1] };
        for (at, &sum) in sums.iter().enumerate() {
            let (filter, row) = place(at as u32, own);
            let pixel = (2 * warp + row) * MMA_SIDE + column;
            // SAFETY: as promised by the caller.
            unsafe { gpu.store(partial.add((filter * of_filter + pixel * of_pixel) as usize), [sum]) };
        }
        return;
    }
    let of_tile = target.place(tile, [MMA_SIDE; 2], group * filters);
    let mut nonzeros = 0;
    // SAFETY: as promised by the caller; pixels and filters are written that are there.
    unsafe {
        if gpu.warp_all(FULL_WARP, are_finite(sums)) {
            let offset = |row: u32| target.offset(of_tile, (2 * warp + row) * MMA_SIDE + column, MMA_SIDE);
            let results = Results {
                target,
                image: u64::from(of_tile.image) * u64::from(target.map.image_bytes),
                offsets: [offset(0), offset(1)],
                filter: of_tile.filter + own,
            };
            nonzeros = results.finish(gpu, sums);
        } else {
            // All of the warp's are made again. A loop that the compiler cannot unroll: its body is long.
            let count = gpu.warp_shuffle_idx(FULL_WARP, L as u32, 0, WARP);
            let mut at = 0;
            while at < count {
                let (filter, row) = place(at, own);
                let pixel = (2 * warp + row) * MMA_SIDE + column;
                let (source, element) = (Some(&args.source), [filter, pixel]);
                nonzeros += target.finish_element(gpu, source, of_tile, element, MMA_SIDE, f32::NAN);
                at += 1;
            }
        }
        target.count(gpu, nonzeros);
    }
}

/// A thread's results of a tile. This code runs once, so that its length is its time: what is not to be done is passed over as a whole.
struct Results<'a, T> {
    target: &'a Target<T>,
    /// Bytes to the image.
    image: u64,
    /// Bytes from a channel's first pixel to those of the thread, if they are there.
    offsets: [Option<u32>; 2],
    /// The thread's first filter.
    filter: u32,
}

impl<T: DeviceValue> Results<'_, T> {
    /// Finishes and writes sums: with bias and residual, between limits. How many results are not zero, where that is asked for.
    ///
    /// # Safety
    /// As for [`write`].
    #[inline(always)]
    unsafe fn finish<G: Gpu, const L: usize>(&self, gpu: G, sums: &mut [f32; L]) -> u32 {
        let target = self.target;
        // SAFETY: as promised by the caller.
        unsafe {
            if target.bias.address() != 0 {
                self.add_bias(gpu, sums);
            }
            if target.residual.address() != 0 {
                self.add_residual(gpu, sums);
            }
            target.limit(gpu, sums);
            self.store(gpu, sums);
        }
        if target.nonzeros.address() == 0 { 0 } else { self.nonzeros(gpu, sums) }
    }

    /// # Safety
    /// The bias is there.
    #[inline(always)]
    unsafe fn add_bias<G: Gpu, const L: usize>(&self, gpu: G, sums: &mut [f32; L]) {
        let last = self.target.map.channels - 1;
        for (eight, sums) in sums.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            // What is not there has the last one's.
            let load = |filter: u32| {
                let filter = if filter < last { filter } else { last };
                // SAFETY: as promised by the caller.
                let [bias] = unsafe { gpu.load_readonly(self.target.bias.add(filter as usize)) };
                bias.to_f32(gpu)
            };
            let filter = self.filter + 8 * eight as u32;
            let (first, second) = (load(filter), load(filter + 1));
            *sums = [sums[0] + first, sums[1] + second, sums[2] + first, sums[3] + second];
        }
    }

    /// # Safety
    /// The residual is there.
    #[inline(always)]
    unsafe fn add_residual<G: Gpu, const L: usize>(&self, gpu: G, sums: &mut [f32; L]) {
        let (mut rows, step) = self.walk(gpu, self.target.residual.address());
        for (eight, sums) in sums.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            // Never so, but ptxas does not know: it would start more loads than it has registers for.
            if eight.is_multiple_of(AT_ONCE) && gpu.warp_all(FULL_WARP, self.target.residual.address() == 0) {
                return;
            }
            let load = |from: u64, is_there: bool| {
                let from = GlobalPtr::<T>::from_address(from);
                // SAFETY: as promised by the caller.
                let [residual] = if is_there { unsafe { gpu.load_readonly(from) } } else { [T::default()] };
                residual.to_f32(gpu)
            };
            let [a, b, c, d] = self.are_there(eight);
            let of = [load(rows[0], a), load(rows[0] + step, b), load(rows[1], c), load(rows[1] + step, d)];
            *sums = [sums[0] + of[0], sums[1] + of[1], sums[2] + of[2], sums[3] + of[3]];
            rows = [rows[0] + 8 * step, rows[1] + 8 * step];
        }
    }

    /// # Safety
    /// Results are this thread's.
    #[inline(always)]
    unsafe fn store<G: Gpu, const L: usize>(&self, gpu: G, sums: &[f32; L]) {
        let (mut rows, step) = self.walk(gpu, self.target.out.address());
        for (eight, &[a, b, c, d]) in sums.as_chunks::<4>().0.iter().enumerate() {
            // As above.
            if eight > 0 && eight.is_multiple_of(AT_ONCE) && gpu.warp_all(FULL_WARP, rows[0] == 0) {
                return;
            }
            let store = |to: u64, sum: f32, is_there: bool| {
                if is_there {
                    // SAFETY: as promised by the caller.
                    unsafe { gpu.store(GlobalMut::<T>::from_address(to), [T::from_f32(gpu, sum)]) };
                }
            };
            let are_there = self.are_there(eight);
            store(rows[0], a, are_there[0]);
            store(rows[0] + step, b, are_there[1]);
            store(rows[1], c, are_there[2]);
            store(rows[1] + step, d, are_there[3]);
            rows = [rows[0] + 8 * step, rows[1] + 8 * step];
        }
    }

    /// Where the thread's two pixels of its first filter are, in what begins at `first`, and bytes from a channel to the next. These come by way of a shuffle: so the
    /// compiler finds places once more, as it has no registers to keep them in. All lanes are here.
    #[inline(always)]
    fn walk<G: Gpu>(&self, gpu: G, first: u64) -> ([u64; 2], u64) {
        let step = u64::from(gpu.warp_shuffle_idx(FULL_WARP, self.target.map.channel_bytes, 0, WARP));
        let first = first + self.image + u64::from(self.filter) * step;
        (self.offsets.map(|offset| first + u64::from(offset.unwrap_or(0))), step)
    }

    /// Whether the results of eight filters are there.
    #[inline(always)]
    fn are_there(&self, eight: usize) -> [bool; 4] {
        let filter = self.filter + 8 * eight as u32;
        let [first, second] = self.offsets.map(|offset| offset.is_some());
        let filters = [filter, filter + 1].map(|filter| filter < self.target.map.channels);
        [first && filters[0], first && filters[1], second && filters[0], second && filters[1]]
    }

    /// How many results are not zero.
    #[inline(always)]
    fn nonzeros<G: Gpu, const L: usize>(&self, gpu: G, sums: &[f32; L]) -> u32 {
        let mut nonzeros = 0;
        for (eight, &[a, b, c, d]) in sums.as_chunks::<4>().0.iter().enumerate() {
            let count =
                |sum: f32, is_there: bool| u32::from(is_there && T::from_f32(gpu, sum).to_f32(gpu) != 0.0);
            let are_there = self.are_there(eight);
            nonzeros += count(a, are_there[0]) + count(b, are_there[1]);
            nonzeros += count(c, are_there[2]) + count(d, are_there[3]);
        }
        nonzeros
    }
}

//! What becomes of a warp's accumulators on tensor cores: results, or partial sums.
//!
//! A warp has two rows of eight pixels. A thread has the same column of both, and of each eight filters two neighbours: four accumulators, by row
//! and then filter. Eight threads write a row of a filter, which is a sector of 32 bytes, or the filters of a pixel.
use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use super::mma::{MMA_SIDE, MmaConvArgs};
use crate::DeviceValue;
use crate::common::are_finite;

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
    let first = of_tile.filter + own;
    let mut nonzeros = 0;
    // SAFETY: as promised by the caller; pixels and filters are written that are there.
    unsafe {
        if gpu.warp_all(FULL_WARP, are_finite(sums)) {
            let offset = |row: u32| target.offset(of_tile, (2 * warp + row) * MMA_SIDE + column, MMA_SIDE);
            let offsets = [offset(0), offset(1)];
            let last = target.map.channels - 1;
            if target.bias.address() != 0 {
                // All at once: what is not there has the last one's.
                for at in 0..L / 2 {
                    let filter = place(at as u32 / 2 * 4 + at as u32 % 2, first).0;
                    let filter = if filter < last { filter } else { last };
                    let [bias] = gpu.load_readonly(target.bias.add(filter as usize));
                    let bias = bias.to_f32(gpu);
                    sums[at / 2 * 4 + at % 2] += bias;
                    sums[at / 2 * 4 + at % 2 + 2] += bias;
                }
            }
            for (at, &sum) in sums.iter().enumerate() {
                let (filter, row) = place(at as u32, first);
                match offsets[row as usize] {
                    Some(offset) if filter <= last => {
                        nonzeros += target.finish_biased(gpu, [of_tile.image, filter], offset, [sum]);
                    }
                    _ => {}
                }
            }
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

//! What becomes of a warp's sums: results, or partial sums.
use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use super::PRODUCT_PIXELS;
use crate::HalfValue;
use crate::conv::Target;
use crate::conv::mma::MmaConvArgs;
use crate::conv::results::{PIXELS_APART, Pixels, Results};

/// A lane's pixels: of each 64 of a tile two.
#[derive(Clone, Copy)]
struct RunOfPixels {
    /// The tile's first pixel, counted through all images.
    tile: u32,
    /// The lane's first one in the tile.
    first: u32,
}

impl Pixels for RunOfPixels {
    #[inline(always)]
    fn in_tile(self, part: u32, half: u32) -> u32 {
        self.first + part * PRODUCT_PIXELS + half * PIXELS_APART
    }

    #[inline(always)]
    fn find<T>(self, target: &Target<T>, part: u32, half: u32) -> (u64, bool) {
        let (map, pixel) = (&target.map, self.tile + self.in_tile(part, half));
        // Images lie one after another.
        (u64::from(pixel) * u64::from(map.column_bytes), pixel < map.height * map.width)
    }
}

/// Writes a warp's results of tile `tile`, which has `pixels`, or its partial sums where there are several splits: 16 pixels of each 64, from `first` on.
///
/// # Safety
/// The pixels are the warp's, whose lanes are all here; the arguments are those of the launch, whose groups have 2·`L` filters.
#[inline(always)]
pub(super) unsafe fn write<G: Gpu, T: HalfValue, const L: usize, const M: usize>(
    gpu: G,
    args: &MmaConvArgs<T>,
    [tile, pixels]: [u32; 2],
    first: u32,
    sums: &mut [[f32; L]; M],
) {
    let (target, filters, t) = (&args.target, 2 * L as u32, gpu.lane_id() % 4);
    // By way of a shuffle, so that the compiler finds what follows from it once more for each tile: it has no registers to keep it in.
    let group = gpu.warp_shuffle_idx(FULL_WARP, gpu.block_idx_y(), 0, WARP);
    let own = RunOfPixels { tile: tile * pixels, first: first + gpu.lane_id() / 4 };
    if gpu.grid_dim_z() > 1 {
        let block = (gpu.block_idx_z() * gpu.grid_dim_y() + group) * args.tiles + tile;
        let partial = args.partial.add_rows(block, filters * pixels * 4);
        // In the order of columns: so four lanes write 32 bytes together. Whoever adds them knows which filters these are.
        for (part, sums) in sums.iter().enumerate() {
            for half in 0..2 {
                let pixel = own.in_tile(part as u32, half as u32);
                let to = partial.add((pixel * filters + 2 * t) as usize);
                for (eight, sums) in sums.as_chunks::<4>().0.iter().enumerate() {
                    // SAFETY: as promised by the caller.
                    unsafe { gpu.store(to.add(8 * eight), [sums[2 * half], sums[2 * half + 1]]) };
                }
            }
        }
        return;
    }
    let place = target.place(tile, [1, pixels], group * filters);
    let results = Results { target, source: &args.source, place, columns: pixels, pixels: own, t };
    // SAFETY: as promised by the caller.
    unsafe { results.write(gpu, sums) };
}

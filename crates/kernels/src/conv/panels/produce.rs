//! How pixels and filters come into the stages.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::{
    GROUPS, OF_PIECE, PANEL_CHANNELS, PIECE, PIECES, PLACE_WORDS, ROW, STAGES, WARPGROUP, WgmmaPanelConv,
    Work,
};
use crate::HalfValue;
use crate::common::strided;
use crate::conv::Source;
use crate::conv::mma::MmaConvArgs;
use crate::conv::split::MmaValue;

/// Rows of a panel that the producers fill at once: eight lanes each.
const AT_ONCE: u32 = WARPGROUP / PIECES;
/// Steps whose copies are under way when the one before them is said to be full.
const LAG: u32 = STAGES - 2;

impl<T: MmaValue + HalfValue, const L: usize, const M: usize> WgmmaPanelConv<T, L, M> {
    /// Fills all stages, for every tile of the block.
    ///
    /// # Safety
    /// The arguments describe maps and filters; all producers are here.
    #[inline(always)]
    pub(super) unsafe fn produce<G: Gpu>(work: &Work<'_, G, T>, warp: u32) {
        let (gpu, args) = (work.gpu, work.args);
        let taps = args.source.taps[0] * args.source.taps[1];
        let filters = args.filters.add_rows(gpu.block_idx_y() * args.chunks, Self::B_BYTES);
        let (mut tile, mut filled, mut stage) = (gpu.block_idx_x(), 0, 0);
        // The stage that is said to be full next.
        let mut full = 0;
        while tile < args.tiles {
            // SAFETY: as promised by the caller; a stage is filled while it is empty.
            unsafe {
                Self::find_pixels(work, warp, tile);
                let (mut chunk, tap) = (work.first / taps, work.first % taps);
                let mut tap = [tap / args.source.taps[1], tap % args.source.taps[1]];
                for step in work.first..work.first + work.steps {
                    if filled >= STAGES {
                        gpu.barrier_sync(Self::EMPTY + stage, Self::AT_EMPTY);
                    }
                    let to = stage * Self::STAGE_BYTES;
                    Self::copy_pixels(work, warp, to, chunk, tap);
                    let from = filters.add_rows(step, Self::B_BYTES);
                    let thread = warp * WARP + gpu.lane_id();
                    let to = SharedPtr::<u32>::from_offset(to + Self::A_BYTES);
                    for turn in 0..Self::B_BYTES / PIECE / WARPGROUP {
                        let at = 4 * (thread + turn * WARPGROUP);
                        gpu.copy_async::<u32, 4>(to.add(at), from.add(at as usize));
                    }
                    gpu.copy_async_commit();
                    if filled >= LAG {
                        gpu.copy_async_wait::<LAG>();
                        Self::say_full(gpu, &mut full);
                    }
                    (filled, stage) = (filled + 1, Self::after(stage));
                    // Taps go round within a chunk.
                    tap[1] += 1;
                    if tap[1] == args.source.taps[1] {
                        tap = [tap[0] + 1, 0];
                    }
                    if tap[0] == args.source.taps[0] {
                        (chunk, tap) = (chunk + 1, [0, 0]);
                    }
                }
            }
            tile += gpu.grid_dim_x();
        }
        gpu.copy_async_wait::<0>();
        for _ in 0..if filled < LAG { filled } else { LAG } {
            Self::say_full(gpu, &mut full);
        }
    }

    #[inline(always)]
    const fn after(stage: u32) -> u32 {
        if stage + 1 == STAGES { 0 } else { stage + 1 }
    }

    /// What was copied is there for each warpgroup.
    #[inline(always)]
    fn say_full<G: Gpu>(gpu: G, stage: &mut u32) {
        gpu.fence_async_proxy();
        for group in 0..GROUPS {
            gpu.barrier_arrive(Self::FULL + *stage * GROUPS + group, Self::AT_FULL);
        }
        *stage = Self::after(*stage);
    }

    /// Writes down where the warp's pixels of a tile are in the input, without padding, and at which taps they are in the map: a bit each. A pixel that is not
    /// there has none.
    ///
    /// # Safety
    /// All lanes of the warp are here.
    #[inline(always)]
    unsafe fn find_pixels<G: Gpu>(work: &Work<'_, G, T>, warp: u32, tile: u32) {
        let (gpu, source, target) = (work.gpu, &work.args.source, &work.args.target);
        let Source { map, taps, strides, padding, .. } = source;
        // The warp has no use for those of the tile before any more.
        gpu.sync_warp(FULL_WARP);
        strided(gpu.lane_id(), Self::PIXELS / 4, WARP, |at| {
            // Four rows of each sixteen.
            let pixel = at / 4 * AT_ONCE + warp * 4 + at % 4;
            let [row, column] = target.pixel(tile * Self::PIXELS + pixel);
            let mut mask = 0;
            let mut offset = 0;
            if row < target.map.height {
                let (image, row) = (row / source.out_height, row % source.out_height);
                let (row, column) = (row * strides[0], column * strides[1]);
                offset = image * map.image_bytes + row * map.row_bytes + column * map.column_bytes;
                let mut of_row = 0;
                for tap in 0..taps[1] {
                    of_row |= u32::from((column + tap).wrapping_sub(padding[1]) < map.width) << tap;
                }
                for tap in 0..taps[0] {
                    if (row + tap).wrapping_sub(padding[0]) < map.height {
                        mask |= of_row << (tap * taps[1]);
                    }
                }
            }
            // SAFETY: as promised by the caller; the place is this warp's.
            unsafe { gpu.shared_store(Self::place(pixel), [offset, mask]) };
        });
        gpu.sync_warp(FULL_WARP);
    }

    #[inline(always)]
    fn place(pixel: u32) -> SharedPtr<u32> {
        SharedPtr::from_offset(Self::TABLE + pixel * PLACE_WORDS * 4)
    }

    /// Starts copying 64 channels of the warp's pixels at a tap. Zeros stand for what is not there.
    ///
    /// # Safety
    /// The map is there, and the stage is empty.
    #[inline(always)]
    unsafe fn copy_pixels<G: Gpu>(work: &Work<'_, G, T>, warp: u32, to: u32, chunk: u32, tap: [u32; 2]) {
        let (gpu, MmaConvArgs { source, .. }) = (work.gpu, work.args);
        let (piece, first) = (gpu.lane_id() % PIECES, warp * 4 + gpu.lane_id() / PIECES);
        let channel = chunk * PANEL_CHANNELS + piece * OF_PIECE;
        let is_channel = channel < source.map.channels;
        let bit = if is_channel { 1 << (tap[0] * source.taps[1] + tap[1]) } else { 0 };
        let bytes = |[row, column]: [u32; 2]| {
            u64::from(row * source.map.row_bytes) + u64::from(column * source.map.column_bytes)
        };
        // Before the map for the first taps: what lies there is not read.
        let input = source.input.address().wrapping_sub(bytes(source.padding));
        let input = input.wrapping_add(bytes(tap)).wrapping_add(u64::from(channel) * 2);
        let input = GlobalPtr::<u16>::from_address(input);
        let to = to + first * ROW + (piece ^ (first % 8)) * PIECE;
        // SAFETY: as promised by the caller: places are there, and so are pixels at taps of their masks.
        unsafe {
            let find = |at: u32| -> [u32; 2] { gpu.shared_load(Self::place(first + at * AT_ONCE)) };
            let target = |at: u32| SharedPtr::<u16>::from_offset(to + at * AT_ONCE * ROW);
            let is_wide = source.input.address().is_multiple_of(PIECE.into());
            if is_wide {
                let copy = |at: u32, [offset, mask]: [u32; 2]| {
                    let from = input.add_bytes(offset.into());
                    gpu.copy_async_or_zero::<u16, 8>(target(at), from, mask & bit != 0);
                };
                for eight in 0..Self::PIXELS / AT_ONCE / 8 {
                    // Places are found before copies start, as these are kept in order. A loop over them would go to local memory.
                    let at = 8 * eight;
                    let (a, b, c, d) = (find(at), find(at + 1), find(at + 2), find(at + 3));
                    let (e, f, g, h) = (find(at + 4), find(at + 5), find(at + 6), find(at + 7));
                    copy(at, a);
                    copy(at + 1, b);
                    copy(at + 2, c);
                    copy(at + 3, d);
                    copy(at + 4, e);
                    copy(at + 5, f);
                    copy(at + 6, g);
                    copy(at + 7, h);
                }
            } else {
                strided(0, Self::PIXELS / AT_ONCE, 1, |at| {
                    let [offset, mask] = find(at);
                    let from = input.add_bytes(offset.into());
                    let load = |at: usize| {
                        let [x] = if mask & bit != 0 { gpu.load_readonly(from.add(at)) } else { [0_u16] };
                        u32::from(x)
                    };
                    let pair = |at: usize| load(at) | load(at + 1) << 16;
                    let words = [pair(0), pair(2), pair(4), pair(6)];
                    gpu.shared_store(SharedPtr::<u32>::from_offset(target(at).offset()), words);
                });
            }
        }
    }
}

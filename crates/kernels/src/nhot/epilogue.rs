//! The epilogue: from the sums of subwarps to the result.
use lacuna_gpu::{Gpu, SharedPtr, WARP};

use super::index::TableIndex;
use super::{Lookup, LookupArgs, Tile};
use crate::DeviceValue;
use crate::common::{add_all_across_lanes, round_into, strided, subwarp_mask};

/// Elements between the sums of two groups in shared memory, beside the sums: a column of 8 bags then lies in 8 banks.
const PAD: u32 = 4;

/// Lanes of a warp that have a bag in common.
const fn group(lanes: u32, split: u32) -> u32 {
    if lanes * split < WARP { lanes * split } else { WARP }
}

/// Shared memory of a block of this tile: for each group its sums, and how many nonzeros they are of.
pub(super) const fn shared_bytes(tile: Tile, threads: u32) -> u32 {
    threads / group(tile.lanes, tile.split) * (tile.block_columns + PAD + 1) * 4
}

impl<
    T: DeviceValue,
    I: TableIndex,
    const V: usize,
    const LANES: u32,
    const CHUNKS: usize,
    const SPLIT: u32,
    const WARPS: u32,
    const ROWS: usize,
> Lookup<T, I, V, LANES, CHUNKS, SPLIT, WARPS, ROWS>
{
    const GROUP: u32 = group(LANES, SPLIT);
    /// Groups of a block, and of a bag.
    const GROUPS: u32 = WARPS * WARP / Self::GROUP;
    const BAG_GROUPS: u32 = SPLIT * LANES / Self::GROUP;
    const BAGS: u32 = Self::GROUPS / Self::BAG_GROUPS;
    const COLUMNS: u32 = LANES * (V * CHUNKS) as u32;

    /// Adds up the subwarps' sums, always in the same order, and writes them: from bag and column `first` on.
    ///
    /// # Safety
    /// All threads of the block come, each with its subwarp's part; the result has the block's part, and no other block writes it.
    #[inline(always)]
    pub(super) unsafe fn write<G: Gpu>(
        gpu: G,
        args: &LookupArgs<T, I>,
        first: [u32; 2],
        mut count: u32,
        mut sums: [[f32; V]; CHUNKS],
    ) {
        let mask = subwarp_mask(gpu.lane_id() / Self::GROUP * Self::GROUP, Self::GROUP);
        add_all_across_lanes(gpu, mask, [LANES, Self::GROUP], Some(&mut count), sums.as_flattened_mut());
        // SAFETY: as promised by the caller.
        unsafe {
            if Self::BAG_GROUPS == 1 && args.transposed == 0 {
                Self::write_group(gpu, args, first, count, &sums);
            } else {
                Self::stage(gpu, count, &sums);
                gpu.sync_threads();
                Self::write_staged(gpu, args, first);
            }
        }
    }

    /// What sums are multiplied by.
    #[inline(always)]
    fn factor(args: &LookupArgs<T, I>, count: u32) -> f32 {
        match (args.mean, count) {
            (0, _) => 1.0,
            // The sum is 0.
            (_, 0) => 0.0,
            (_, count) => 1.0 / count as f32,
        }
    }

    /// Writes the sums of a group, which are the bag's.
    ///
    /// # Safety
    /// As for [`write`](Self::write).
    #[inline(always)]
    unsafe fn write_group<G: Gpu>(
        gpu: G,
        args: &LookupArgs<T, I>,
        [first_bag, first_column]: [u32; 2],
        count: u32,
        sums: &[[f32; V]; CHUNKS],
    ) {
        let thread = gpu.thread_idx_x();
        let bag = first_bag + thread / Self::GROUP;
        if bag >= args.bags || thread % Self::GROUP >= LANES {
            return;
        }
        let factor = Self::factor(args, count);
        let column = first_column + thread % LANES * V as u32;
        let own = args.out.add((u64::from(bag) * args.out_stride) as usize).add(column as usize);
        for (chunk, sums) in sums.iter().enumerate() {
            let offset = chunk * LANES as usize * V;
            if column + (offset as u32) < args.columns {
                let mut rounded = [T::default(); V];
                round_into(gpu, sums, |sum| sum * factor, &mut rounded);
                // SAFETY: columns are whole vectors; the group alone has this bag and these columns.
                unsafe { gpu.store(own.add(offset), rounded) };
            }
        }
    }

    /// The sums of a group in shared memory.
    #[inline(always)]
    fn sums(group: u32) -> SharedPtr<f32> {
        SharedPtr::from_offset(0).add(group * (Self::COLUMNS + PAD))
    }

    /// The count of a group in shared memory.
    #[inline(always)]
    fn count(group: u32) -> SharedPtr<u32> {
        SharedPtr::from_offset(Self::GROUPS * (Self::COLUMNS + PAD) * 4).add(group)
    }

    /// Stores a group's sums to shared memory.
    ///
    /// # Safety
    /// Nobody else uses the group's part of shared memory.
    #[inline(always)]
    unsafe fn stage<G: Gpu>(gpu: G, count: u32, sums: &[[f32; V]; CHUNKS]) {
        let thread = gpu.thread_idx_x();
        let (group, lane) = (thread / Self::GROUP, thread % Self::GROUP);
        if lane >= LANES {
            return;
        }
        // SAFETY: each group has its place, and each lane its own in that.
        unsafe {
            if lane == 0 {
                gpu.shared_store(Self::count(group), [count]);
            }
            for (chunk, sums) in sums.iter().enumerate() {
                let place = Self::sums(group).add((chunk as u32 * LANES + lane) * V as u32);
                if V >= 4 {
                    for quad in 0..V / 4 {
                        let four =
                            [sums[4 * quad], sums[4 * quad + 1], sums[4 * quad + 2], sums[4 * quad + 3]];
                        gpu.shared_store(place.add(4 * quad as u32), four);
                    }
                } else {
                    for (i, &sum) in sums.iter().enumerate() {
                        gpu.shared_store(place.add(i as u32), [sum]);
                    }
                }
            }
        }
    }

    /// Writes the block's results from shared memory: an element a thread, neighbours in the result by neighbours.
    ///
    /// # Safety
    /// As for [`write`](Self::write), after a barrier.
    #[inline(always)]
    unsafe fn write_staged<G: Gpu>(gpu: G, args: &LookupArgs<T, I>, [first_bag, first_column]: [u32; 2]) {
        strided(gpu.thread_idx_x(), Self::BAGS * Self::COLUMNS, WARPS * WARP, |element| {
            let is_transposed = args.transposed != 0;
            let (bag, column) = if is_transposed {
                (element % Self::BAGS, element / Self::BAGS)
            } else {
                (element / Self::COLUMNS, element % Self::COLUMNS)
            };
            if first_bag + bag < args.bags && first_column + column < args.columns {
                let (mut sum, mut count) = (0.0, 0);
                for i in 0..Self::BAG_GROUPS {
                    let group = bag * Self::BAG_GROUPS + i;
                    // SAFETY: the group has written them before the barrier.
                    let ([part], [parts]): ([f32; 1], [u32; 1]) = unsafe {
                        (gpu.shared_load(Self::sums(group).add(column)), gpu.shared_load(Self::count(group)))
                    };
                    sum += part;
                    count += parts;
                }
                let (bag, column) = (u64::from(first_bag + bag), u64::from(first_column + column));
                let (row, column) = if is_transposed { (column, bag) } else { (bag, column) };
                let value = T::from_f32(gpu, sum * Self::factor(args, count));
                // SAFETY: the element is the block's, and this thread's.
                unsafe { gpu.store(args.out.add((row * args.out_stride + column) as usize), [value]) };
            }
        });
    }
}

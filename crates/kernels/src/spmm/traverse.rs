//! Going through a row's nonzeros by stages, and making something of their products.
use lacuna_gpu::{FULL_WARP, Gpu, Real, WARP};

use super::form::Form;
use super::products::{Columns, Reduction, take_part, take_whole};
use super::stage::{NonzeroVector, RowNonzeros, Stage, aligned_start};
use crate::DeviceIndex;

/// Whole vectors in one turn of the inner loop.
const UNROLL: u32 = 2;

/// Nonzeros that a lane loads at once, and whose products it has under way together: one access of 16 bytes of values of
/// four bytes, or of 8 of shorter ones.
pub const QUAD: u32 = 4;

/// What a lane knows of the row that its group works on: `SPLIT` subwarps of `LANES` lanes, which share its nonzeros.
pub(super) struct GroupRow<T, I, F, const LANES: u32, const SPLIT: u32> {
    pub nonzeros: RowNonzeros<T, I>,
    pub stage: Stage<F>,
    pub b: Columns<T>,
    /// The lane, in its group.
    pub lane: u32,
    /// The subwarp, in its group.
    pub subwarp: u32,
}

impl<T: Real, I: DeviceIndex, F: Form, const LANES: u32, const SPLIT: u32> GroupRow<T, I, F, LANES, SPLIT> {
    /// Nonzeros staged at a time: a vector a lane.
    const STAGE: u32 = LANES * SPLIT * QUAD;
    /// Rows of a warp.
    const WARP_ROWS: u32 = WARP / (LANES * SPLIT);
    /// Whether a row with at most a nonzero a lane goes without a stage: that would be most of its instructions.
    const SHORT_ROWS: bool = SPLIT == 1 && LANES == WARP && F::DIFFERS.is_none();

    /// Whether any group of the warp has something left. Groups of a warp go on together, also those that have not: where
    /// they part, ptxas cannot keep in uniform registers what all lanes share, and barriers of some lanes take several
    /// instructions.
    #[inline(always)]
    fn any<G: Gpu>(gpu: G, left: bool) -> bool {
        if Self::WARP_ROWS == 1 { left } else { gpu.warp_any(FULL_WARP, left) }
    }

    /// Takes in the subwarp's share of the row, which has the nonzeros from `start` to `end`.
    ///
    /// # Safety
    /// The nonzeros and B are live; the stage belongs to this group of lanes. All groups of the warp are here.
    #[inline(always)]
    pub(super) unsafe fn reduce<G: Gpu, R: Reduction<V>, const V: usize>(
        &self,
        gpu: G,
        [start, end]: [u32; 2],
        reduced: &mut R,
    ) {
        if Self::SHORT_ROWS && end - start <= WARP {
            // SAFETY: as promised by the caller; the whole warp has this row.
            return unsafe { self.reduce_short(gpu, [start, end], reduced) };
        }
        let mut base = aligned_start(start);
        let mut early = start - base;
        let own = self.lane * QUAD;
        // SAFETY: a stage is put between two barriers of the warp, and read after the second.
        unsafe {
            let mut fetched = self.nonzeros.fetch(gpu, base + own, base + own < end);
            while Self::any(gpu, base < end) {
                let is_left = Self::WARP_ROWS == 1 || base < end;
                let left = if is_left { end - base } else { 0 };
                let columns = self.nonzeros.marked::<F>(&fetched, own, [early, left]);
                self.stage.put(gpu, self.lane, &fetched.values, self.nonzeros.sign, columns);
                gpu.sync_warp(FULL_WARP);
                let next = base + Self::STAGE;
                fetched = self.nonzeros.fetch(gpu, next + own, next + own < end);
                let staged = if left < Self::STAGE { left } else { Self::STAGE };
                self.take_stage(gpu, base, [early, staged], reduced);
                gpu.sync_warp(FULL_WARP);
                // A group whose row has ended stays there: the longest row of its warp could take it past 2³².
                if is_left {
                    base = next;
                }
                early = 0;
            }
        }
    }

    /// Takes in a row of the whole warp, with a nonzero a lane at most, which all lanes get by shuffles.
    ///
    /// # Safety
    /// As for [`reduce`](Self::reduce).
    #[inline(always)]
    unsafe fn reduce_short<G: Gpu, R: Reduction<V>, const V: usize>(
        &self,
        gpu: G,
        [start, end]: [u32; 2],
        reduced: &mut R,
    ) {
        let count = end - start;
        let has = self.lane < count;
        // SAFETY: the lane's nonzero is one of the row's; those of a vector have columns in B.
        unsafe {
            let (value, column) = self.nonzeros.fetch_one::<_, F>(gpu, start + self.lane, has);
            let vector = |first: u32| {
                let mut vector = NonzeroVector { values: [0.0; QUAD as usize], columns: [0; QUAD as usize] };
                for (i, to) in vector.values.iter_mut().enumerate() {
                    *to = gpu.warp_shuffle_idx(FULL_WARP, value, first + i as u32, WARP);
                }
                for (i, to) in vector.columns.iter_mut().enumerate() {
                    *to = gpu.warp_shuffle_idx(FULL_WARP, column, first + i as u32, WARP);
                }
                vector
            };
            let mut first = 0;
            while first + QUAD <= count {
                take_whole::<_, _, F, _, V>(gpu, vector(first), start + first, self.b, reduced);
                first += QUAD;
            }
            if first < count {
                take_part::<_, _, F, _, V>(gpu, vector(first), start + first, self.b, reduced);
            }
        }
    }

    /// Takes in a subwarp's vectors of a stage, from nonzero `base` of the matrix on, that holds the elements `early..staged`
    /// of the row.
    ///
    /// Residue handling (paper, section V-D.2): only the first and the last vector may be partial, so only they test
    /// their elements. The others go through an unrolled loop, and what the unrolling leaves through a short one.
    ///
    /// # Safety
    /// The stage is filled, and B is live.
    #[inline(always)]
    unsafe fn take_stage<G: Gpu, R: Reduction<V>, const V: usize>(
        &self,
        gpu: G,
        base: u32,
        [early, staged]: [u32; 2],
        reduced: &mut R,
    ) {
        let Self { stage, b, .. } = *self;
        let whole = staged / QUAD;
        let mut vector = self.subwarp;
        let index = |vector: u32| base.wrapping_add(vector * QUAD);
        if !F::RESIDUE_HANDLING {
            while vector * QUAD < staged {
                // SAFETY: the vector is staged, and holds an element of the row.
                unsafe {
                    take_part::<_, _, F, _, V>(gpu, stage.get(gpu, vector), index(vector), b, reduced);
                }
                vector += SPLIT;
            }
            return;
        }
        // SAFETY: vectors below `staged / QUAD`, rounded up, are staged; those from 0 (1 if `early`) to `whole` hold
        // elements of the row alone.
        unsafe {
            if early > 0 && self.subwarp == 0 {
                take_part::<_, _, F, _, V>(gpu, stage.get(gpu, 0), base, b, reduced);
                vector += SPLIT;
            }
            while vector + (UNROLL - 1) * SPLIT < whole {
                for i in 0..UNROLL {
                    let vector = vector + i * SPLIT;
                    take_whole::<_, _, F, _, V>(gpu, stage.get(gpu, vector), index(vector), b, reduced);
                }
                vector += UNROLL * SPLIT;
            }
            while vector < whole {
                take_whole::<_, _, F, _, V>(gpu, stage.get(gpu, vector), index(vector), b, reduced);
                vector += SPLIT;
            }
            if vector * QUAD < staged {
                take_part::<_, _, F, _, V>(gpu, stage.get(gpu, vector), index(vector), b, reduced);
            }
        }
    }
}
